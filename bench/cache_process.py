"""One cache in a process of its own, so that what it costs is not mixed up with who writes: python -m bench.cache_process HOW ...

It says what the list cost, is told which resourceVersion to wait for and how many events that makes, and says what those cost.
"""

import asyncio
import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from bench.objects import NAMESPACE
from bench.processes import peak_bytes, resident_bytes
from herder.api.world import RealWorld
from herder.kube.cache import BY_LABEL, BY_NAMESPACE, BY_NODE, BY_OWNER, Cache
from herder.kube.client import Client, Selection
from herder.kube.connect import connect
from herder.kube.resources import PODS
from herder.kube.unix import SocketTransport
from tests.engines.engine import Engine


class Asked(msgspec.Struct):
    """`how`: over a unix socket, over TLS, or the official client (over TLS). `limit`: how many objects the latter reads."""

    how: str
    server: str
    ca: str
    certificate: str
    key: str
    socket: str
    limit: int

    def engine(self) -> Engine:
        return Engine("", self.server, Path(self.ca), Path(self.certificate), Path(self.key), Path())


class Meter:
    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def say(self, count: int) -> None:
        itself = [int(Path("/proc/self").readlink().name)]
        figures = {"wall": time.perf_counter() - self._wall, "cpu": time.process_time() - self._cpu, "count": count}
        print(json.dumps(figures | {"rss": resident_bytes(itself), "peak": peak_bytes(itself)}), flush=True)


def _kubeconfig(asked: Asked) -> Path:
    """Beside its certificate: the folder is the benchmark's own."""
    path = Path(asked.certificate).with_name("bench.kubeconfig")
    cluster = {"server": asked.server, "certificate-authority": asked.ca}
    user = {"client-certificate": asked.certificate, "client-key": asked.key}
    document = {
        "clusters": [{"name": "bench", "cluster": cluster}],
        "users": [{"name": "bench", "user": user}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "current-context": "bench",
    }
    path.write_text(json.dumps(document))
    return path


async def ours(asked: Asked) -> None:
    if asked.how == "socket":
        transport = SocketTransport(Path(asked.socket), "bench")
    else:
        transport = connect(_kubeconfig(asked), None, "bench")
    async with Client(transport, "bench") as client:
        meter = Meter()
        cache = Cache(client, PODS, Selection(NAMESPACE), RealWorld())
        for index in (BY_LABEL, BY_NAMESPACE, BY_NODE, BY_OWNER):
            cache.add_index(index)
        changes: list[None] = []
        task = asyncio.create_task(cache.run())
        await cache.wait_synced()
        meter.say(len(cache))
        cache.subscribe(lambda _: changes.append(None))
        changes.clear()
        gc.freeze()  # as a program does once it has started: what is there now stays, and need not be looked at again and again
        meter = Meter()
        version = await asyncio.to_thread(sys.stdin.readline)
        await cache.wait_seen(version.split()[0])
        meter.say(len(changes))
        task.cancel()


def official(asked: Asked) -> None:
    import kubernetes

    settings = kubernetes.client.Configuration(host=asked.server)
    settings.ssl_ca_cert, settings.cert_file, settings.key_file = asked.ca, asked.certificate, asked.key
    api: Any = kubernetes.client.CoreV1Api(kubernetes.client.ApiClient(settings))
    meter = Meter()
    found = api.list_namespaced_pod(NAMESPACE, limit=asked.limit)
    held = {item.metadata.name: item for item in found.items}
    meter.say(len(held))
    meter, count, wanted = Meter(), 0, 0
    version = found.metadata.resource_version
    events: Any = kubernetes.watch.Watch().stream(api.list_namespaced_pod, NAMESPACE, resource_version=version)
    for event in events:
        held[event["object"].metadata.name] = event["object"]
        count += 1
        wanted = wanted or int(sys.stdin.readline().split()[1])
        if count >= wanted:
            break
    meter.say(count)


if __name__ == "__main__":
    question = msgspec.json.decode(sys.argv[1], type=Asked)
    if question.how == "official":
        official(question)
    else:
        asyncio.run(ours(question))
