"""The CustomResourceDefinitions that are checked in."""

from pathlib import Path

import pytest
import yaml

from herder.api import crds
from herder.api.registry import KINDS, MIGRATION, info_of

CHECKED_IN = Path(__file__).parents[3] / "deploy" / "crds"


@pytest.mark.slow
def test_the_files_are_what_the_types_say() -> None:
    assert crds.stale(CHECKED_IN) == []


@pytest.mark.slow
def test_writing_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    crds.write(tmp_path)
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    crds.write(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first
    assert len(first) == len(KINDS)


def test_check_fails_on_a_changed_a_missing_and_a_foreign_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    crds.write(tmp_path)
    changed, missing, *_ = sorted(tmp_path.iterdir())
    changed.write_text(changed.read_text() + "# more\n")
    missing.unlink()
    (tmp_path / "foreign.yaml").write_text("a: b\n")
    assert crds.main(["--check", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert all(name in told for name in (changed.name, missing.name, "foreign.yaml"))
    assert crds.main([str(tmp_path)]) == 0
    assert crds.main(["--check", str(tmp_path)]) == 0


def test_a_wrong_call_says_how_to_call(capsys: pytest.CaptureFixture[str]) -> None:
    assert crds.main(["--chekc"]) == 2
    assert "usage:" in capsys.readouterr().err


def test_every_crd_is_marked_as_ours() -> None:
    for info in KINDS:
        crd = crds.crd_of(info)
        assert crd["metadata"] == {"name": f"{info.plural}.{info.group}", "labels": {"app.kubernetes.io/part-of": "herder"}}


def test_a_file_holds_the_crd_and_says_where_it_comes_from() -> None:
    text = crds.text_of(MIGRATION)
    assert yaml.safe_load(text) == crds.crd_of(MIGRATION)
    assert text.startswith("# Made from the types in herder/api/kinds")


def test_a_pool_can_be_scaled_and_nothing_else() -> None:
    scaled = {info.kind for info in KINDS if "scale" in crds.crd_of(info)["spec"]["versions"][0]["subresources"]}
    assert scaled == {"VirtualMachinePool"}


def test_short_names_are_told_apart() -> None:
    names = [name for info in KINDS for name in (*info.short_names, info.plural, info.singular)]
    assert len(names) == len(set(names))


def test_a_document_is_known_by_group_and_kind() -> None:
    assert info_of({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine"}) is KINDS[0]
    assert info_of({"apiVersion": "v1", "kind": "Pod"}) is None
    assert info_of({"apiVersion": "apps/v1", "kind": "VirtualMachine"}) is None
    assert info_of({}) is None
