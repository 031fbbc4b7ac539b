"""`herder install` against clusters of its own: what it puts there, what it leaves alone, and what it says."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from herder.api import registry
from herder.api.registry import KINDS
from herder.api.world import RealWorld
from herder.kube.errors import Forbidden
from herder.kube.leases import LeaderElection
from herder.kube.resources import LEASES, SERVICE_ACCOUNTS, Key
from tests.behaviour.clients import admin_of, cluster_of, connected, write_kubeconfig
from tests.behaviour.our_kinds import resource_of
from tests.conftest import EngineMissing
from tests.e2e.program import Ended
from tests.engines.api import Api, connect
from tests.engines.credentials import account, grant, rule, sign, token_for, until_allowed, user
from tests.engines.embedded import find_program, run_embedded
from tests.engines.engine import Engine, Unavailable
from tests.engines.kubernetes import run_kubernetes
from tests.engines.processes import free_ports
from tests.engines.resources import CLUSTER_ROLES, CRDS, NAMESPACES, Resource

MACHINES = "virtualmachines.kubevirt.io"
CRD = "customresourcedefinition.apiextensions.k8s.io"
ROLE = "clusterrole.rbac.authorization.k8s.io"
SETTINGS = resource_of(registry.SETTINGS)
SETTINGS_NAME = "kubevirt.kubevirt.io/kubevirt"
PART_OF = "app.kubernetes.io/part-of"
ACCOUNT = account("herder-system", "herder-controllers")


def install(*arguments: str, cwd: Path, **environment: str) -> Ended:
    command = [str(find_program()), "install", *arguments]
    surroundings = {"PATH": os.environ["PATH"], "HOME": str(cwd), **environment}
    answer = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=surroundings, timeout=120, check=False)
    assert "Traceback" not in answer.stderr, answer.stderr
    return Ended(answer.returncode, answer.stdout, answer.stderr)


@pytest.fixture(scope="module")
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One of this file's own: what is installed into it is nobody else's business."""
    run = run_embedded if request.param == "embedded" else run_kubernetes
    try:
        with run(tmp_path_factory.mktemp("cluster")) as running:
            yield running
    except Unavailable as reason:
        raise EngineMissing(str(reason)) from None


@pytest.fixture(scope="module")
async def api(engine: Engine) -> AsyncIterator[Api]:
    async with connect(engine) as connected:
        yield connected


class First:
    """What the first two commands said: a dry run, and the real one."""

    def __init__(self, dry: Ended, kinds_after_dry: list[str], real: Ended) -> None:
        self.dry, self.kinds_after_dry, self.real = dry, kinds_after_dry, real


@pytest.fixture(scope="module")
async def first(engine: Engine, api: Api, tmp_path_factory: pytest.TempPathFactory) -> First:
    cwd = tmp_path_factory.mktemp("home")
    dry = install("--kubeconfig", str(engine.kubeconfig), "--dry-run", cwd=cwd)
    names = (await api.list(CRDS)).names
    return First(dry, names, install("--kubeconfig", str(engine.kubeconfig), cwd=cwd))


async def test_the_first_time_everything_is_put_there(first: First, api: Api, engine: Engine) -> None:
    assert (first.real.code, first.real.err) == (0, "")
    lines = first.real.out.splitlines()
    # The first is there already: the webhook of the test's own cluster keeps its certificate in it.
    assert lines[:2] == ["namespace/herder-system unchanged", f"namespace/kubevirt {_word(engine)}"]
    assert lines[2 : 2 + len(KINDS)] == [f"{CRD}/{info.crd_name} {_word(engine)}" for info in KINDS]
    assert f"{ROLE}/vm-owner {_word(engine)}" in lines
    assert f"serviceaccount/herder-controllers {_word(engine)}" in lines
    for info in KINDS:
        found = await api.list(Resource(info.group, info.version, info.plural, info.kind), (info.namespaced and "default") or "")
        assert found.items == []
    assert {"herder-system", "kubevirt"} <= set((await api.list(NAMESPACES)).names)
    assert lines[-1] == f"{SETTINGS_NAME} {'unchanged' if engine.name == 'embedded' else 'created'}"
    assert (await api.get(SETTINGS, "kubevirt", "kubevirt")).ok["spec"] == {}


async def test_settings_that_people_wrote_are_theirs(first: First, api: Api, engine: Engine, tmp_path: Path) -> None:
    written = {"configuration": {"migrations": {"progressTimeout": 7}}}
    mine = (await api.patch(SETTINGS, "kubevirt", {"spec": written}, "kubevirt")).ok
    assert install("--kubeconfig", str(engine.kubeconfig), cwd=tmp_path).out.splitlines()[-1] == f"{SETTINGS_NAME} unchanged"
    assert (await api.get(SETTINGS, "kubevirt", "kubevirt")).ok == mine
    (await api.delete(SETTINGS, "kubevirt", "kubevirt")).ok  # noqa: B018
    assert install("--kubeconfig", str(engine.kubeconfig), cwd=tmp_path).out.splitlines()[-1] == f"{SETTINGS_NAME} created"
    assert (await api.get(SETTINGS, "kubevirt", "kubevirt")).ok["spec"] == {}


