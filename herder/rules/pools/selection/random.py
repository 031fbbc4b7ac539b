"""Random: those that are missed least first, and at random among them.

Chance comes with the machine's uid, which the API server drew: so a plan says beforehand what will be done.
"""

from __future__ import annotations

import zlib

from herder.rules.pools.member import Member
from herder.rules.pools.selection.inputs import Inputs


def order(member: Member, inputs: Inputs) -> tuple[int, int]:
    return _missed(member, inputs), zlib.crc32(member.uid.encode())


def _missed(member: Member, inputs: Inputs) -> int:
    if member.halted:
        return 0
    if not member.ready:
        return 1 if member.failures or member.volume_failed else 2
    return 3 if member.instance_revision != inputs.revision else 4
