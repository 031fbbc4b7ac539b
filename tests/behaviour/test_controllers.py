"""Several processes of controllers on one engine: one works, and never two."""

from __future__ import annotations

import itertools
import re
import signal
import subprocess
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.behaviour.candidates import Candidate, Line, counting
from tests.behaviour.counting import LEDGER
from tests.engines.api import Api
from tests.engines.credentials import sign
from tests.engines.embedded import find_program
from tests.engines.engine import Engine
from tests.engines.processes import free_ports
from tests.engines.resources import CONFIG_MAPS, LEASES
from tests.engines.waiting import eventually

TIMES = ("--lease-duration", "4", "--renew-deadline", "2.5", "--retry-period", "0.5")


class Ledger:
    """Who worked, in the order in which they did."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self._namespace = api, namespace

    async def entries(self) -> list[str]:
        ledger = (await self._api.get(CONFIG_MAPS, LEDGER, self._namespace)).ok
        return ledger.get("data", {}).get("entries", "").split()

    async def terms(self) -> list[str]:
        return [name for name, _ in itertools.groupby(await self.entries())]

    async def until_more(self, count: int = 5, of: str = "") -> str:
        """So many more entries, all of them of one; who it is."""
        before = len(await self.entries())

        async def more() -> str:
            new = (await self.entries())[before:]
            mine = [name for name in new if not of or name == of]
            return mine[-1] if len(mine) >= count else ""

        return await eventually(more, patience=40)


@pytest.fixture
async def ledger(api: Api, namespace: str) -> Ledger:
    (await api.create(CONFIG_MAPS, {"metadata": {"name": LEDGER}}, namespace)).ok  # noqa: B018
    return Ledger(api, namespace)


@asynccontextmanager
async def two_programs(engine: Engine, namespace: str, folder: Path) -> AsyncGenerator[dict[int, Candidate]]:
    """The installed program twice, by the ports on which they tell about themselves."""
    with ExitStack() as stack:
        made: dict[int, Candidate] = {}
        for port in free_ports(2):
            command = [str(find_program()), "controllers", "--kubeconfig", str(engine.kubeconfig), "--lease", f"{namespace}/one"]
            made[port] = Candidate([*command, *TIMES, "--metrics-listen", f"127.0.0.1:{port}"], folder / f"{port}.log")
            stack.callback(made[port].close)
        yield made


async def _asked(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session:
        try:
            async with session.get(f"http://127.0.0.1:{port}{path}") as answer:
                return answer.status, await answer.text()
        except aiohttp.ClientError:
            return 0, ""


async def _leads(port: int) -> bool:
    return 'leader_election_master_status{name="' in (text := (await _asked(port, "/metrics"))[1]) and 'one"} 1.0' in text


@pytest.mark.slow
async def test_of_two_programs_one_leads_and_a_clean_stop_hands_over(
    engine: Engine, api: Api, namespace: str, tmp_path: Path
) -> None:
    async with two_programs(engine, namespace, tmp_path) as programs:

        async def ready() -> bool:
            return all([(await _asked(port, "/readyz"))[0] == 200 for port in programs])

        async def leaders() -> list[int]:
            return [port for port in programs if await _leads(port)]

        await eventually(ready, patience=40)
        (leader,) = await eventually(leaders)
        assert [(await _asked(port, "/healthz")) for port in programs] == [(200, "ok\n")] * 2
        before = (await api.get(LEASES, "one", namespace)).ok["spec"]
        assert before["leaseDurationSeconds"] == 4
        programs[leader].send(signal.SIGTERM)
        assert await programs[leader].ended() == 0
        (other,) = set(programs) - {leader}
        assert await eventually(leaders) == [other]
        after = (await api.get(LEASES, "one", namespace)).ok["spec"]
        assert after["holderIdentity"] != before["holderIdentity"]
        assert after["leaseTransitions"] == before["leaseTransitions"] + 1
        programs[other].send(signal.SIGTERM)
        assert await programs[other].ended() == 0
        # Given back, so that the next need not wait.
        assert "holderIdentity" not in (await api.get(LEASES, "one", namespace)).ok["spec"]


@pytest.mark.slow
async def test_what_a_cluster_has_already_is_not_run_beside_it(engine: Engine, namespace: str, tmp_path: Path) -> None:
    """Whatever the kubeconfig leads to: two who keep ReplicaSets would undo each other's work."""
    async with two_programs(engine, namespace, tmp_path) as programs:

        async def at_work() -> set[str]:
            texts = [(await _asked(port, "/metrics"))[1] for port in programs]
            return {name for text in texts for name in re.findall(r'herder_reconcile_total{controller="([^"]+)"', text)}

        found = await eventually(at_work, patience=40)
        assert {"machines", "instances"} <= found
        assert found.isdisjoint({"replica-sets", "deployments", "stateful-sets"})


