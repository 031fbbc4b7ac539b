"""For processes that bench/sampling.py starts: while a file is there, no node is asked what it uses.

Python imports this by itself where its folder is in PYTHONPATH. The program has no such switch: nobody else needs one.
"""

import os
from pathlib import Path

if where := os.environ.get("HERDER_BENCH_QUIET"):
    _quiet = Path(where)
    from herder.server.resource_metrics.sampler import Sampler

    _ask_all = Sampler.round

    async def _round(self: Sampler) -> None:
        if not _quiet.exists():
            await _ask_all(self)

    Sampler.round = _round
