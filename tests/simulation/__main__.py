"""python -m tests.simulation: one run again, line by line."""

from __future__ import annotations

import importlib
import re

import click

from tests.simulation import faults
from tests.simulation.faults import Fault
from tests.simulation.matrix import Scenario, play
from tests.simulation.storm import storm
from tests.simulation.trace import hash_of

EXAMPLE = "tests.simulation.example.scenario"


@click.command()
@click.option("--scenario", default="", help="module:name of a Scenario; the example where none is said.")
@click.option("--seed", default=1, show_default=True)
@click.option("--fault", "told", multiple=True, help="As a failing matrix prints it: CrashAfter('controllers', 3)")
@click.option("--storm", "is_storm", is_flag=True, help="The faults that the seed chooses.")
@click.option("--only-hash", is_flag=True, help="Of the trace, to compare two runs.")
def main(scenario: str, seed: int, told: tuple[str, ...], is_storm: bool, only_hash: bool) -> None:
    """Plays a scenario with the faults that are said, and shows all that happened."""
    chosen = [*map(_fault, told), *(storm(seed) if is_storm else [])]
    module, _, name = (scenario or (f"{EXAMPLE}:FLOCKS_IN_A_STORM" if is_storm else f"{EXAMPLE}:FLOCKS_ALONE")).partition(":")
    played: Scenario = getattr(importlib.import_module(module), name)
    outcome = play(played, seed, chosen, traced=True)
    if only_hash:
        click.echo(hash_of(outcome.trace))
        return
    click.echo("\n".join(outcome.trace))
    click.echo("\n".join(outcome.problems) or "all is well")


def _fault(text: str) -> Fault:
    found = re.fullmatch(r"(\w+)\('([\w-]+)', (\d+)\)", text)
    kind = getattr(faults, found[1], None) if found else None
    if found is None or kind is None:
        names = ", ".join(one.__name__ for one in faults.ON_WRITES)
        raise click.BadParameter(f"{text!r} is no fault; right would be CrashAfter('controllers', 3), or another of {names}")
    return kind(found[2], int(found[3]))


if __name__ == "__main__":
    main()
