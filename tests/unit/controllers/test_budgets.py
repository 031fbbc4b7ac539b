"""The budgets of a pod and the pods of a budget, found in caches that follow a server."""

import asyncio
from typing import Any

import pytest

from herder.controllers.job import budgets
from herder.kube.cache.reflector import SHORTEST_WATCH
from herder.kube.discovery import AGAIN, BELIEVED
from herder.kube.errors import ServerFailed
from herder.kube.resources import BUDGETS, DEFINITIONS, DEPLOYMENTS, REPLICA_SETS, UNAVAILABLE_BUDGETS, Key
from herder.rules.jobs.budgets import PodBudgets, judge
from tests.unit.controllers.finders import MOMENT, Finders, play
from tests.unit.controllers.test_workloads import SELECTING

Json = dict[str, Any]
LONGEST_WATCH = 2 * SHORTEST_WATCH


def found(finders: Finders, pod: str) -> PodBudgets:
    stored = finders.pod(pod)
    return finders.budgets.of(stored, finders.workloads.of(stored))


def names(finders: Finders, pod: str) -> list[str]:
    answer = found(finders, pod)
    assert answer.problem == ""
    return [budget.name for budget in answer.budgets]


def pods(finders: Finders, budget: str, kind: str = "PodDisruptionBudget") -> list[str]:
    return [key.name for key in finders.budgets.pods_of((kind, "default", budget))]


def selecting(**labels: str) -> Json:
    return {"minAvailable": 1, "selector": {"matchLabels": labels}}


def test_budgets_and_pods_find_each_other_as_their_labels_are() -> None:
    async def story(finders: Finders) -> None:
        changed: list[Any] = []
        finders.budgets.subscribe(changed.append)
        await finders.make_pod("a", labels={"app": "web"})
        await finders.make_pod("b", labels={"app": "db"})
        await finders.make(BUDGETS, "web", selecting(app="web"))
        await finders.make(BUDGETS, "all", {"minAvailable": 1, "selector": {}})
        await finders.make(BUDGETS, "none", {"minAvailable": 1})
        await asyncio.sleep(MOMENT)
        assert (names(finders, "a"), names(finders, "b")) == (["all", "web"], ["all"])
        assert (pods(finders, "web"), pods(finders, "all"), pods(finders, "none")) == (["a"], ["a", "b"], [])
        assert ("PodDisruptionBudget", "default", "web") in changed
        refusal = judge(found(finders, "a").budgets, "a", ready=True)
        assert refusal is not None
        assert refusal.why == "Several"
        # What they allow is what their status says by now.
        await finders.person.delete(BUDGETS, Key("default", "all"))
        await finders.make_pod("c", labels={"app": "web"})
        await asyncio.sleep(MOMENT)
        assert [budget.allowed for budget in found(finders, "a").budgets] == [1]
        await finders.set_ready("c", False)
        await asyncio.sleep(MOMENT)
        assert [budget.allowed for budget in found(finders, "a").budgets] == [0]
        await finders.person.patch(BUDGETS, Key("default", "web"), {"spec": selecting(app="db")})
        await asyncio.sleep(MOMENT)
        assert (names(finders, "a"), names(finders, "b"), pods(finders, "web")) == ([], ["web"], ["b"])

    play(story)


def test_a_namespace_full_of_budgets_holds_up_its_own_pods_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "MOST_LOOKED_AT", 3)

    async def story(finders: Finders) -> None:
        await finders.make_pod("a", labels={"app": "web"})
        await finders.make_pod("b", labels={"app": "db"})
        for number in range(4):
            await finders.make(BUDGETS, f"web-{number}", selecting(app="web", tier=str(number)))
        await asyncio.sleep(MOMENT)
        said = "4 budgets of namespace default may be about this pod, and at most 3 are looked at"
        assert found(finders, "a") == PodBudgets((), said)
        assert names(finders, "b") == []

    play(story)