@pytest.mark.slow
async def test_a_killed_leader_is_followed_and_nothing_is_done_twice(
    engine: Engine, namespace: str, ledger: Ledger, tmp_path: Path
) -> None:
    with counting(engine.kubeconfig, namespace, tmp_path, "a", "b") as both:
        first = await ledger.until_more()
        both[first].send(signal.SIGKILL)
        (second,) = {"a", "b"} - {first}
        await ledger.until_more(of=second)
        assert await ledger.terms() == [first, second]


@pytest.mark.slow
async def test_a_stopped_leader_that_wakes_up_does_nothing_any_more(
    engine: Engine, namespace: str, ledger: Ledger, tmp_path: Path
) -> None:
    with counting(engine.kubeconfig, namespace, tmp_path, "a", "b") as both:
        first = await ledger.until_more()
        both[first].send(signal.SIGSTOP)
        (second,) = {"a", "b"} - {first}
        await ledger.until_more(of=second)
        both[first].send(signal.SIGCONT)
        await eventually(lambda: _said(both[first], "does not lead any more"))
        await ledger.until_more(count=20, of=second)
        assert await ledger.terms() == [first, second]
        assert both[first].runs()
        # It stands by, and is there when it is needed.
        both[second].send(signal.SIGTERM)
        await ledger.until_more(of=first)
        assert await ledger.terms() == [first, second, first]


async def _said(candidate: Candidate, words: str) -> bool:
    return words in candidate.log.read_text()


@pytest.mark.slow
async def test_an_api_server_that_goes_and_comes_back_finds_one_leader(
    engine: Engine, namespace: str, ledger: Ledger, tmp_path: Path
) -> None:
    line = Line(engine, tmp_path)
    await line.mend()
    try:
        with counting(line.kubeconfig, namespace, tmp_path, "a", "b") as both:
            first = await ledger.until_more()
            # For a moment: the same one goes on.
            await line.cut()
            await line.mend()
            assert await ledger.until_more(of=first) == first
            # For longer than a lease: it stops by itself, and one of them begins again.
            await line.cut()
            await eventually(lambda: _said(both[first], "does not lead any more"))
            done = await ledger.entries()
            await line.mend()
            await ledger.until_more()
            assert all(candidate.runs() for candidate in both.values())
            since = (await ledger.entries())[len(done) :]
            assert len(set(since)) == 1
    finally:
        await line.cut()


def _refused(*arguments: str) -> tuple[int, str]:
    command = [str(find_program()), "controllers", *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in answer.stderr
    return answer.returncode, answer.stderr.strip()


@pytest.mark.slow
def test_a_kubeconfig_that_cannot_be_used_is_said_in_a_sentence(tmp_path: Path) -> None:
    missing, broken = tmp_path / "missing", tmp_path / "broken"
    broken.write_text("- not: [a kubeconfig")
    for path in (missing, broken):
        code, said = _refused("--kubeconfig", str(path))
        assert (code, said.count("\n")) == (6, 0)
        assert str(path) in said


@pytest.mark.slow
def test_times_that_could_make_two_leaders_are_refused(engine: Engine) -> None:
    code, said = _refused("--kubeconfig", str(engine.kubeconfig), "--lease-duration", "5")
    assert code == 2
    assert said.startswith("herder: the renew deadline is 10 s; less than the lease duration of 5 s is right")


@pytest.mark.slow
def test_a_user_who_may_not_is_told_what_is_missing(engine: Engine, tmp_path: Path) -> None:
    pair = sign(engine, tmp_path, "nobody-in-particular")
    kubeconfig = tmp_path / "kubeconfig"
    user = f"{{client-certificate: {pair.certificate}, client-key: {pair.key}}}"
    kubeconfig.write_text(
        f"""{{apiVersion: v1, kind: Config, current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}],
        clusters: [{{name: c, cluster: {{server: "{engine.server}", certificate-authority: {engine.ca}}}}}],
        users: [{{name: u, user: {user}}}]}}"""
    )
    code, said = _refused("--kubeconfig", str(kubeconfig))
    assert (code, said) == (
        7,
        "herder: we may not get, create, patch leases.coordination.k8s.io in namespace kube-system: give our user a role",
    )
