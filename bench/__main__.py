"""python -m bench [NAME ...] [--quick]"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console

from bench import (
    autoscalers,
    cache,
    calls,
    creates,
    drains,
    fleet,
    idle_day,
    job_runs,
    jobs,
    lists,
    machines,
    memory,
    migratability,
    node_watches,
    placement,
    policies,
    pools,
    qemu_machines,
    qemu_moves,
    qemu_starts,
    queued_moves,
    renewals,
    reservations,
    sampling,
    status_applies,
    status_patches,
    store_log,
    suspensions,
    targets,
    watches,
)
from bench.neighbours import Neighbours
from bench.report import Report, show, write
from bench.sides import Options

_MODULES = (
    store_log,
    creates,
    status_patches,
    status_applies,
    renewals,
    lists,
    watches,
    node_watches,
    memory,
    cache,
    calls,
    placement,
    reservations,
    policies,
    targets,
    migratability,
    autoscalers,
    idle_day,
    machines,
    sampling,
    fleet,
    drains,
    pools,
    jobs,
    job_runs,
    queued_moves,
    qemu_starts,
    qemu_moves,
    qemu_machines,
    suspensions,
)
BENCHMARKS: dict[str, Callable[[Options], Report]] = {module.NAME: module.run for module in _MODULES}
RESULTS = Path(__file__).parent / "results"


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", type=click.Choice(list(BENCHMARKS)))
@click.option("--quick", is_flag=True, help="Fewer and shorter rounds: to see that it works, not what it says.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path(tempfile.gettempdir()),
    show_default=True,
    help="Where the servers keep their data meanwhile; should be on a real disk.",
)
def main(names: tuple[str, ...], quick: bool, folder: Path) -> None:
    """Measure herder beside kube-apiserver and etcd, on this machine, in one run. Times are shown, never judged as a test."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    options = Options(quick, folder.absolute())
    reports: list[Report] = []
    for name in names or BENCHMARKS:
        console.print(f"[dim]{name} ...[/]")
        neighbours = Neighbours()
        report = BENCHMARKS[name](options)
        report.notes += neighbours.notes()
        show(report, console)
        reports.append(report)
    path = write(reports, RESULTS, quick=quick)
    console.print(f"Written to {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")


if __name__ == "__main__":
    main()
