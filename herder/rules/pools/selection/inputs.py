"""What selection policies may ask about beyond the machine itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from herder.rules.pools.member import Member


class NodeState(msgspec.Struct, frozen=True):
    labels: Mapping[str, str]
    # Whether its agent has been heard of lately.
    answers: bool = True


class Inputs(msgspec.Struct, frozen=True):
    nodes: Mapping[str, NodeState]
    # The revision that machines should have.
    revision: str


Matches = Callable[[Member], bool]
# Compared within one policy: less goes first.
Order = Callable[[Member, Inputs], Any]
