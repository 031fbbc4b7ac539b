"""pools.yaml: what holds for all VirtualMachinePools of the cluster."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from herder.api import defaults
from herder.rules.herder_config.reading import Configuration

POOLS: Final = "pools.yaml"
# As many machines as the largest pool that is measured: a burst above it holds nobody back, which is what it is there for.
MOST_BURST: Final = 5000


class PoolsConfiguration(Configuration, frozen=True, kw_only=True):
    # Machines of one pool that were made, changed or deleted and are not yet Running, halted or gone.
    burst: Annotated[
        int, Meta(ge=1, le=MOST_BURST, description=f"must be a whole number of machines per pool from 1 to {MOST_BURST}")
    ] = defaults.POOL_BURST
