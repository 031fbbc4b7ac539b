"""The manifests in examples/: what a newcomer tries first must be right."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from herder.api.normalise import added_term, label_pairs
from herder.api.registry import KINDS, info_of
from herder.api.validation import problems_of

FOLDER = Path(__file__).parents[3] / "examples"
DOCUMENTS: list[dict[str, Any]] = [one for path in sorted(FOLDER.glob("*.yaml")) for one in yaml.safe_load_all(path.read_text())]
OURS = [one for one in DOCUMENTS if info_of(one)]


@pytest.mark.parametrize("document", OURS, ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_an_example_is_read_by_its_view_and_has_no_problems(document: dict[str, Any]) -> None:
    info = info_of(document)
    assert info is not None
    view = msgspec.convert(document, info.view)
    assert view.metadata.name == document["metadata"]["name"]  # pyright: ignore[reportAttributeAccessIssue]
    assert problems_of(document) == []


def test_every_kind_has_an_example() -> None:
    assert {one["kind"] for one in OURS} == {info.kind for info in KINDS}


def test_every_file_begins_with_words_for_people() -> None:
    for path in FOLDER.glob("*.yaml"):
        assert path.read_text().startswith("# "), path.name


def _example(name: str) -> dict[str, Any]:
    return next(one for one in OURS if one["metadata"]["name"] == name)


def test_the_complete_policy_of_the_seed_has_a_boolean_that_is_read_as_a_label() -> None:
    selector = _example("my-awesome-policy")["spec"]["selectors"]["namespaceSelector"]
    assert selector == {"hpc-workloads": True}
    assert label_pairs(selector) == {"hpc-workloads": "true"}


def test_the_migration_of_the_seed_has_a_list_of_one_term() -> None:
    term = _example("migration-job")["spec"]["addedNodeSelectorTerm"]
    assert isinstance(term, list)
    assert added_term(term) == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-2"]}]}


def test_pools_name_their_volumes_apart() -> None:
    """Or their machines would claim each other's disks, when a newcomer applies the whole folder."""
    pools = [one["spec"]["template"]["spec"] for one in OURS if one["kind"] == "VirtualMachinePool"]
    templates = [one.get("dataVolumeTemplates", []) for one in pools]
    names = [template["metadata"]["name"] for listed in templates for template in listed]
    assert len(names) == len(set(names)) == 4
