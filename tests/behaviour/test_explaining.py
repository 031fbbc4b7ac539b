"""`herder explain placement`, `policy` and `target`, through the installed program, on every engine. They change nothing."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from herder.api import registry
from herder.api.labels import SCHEDULABLE
from herder.cli.asking import Refusal
from herder.cli.reviews import reviewed
from herder.kube.client import Client
from herder.kube.connect import connect
from herder.kube.errors import Forbidden
from herder.kube.resources import Key
from tests.behaviour.our_kinds import install_crds, resource_of
from tests.engines.api import Api
from tests.engines.embedded import find_program
from tests.engines.engine import Engine
from tests.engines.resources import NAMESPACES, NODES, PODS

Json = dict[str, Any]
Unique = Callable[..., str]
INSTANCES = resource_of(registry.INSTANCE)
MIGRATIONS = resource_of(registry.MIGRATION)
POLICIES = resource_of(registry.POLICY)
REVIEWS = resource_of(registry.REVIEW)
ROOM = {"cpu": "8", "memory": "16Gi", "pods": "10"}


@pytest.fixture(scope="module", autouse=True)
async def crds(api: Api) -> None:
    await install_crds(api)


async def _explain(engine: Engine, namespace: str, *asked: str) -> tuple[int, list[str], str]:
    return await _run([*asked, "-n", namespace, "--kubeconfig", str(engine.kubeconfig)])


async def _run(asked: list[str], around: Path | None = None) -> tuple[int, list[str], str]:
    """`around`: the working directory and the home of who asks, where nothing else says which cluster is meant."""
    pipe = asyncio.subprocess.PIPE
    environment = {name: value for name, value in os.environ.items() if around is None or name != "KUBECONFIG"}
    environment |= {"HOME": str(around)} if around is not None else {}
    command = [str(find_program()), "explain", *asked]
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe, env=environment, cwd=around)
    out, err = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode or 0, out.decode().splitlines(), err.decode()


def _row(lines: list[str], name: str) -> list[str]:
    return next(line for line in lines if line.startswith(f"{name} ")).split(maxsplit=3)


async def _instance(api: Api, namespace: str, node: str = "", **labels: str) -> None:
    body = {"metadata": {"name": "web", "labels": labels}, "spec": {"domain": {}}}
    (await api.create(INSTANCES, body, namespace)).ok  # noqa: B018
    (await api.patch(INSTANCES, "web", {"status": {"phase": "Running", "nodeName": node}}, namespace, "status")).ok  # noqa: B018


@pytest.mark.slow
async def test_every_policy_is_shown_with_the_reason_why_it_applies_or_not(
    api: Api, engine: Engine, namespace: str, unique: Unique
) -> None:
    label, best, second, other = (unique(name) for name in ("label", "best", "second", "other"))
    await _instance(api, namespace, **{label: "x", "size": "small"})
    (await api.patch(NAMESPACES, namespace, {"metadata": {"labels": {label: "true"}}})).ok  # noqa: B018
    by_instance, by_namespace = "virtualMachineInstanceSelector", "namespaceSelector"
    for name, selectors, settings in (
        (best, {by_instance: {label: "x"}, by_namespace: {label: True}}, {"allowPostCopy": True, "bandwidthPerMigration": "64Mi"}),
        (second, {by_namespace: {label: True}}, {"maxDowntimeMs": 1}),
        (other, {by_instance: {label: "y"}}, {}),
    ):
        (await api.create(POLICIES, {"metadata": {"name": name}, "spec": {"selectors": selectors, **settings}})).ok  # noqa: B018
    code, lines, err = await _explain(engine, namespace, "policy", "web")
    assert (code, err) == (0, "")
    reason = "2 matching labels are more than 1"
    assert f"Policy {best} matches 2 labels ({label}, {label}) and goes before {second}: {reason}." in lines
    assert _row(lines, best)[1:3] == ["yes", "2"]
    assert _row(lines, second)[1:] == ["no", "1", f"matches 1 label ({label}), but {best} goes before it: {reason}"]
    assert _row(lines, other)[1:] == ["no", "1", f"the instance has {label}=x (wanted: y)"]
    assert _row(lines, "allowPostCopy")[1:] == ["true", "MigrationPolicy", best]
    assert _row(lines, "bandwidthPerMigration")[1:] == ["64Mi", "MigrationPolicy", best]
    assert _row(lines, "allowWorkloadDisruption")[1:] == ["true", "as", "allowPostCopy"]
    assert _row(lines, "maxDowntimeMs")[1:3] == ["300", "built"]
    for name in (best, second, other):
        await api.delete(POLICIES, name)


@pytest.fixture
async def nodes(api: Api, unique: Unique) -> AsyncIterator[list[str]]:
    """Three, the second of which is cordoned."""
    names = [unique(f"n{number}") for number in range(3)]
    for number, name in enumerate(names):
        body = {"metadata": {"name": name, "labels": {SCHEDULABLE: "true", "only": names[0], "place": str(number)}}}
        (await api.create(NODES, body)).ok  # noqa: B018
        (await api.patch(NODES, name, {"status": {"capacity": ROOM, "allocatable": ROOM}}, "", "status")).ok  # noqa: B018
        # A real API server taints new nodes until somebody says that they are ready.
        spec: Json = {"taints": None, **({"unschedulable": True} if number == 1 else {})}
        (await api.patch(NODES, name, {"spec": spec})).ok  # noqa: B018
    yield names
    for name in names:
        await api.delete(NODES, name)


@pytest.mark.slow
async def test_every_node_is_shown_with_its_reason(api: Api, engine: Engine, namespace: str, nodes: list[str]) -> None:
    source, cordoned, free = nodes
    await _instance(api, namespace, source)
    code, lines, err = await _explain(engine, namespace, "target", "vm/web", "--selector", f"only={source}")
    assert (code, err) == (0, "")
    assert lines[:2] == [f"instance {namespace}/web runs on {source}.", f"It would go to {free}."]
    assert _row(lines, free)[1] == "yes"
    assert _row(lines, source)[1:] == ["no", "is", "the source node"]
    assert _row(lines, cordoned)[1:] == ["no", "is", "cordoned"]
    _, lines, _ = await _explain(engine, namespace, "target", "web", "-o", "yaml")
    found = yaml.safe_load("\n".join(lines))
    assert (found["name"], found["nodeName"], found["notMigratable"], found["impossible"]) == ("web", source, None, None)
    assert {"node": cordoned, "fits": False, "why": "is cordoned", "score": None, "details": []} in found["nodes"]


@pytest.mark.slow
async def test_placement_is_explained_in_the_namespace_of_the_kubeconfig_that_herder_up_left_here(
    api: Api, engine: Engine, namespace: str, nodes: list[str], tmp_path: Path
) -> None:
    # Of a scheduler that is not there: a real cluster would place it meanwhile.
    spec: Json = {"schedulerName": "nobody", "containers": [{"name": "c", "image": "i"}], "nodeSelector": {"place": "2"}}
    body = {"metadata": {"name": "web"}, "spec": spec}
    (await api.create(PODS, body, namespace)).ok  # noqa: B018
    kubeconfig = yaml.safe_load(engine.kubeconfig.read_text())
    for context in kubeconfig["contexts"]:
        context["context"]["namespace"] = namespace
    own = tmp_path / ".herder" / "kubeconfig"
    own.parent.mkdir()
    own.write_text(yaml.safe_dump(kubeconfig))
    code, lines, err = await _run(["placement", "web"], tmp_path)
    assert (code, err) == (0, "")
    assert f"pod {namespace}/web would go to {nodes[2]}." in lines
    shown = next(line for line in lines if line.startswith(f"{nodes[0]} "))
    assert shown.endswith("   node affinity   nodeSelector place=2: the node has place=0")
    code, lines, err = await _run(["placement", "web", "-o", "json"], tmp_path)
    found = json.loads("\n".join(lines))
    assert (code, err, found["targetNode"], found["nodeName"]) == (0, "", nodes[2], "")
    row = next(one for one in found["nodes"] if one["node"] == nodes[0])
    assert row["details"] == ["nodeSelector place=2: the node has place=0"]


@pytest.mark.slow
async def test_a_target_that_cannot_be_is_told_from_one_that_may_pass(
    api: Api, engine: Engine, namespace: str, nodes: list[str]
) -> None:
    source, cordoned, _ = nodes
    await _instance(api, namespace, source)
    _, waiting, _ = await _explain(engine, namespace, "target", "web", "--to", cordoned)
    assert waiting[1].startswith("A migration would wait, at most 300 s: 0/")
    assert "1 is cordoned" in waiting[1] and "excluded by addedNodeSelectorTerm" in waiting[1]
    _, already, _ = await _explain(engine, namespace, "target", "web", "--to", source)
    said = f"AlreadyOnNode: addedNodeSelectorTerm names node {source}, where the guest already runs"
    assert already[1] == f"A migration would fail at once: {said}"
    _, nowhere, _ = await _explain(engine, namespace, "target", "web", "--to", "nowhere")
    assert nowhere[1].startswith("A migration would fail at once: NodeNotFound: ")
    assert (await api.list(MIGRATIONS, namespace)).ok["items"] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "code", "words"),
    [
        (("policy", "."), 8, "there is no VirtualMachineInstance '.' in namespace"),
        (("policy", "ghost"), 8, "there is no VirtualMachineInstance 'ghost' in namespace"),
        (("target", "pod/x"), 2, "'pod/x' is not NAME, vmi/NAME or vm/NAME"),
        (("target", "web", "--selector", "a=("), 2, "--selector 'a=(' is no selector of node labels"),
        (("target", "web", "--to", "a", "--selector", "b"), 2, "--to and --selector exclude each other"),
    ],
)
async def test_a_question_that_cannot_be_answered_gets_a_sentence(
    engine: Engine, namespace: str, asked: tuple[str, ...], code: int, words: str
) -> None:
    found, lines, err = await _explain(engine, namespace, *asked)
    assert (found, lines) == (code, [])
    assert words in err


async def test_where_no_controller_answers_that_is_said_and_no_review_stays(api: Api, engine: Engine, namespace: str) -> None:
    """No controllers run beside this engine."""
    forbidden = Forbidden(403, "Forbidden", "nodes is forbidden")
    async with Client(connect(engine.kubeconfig, None, "test"), "test") as client:
        with pytest.raises(Refusal, match=r"nobody answered MigrationReview explain-\w+ within 0.2 s: do the controllers run\?"):
            await reviewed(client, Key(namespace, "web"), {}, forbidden, patience=0.2)
    assert (await api.list(REVIEWS, namespace)).ok["items"] == []
