"""The controllers' process with one controller in it: it writes its name into a ConfigMap, again and again, while it leads.

python -m tests.behaviour.counting KUBECONFIG NAMESPACE IDENTITY
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from herder.app import controllers_process, logs
from herder.app.cluster import connect_to
from herder.kube.controller import Later, Result
from herder.kube.kit import Kit, Runs
from herder.kube.leases import Settings
from herder.kube.resources import CONFIG_MAPS, Key

LEDGER = "ledger"


class Counting:
    name = "counting"

    def __init__(self, kit: Kit, identity: str) -> None:
        self._client = kit.client
        self._identity = identity

    async def reconcile(self, key: Key) -> Result:
        ledger = await self._client.get(CONFIG_MAPS, key)
        entries = f"{ledger.data.get('entries', '')} {self._identity}".strip()
        same = {"resourceVersion": ledger.metadata.resource_version}
        await self._client.patch(CONFIG_MAPS, key, {"metadata": same, "data": {"entries": entries}})
        return Later(0.05)


def main(kubeconfig: str, namespace: str, identity: str) -> None:
    def counting(kit: Kit) -> Runs:
        queue = kit.queue("counting")
        queue.add(Key(namespace, LEDGER))
        return kit.work(Counting(kit, identity), queue)

    async def run() -> int:
        lease = Settings(Key(namespace, "counting"), duration=4, renew_deadline=2.5, retry_period=0.5)
        settings = controllers_process.Settings(lease, identity)
        return await controllers_process.run(connect_to(Path(kubeconfig), None, "counting"), settings, (counting,))

    logs.configure("counting")
    sys.exit(asyncio.run(run()))


if __name__ == "__main__":
    main(*sys.argv[1:])
