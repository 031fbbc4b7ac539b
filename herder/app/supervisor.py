"""`herder up`: takes the data directory and the port, starts engine, controllers and agents, and says what to type next."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import shlex
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import msgspec
import structlog

from herder.app import keys
from herder.app.address import listen_on
from herder.app.certificates import Certificates
from herder.app.children import Child, ChildFailed
from herder.app.data_directory import DataDirectory, Held, is_herder
from herder.app.identities import node_names
from herder.app.kubeconfig import check_writable
from herder.app.refusal import CANNOT_RUN, Refusal
from herder.app.stopping import LEAVE_GUESTS, STOP_PATIENCE, Stop
from herder.kit.tasks import watched
from herder.nodes.runtimes.choice import QEMU
from herder.nodes.runtimes.qemu.strays import end_strays, run_on, running
from herder.pki.authority import LEAF_LIFE

# One identity, whichever process it is: there is never more than one, and the next need not wait for the lease of one that died.
# So the lease may be long, and the disk is not written to every two seconds. Others stand by, if somebody starts them beside us.
CONTROLLERS_LEASE = (
    *("--identity", f"{socket.gethostname()}_herder-up"),
    *("--lease-duration", "60", "--renew-deadline", "40", "--retry-period", "10"),
)

# How long those of a herder that was killed may take to end, and how often that is looked at.
ORPHANS_PATIENCE = 2 * STOP_PATIENCE
LOOK_AGAIN = 0.1
log = structlog.get_logger()

# Its log here ends when it leaves, and goes on there with the next number.
_MOVING = """\
  before=$(mktemp)
  .venv/bin/herder logs counter -f > "$before" &
  .venv/bin/herder migrate counter --wait; wait
  tail -n 2 "$before"; .venv/bin/herder logs counter | head -n 2
  rm "$before"
