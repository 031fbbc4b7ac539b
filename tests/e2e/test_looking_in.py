"""Logs and consoles of machines on both engines, with `herder` and with kubectl as it is."""

import os
import pty
import re
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import aiohttp
import pytest

from tests.behaviour.clients import cluster_of, write_kubeconfig
from tests.behaviour.test_node_agents import kubeconfig_of
from tests.conftest import EngineMissing
from tests.e2e.herder import Herder
from tests.e2e.kubectl import Kubectl
from tests.e2e.manifests import machine, pod
from tests.e2e.program import Up, until
from tests.engines.api import connect
from tests.engines.credentials import grant, rule, sign, user
from tests.engines.embedded import find_program
from tests.engines.engine import Engine, Unavailable
from tests.engines.kubernetes import KUBELET_CLIENT, run_kubernetes
from tests.engines.processes import Child

NODE = "looked-into"


@pytest.fixture(scope="module")
def engine(request: pytest.FixtureRequest, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One of this file's own, with controllers and a simulated node that can be looked into."""
    folder = tmp_path_factory.mktemp("cluster")
    if request.param == "embedded":
        with Up(folder, nodes=1) as up:
            yield up.connection(folder)
        return
    try:
        with run_kubernetes(folder) as cluster, ExitStack() as stack:
            _bring_to_life(cluster, Kubectl(kubectl_program, cluster.kubeconfig, folder, "default"), folder, stack)
            yield cluster
    except Unavailable as reason:
        raise EngineMissing(str(reason)) from None


def _bring_to_life(cluster: Engine, kubectl: Kubectl, folder: Path, stack: ExitStack) -> None:
    """As docs/nodes.md says."""
    named = ["--kubeconfig", str(cluster.kubeconfig)]
    subprocess.run([str(find_program()), "install", *named], check=True, capture_output=True, timeout=120)
    controllers = Child([str(find_program()), "controllers", *named], folder / "controllers.log")
    stack.callback(controllers.stop)
    kubectl("create", "clusterrolebinding", "looks", "--clusterrole=system:kubelet-api-admin", f"--user={KUBELET_CLIENT}")
    own = kubeconfig_of(cluster, folder, NODE)
    agent = Child([str(find_program()), "node", "--kubeconfig", str(own), "--name", NODE], folder / "agent.log")
    stack.callback(agent.stop)
    said = until(lambda: re.search(r"kubectl (certificate approve \S+)", agent.log.read_text()), "no certificate was asked for", 60)
    assert said
    kubectl(*said[1].split())
    until(lambda: "has signed our certificate" in agent.log.read_text(), "the certificate was not signed", 60)


@pytest.fixture(scope="module")
def here(engine: Engine, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """kubectl, and a machine `web` that runs."""
    kubectl = Kubectl(kubectl_program, engine.kubeconfig, tmp_path_factory.mktemp("home"), "default")
    kubectl.create(machine("web", "Always"))
    kubectl("wait", "vm/web", "--for=jsonpath={.status.printableStatus}=Running", "--timeout=25s")
    return kubectl


@pytest.fixture
def herder(engine: Engine, here: Kubectl, tmp_path: Path) -> Herder:
    return Herder(engine.kubeconfig, tmp_path, here.namespace)


def launcher(kubectl: Kubectl, name: str = "web") -> str:
    return kubectl("get", "vmi", name, "-o", "jsonpath={.status.launcherPodName}")


def boot_line(kubectl: Kubectl, name: str = "web") -> str:
    return f"boot {kubectl('get', 'vmi', name, '-o', 'jsonpath={.metadata.uid}')}"


def test_logs_of_a_machine_are_what_its_guest_wrote(here: Kubectl, herder: Herder) -> None:
    assert herder("logs", "web").splitlines()[0] == boot_line(here)
    assert here("logs", launcher(here)).splitlines()[0] == boot_line(here)
    assert here("logs", launcher(here), "-c", "compute", "--tail=1", "--limit-bytes=4") in ("boot", "you ")
    assert herder("logs", "web", "--tail", "0") == ""


def test_a_console_types_into_the_guest_and_shows_what_it_says(here: Kubectl, herder: Herder) -> None:
    talk = herder.start("console", "web")
    assert talk.stdin is not None
    assert talk.stdout is not None
    talk.stdin.write(b"how are you\n")
    talk.stdin.flush()
    assert talk.stdout.readline() == b"you said: how are you\r\n"
    talk.stdin.write(b"\x1d")
    talk.stdin.flush()
    assert talk.wait(20) == 0
    assert "you said: how are you" in herder("logs", "web")
    assert here("get", "vm", "web", "-o", "jsonpath={.status.printableStatus}") == "Running"


def test_in_a_terminal_every_key_goes_to_the_guest_but_the_escape(here: Kubectl, herder: Herder) -> None:
    person, machine_side = pty.openpty()
    with subprocess.Popen(
        herder.command("console", "web"), stdin=machine_side, stdout=machine_side, stderr=machine_side, env=herder.environment
    ) as talk:
        os.close(machine_side)
        seen = b""
        while b"Ctrl-] leaves" not in seen:
            seen += os.read(person, 4096)
        # Ctrl-C is the guest's: in a terminal of its own it would end the program.
        os.write(person, b"a\x03b\r")
        while b"you said: a\x03b\r\n" not in seen:
            seen += os.read(person, 4096)
        os.write(person, b"\x1d")
        assert talk.wait(20) == 0
    os.close(person)


def test_logs_that_are_followed_end_with_the_guest_and_so_does_a_console(here: Kubectl, herder: Herder) -> None:
    here.create(machine("brief", "Manual"))
    herder("start", "brief", "--wait")
    following, mirrored = herder.start("logs", "brief", "-f"), here.start("logs", "-f", launcher(here, "brief"))
    assert following.stdout is not None
    assert mirrored.stdout is not None
    first = boot_line(here, "brief")
    assert following.stdout.readline().decode().strip() == first
    assert mirrored.stdout.readline().strip() == first
    talk = herder.start("console", "brief")
    assert talk.stdin is not None
    assert talk.stdout is not None
    talk.stdin.write(b"last words\n")
    talk.stdin.flush()
    assert talk.stdout.readline() == b"you said: last words\r\n"
    herder("stop", "brief")
    assert [one.wait(30) for one in (following, mirrored, talk)] == [0, 0, 0]
    assert following.stdout.read() == b"you said: last words\r\npowerdown\r\n"
    assert mirrored.stdout.read().split() == ["you", "said:", "last", "words", "powerdown"]
    assert talk.stdout.read() == b"powerdown\r\n"


@pytest.mark.parametrize("verb", ["logs", "console"])
def test_what_does_not_run_has_neither(here: Kubectl, herder: Herder, verb: str) -> None:
    here("apply", "-f", "-", stdin=machine("off", "Halted"))
    assert herder.refused(verb, "off") == "herder: VirtualMachine off does not run; `herder start off` starts it"
    assert herder.refused(verb, "nobody") == 'herder: virtualmachines.kubevirt.io "nobody" not found'


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--previous",), "previous: a guest runs once in its pod"),
        (("--since=5s",), "sinceSeconds: a guest's log has no times"),
        (("--timestamps",), "timestamps: a guest's log has no times"),
        (("-c", "other"), "container other is not valid for pod"),
    ],
)
def test_kubectl_is_told_what_cannot_be_answered(here: Kubectl, options: tuple[str, ...], said: str) -> None:
    assert said in here.refused("logs", launcher(here), *options)


