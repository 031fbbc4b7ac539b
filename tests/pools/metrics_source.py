"""A source of metrics.k8s.io for the real HorizontalPodAutoscaler: it says about each pod what the test tells it to say."""

import datetime
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from tests.engines.api import Api
from tests.engines.certificates import Authority
from tests.engines.metrics_server import API_SERVICES, GROUP, SERVICES, VERSION
from tests.engines.resources import PODS
from tests.machines.herd import Json

_ROOT = f"/apis/{GROUP}/{VERSION}"


class MetricsSource:
    def __init__(self, api: Api) -> None:
        self._api = api
        # What each pod uses.
        self.memory = "1Mi"
        # Which selectors were asked for.
        self.asked: set[str] = set()

    async def resources(self, _: web.Request) -> web.Response:
        pods = {"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics", "verbs": ["get", "list"]}
        return web.json_response(
            {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/{VERSION}", "resources": [pods]}
        )

    async def pods(self, request: web.Request) -> web.Response:
        selector = request.query.get("labelSelector", "")
        self.asked.add(selector)
        listed = (await self._api.list(PODS, request.match_info["namespace"], labelSelector=selector)).items
        kind = {"kind": "PodMetricsList", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}}
        return web.json_response({**kind, "items": [self._of(pod) for pod in listed]})

    def _of(self, pod: Json) -> Json:
        metadata = {name: pod["metadata"][name] for name in ("name", "namespace", "labels")}
        containers = [{"name": one["name"], "usage": {"memory": self.memory, "cpu": "1m"}} for one in pod["spec"]["containers"]]
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {"metadata": metadata, "timestamp": now, "window": "10s", "containers": containers}


@asynccontextmanager
async def running_metrics_source(api: Api, namespace: str, folder: Path) -> AsyncGenerator[MetricsSource]:
    """Registered with the API server, which finds it by a Service that is a name for this machine."""
    source = MetricsSource(api)
    app = web.Application()
    app.router.add_get(_ROOT, source.resources)
    app.router.add_get(_ROOT + "/namespaces/{namespace}/pods", source.pods)
    pair = Authority(folder).sign("metrics")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    port: int = runner.addresses[0][1]
    service = {
        "metadata": {"name": "metrics"},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    }
    spec = {
        "group": GROUP,
        "version": VERSION,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": True,
        "service": {"name": "metrics", "namespace": namespace, "port": port},
    }
    try:
        (await api.create(SERVICES, service, namespace)).ok  # noqa: B018
        (await api.create(API_SERVICES, {"metadata": {"name": f"{VERSION}.{GROUP}"}, "spec": spec})).ok  # noqa: B018
        yield source
    finally:
        await api.delete(API_SERVICES, f"{VERSION}.{GROUP}")
        await runner.cleanup()
