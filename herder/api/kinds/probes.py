"""How a guest is asked whether it lives and whether it is ready."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import field

from herder.api.views import PRINTABLE, IntOrName, Rule, View, doc, exactly_one, limited, spelled

_HEADER_NAME = spelled(r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", "the name of a header such as X-Token")
_PATH = spelled(r"^[^\x00-\x20\x7f]*$", "a path such as /healthz, without blanks and control characters")
_NO_NUL = Rule(r"""!self.matches("\\x00")""", "must have no NUL")
_Argument = Annotated[str, limited(4096, _NO_NUL)]


class HTTPHeader(View, frozen=True, kw_only=True):
    """One header of the request."""

    name: Annotated[str, doc("Name of the header.", min_length=1, max_length=256, rules=(_HEADER_NAME,))]
    value: Annotated[str, doc("Value of the header.", max_length=4096, rules=(PRINTABLE,))]


class HTTPGetAction(View, frozen=True, kw_only=True):
    """Asks by HTTP; an answer from 200 to 399 is a yes."""

    port: Annotated[IntOrName, doc("Port in the guest.")]
    path: Annotated[str, doc("Path that is asked for.", max_length=2048, rules=(_PATH,))] | None = None
    scheme: Annotated[Literal["HTTP", "HTTPS"], doc("HTTP when absent.")] | None = None
    host: (
        Annotated[str, doc("Host name to connect to; the guest's address when absent.", max_length=253, rules=(PRINTABLE,))] | None
    ) = None
    http_headers: Annotated[tuple[HTTPHeader, ...], doc("Headers of the request.", max_length=64)] | None = None


class TCPSocketAction(View, frozen=True, kw_only=True):
    """Asks by opening a connection; a connection is a yes."""

    port: Annotated[IntOrName, doc("Port in the guest.")]
    host: (
        Annotated[str, doc("Host name to connect to; the guest's address when absent.", max_length=253, rules=(PRINTABLE,))] | None
    ) = None


class ExecAction(View, frozen=True, kw_only=True):
    """Asks by running a command in the guest; exit code 0 is a yes."""

    command: Annotated[tuple[_Argument, ...], doc("Command and its arguments.", min_length=1, max_length=64)]


class GuestAgentPing(View, frozen=True, kw_only=True):
    """Asks the guest agent; an answer is a yes."""


class Probe(View, frozen=True, kw_only=True):
    """One way to ask, and how often."""

    RULES = (exactly_one("httpGet", "tcpSocket", "exec", "guestAgentPing"),)

    http_get: Annotated[HTTPGetAction, doc("Ask by HTTP.")] | None = None
    tcp_socket: Annotated[TCPSocketAction, doc("Ask by opening a connection.")] | None = None
    exec_: Annotated[ExecAction, doc("Ask by running a command in the guest.")] | None = field(default=None, name="exec")
    guest_agent_ping: Annotated[GuestAgentPing, doc("Ask the guest agent.")] | None = None
    initial_delay_seconds: Annotated[int, doc("Seconds to wait after the start; 0 when absent.", ge=0, format="int32")] | None = (
        None
    )
    timeout_seconds: Annotated[int, doc("Seconds after which no answer is a no; 1 when absent.", ge=1, format="int32")] | None = (
        None
    )
    period_seconds: Annotated[int, doc("Seconds between two questions; 10 when absent.", ge=1, format="int32")] | None = None
    success_threshold: (
        Annotated[int, doc("How many yeses in a row change the mind; 1 when absent.", ge=1, format="int32")] | None
    ) = None
    failure_threshold: (
        Annotated[int, doc("How many noes in a row change the mind; 3 when absent.", ge=1, format="int32")] | None
    ) = None
