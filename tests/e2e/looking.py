"""A fleet of simulated nodes with an endpoint, beside a real cluster: `python -m tests.e2e.looking KUBECONFIG FOLDER READY`."""

import asyncio
import sys
from pathlib import Path

from prometheus_client import CollectorRegistry

from herder.api.world import RealWorld
from herder.app.address import listen_on
from herder.kube.client import Client
from herder.kube.connect import connect
from herder.nodes.endpoint import Endpoint, server_tls
from herder.nodes.fleet import Fleet
from herder.nodes.node import NodeSettings
from tests.engines.kubernetes import KUBELET_CLIENT

NAME = "herder-agent"


async def run(kubeconfig: Path, folder: Path, ready: Path) -> None:
    """`folder` holds the certificates: the authority's, and the node's own."""
    endpoint = Endpoint(
        server_tls(folder / "kubelet.crt", folder / "kubelet.key", folder / "ca.crt"), (KUBELET_CLIENT,), RealWorld()
    )
    await endpoint.start(listen_on("the nodes", "127.0.0.1", 0))
    async with Client(connect(kubeconfig, None, NAME), NAME) as client, asyncio.TaskGroup() as group:
        nodes = (NodeSettings(name="looked-into", tainted=True),)
        fleet = Fleet(client, RealWorld(), nodes, CollectorRegistry(), endpoint=endpoint)
        group.create_task(fleet.run())
        await fleet.registered.wait()
        ready.write_text(str(endpoint.port))


if __name__ == "__main__":
    asyncio.run(run(*(Path(word) for word in sys.argv[1:4])))
