"""`--scoring`: the same choice wherever pods are placed, or it is explained where they go."""

from __future__ import annotations

import click

# As in herder.rules.placement, whose numpy nobody has to wait for who only asks for help.
SCORINGS = ("LeastAllocated", "MostAllocated")

scoring_option = click.option(
    "--scoring",
    type=click.Choice(SCORINGS),
    default=SCORINGS[0],
    show_default=True,
    help="Which nodes pods like best: empty ones, or full ones, so that others become empty.",
)