async def test_roles_decide_who_may_look_and_who_may_type(
    engine: Engine, here: Kubectl, kubectl_program: Path, tmp_path: Path
) -> None:
    pair = sign(engine, tmp_path, "guest-reader")
    shown = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    config = write_kubeconfig(tmp_path / "reader", cluster_of(engine), shown, namespace="default")
    reader, theirs = Herder(config, tmp_path), Kubectl(kubectl_program, config, tmp_path, "default")
    async with connect(engine) as api:
        may_see = (rule("get list", "virtualmachineinstances", "kubevirt.io"), rule("get list", "pods"))
        await grant(api, "default", user("guest-reader"), *may_see)
        assert 'cannot get resource "pods/log"' in reader.refused("logs", "web")
        await grant(api, "default", user("guest-reader"), rule("get", "pods/log"))
        assert reader("logs", "web").splitlines()[0] == boot_line(here)
        assert boot_line(here) in theirs("logs", launcher(here))
        assert 'cannot get resource "pods/attach"' in reader.refused("console", "web")
        # As a WebSocket it is a GET; to read alone is not enough all the same.
        await grant(api, "default", user("guest-reader"), rule("get", "pods/attach"))
        assert "is forbidden" in reader.refused("console", "web")
        await grant(api, "default", user("guest-reader"), rule("create", "pods/attach"))
        assert reader.run("console", "web", stdin="\x1d").code == 0