def _word(engine: Engine) -> str:
    """The embedded engine comes with our kinds and roles."""
    return "unchanged" if engine.name == "embedded" else "serverside-applied"


async def test_a_dry_run_says_the_same_and_does_nothing(first: First, engine: Engine) -> None:
    assert (first.dry.code, first.dry.err) == (0, "")
    assert [line.removesuffix(" (server dry run)") for line in first.dry.out.splitlines()] == first.real.out.splitlines()
    if engine.name == "kubernetes":
        assert first.kinds_after_dry == []


async def test_the_controllers_can_lead_and_tell_under_their_account_and_nothing_else(
    first: First, api: Api, engine: Engine, tmp_path: Path
) -> None:
    await until_allowed(api, "kube-system", ACCOUNT, rule("patch", "leases", "coordination.k8s.io", "herder-controllers"))
    await until_allowed(api, "default", ACCOUNT, rule("patch", "events", "events.k8s.io"))
    await until_allowed(api, "kubevirt", ACCOUNT, rule("patch", "kubevirts/status", "kubevirt.io"))
    await until_allowed(api, "", ACCOUNT, rule("patch", "migrationpolicies/status", "migrations.kubevirt.io"))
    token = await token_for(api, ACCOUNT["namespace"], ACCOUNT["name"])
    led = asyncio.Event()

    async def lead() -> None:
        led.set()

    async with connected(write_kubeconfig(tmp_path / "config", cluster_of(engine), {"token": token})) as client:
        await asyncio.wait_for(LeaderElection(client, RealWorld(), "me").run(lead), 30)
        assert led.is_set()
        with pytest.raises(Forbidden):
            await client.list(SERVICE_ACCOUNTS)
        with pytest.raises(Forbidden):
            await client.patch(LEASES, Key("kube-system", "other"), {})


async def _versions(api: Api) -> dict[str, str]:
    found = [*(await api.list(CRDS)).items, *(await api.list(CLUSTER_ROLES)).items]
    return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in found}


async def test_installing_twice_changes_nothing(first: First, api: Api, engine: Engine, tmp_path: Path) -> None:
    before = await _versions(api)
    again = install(cwd=tmp_path, KUBECONFIG=str(engine.kubeconfig))
    assert (again.code, again.err) == (0, "")
    assert {line.rpartition(" ")[2] for line in again.out.splitlines()} == {"unchanged"}
    assert await _versions(api) == before


async def test_an_older_version_is_brought_up_to_date(first: First, api: Api, engine: Engine, tmp_path: Path) -> None:
    (wanted,) = (item for item in (await api.list(CRDS)).items if item["metadata"]["name"] == MACHINES)
    older = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": MACHINES, "labels": {PART_OF: "herder", "old": "label"}},
        "spec": {**wanted["spec"], "versions": [{**wanted["spec"]["versions"][0], "additionalPrinterColumns": []}]},
    }
    patched = await api.patch(CRDS, MACHINES, older, kind="apply", fieldManager="herder", force=True)
    assert patched.ok["metadata"]["labels"]["old"] == "label"
    upgraded = install("--kubeconfig", str(engine.kubeconfig), cwd=tmp_path)
    changed = [line for line in upgraded.out.splitlines() if not line.endswith(" unchanged")]
    assert changed == [f"{CRD}/{MACHINES} serverside-applied"]
    now = (await api.get(CRDS, MACHINES)).ok
    assert now["spec"] == wanted["spec"]
    assert "old" not in now["metadata"]["labels"]


async def test_what_another_product_installed_is_left_alone_and_so_is_the_rest(
    first: First, api: Api, engine: Engine, tmp_path: Path
) -> None:
    theirs = {"metadata": {"labels": {PART_OF: None, "app.kubernetes.io/managed-by": "virt-operator"}}}
    (await api.patch(CRDS, MACHINES, theirs)).ok  # noqa: B018
    (await api.patch(CLUSTER_ROLES, "vm-owner", {"rules": []})).ok  # noqa: B018
    before = await _versions(api)
    for words in ((), ("--dry-run",)):
        refused = install("--kubeconfig", str(engine.kubeconfig), *words, cwd=tmp_path)
        assert (refused.code, refused.out) == (7, "")
        assert refused.err.startswith("herder: another product installed what herder would have to change:\n")
        assert f"\n  {CRD}/{MACHINES} (of virt-operator)\nNothing was changed." in refused.err
        assert await _versions(api) == before
    ours = {"metadata": {"labels": {PART_OF: "herder", "app.kubernetes.io/managed-by": None}}}
    (await api.patch(CRDS, MACHINES, ours)).ok  # noqa: B018
    mended = install("--kubeconfig", str(engine.kubeconfig), cwd=tmp_path)
    assert f"{ROLE}/vm-owner serverside-applied" in mended.out
    assert (await api.get(CLUSTER_ROLES, "vm-owner")).ok["rules"]


