"""What of a guest's move matters to those who look after its pod."""

from __future__ import annotations

import msgspec

from herder.api.guest import MigrationReport


class Moving(msgspec.Struct, frozen=True):
    report: MigrationReport | None = None
    # It is on its way out, and may still stay.
    under_way: bool = False
    # The target waits for our word: until then nothing of it may go.
    owed: bool = False
    # It may not be let run here, whoever wishes it.
    held: bool = False


STAYS = Moving()