def test_kubectl_attaches_and_is_told_that_there_is_no_exec(here: Kubectl) -> None:
    attached = subprocess.Popen(
        here.command("attach", "-i", launcher(here)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=here.environment,
    )
    assert attached.stdin is not None
    assert attached.stdout is not None
    attached.stdin.write(b"from kubectl\n")
    attached.stdin.flush()
    assert attached.stdout.readline() == b"you said: from kubectl\r\n"
    attached.kill()
    attached.wait()
    told = here.refused("exec", launcher(here), "--", "ls")
    assert f"pod default/{launcher(here)} runs a virtual machine, and no node starts programs in a machine; use its console" in told
    assert "runs a virtual machine, and nodes pass on no connections" in here.refused("port-forward", launcher(here), "8080:80")


@pytest.mark.only_on("kubernetes", "the engine's own nodes know the one that may look by its name")
async def test_a_node_asks_the_cluster_who_may_look(engine: Engine, here: Kubectl, tmp_path: Path) -> None:
    port = here("get", "node", NODE, "-o", "jsonpath={.status.daemonEndpoints.kubeletEndpoint.Port}")
    log, attach = (f"https://127.0.0.1:{port}/{what}/default/{launcher(here)}/compute" for what in ("containerLogs", "attach"))
    pair = sign(engine, tmp_path, "metrics-reader")
    context = ssl.create_default_context(cafile=str(engine.ca))
    context.load_cert_chain(pair.certificate, pair.key)
    async with connect(engine) as api, aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        async with session.get(log) as answer:
            assert (answer.status, await answer.text()) == (403, f"'metrics-reader' may not get nodes/proxy {NODE}")
        await grant(api, "", user("metrics-reader"), rule("get", "nodes/proxy", "", NODE))
        async with session.get(log) as answer:
            assert answer.status == 200
            assert boot_line(here) in await answer.text()
        # To look is not to type, and this node is not every node.
        async with session.get(attach) as answer:
            assert (answer.status, await answer.text()) == (403, f"'metrics-reader' may not create nodes/proxy {NODE}")
        async with session.get(log.replace("default", "elsewhere")) as answer:
            assert answer.status == 403
        # What it measures is asked for by rights of its own, as of a kubelet.
        for path, what in (("metrics/resource", "metrics"), ("stats/summary", "stats")):
            async with session.get(f"https://127.0.0.1:{port}/{path}") as answer:
                assert (answer.status, await answer.text()) == (403, f"'metrics-reader' may not get nodes/{what} {NODE}")
            await grant(api, "", user("metrics-reader"), rule("get", f"nodes/{what}", "", NODE))
            async with session.get(f"https://127.0.0.1:{port}/{path}") as answer:
                assert answer.status == 200
                assert launcher(here) in await answer.text()


@pytest.mark.only_on("kubernetes", "to the engine's own nodes only the engine comes, and that has a certificate")
async def test_a_node_knows_those_who_come_with_a_token_as_a_kubelet_does(engine: Engine, here: Kubectl) -> None:
    """A metrics-server has nothing else to show."""
    port = here("get", "node", NODE, "-o", "jsonpath={.status.daemonEndpoints.kubeletEndpoint.Port}")
    measured = f"https://127.0.0.1:{port}/metrics/resource"
    context = ssl.create_default_context(cafile=str(engine.ca))
    for name in ("scraper", "tenant"):
        here("create", "serviceaccount", name)
    tokens = {name: here("create", "token", name).strip() for name in ("scraper", "tenant")}
    async with connect(engine) as api, aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:

        async def asked(token: str | None, where: str = measured) -> tuple[int, str]:
            async with session.get(where, headers={"Authorization": f"Bearer {token}"} if token else {}) as answer:
                return answer.status, await answer.text()

        may_scrape = {"kind": "ServiceAccount", "name": "scraper", "namespace": "default"}
        await grant(api, "", may_scrape, rule("get", "nodes/metrics"))
        assert (await asked(None))[0] == 401
        assert (await asked(tokens["scraper"][:-2]))[0] == 401
        wanted = f"may not get nodes/metrics {NODE}"
        assert await asked(tokens["tenant"]) == (403, f"'system:serviceaccount:default:tenant' {wanted}")
        status, text = await asked(tokens["scraper"])
        assert status == 200
        assert launcher(here) in text
        # What is measured is not what guests write.
        log = f"https://127.0.0.1:{port}/containerLogs/default/{launcher(here)}/compute"
        assert (await asked(tokens["scraper"], log))[0] == 403


@pytest.fixture(scope="module")
def plain(here: Kubectl) -> str:
    """A pod that is no machine, bound by hand, without a word from a scheduler."""
    here.create(pod("plain", here("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")))
    here("wait", "pod/plain", "--for=jsonpath={.status.phase}=Running", "--timeout=20s")
    return "plain"


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (("exec", "plain", "--", "ls"), "so it cannot run a command"),
        (("cp", "plain:/etc/hosts", "hosts"), "so it cannot run a command"),
        (("port-forward", "plain", "8080:80"), "so nothing listens on its ports"),
        (("attach", "plain"), "so there is nothing to attach to"),
        (("logs", "plain"), "so it writes no log"),
    ],
    ids=lambda one: one[0] if isinstance(one, tuple) else "",
)
def test_a_pod_that_is_no_machine_says_that_nothing_runs_in_it(
    here: Kubectl, plain: str, command: tuple[str, ...], why: str
) -> None:
    assert f"pod default/{plain} is simulated: no container runs in it, {why}" in here.refused(*command)


@pytest.mark.only_on("embedded", "a real cluster removes pods of nodes that there never were")
def test_a_pod_of_a_node_that_is_not_there_says_so(here: Kubectl) -> None:
    here.create(pod("lost", "no-such-node"))
    assert 'nodes "no-such-node" not found' in here.refused("logs", "lost")


@pytest.mark.only_on("embedded", "the agents are a process of herder up")
def test_after_the_agents_were_killed_they_are_found_again(
    kubectl_program: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Up(tmp_path_factory.mktemp("killed"), nodes=1) as up:
        kubectl, herder = Kubectl(kubectl_program, up.kubeconfig, tmp_path, "default"), Herder(up.kubeconfig, tmp_path)
        kubectl.create(machine("web", "Always"))
        herder("start", "web", "--wait")
        before = up.child("agents")
        os.kill(before, 9)
        until(lambda: up.children().get("agents", before) != before, "the agents were not started again")
        until(lambda: herder.run("logs", "web").code == 0, "the new agents were not found")
