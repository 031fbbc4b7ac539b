"""All controllers and the scheduler in a process of their own, with metrics: python -m bench.turns_process KUBECONFIG PORT SECONDS

With more than 0 SECONDS migrations do not call each other: one that has to wait asks again after that time, as KubeVirt's do.
"""

import asyncio
import socket
import sys
from pathlib import Path

from herder.app.controllers_choice import controllers_for
from herder.app.controllers_process import NAME, Process, Settings
from herder.controllers.migration import Migrations
from herder.kube.client import Client
from herder.kube.connect import connect
from herder.kube.controller import DONE, Later, Result
from herder.kube.kit import Kit, Runs, Start
from herder.kube.leases import Settings as LeaseSettings
from herder.kube.resources import Key
from herder.rules.migration import phase_of

WAITS = ("Pending", "Scheduled")


class AskingAgain(Migrations):
    seconds = 5.0

    def _call(self, key: Key) -> None:
        """Nobody is called."""

    async def reconcile(self, key: Key) -> Result:
        result = await super().reconcile(key)
        migration = self._look.migrations.get(key)
        waits = migration is not None and phase_of(migration) in WAITS
        return Later(self.seconds) if waits and result is DONE else result


def starts(asks_again: float) -> tuple[Start, ...]:
    def instead(kit: Kit) -> Runs:
        AskingAgain.seconds = asks_again
        return AskingAgain.start(kit)

    return tuple(instead if asks_again and one == Migrations.start else one for one in controllers_for(embedded=True))


async def main(kubeconfig: Path, port: int, asks_again: float) -> None:
    with socket.create_server(("127.0.0.1", port)) as listener:
        async with Client(connect(kubeconfig, None, NAME), NAME) as client:
            # Always of the same name: the next one leads at once.
            await Process(client, Settings(LeaseSettings(), identity="bench"), starts(asks_again)).run(listener)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