async def allow(finders: Finders, name: str, allowed: int) -> None:
    status = {"observedGeneration": 1, "unavailableAllowed": allowed, "desiredAvailable": 2, "currentAvailable": 2}
    await finders.status(UNAVAILABLE_BUDGETS, name, status)
    await asyncio.sleep(MOMENT)


def test_kruises_budgets_count_while_their_crd_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(finders: Finders) -> None:
        deployment = await finders.make(DEPLOYMENTS, "web", {"replicas": 1, **SELECTING})
        await finders.make_pod("a", await finders.make(REPLICA_SETS, "web-1", {"replicas": 1, **SELECTING}, deployment))
        await finders.make_pod("b", labels={"app": "db"})
        await asyncio.sleep(MOMENT)
        assert names(finders, "a") == []
        await finders.define("policy.kruise.io", "PodUnavailableBudget", scale=False)
        target = {"apiVersion": "apps/v1beta1", "kind": "Deployment", "name": "web"}
        await finders.make(UNAVAILABLE_BUDGETS, "by-target", {"targetRef": target, "maxUnavailable": 1})
        await finders.make(UNAVAILABLE_BUDGETS, "by-label", {"selector": {"matchLabels": {"app": "db"}}})
        await asyncio.sleep(BELIEVED)
        assert (names(finders, "a"), names(finders, "b")) == (["by-target"], ["by-label"])
        kind = UNAVAILABLE_BUDGETS.kind
        assert (pods(finders, "by-target", kind), pods(finders, "by-label", kind)) == (["a"], ["b"])
        for allowed, refused in ((1, ""), (0, "Spent")):
            await allow(finders, "by-target", allowed)
            refusal = judge(found(finders, "a").budgets, "a", ready=True)
            assert (refusal.why if refusal is not None else "") == refused
        monkeypatch.setattr(budgets, "MOST_LOOKED_AT", 0)
        await finders.set_ready("a", False)
        await asyncio.sleep(MOMENT)
        assert found(finders, "a").problem.startswith("1 budgets of namespace default may be about this pod")
        monkeypatch.undo()
        # One that nobody can read may be about anybody in its namespace.
        await finders.make(UNAVAILABLE_BUDGETS, "strange", {"selector": "app=db"})
        await asyncio.sleep(MOMENT)
        said = "PodUnavailableBudget strange of namespace default cannot be read: whom it is about is not known"
        assert found(finders, "b") == PodBudgets((), said)
        # The kind goes, and nobody tells the cache what has become of its objects.
        finders.line.refusals["/podunavailablebudgets"] = ServerFailed(503, "ServiceUnavailable", "not now")
        await asyncio.sleep(LONGEST_WATCH)
        assert found(finders, "b").problem == said
        await finders.person.delete(DEFINITIONS, Key("", "podunavailablebudgets.policy.kruise.io"))
        await asyncio.sleep(2 * BELIEVED)
        assert (names(finders, "a"), names(finders, "b")) == ([], [])

    play(story)


def test_nothing_is_allowed_before_it_is_known_whether_kruise_is_there() -> None:
    async def story(finders: Finders) -> None:
        await finders.make_pod("a")
        await asyncio.sleep(MOMENT)
        said = "whether there are PodUnavailableBudgets cannot be found out: not now"
        assert found(finders, "a") == PodBudgets((), said)
        finders.line.refusals.clear()
        await asyncio.sleep(BELIEVED + AGAIN)
        assert found(finders, "a") == PodBudgets()
        # Once it is known, a server that is away for a while changes nothing.
        finders.line.refusals["/apis"] = ServerFailed(503, "ServiceUnavailable", "not now")
        await asyncio.sleep(2 * BELIEVED)
        await finders.set_ready("a", False)
        await asyncio.sleep(MOMENT)
        assert found(finders, "a") == PodBudgets()

    play(story, {"/apis": ServerFailed(503, "ServiceUnavailable", "not now")})