async def test_what_is_being_deleted_is_waited_for_by_the_person(first: First, api: Api, engine: Engine, tmp_path: Path) -> None:
    (await api.patch(CLUSTER_ROLES, "vm-migrator", {"metadata": {"finalizers": ["example.com/later"]}})).ok  # noqa: B018
    await api.delete(CLUSTER_ROLES, "vm-migrator")
    refused = install("--kubeconfig", str(engine.kubeconfig), cwd=tmp_path)
    assert (refused.code, refused.out) == (7, "")
    assert refused.err.startswith(f"herder: {ROLE}/vm-migrator: is being deleted; ask again when it is gone.")
    (await api.patch(CLUSTER_ROLES, "vm-migrator", {"metadata": {"finalizers": None}})).ok  # noqa: B018
    assert install("--kubeconfig", str(engine.kubeconfig), cwd=tmp_path).code == 0


def kubeconfig_for(engine: Engine, folder: Path, name: str) -> Path:
    pair = sign(engine, folder, name)
    certificate = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    return write_kubeconfig(folder / "kubeconfig", cluster_of(engine), certificate)


async def test_somebody_without_rights_is_told_so(first: First, engine: Engine, tmp_path: Path) -> None:
    refused = install("--kubeconfig", str(kubeconfig_for(engine, tmp_path, "nobody")), cwd=tmp_path)
    assert (refused.code, refused.out) == (7, "")
    assert refused.err.startswith("herder: this user may not install herder, an administrator may: ")
    assert 'User "nobody" cannot get resource' in refused.err


async def test_somebody_who_may_do_half_of_it_does_nothing(first: First, api: Api, engine: Engine, tmp_path: Path) -> None:
    kinds = rule("get create patch", "customresourcedefinitions", "apiextensions.k8s.io")
    await grant(api, "", user("half"), kinds, rule("get", "*", "*"), rule("create patch", "namespaces"))
    fewer_columns = [{"op": "remove", "path": "/spec/versions/0/additionalPrinterColumns/0"}]
    (await api.patch(CRDS, MACHINES, fewer_columns, kind="json")).ok  # noqa: B018
    before = await _versions(api)
    refused = install("--kubeconfig", str(kubeconfig_for(engine, tmp_path, "half")), cwd=tmp_path)
    assert (refused.code, refused.out) == (7, "")
    assert 'User "half" cannot patch resource "clusterroles"' in refused.err
    assert await _versions(api) == before
    assert install("--kubeconfig", str(engine.kubeconfig), cwd=tmp_path).code == 0
    assert await _versions(api) != before


def test_a_cluster_that_is_not_there_is_told_so(engine: Engine, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    path = write_kubeconfig(tmp_path / "config", cluster_of(engine, server=f"https://127.0.0.1:{port}"), admin_of(engine))
    refused = install("--kubeconfig", str(path), cwd=tmp_path)
    assert (refused.code, refused.out) == (7, "")
    assert refused.err.startswith("herder: the cluster cannot be reached: ")
    assert f"127.0.0.1:{port}" in refused.err


def test_a_user_whom_the_cluster_does_not_know_is_told_so(engine: Engine, tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "config", cluster_of(engine), {"token": "nonsense"})
    refused = install("--kubeconfig", str(path), cwd=tmp_path)
    assert refused.code == 7
    assert refused.err.startswith("herder: the cluster does not know this user: ")


def test_settings_that_cannot_be_used_get_a_sentence(engine: Engine, tmp_path: Path) -> None:
    for words, sentence in (
        (("--kubeconfig", "missing"), "herder: missing: cannot be read: No such file or directory\n"),
        (
            ("--kubeconfig", str(engine.kubeconfig), "--context", "other"),
            f"herder: {engine.kubeconfig}: there is no context 'other'",
        ),
        ((), f"herder: there is no kubeconfig at {tmp_path}/.kube/config, and this is no pod of a cluster; name one with"),
    ):
        refused = install(*words, cwd=tmp_path)
        assert (refused.code, refused.out) == (6, "")
        assert refused.err.startswith(sentence)


def test_what_is_printed_is_what_would_be_installed(first: First, engine: Engine, kubectl_program: Path, tmp_path: Path) -> None:
    printed = install("--print", cwd=tmp_path)
    assert printed.code == 0
    words = [
        "apply",
        "--server-side",
        "--force-conflicts",
        "--field-manager=herder",
        f"--kubeconfig={engine.kubeconfig}",
        "-f",
        "-",
    ]
    home = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    applied = subprocess.run([kubectl_program, *words], input=printed.out, capture_output=True, text=True, env=home, check=False)
    assert applied.returncode == 0, applied.stderr
    again = install("--kubeconfig", str(engine.kubeconfig), cwd=tmp_path)
    # But for the settings: applied once more, an empty spec would take away what people have applied.
    assert [line.partition(" ")[0] for line in again.out.splitlines()] == [
        *(line.partition(" ")[0] for line in applied.stdout.splitlines()),
        SETTINGS_NAME,
    ]
    assert {line.rpartition(" ")[2] for line in again.out.splitlines()} == {"unchanged"}
