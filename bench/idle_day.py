"""A day of a cluster in which nothing happens, simulated: what tests under virtual time pay for each hour that they let pass."""

import asyncio
import time

from bench.report import LESS, Report, Row, at_most
from bench.rounds import Measured
from bench.sides import Options
from herder.kube.leases import Settings
from tests.simulation.cluster import RENEW_EVERY, UNHURRIED, controllers, node
from tests.simulation.simulation import Simulation, simulate

NAME = "idle-day"
NODES = 3
DAY = 86_400.0
LIMIT = 10.0
SEED = 1
# As tests may set them: the lease of a node lasts 40 s, that of a leader 15 s.
SLOW, REAL = "slow heartbeats", "real heartbeats"
HEARTBEATS: dict[str, tuple[float, Settings]] = {SLOW: (2 * RENEW_EVERY, UNHURRIED), REAL: (RENEW_EVERY, Settings())}


def run(options: Options) -> Report:
    share = 0.05 if options.quick else 1.0
    measured = Measured()
    for name, heartbeats in HEARTBEATS.items():
        measured.add(name, _simulate(heartbeats, DAY * share))
    rows = [
        at_most(_row(measured, "seconds", "time on the clock", share), LIMIT, f"at most {LIMIT:.0f} s"),
        _row(measured, "cpu", "CPU time", share),
        Row("writes", "", measured.median(SLOW, "writes"), measured.median(REAL, "writes")),
    ]
    report = Report(NAME, "a day of three idle nodes and a leader", rows, sides=(SLOW, REAL), rounds=measured.rounds)
    if options.quick:
        report.notes.append("of a twentieth of a day: times are scaled up, writes are not")
    return report


def _row(measured: Measured, figure: str, what: str, share: float) -> Row:
    slow, real = ((measured.median(side, figure) or 0.0) / share for side in (SLOW, REAL))
    return Row(what, "s", slow, real, LESS)


def _simulate(heartbeats: tuple[float, Settings], seconds: float) -> dict[str, float]:
    every, settings = heartbeats

    async def main(simulation: Simulation) -> float:
        leader = controllers(simulation, "controllers", (), settings)
        await simulation.started(leader, *(node(simulation, f"node-{number + 1}", every) for number in range(NODES)))
        await asyncio.sleep(seconds)
        assert simulation.server.running is not None
        return float(simulation.server.running.engine.store.revision)

    began, used = time.perf_counter(), time.process_time()
    writes = simulate(SEED, main, traced=False, latency=False)
    return {"seconds": time.perf_counter() - began, "cpu": time.process_time() - used, "writes": writes}
