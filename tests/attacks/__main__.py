"""python -m tests.attacks [CLASS ...]: how long others wait while requests of each class are sent, beside a valid ConfigMap."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

import click

from tests.attacks.attack import ATTACKS, WHOLE
from tests.attacks.classes import __all__ as _registered
from tests.attacks.range import Result, engine_under_attack, shooting_range
from tests.engines.engine import Engine

AIM = 0.25
MOST_TIMES = 3.0
assert _registered


@click.command()
@click.argument("classes", nargs=-1, metavar="[CLASS]...", type=click.Choice(list(ATTACKS)))
@click.option("--times", default=2, show_default=True, help="Of each request the best of so many counts.")
@click.option("--size", default=WHOLE, show_default=True, help="The largest body, in bytes.")
def main(classes: tuple[str, ...], times: int, size: int) -> None:
    with tempfile.TemporaryDirectory() as folder, engine_under_attack(Path(folder)) as (engine, pid):
        worst = asyncio.run(_run(engine, pid, classes or tuple(ATTACKS), times, size))
    sys.exit(worst > MOST_TIMES)


async def _run(engine: Engine, pid: int, classes: tuple[str, ...], times: int, size: int) -> float:
    worst = 0.0
    async with shooting_range(engine, pid) as there:
        base = await there.baseline(times + 1)
        print(_line(base, base.stall), flush=True)
        for name in classes:
            result = await there.attack(ATTACKS[name], size, times)
            worst = max(worst, result.stall / base.stall)
            print(_line(result, base.stall), flush=True)
    print(f"the aim on an idle machine: {AIM * 1000:.0f} ms; at most {MOST_TIMES:g} times a valid ConfigMap, worst {worst:.1f}")
    return worst


def _line(result: Result, base: float) -> str:
    flag = "over" if result.stall > MOST_TIMES * base else "aim " if result.stall > AIM else "    "
    codes = " ".join(map(str, sorted(set(result.codes))))
    stall = f"{result.stall * 1000:7.0f} ms {result.stall / base:5.1f}x"
    return f"{flag} {result.name:28} {stall} {result.growth / 2**20:7.0f} MB   {codes}"


if __name__ == "__main__":
    main()
