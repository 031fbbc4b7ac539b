"""`herder user add`: a kubeconfig that lets somebody in, as far as their roles go."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from herder.app.user_roles import ready_roles
from tests.e2e.program import Ended, Up
from tests.engines.api import connect
from tests.engines.credentials import binding, token_for, user, with_token
from tests.engines.embedded import find_program, read_kubeconfig
from tests.engines.resources import CLUSTER_ROLES, CONFIG_MAPS, NODES, ROLE_BINDINGS, SERVICE_ACCOUNTS, Resource

REVIEWS = Resource("herder.dev", "v1alpha1", "migrationreviews", "MigrationReview")
MACHINES = Resource("kubevirt.io", "v1", "virtualmachines", "VirtualMachine")
WHO_AM_I = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)


def add(*arguments: str, cwd: Path) -> Ended:
    command = [str(find_program()), "user", "add", *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=30, check=False)
    return Ended(answer.returncode, answer.stdout, answer.stderr)


def _certificate(kubeconfig: Path, folder: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(read_kubeconfig("embedded", kubeconfig, folder).client_certificate.read_bytes())


async def test_a_user_comes_in_with_groups_and_without_rights(herd: Up, tmp_path: Path) -> None:
    ended = add("jane", "--group", "devs", "--group", "ops", "--data", str(herd.data), cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert "kubectl create rolebinding jane-vms --clusterrole=vm-owner --user=jane" in ended.out
    kubeconfig = tmp_path / "jane.kubeconfig"
    assert kubeconfig.stat().st_mode & 0o777 == 0o600
    async with connect(read_kubeconfig("embedded", kubeconfig, tmp_path)) as jane:
        known = (await jane.create(WHO_AM_I, {})).ok["status"]["userInfo"]
        assert (known["username"], known["groups"]) == ("jane", ["devs", "ops", "system:authenticated"])
        assert (await jane.list(NODES)).code == 403


async def test_a_role_is_what_opens_the_door(herd: Up, tmp_path: Path) -> None:
    add("owner", "--data", str(herd.data), "--kubeconfig", "mine", cwd=tmp_path)
    folder = tmp_path / "admin"
    folder.mkdir()
    async with (
        connect(herd.connection(folder)) as admin,
        connect(read_kubeconfig("embedded", tmp_path / "mine", tmp_path)) as owner,
    ):
        assert (await owner.list(MACHINES, "default")).code == 403
        made = await admin.create(ROLE_BINDINGS, binding("owner-vms", "vm-owner", user("owner")), "default")
        assert made.code in (201, 409)
        assert (await owner.list(MACHINES, "default")).code == 200
        assert (await owner.list(CONFIG_MAPS, "default")).code == 403


async def test_a_ready_role_is_given_in_a_namespace_or_everywhere(herd: Up, tmp_path: Path) -> None:
    data = ("--data", str(herd.data))
    where = ("--namespace", "kube-public")
    for _ in range(2):
        ended = add("mover", "--role", "vm-migrator", "--role", "vm-owner", *where, *data, cwd=tmp_path)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out.strip().endswith(": vm-migrator, vm-owner in namespace kube-public.")
    ended = add("watcher", "--role", "herder-viewer", "--all-namespaces", *data, cwd=tmp_path)
    assert ended.out.strip().endswith(": herder-viewer in all namespaces.")
    context = yaml.safe_load((tmp_path / "mover.kubeconfig").read_text())["contexts"][0]["context"]
    assert context["namespace"] == "kube-public", "what the person types is about where they may"
    async with (
        connect(read_kubeconfig("embedded", tmp_path / "mover.kubeconfig", tmp_path)) as mover,
        connect(read_kubeconfig("embedded", tmp_path / "watcher.kubeconfig", tmp_path)) as watcher,
    ):
        for resource in (REVIEWS, MACHINES):
            assert (await mover.list(resource, "kube-public")).code == 200
            assert (await mover.list(resource, "default")).code == 403
        assert (await mover.list(NODES)).code == 403
        assert [(await watcher.list(one)).code for one in (MACHINES, NODES)] == [200, 200]


async def test_every_ready_role_is_offered_and_is_there(herd: Up, tmp_path: Path) -> None:
    files = {path.stem for path in (Path(__file__).parents[2] / "deploy" / "roles").glob("*.yaml")}
    own = {name for name in files if not name.startswith("herder-aggregate-to-")}
    # The others are for Kubernetes' own roles.
    assert set(ready_roles()) == own | {"view", "edit", "admin"}
    ended = add("jane", "--data", str(herd.data), cwd=tmp_path)
    shown = add("--help", cwd=tmp_path).out
    wrong = add("jane", "--role", "vm-king", "--namespace", "default", cwd=tmp_path)
    assert (wrong.code, "'vm-king' is none of the ready roles" in wrong.err) == (2, True)
    folder = tmp_path / "admin"
    folder.mkdir()
    async with connect(herd.connection(folder)) as admin:
        for name in ready_roles():
            assert all(f"  {name} " in text for text in (ended.out, shown, wrong.err)), name
            assert (await admin.get(CLUSTER_ROLES, name)).code == 200


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--role", "vm-owner"), "say where it holds: --namespace N, or --all-namespaces"),
        (("--role", "vm-owner", "-n", "default", "--all-namespaces"), "exclude each other"),
        (("-n", "default"), "says where a role holds; name it with --role: herder-viewer, vm-owner,"),
        (("--role", "vm-owner", "-n", "nowhere"), "there is no such namespace; `kubectl create namespace nowhere` makes it"),
        (("--role", "vm-owner", "-n", "a/b"), "'a/b': cannot be the name of a namespace"),
    ],
)
def test_a_role_that_cannot_be_given_is_refused_and_nothing_is_written(
    herd: Up, tmp_path: Path, arguments: tuple[str, ...], why: str
) -> None:
    ended = add("jane", *arguments, "--data", str(herd.data), cwd=tmp_path)
    assert (ended.code, why in ended.err) == (2, True), ended
    assert os.listdir(tmp_path) == []


async def test_masters_may_everything_and_are_told_so(herd: Up, tmp_path: Path) -> None:
    ended = add("second", "--group", "system:masters", "--data", str(herd.data), cwd=tmp_path)
    assert ended.out.strip().endswith("May do everything.")
    async with connect(read_kubeconfig("embedded", tmp_path / "second.kubeconfig", tmp_path)) as second:
        assert (await second.list(NODES)).code == 200


def test_a_certificate_is_good_for_so_many_days(herd: Up, tmp_path: Path) -> None:
    add("brief", "--days", "2", "--data", str(herd.data), cwd=tmp_path)
    certificate = _certificate(tmp_path / "brief.kubeconfig", tmp_path)
    assert (certificate.not_valid_after_utc - certificate.not_valid_before_utc).days == 2
    too_long = add("long", "--days", "100000", "--data", str(herd.data), cwd=tmp_path)
    assert too_long.code == 2
    assert "the authority itself ends in" in too_long.err


def test_it_works_while_the_engine_does_not_run(tmp_path: Path) -> None:
    with Up(tmp_path, nodes=0) as herd:
        data, port = herd.data, herd.port
    ended = add("later", "--data", str(data), cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    document = yaml.safe_load((tmp_path / "later.kubeconfig").read_text())
    assert document["clusters"][0]["cluster"]["server"] == f"https://127.0.0.1:{port}"
    ended = add("never", "--role", "view", "-n", "default", "--data", str(data), cwd=tmp_path)
    assert (ended.code, "does not run: start it with `herder up`, or leave --role out" in ended.err) == (7, True), ended
    assert not (tmp_path / "never.kubeconfig").exists()


async def test_tokens_outlive_a_restart(tmp_path: Path) -> None:
    with Up(tmp_path, nodes=0) as herd:
        folder = tmp_path / "admin"
        folder.mkdir()
        async with connect(herd.connection(folder)) as admin:
            (await admin.create(SERVICE_ACCOUNTS, {"metadata": {"name": "robot"}}, "default")).ok  # noqa: B018
            token = await token_for(admin, "default", "robot")
        data, port = herd.data, herd.port
    with Up(tmp_path, data=data, port=port, nodes=0) as herd:
        engine = herd.connection(folder)
        async with with_token(engine, token) as shown:
            known = (await shown.create(WHO_AM_I, {})).ok["status"]["userInfo"]
            assert known["username"] == "system:serviceaccount:default:robot"


@pytest.mark.parametrize("name", ["", "a b", "a/b", "../up", "system:masters", "-x-", "ä", "x" * 65, "a\nb"])
def test_a_name_that_cannot_be_one_is_refused_in_a_sentence(herd: Up, tmp_path: Path, name: str) -> None:
    ended = add("--data", str(herd.data), "--", name, cwd=tmp_path)
    assert ended.code == 2
    assert ended.err.startswith("herder: ")
    assert "Traceback" not in ended.err
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("group", ["", " devs", "x" * 65])
def test_a_group_that_cannot_be_one_is_refused(herd: Up, tmp_path: Path, group: str) -> None:
    ended = add("jane", "--group", group, "--data", str(herd.data), cwd=tmp_path)
    assert ended.code == 2
    assert "cannot be the name of a group" in ended.err


def test_a_directory_that_is_none_is_refused(tmp_path: Path) -> None:
    ended = add("jane", "--data", "nowhere", cwd=tmp_path)
    assert ended.code == 3
    assert ended.err == "herder: --data nowhere: is no data directory of herder; `herder up` makes one\n"
    assert os.listdir(tmp_path) == []


def test_nobody_elses_kubeconfig_is_written_over(herd: Up, tmp_path: Path) -> None:
    before = herd.kubeconfig.read_bytes()
    ended = add("jane", "--data", str(herd.data), "--kubeconfig", str(herd.kubeconfig), cwd=tmp_path)
    assert ended.code == 3
    assert "is that of herder-admin" in ended.err
    assert herd.kubeconfig.read_bytes() == before
    for _ in range(2):
        assert add("jane", "--data", str(herd.data), cwd=tmp_path).code == 0


def test_a_node_is_known_by_its_name_and_its_group_together(herd: Up, tmp_path: Path) -> None:
    ended = add("system:node:n1", "--group", "system:nodes", "--data", str(herd.data), cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert "herder node --kubeconfig n1.kubeconfig --name n1" in ended.out
    for arguments, why in (
        (("system:node:n1",), "a node is system:node:NAME with --group system:nodes: give both"),
        (("n1", "--group", "system:nodes"), "a node is system:node:NAME with --group system:nodes: give both"),
        (("system:node:N_1", "--group", "system:nodes"), "'N_1' cannot be the name of a node"),
        (("system:node:" + "n" * 53, "--group", "system:nodes"), "at most 52 characters"),
        (("system:node:n1", "--group", "system:nodes", "--role", "view"), "has the rights of a node, and needs no role"),
        (("system:kube-scheduler",), "names that begin with system: belong to the engine"),
    ):
        refused = add(*arguments, "--data", str(herd.data), "--kubeconfig", "x", cwd=tmp_path)
        assert (refused.code, why in refused.err) == (2, True), refused.err
