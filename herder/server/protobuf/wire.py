"""The wire format itself: numbers, lengths and tags, read within bounds that the sender does not set."""

from __future__ import annotations

VARINT, FIXED64, BYTES, GROUP, GROUP_END, FIXED32 = range(6)
LONGEST_VARINT = 10
LARGEST_FIELD = (1 << 29) - 1
# Far more than any object that may be stored has, and few enough that a hostile body holds nobody up: as many values as JSON may
# have, an entry of a map being three fields.
MOST_FIELDS = 150_000
MOST_MESSAGES = 50_000
DEEPEST = 100


class WireError(ValueError):
    """Says why these bytes are no message."""


class Reader:
    """The bytes of one body, and how much of it may still be read."""

    __slots__ = ("_fields", "_messages", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._fields = MOST_FIELDS
        self._messages = MOST_MESSAGES

    def message(self, depth: int) -> None:
        """One more message is about to be read."""
        if depth > DEEPEST:
            raise WireError(f"messages are nested more than {DEEPEST} deep")
        self._messages -= 1
        if self._messages < 0:
            raise WireError(f"there are more than {MOST_MESSAGES} messages in it")

    def field(self) -> None:
        """One more value is about to be read."""
        self._fields -= 1
        if self._fields < 0:
            raise WireError(f"there are more than {MOST_FIELDS} fields in it")

    def varint(self, at: int, end: int) -> tuple[int, int]:
        """A number of 64 bits without sign, and where the next thing begins."""
        data = self.data
        if at < end and data[at] < 0x80:
            return data[at], at + 1
        value = shift = 0
        for position in range(at, min(end, at + LONGEST_VARINT)):
            byte = data[position]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFF_FFFF_FFFF_FFFF, position + 1
            shift += 7
        raise WireError("a number never ends" if end - at >= LONGEST_VARINT else "it ends in the middle of a number")

    def tag(self, at: int, end: int) -> tuple[int, int, int]:
        """The number of the next field, how it is written, and where its value begins."""
        self.field()
        tag, at = self.varint(at, end)
        number, wire = tag >> 3, tag & 7
        if not 0 < number <= LARGEST_FIELD or wire > FIXED32:
            raise WireError(f"illegal tag {number} (wire type {wire})")
        return number, wire, at

    def span(self, at: int, end: int) -> tuple[int, int]:
        """Where the bytes begin and end whose length is told here."""
        length, at = self.varint(at, end)
        if length > end - at:
            raise WireError(f"a field claims {length} bytes, and {end - at} are left")
        return at, at + length

    def skip(self, wire: int, at: int, end: int) -> int:
        """Behind a field that nobody knows: one of a newer release, which is not heard, as in Kubernetes."""
        open_groups = 0
        while True:
            if wire == GROUP:
                open_groups += 1
            elif wire == GROUP_END:
                if not open_groups:
                    raise WireError("a group ends that never began")
                open_groups -= 1
            else:
                at = self._behind(wire, at, end)
            if not open_groups:
                return at
            _, wire, at = self.tag(at, end)

    def _behind(self, wire: int, at: int, end: int) -> int:
        if wire == VARINT:
            return self.varint(at, end)[1]
        if wire == BYTES:
            return self.span(at, end)[1]
        size = 8 if wire == FIXED64 else 4
        if size > end - at:
            raise WireError("it ends in the middle of a number")
        return at + size


def signed(value: int, bits: int) -> int:
    """As Go reads it into an integer of so many bits: what is too long loses its head."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
