"""A real guest moves: through the runtime and through the whole control plane, beside the same by bare QMP; how long it takes, and
how long the guest stands still."""

import asyncio
import itertools
import shutil
import statistics
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path

import msgspec

from bench.bare_moves import BareWay
from bench.guest_moves import LOAD, MEMORY, Moved, Way, several
from bench.report import LESS, Report, Row, promised
from bench.sides import Options
from bench.whole_moves import WholeWay
from herder.api.guest import GuestDefinition
from herder.api.kinds.migration_state import PolicySettings
from herder.api.world import RealWorld
from herder.nodes.local import unprivileged
from herder.nodes.runtimes.base import FileVolume, Order
from herder.nodes.runtimes.choice import PROGRAM
from herder.nodes.runtimes.qemu import KeyPair, QemuRuntime, Wire, ask
from herder.nodes.runtimes.qemu.facts import Facts
from herder.pki.authority import Authority, Pair
from tools.guest.build import build

NAME = "qemu-moves"
MOST_TIMES, MOST_SECONDS_MORE, MOST_DOWNTIME_MORE = 1.1, 0.5, 50.0
_RUN_AS = unprivileged()
_HOST = "127.0.0.1"


def run(options: Options) -> Report:
    if shutil.which(PROGRAM) is None:
        return Report(NAME, "QEMU is not installed: tools/qemu/install.sh installs it", [])
    return asyncio.run(_measure(options))


async def _measure(options: Options) -> Report:
    facts = await ask(PROGRAM, _RUN_AS)
    ways: dict[str, Callable[[Path], Way]] = {
        "unix, bare": lambda root: BareWay(root, _order(), build(), facts, _RUN_AS),
        "unix": lambda root: RuntimeWay(root, facts, None),
        "whole": WholeWay,
        "TLS, bare": lambda root: BareWay(root, _order(), build(), facts, _RUN_AS, _wire(root)),
        "TLS": lambda root: RuntimeWay(root, facts, _wire(root)),
    }
    found: dict[str, list[Moved]] = {name: [] for name in ways}
    for _ in range(options.pick(4, 1)):
        for name, way in ways.items():
            with tempfile.TemporaryDirectory(dir=options.folder, ignore_cleanup_errors=True) as folder:
                found[name] += await several(way(Path(folder)), options.pick(5, 2))
    rows = [
        *compare("moved by the runtime over a unix socket", found["unix"], found["unix, bare"]),
        *compare("moved by the runtime over TCP with TLS", found["TLS"], found["TLS, bare"]),
        *compare("moved by the control plane over a unix socket", found["whole"], found["unix, bare"]),
        _known(found["whole"], found["unix, bare"]),
    ]
    return Report(NAME, f"a guest of {MEMORY} that writes ({LOAD}), {facts.accelerator}", rows, sides=("ours", "bare QMP"))


def compare(name: str, moves: list[Moved], bare: list[Moved]) -> list[Row]:
    """Beside bare QMP, and whether it is as near to it as we promise."""
    standing, still = (statistics.median(one.downtime_ms for one in side) for side in (moves, bare))
    return [
        _timed(f"{name}, until it counts there", [one.seconds for one in moves], [one.seconds for one in bare]),
        promised(
            Row("gap between two ticks", "ms", standing, still, LESS),
            f"<= bare + {MOST_DOWNTIME_MORE:.0f} ms",
            standing <= still + MOST_DOWNTIME_MORE,
        ),
    ]


def _known(moves: list[Moved], bare: list[Moved]) -> Row:
    return _timed("from its create until a watch shows Succeeded", [one.over for one in moves], [one.over for one in bare])


def _timed(name: str, ours: list[float], bare: list[float]) -> Row:
    seconds, theirs = statistics.median(ours), statistics.median(bare)
    row = Row(name, "s", seconds, theirs, LESS)
    aim = f"<= {MOST_TIMES} x + {MOST_SECONDS_MORE} s"
    return promised(row, aim, seconds <= MOST_TIMES * theirs + MOST_SECONDS_MORE)


def _order() -> Order:
    boot = {"volume": {"name": "kernel"}, "kernelArgs": LOAD}
    domain = {"memory": {"guest": MEMORY}, "firmware": {"kernelBoot": boot}, "cpu": {"model": "qemu64"}}
    document = {"instance": {"namespace": "bench", "name": "guest", "uid": "0"}, "spec": {"domain": domain}}
    return Order(str(uuid.uuid4()), msgspec.convert(document, GuestDefinition), {"kernel": FileVolume(build())})


class RuntimeWay:
    """Two nodes' runtimes, without agents."""

    def __init__(self, root: Path, facts: Facts, wire: Wire | None) -> None:
        self.root = root
        self._runtimes = [QemuRuntime(root / name, RealWorld(), facts, _RUN_AS, wire) for name in ("here", "there")]
        self._numbers = itertools.count(1)
        self._news = asyncio.Event()
        self._at, self._guest = 0, ""

    async def start(self) -> None:
        for runtime in self._runtimes:
            await runtime.open(lambda guest: self._news.set())
        order = _order()
        await self._runtimes[0].start(order)
        self._guest = order.guest

    async def move(self) -> None:
        here, there = self._runtimes[self._at], self._runtimes[1 - self._at]
        status, order, migration = here.status(self._guest), _order(), str(next(self._numbers))
        assert status is not None
        incoming = msgspec.structs.replace(order, definition=msgspec.structs.replace(order.definition, incoming=status.started))
        address = await there.prepare_incoming(incoming, migration)
        assert here.shape(self._guest) == there.shape(order.guest)
        await here.migrate_out(self._guest, migration, address, PolicySettings())
        while (moved := here.moved(self._guest)) is None or moved.state != "Completed":
            self._news.clear()
            await self._news.wait()
        await there.resume(order.guest)
        await here.remove(self._guest)
        self._at, self._guest = 1 - self._at, order.guest

    async def end(self) -> None:
        for runtime in self._runtimes:
            for guest in runtime.guests():
                await runtime.remove(guest)
            await runtime.close()


def _wire(root: Path) -> Wire:
    authority = Authority.make()
    (root / "ca").write_bytes(authority.pair.certificate)
    client = _written(root / "client", authority.client("system:node:bench", ("system:nodes",)))
    return Wire(address=_HOST, ca=root / "ca", client=client, server=_written(root / "server", authority.server((_HOST,))))


def _written(path: Path, pair: Pair) -> KeyPair:
    files = KeyPair(path.with_suffix(".crt"), path.with_suffix(".key"))
    files.certificate.write_bytes(pair.certificate)
    files.key.write_bytes(pair.key)
    return files
