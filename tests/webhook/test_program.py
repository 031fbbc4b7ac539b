"""The webhook as people get it: `herder install` and `herder controllers` on a real API server."""

import subprocess
from pathlib import Path

import pytest

from tests.behaviour.candidates import Candidate
from tests.engines.api import Api
from tests.engines.embedded import find_program
from tests.engines.engine import Engine
from tests.engines.processes import free_ports
from tests.engines.resources import Resource
from tests.engines.waiting import eventually
from tests.webhook.replicas import FINE, is_judged, is_left_alone, write

pytestmark = pytest.mark.kubernetes
VALIDATING = Resource(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False
)


def herder(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(find_program()), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


async def test_controllers_answer_and_register_the_webhook_themselves(server: Engine, api: Api, tmp_path: Path) -> None:
    installed = herder("install", "--kubeconfig", str(server.kubeconfig))
    assert installed.returncode == 0, installed.stderr
    assert await is_left_alone(api), "nobody answers yet, so nobody is asked"
    (port,) = free_ports(1)
    url = f"https://127.0.0.1:{port}"
    options = ["--webhook-listen", f"127.0.0.1:{port}", "--webhook-url", url]
    command = [str(find_program()), "controllers", "--kubeconfig", str(server.kubeconfig), *options]
    program = Candidate(command, tmp_path / "controllers.log")
    try:
        await eventually(lambda: is_judged(api), patience=60)
        (await write(api, FINE, "fine")).ok  # noqa: B018
    finally:
        program.close()


async def test_install_registers_the_webhook_when_it_is_told_where_it_is(server: Engine, api: Api) -> None:
    tried = herder("install", "--kubeconfig", str(server.kubeconfig), "--webhook-url", "https://127.0.0.1:1", "--dry-run")
    assert "validatingwebhookconfiguration.admissionregistration.k8s.io/herder serverside-applied (server dry run)" in tried.stdout
    done = herder("install", "--kubeconfig", str(server.kubeconfig), "--webhook-service")
    assert done.returncode == 0, done.stderr
    assert "service/herder-webhook serverside-applied" in done.stdout
    hook, *_ = (await api.get(VALIDATING, "herder")).ok["webhooks"]
    assert hook["clientConfig"]["service"] == {
        "namespace": "herder-system",
        "name": "herder-webhook",
        "path": "/validate",
        "port": 443,
    }
    assert hook["clientConfig"]["caBundle"]
    (await api.delete(VALIDATING, "herder")).ok  # noqa: B018


def test_an_address_that_cannot_be_one_is_refused_by_its_option() -> None:
    for command in (("install",), ("controllers", "--webhook-listen", "127.0.0.1:0")):
        refused = herder(*command, "--webhook-url", "http://example.com")
        assert refused.returncode == 2
        assert "--webhook-url: 'http://example.com' is not https://HOST:PORT" in refused.stderr
    both = herder("install", "--webhook-url", "https://a:1", "--webhook-service")
    assert "--webhook-url and --webhook-service: give one of them" in both.stderr
