"""The roles that are checked in."""

from pathlib import Path

import pytest

from herder.api import roles
from herder.api.registry import KINDS

CHECKED_IN = Path(__file__).parents[3] / "deploy" / "roles"
WRITES = {"create", "update", "patch", "delete", "deletecollection", "*"}


def rights(name: str) -> set[tuple[str, str, str]]:
    role = next(one for one in roles.roles() if one["metadata"]["name"] == name)
    return {
        (verb, group, resource)
        for rule in role["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def test_the_files_are_what_is_said_here() -> None:
    assert roles.stale(CHECKED_IN) == []


def test_check_fails_on_a_changed_and_a_foreign_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    roles.write(tmp_path)
    (tmp_path / "vm-owner.yaml").write_text("a: b\n")
    (tmp_path / "foreign.yaml").write_text("a: b\n")
    assert roles.main(["--check", str(tmp_path)]) == 1
    assert all(name in capsys.readouterr().err for name in ("vm-owner.yaml",))
    assert roles.main([str(tmp_path)]) == 0
    assert roles.main(["--check", str(tmp_path)]) == 0
    assert roles.main(["--chekc"]) == 2


def test_a_viewer_may_read_all_our_kinds_and_write_nothing() -> None:
    held = rights("herder-viewer")
    assert not {verb for verb, _, _ in held} & WRITES
    assert {("list", info.group, info.plural) for info in KINDS} <= held


def test_only_admins_have_stars() -> None:
    for role in roles.roles():
        name = role["metadata"]["name"]
        assert name == "herder-admin" or not any("*" in right for right in rights(name)), name


@pytest.mark.parametrize("role", [role["metadata"]["name"] for role in roles.roles()])
def test_no_role_opens_secrets_roles_or_other_people(role: str) -> None:
    held = rights(role)
    assert not {
        resource for _, group, resource in held if group == "" and resource.split("/")[0] in ("secrets", "serviceaccounts", "*")
    }
    assert not {group for _, group, _ in held} & {"rbac.authorization.k8s.io", "*"}
    assert not {verb for verb, _, _ in held} & {"impersonate", "bind", "escalate"}


@pytest.mark.parametrize("role", ["vm-owner", "herder:aggregate-to-edit"])
def test_whoever_edits_machines_does_not_migrate(role: str) -> None:
    moving = {"virtualmachineinstancemigrations", "podmigrationjobs", "pods/eviction"}
    assert not {resource for verb, _, resource in rights(role) if verb in WRITES} & moving


def test_a_migrator_writes_migrations_and_questions_about_them_alone() -> None:
    written = {(verb, resource) for verb, _, resource in rights("vm-migrator") if verb in WRITES}
    asked = ("virtualmachineinstancemigrations", "migrationreviews")
    assert written == {(verb, resource) for verb in ("create", "delete") for resource in asked}


def test_a_pod_migrator_writes_jobs_and_evictions_alone_and_reads_what_they_are_about() -> None:
    held = {(verb, resource) for verb, _, resource in rights("pod-migrator")}
    written = {one for one in held if one[0] in WRITES}
    assert written == {*((verb, "podmigrationjobs") for verb in ("create", "patch", "delete")), ("create", "pods/eviction")}
    read = ("podmigrationjobs", "podmigrationjobs/status", "reservations", "reservations/status", "pods")
    assert held - written == {(verb, resource) for verb in roles.READ for resource in read}
