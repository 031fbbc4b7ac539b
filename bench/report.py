"""What a benchmark found: a table for people, JSON for whoever compares runs."""

import json
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.rounds import Measured
from bench.sides import OURS, THEIRS

MORE = "more"
LESS = "less"


@dataclass(frozen=True)
class Row:
    """One figure of both sides. `aim` is what we promise, in words; `met` whether this run kept it."""

    what: str
    unit: str
    ours: float | None
    theirs: float | None = None
    better: str = ""
    aim: str = ""
    met: bool | None = None

    @property
    def advantage(self) -> float | None:
        """How many times better ours is; below 1 it is worse."""
        if not self.better or not self.ours or not self.theirs:
            return None
        return self.ours / self.theirs if self.better == MORE else self.theirs / self.ours


@dataclass
class Report:
    name: str
    title: str
    rows: list[Row]
    notes: list[str] = field(default_factory=list[str])
    sides: tuple[str, str] = (OURS, THEIRS)
    rounds: dict[str, list[dict[str, float]]] = field(default_factory=dict[str, list[dict[str, float]]])


def row_of(measured: Measured, figure: str, what: str, unit: str, better: str = LESS) -> Row:
    return Row(what, unit, measured.median(OURS, figure), measured.median(THEIRS, figure), better)


def promised(row: Row, aim: str, met: bool | None) -> Row:
    return Row(row.what, row.unit, row.ours, row.theirs, row.better, aim, met)


def at_most(row: Row, limit: float | None, aim: str) -> Row:
    return promised(row, aim, None if limit is None or row.ours is None else row.ours <= limit)


def load_rows(measured: Measured, what: str) -> list[Row]:
    """What every benchmark with writers shows."""
    return [
        row_of(measured, "rate", what, "/s", MORE),
        row_of(measured, "p50", "p50", "ms"),
        row_of(measured, "p99", "p99", "ms"),
        row_of(measured, "server_cpu", "server CPU per request", "ms"),
        row_of(measured, "client_cpu", "client CPU per request", "ms", ""),
        row_of(measured, "busy", "client's share of its core", "", ""),
    ]


def show(report: Report, console: Console) -> None:
    table = Table(title=f"{report.name}: {report.title}", title_justify="left", title_style="bold")
    table.add_column("")
    for heading in (*report.sides, "better by", "aim"):
        table.add_column(heading, justify="right")
    for row in report.rows:
        verdict = {None: "", True: " [green]✓[/]", False: " [red]✗[/]"}[row.met]
        gain = f"{row.advantage:.2f}x" if row.advantage is not None else ""
        table.add_row(row.what, _figure(row.ours, row.unit), _figure(row.theirs, row.unit), gain, row.aim + verdict)
    console.print(table)
    for note in report.notes:
        console.print(f"  note: {note}")
    console.print()


def write(reports: Sequence[Report], folder: Path, *, quick: bool) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / (time.strftime("%Y%m%d-%H%M%S") + ("-quick" if quick else "") + ".json")
    path.write_text(json.dumps({"machine": _machine(), "quick": quick, "benchmarks": [_plain(one) for one in reports]}, indent=1))
    return path


def _plain(report: Report) -> dict[str, Any]:
    plain = asdict(report)
    for row, shown in zip(report.rows, plain["rows"], strict=True):
        shown["advantage"] = row.advantage
    return plain


def _machine() -> dict[str, Any]:
    return {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version(), "load": os.getloadavg()[0]}


def _figure(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}{'' if unit.startswith('/') or not unit else ' '}{unit}"
