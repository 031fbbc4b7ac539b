"""`herder explain target` and `explain policy` for whoever holds vm-migrator in one namespace alone: they may not read nodes,
policies or other namespaces, and are answered all the same. Through the installed program, with real credentials."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from herder.api import registry, roles
from tests.behaviour.our_kinds import resource_of
from tests.e2e.herder import Herder
from tests.engines.api import Api
from tests.engines.credentials import bind, rule, sign, user, with_certificate
from tests.engines.engine import Engine
from tests.engines.resources import CLUSTER_ROLES, NAMESPACES, NODES
from tests.machines.herd import INSTANCES, Json, condition
from tests.machines.migrations import MIGRATIONS, POLICIES, Movers, named

REVIEWS = resource_of(registry.REVIEW)
SEE_MACHINES = rule("list", "virtualmachines", "kubevirt.io")
Holder = Callable[[str], Herder]


@pytest.fixture(scope="module", autouse=True)
async def ready_roles(api: Api) -> None:
    """As `herder install` does; the embedded engine has them already."""
    for role in roles.roles():
        assert (await api.create(CLUSTER_ROLES, role)).code in (201, 409)


def kubeconfig(engine: Engine, folder: Path, name: str) -> Path:
    pair = sign(engine, folder, name)
    cluster = {"server": engine.server, "certificate-authority": str(engine.ca)}
    shown = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": name}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": name, "user": shown}],
    }
    path = folder / f"{name}.kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.fixture
def migrator(engine: Engine, tmp_path: Path, unique: Callable[..., str]) -> str:
    return unique("migrator")


@pytest.fixture
async def herder(api: Api, engine: Engine, namespace: str, tmp_path: Path, migrator: str) -> Herder:
    """Of somebody who holds vm-migrator in the namespace, and nothing else."""
    await bind(api, namespace, "vm-migrator", user(migrator), SEE_MACHINES)
    return Herder(kubeconfig(engine, tmp_path, migrator), tmp_path, namespace)


async def run(herder: Herder, *words: str) -> list[str]:
    return (await asyncio.to_thread(herder, *words)).splitlines()


def rows(lines: list[str]) -> dict[str, list[str]]:
    """By the first word of each."""
    return {line.split()[0]: line.split()[1:] for line in lines if line.strip()}


async def test_a_migrator_of_one_namespace_is_told_where_a_machine_could_go(
    movers: Movers, herder: Herder, engine: Engine, migrator: str, tmp_path: Path
) -> None:
    api, namespace = movers.herd.api, movers.herd.namespace
    source = (await movers.make())["status"]["nodeName"]
    (other,) = movers.others(source)
    async with with_certificate(engine, migrator) as person:
        assert (await person.list(NODES)).code == 403, "else the test would prove nothing"
    lines = await run(herder, "explain", "target", "vm")
    assert lines[:2] == [f"instance {namespace}/vm runs on {source}.", f"It would go to {other}."]
    assert lines[2].split() == ["NODE", "FITS", "WHY", "NOT"], "how busy nodes are is nobody's business"
    found = rows(lines)
    assert (found[other], found[source]) == (["yes"], ["no", "is", "the", "source", "node"])
    # The same as whoever may read everything is told, but for the scores.
    direct = await run(Herder(engine.kubeconfig, tmp_path, namespace), "explain", "target", "vm")
    told = {name: [*cells[:1], *cells[2:]] if cells[0] == "yes" else cells for name, cells in rows(direct[3:]).items()}
    # Of its own nodes: others come and go meanwhile.
    assert (told[other], told[source]) == (found[other], found[source])
    nowhere = await run(herder, "explain", "target", "vm/vm", "--to", "nowhere")
    assert nowhere[1].startswith("A migration would fail at once: NodeNotFound: ")
    refused = await asyncio.to_thread(herder.refused, "migrate", "vm", "--to", "nowhere")
    assert "no node can take vm, so no migration was made: NodeNotFound: " in refused
    assert (await api.list(MIGRATIONS, namespace)).items == []
    assert (await api.list(REVIEWS, namespace)).items == [], "whoever asked has tidied up"


async def test_a_migrator_of_one_namespace_is_told_its_policies_and_nobody_elses(
    movers: Movers, herder: Herder, unique: Callable[..., str]
) -> None:
    api, namespace, label = movers.herd.api, movers.herd.namespace, unique("label")
    await movers.make(marked={label: "x"})
    (await api.patch(NAMESPACES, namespace, {"metadata": {"labels": {label: "ours"}}})).ok  # noqa: B018
    ours, theirs = unique("ours"), unique("theirs")
    for name, within in ((ours, "ours"), (theirs, "another-customer")):
        selectors = {"virtualMachineInstanceSelector": {label: "x"}, "namespaceSelector": {label: within}}
        (await api.create(POLICIES, {"metadata": {"name": name}, "spec": {"selectors": selectors, "maxDowntimeMs": 77}})).ok  # noqa: B018

    async def look() -> list[str]:
        lines = await run(herder, "explain", "policy", "vm")
        assert any(line.startswith(f"Policy {ours} matches 2 labels") for line in lines), lines
        return lines

    lines = await movers.herd.eventually(look)
    found = rows(lines)
    assert found[ours][:2] == ["yes", "2"]
    assert found["maxDowntimeMs"] == ["77", "MigrationPolicy", ours]
    assert found["progressTimeout"][1:] in (["built", "in"], ["KubeVirt"])
    assert f"namespace {namespace}: " in "\n".join(lines) and f"{label}=ours" in "\n".join(lines)
    assert theirs not in "\n".join(lines) and "another-customer" not in "\n".join(lines)
    assert any("more, which are not for this namespace" in line for line in lines)
    for name in (ours, theirs):
        await api.delete(POLICIES, name)


async def test_whoever_may_not_migrate_is_told_which_role_lets_them_ask(
    movers: Movers, api: Api, engine: Engine, namespace: str, tmp_path: Path, migrator: str
) -> None:
    await movers.make()
    await bind(api, namespace, "vm-owner", user(migrator), SEE_MACHINES)
    owner = Herder(kubeconfig(engine, tmp_path, migrator), tmp_path, namespace)
    said = await asyncio.to_thread(owner.refused, "explain", "target", "vm")
    assert 'cannot create resource "migrationreviews"' in said
    assert f"the role vm-migrator, bound in namespace '{namespace}', is enough" in said


async def test_a_review_is_answered_for_kubectl_too_once_and_by_nobody_but_the_controllers(
    movers: Movers, api: Api, engine: Engine, namespace: str, migrator: str
) -> None:
    source = (await movers.make())["status"]["nodeName"]
    (other,) = movers.others(source)
    await bind(api, namespace, "vm-migrator", user(migrator), SEE_MACHINES)
    forged = {"outcome": "Schedulable", "targetNode": "forged", "conditions": [{"type": "Answered", "status": "True"}]}
    async with with_certificate(engine, migrator) as person:
        spec = {"vmiName": "vm", "addedNodeSelectorTerm": [named(other)]}
        document: Json = {"metadata": {"name": "r"}, "spec": spec, "status": forged}
        (await person.create(REVIEWS, document, namespace)).ok  # noqa: B018

        async def look() -> Json:
            found = (await person.get(REVIEWS, "r", namespace)).ok
            assert condition(found, "Answered") if "status" in found else False
            return found

        found = await movers.herd.eventually(look)
        assert (found["status"]["outcome"], found["status"]["targetNode"]) == ("Schedulable", other)
        assert condition(found, "Answered")["status"] == "True" and found["status"]["observedGeneration"] == 1
        assert (await person.patch(REVIEWS, "r", {"status": forged}, namespace, "status")).code == 403
        assert (await person.patch(REVIEWS, "r", {"spec": {"vmiName": "b"}}, namespace)).code == 403
        changed = await api.patch(REVIEWS, "r", {"spec": {"vmiName": "b"}}, namespace)
        assert (changed.code, "spec is immutable" in changed.message) == (422, True)
        assert (await person.create(REVIEWS, {**document, "metadata": {"name": "s"}}, "default")).code == 403
        wrong = await person.create(REVIEWS, {"metadata": {"name": "s"}, "spec": {"vmiName": "../nodes"}}, namespace)
        wrong.refused(422, "Invalid")
        assert (await person.delete(REVIEWS, "r", namespace)).code == 200
    assert (await api.get(INSTANCES, "vm", namespace)).ok["status"]["nodeName"] == source, "nothing was moved"
