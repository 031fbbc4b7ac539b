"""The shapes of -o json and -o yaml are documented, field by field."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from herder.rules.drains import DrainPlan, DrainRow
from herder.rules.jobs.evacuation import EvacuationPlan, EvacuationRow, StaysRow
from herder.rules.jobs.explain import AheadRow, HolderRow, JobExplanation
from herder.rules.jobs.shown import ConditionRow, JobList, JobReport, JobRow, ReservationRow
from herder.rules.migratability.baseline import Baseline, Change
from herder.rules.migratability.explain import ClusterLevels, GuestTakers, LevelRow, NodeTakers, TakerRow
from herder.rules.migration.explain import MigrationExplanation
from herder.rules.placement.explain import PlacementExplanation, PlacementRow, ReservedRow
from herder.rules.policies import PolicyExplanation, PolicyRow, SettingRow
from herder.rules.pools.explain import MachineRow, PlanStep, PoolPlanExplanation, PoolReport
from herder.rules.pools.history import PoolHistory, RevisionRow
from herder.rules.pools.preservation import PreservedRow, PreservedStates
from herder.rules.targets import Impossible, TargetRow

PAGE = Path(__file__).parents[3] / "docs" / "commands.md"


def _documented() -> list[tuple[str, list[str]]]:
    """Each row of the table: its head, and the fields in their order."""
    section = PAGE.read_text().partition("\n| | fields |\n")[2].partition("\n\n")[0]
    cells = [line.strip("| ").split(" | ", 1) for line in section.splitlines()[1:]]
    return [(head, re.findall(r"`(\w+)`", fields)) for head, fields in cells]


@pytest.mark.parametrize(
    ("place", "head", "shape"),
    [
        (place, head, shape)
        for place, (head, shape) in enumerate(
            (
                ("`explain placement`", PlacementExplanation),
                ("… `nodes`", PlacementRow),
                ("… `reserved`", ReservedRow),
                ("`explain target`", MigrationExplanation),
                ("… `notMigratable`, `impossible`", Impossible),
                ("… `nodes`", TargetRow),
                ("`explain policy`", PolicyExplanation),
                ("… `policies`", PolicyRow),
                ("… `settings`", SettingRow),
                ("`explain migratability`", ClusterLevels),
                ("… `nodes`", LevelRow),
                ("`explain migratability NODE`", NodeTakers),
                ("`explain migratability VM`", GuestTakers),
                ("… `nodes`", TakerRow),
                ("`explain baseline`", Baseline),
                ("… `changes`", Change),
                ("`drain NODE --plan`", DrainPlan),
                ("… `guests`", DrainRow),
                ("`pool status`", PoolReport),
                ("… `machines`", MachineRow),
                ("`pool plan`", PoolPlanExplanation),
                ("… `steps`, `later`", PlanStep),
                ("`pool preserved`", PreservedStates),
                ("… `machines`", PreservedRow),
                ("`pool rollout history`", PoolHistory),
                ("… `revisions`", RevisionRow),
                ("`job list`", JobList),
                ("… `jobs`", JobRow),
                ("`job status`", JobReport),
                ("… `conditions`", ConditionRow),
                ("… `reservation`", ReservationRow),
                ("`evacuate --plan`", EvacuationPlan),
                ("… `jobs`", EvacuationRow),
                ("… `stay`", StaysRow),
                ("`explain job`", JobExplanation),
                ("… `ahead`", AheadRow),
                ("… `holders`", HolderRow),
            )
        )
    ],
)
def test_the_page_lists_the_fields_of_every_document(place: int, head: str, shape: type[msgspec.Struct]) -> None:
    assert _documented()[place] == (head, list(shape.__struct_encode_fields__))
