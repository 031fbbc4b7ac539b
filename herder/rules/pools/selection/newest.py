"""Newest: the machine that was created last."""

from __future__ import annotations

from herder.rules.pools.member import Member
from herder.rules.pools.selection.inputs import Inputs


def order(member: Member, inputs: Inputs) -> float:
    return -member.created
