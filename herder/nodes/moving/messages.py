"""What two agents say to each other about a guest. Each request may be repeated: it is done once, and answered again."""

from __future__ import annotations

import msgspec

# Nobody has more to say; who sends more is none of us.
LONGEST = 64 * 1024


class Hello(msgspec.Struct, frozen=True, tag="hello", forbid_unknown_fields=False):
    """From the source, before a byte of memory is sent."""

    migration: str
    guest: str  # uid of the target pod
    shape: dict[str, str]


class Resume(msgspec.Struct, frozen=True, tag="resume"):
    """From the source: the guest is given away and will never run there again."""

    migration: str
    guest: str
    # What the target said when it was ready: one that was prepared anew since then never got the memory.
    token: str
    # Its owner had paused it: it is given away standing still.
    paused: bool = False
    # The source is dead and will send nothing more: where the memory has not come by now, the guest has ended.
    now_or_never: bool = False


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    address: str  # where the memory is to be sent
    token: str
    # Why the guest cannot come by post-copy although its order allows it: both sides then do without.
    no_post_copy: str = ""


class Refusal(msgspec.Struct, frozen=True, tag="refused"):
    reason: str  # one word of `herder.api.reasons`
    message: str


class Resumed(msgspec.Struct, frozen=True, tag="resumed"):
    """It is the target's now."""


class NotYet(msgspec.Struct, frozen=True, tag="not-yet"):
    """The memory has not come whole. Ask again."""

    message: str


class Gone(msgspec.Struct, frozen=True, tag="gone"):
    """There is no guest here that could be let run, and there never will be."""

    message: str


Request = Hello | Resume
Answer = Ready | Refusal | Resumed | NotYet | Gone
_requests = msgspec.json.Decoder(Request)
_answers = msgspec.json.Decoder(Answer)


def decode_request(data: bytes) -> Request:
    """Raises msgspec's error for anything else."""
    return _requests.decode(data)


def decode_answer(data: bytes) -> Answer:
    return _answers.decode(data)


def encode(message: Request | Answer) -> bytes:
    return msgspec.json.encode(message)