"""


class Settings(msgspec.Struct, frozen=True):
    data: Path
    host: str
    port: int
    nodes: int
    runtime: str
    kubeconfig: Path
    controllers: bool = True
    allow_local_imports: bool = False
    # What a person chose of how the controllers work.
    controllers_options: tuple[str, ...] = ()
    heartbeat: float | None = None
    storage_reserve: str = ""
    # For tests: a year, unless it is said.
    certificate_life: datetime.timedelta | None = None

    @property
    def listen(self) -> str:
        return f"{self.host}:{self.port}"


class Supervisor:
    def __init__(self, settings: Settings, say: Callable[[str], None]) -> None:
        self._settings = settings
        self._say = say
        self._directory = DataDirectory(settings.data)
        self._stop = Stop(supervised=False)

    async def run(self) -> None:
        settings = self._settings
        await self._take()
        check_writable(settings.kubeconfig)
        listener = listen_on("--listen", settings.host, settings.port)
        try:
            self._warn_of_strays()
            port = listener.getsockname()[1]
            self._directory.announce(f"{settings.host}:{port}")
            server = server_at(settings.host, port)
            keys.finish(self._directory)
            certificates = Certificates(
                self._directory.pki, settings.kubeconfig, server, settings.host, settings.certificate_life or LEAF_LIFE
            )
            certificates.make()
            await self._supervise(listener, server, certificates)
        finally:
            listener.close()
            self._directory.release()

    async def _take(self) -> None:
        """Processes of a herder that was killed are on their way out: they are waited for. So nobody else is served by the engine,
        holds the port, or talks to guests, when ours begin."""
        deadline = asyncio.get_running_loop().time() + ORPHANS_PATIENCE
        told = False
        while True:
            try:
                return self._directory.take(self._settings.listen)
            except Held:
                holder = self._directory.last_holder()
                if holder is None or is_herder(holder.pid) or asyncio.get_running_loop().time() > deadline:
                    raise
            if not told:
                log.warning("processes of a herder that was killed still end, and are waited for", data=str(self._directory.path))
            told = True
            await asyncio.sleep(LOOK_AGAIN)

    def _warn_of_strays(self) -> None:
        """Guests of nodes that this start does not bring: they run, and nobody keeps them."""
        ours = node_names(self._settings.nodes) if self._settings.runtime.startswith(QEMU) else ()
        strays = running(path for path in self._directory.guests() if path.parent.parent.name not in ours)
        if strays:
            nodes = sorted({path.parent.parent.name for path in strays})
            todo = "start with as many QEMU nodes as before, or end them with `herder down`"
            log.warning("guests run on whose nodes are not started", guests=len(strays), nodes=", ".join(nodes), todo=todo)

    async def _supervise(self, listener: socket.socket, server: str, certificates: Certificates) -> None:
        self._stop.listen()
        self._stop.listen_to_terminal()
        children = self._children(listener.fileno())
        running = [asyncio.create_task(child.run()) for child in children]
        greeting = watched(self._greet(children, server), "saying what to type next", expected=(OSError,))
        renewing = asyncio.create_task(certificates.keep())
        stopped = asyncio.create_task(self._stop.wait())
        try:
            done, _ = await asyncio.wait([*running, renewing, stopped], return_when=asyncio.FIRST_COMPLETED)
            failed = next((task.exception() for task in done if task.exception()), None)
        finally:
            greeting.cancel()
            renewing.cancel()
            # Those who use the engine first, the engine last.
            order = signal.SIGTERM if self._stop.ends_guests else LEAVE_GUESTS
            for child in reversed(children):
                await child.stop(order)
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        if isinstance(failed, ChildFailed):
            raise Refusal("", CANNOT_RUN)
        if failed is not None:
            raise failed
        await self._settle_guests()

    def _children(self, listen_fd: int) -> list[Child]:
        """The engine first. All hold the lock: while one lives nobody else begins under its identity, or talks to its guests."""
        others: list[Child] = []
        lock = self._directory.lock
        if self._settings.controllers:
            others.append(Child("controllers", self._controllers_arguments(), [lock]))
        if self._settings.nodes or self._settings.controllers:
            # Also without nodes of its own: those that a user labels as simulated have nobody else.
            others.append(Child("agents", self._agents_arguments(), [lock]))
        arguments = self._engine_arguments(listen_fd)
        for child in others:
            arguments += ["--beside", child.name]
        return [Child("engine", arguments, [listen_fd, lock]), *others]

    def _engine_arguments(self, listen_fd: int) -> list[str]:
        # Simulated ones have one agent, and one identity, together.
        doors = self._settings.nodes if self._settings.runtime.startswith(QEMU) else 0
        arguments = ["engine", "--data", str(self._directory.path), "--listen-fd", str(listen_fd), "--node-doors", str(doors)]
        return [*arguments, "--simulated-nodes", str(self._settings.nodes - doors)]

    def _controllers_arguments(self) -> list[str]:
        return ["controllers", "--data", str(self._directory.path), *CONTROLLERS_LEASE, *self._settings.controllers_options]

    def _agents_arguments(self) -> list[str]:
        settings = self._settings
        arguments = ["agents", "--data", str(self._directory.path), "--nodes", str(settings.nodes), "--runtime", settings.runtime]
        arguments += ["--allow-local-imports"] if settings.allow_local_imports else []
        arguments += ["--heartbeat", str(settings.heartbeat)] if settings.heartbeat is not None else []
        arguments += ["--storage-reserve", settings.storage_reserve] if settings.storage_reserve else []
        return arguments

    async def _settle_guests(self) -> None:
        """Also those whose agent had died, or was killed because it did not end in time."""
        if self._stop.ends_guests:
            await end_strays(self._directory.guests())
        left = running(self._directory.guests())
        # A terminal that was closed takes no words.
        with contextlib.suppress(OSError):
            if left:
                self._say(run_on(len(left)))
            self._say("herder has stopped; everything that was acknowledged is in the data directory.")

    async def _greet(self, children: list[Child], server: str) -> None:
        for child in children:
            await child.ready.wait()
        settings = self._settings
        nodes = f"{settings.nodes} {settings.runtime.split(':', 1)[0]} node{'s' if settings.nodes != 1 else ''}"
        # With one node there is nowhere to go.
        moving = _MOVING if settings.nodes > 1 else "  .venv/bin/herder logs counter --tail 3\n"
        self._say(
            f"herder is up: {server}, {nodes}, data in {settings.data}\n\n"
            "In another shell:\n\n"
            f"  export KUBECONFIG={shlex.quote(str(settings.kubeconfig.absolute()))}\n"
            "  kubectl get nodes\n"
            '  kubectl create configmap counter-kernel --from-file=guest.elf="$(make -s guest)"\n'
            "  kubectl apply -f examples/counter.yaml\n"
            "  kubectl wait --for=condition=Ready vm/counter --timeout=60s\n"
            "  kubectl get vm,vmi,pods -o wide\n"
            f"{moving}\n"
            "Ctrl-C stops it."
        )


def server_at(host: str, port: int) -> str:
    """How a client on this machine reaches what listens there."""
    return f"https://{_bracketed(_reachable(host))}:{port}"


def _reachable(host: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
