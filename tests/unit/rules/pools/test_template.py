"""What each machine of a pool gets from the template."""

from typing import Any

import pytest

from herder.rules.pools.member import RunField
from herder.rules.pools.revisions import content_of, revision_of
from herder.rules.pools.template import in_words_of, machine_document, same_run, volume_changes

from .things import A, Json, name_of, pool, revision, template

SECRETS = [
    {"secret": {"secretName": "s"}},
    {"sysprep": {"secret": {"name": "s"}}},
    {"cloudInitNoCloud": {"secretRef": {"name": "s"}}},
    {"cloudInitNoCloud": {"networkDataSecretRef": {"name": "s"}}},
    {"cloudInitConfigDrive": {"secretRef": {"name": "s"}}},
    {"cloudInitConfigDrive": {"networkDataSecretRef": {"name": "s"}}},
]
CONFIG_MAPS = [{"configMap": {"name": "s"}}, {"sysprep": {"configMap": {"name": "s"}}}]
TO_SECRETS = {"appendPostfixToSecretReferences": True}
TO_CONFIG_MAPS = {"appendPostfixToConfigMapReferences": True}


def volumes(volume: Json, names: Json | None = None) -> Json:
    wanted = template(disk="http://images/1", volumes=[volume])
    made = machine_document(pool(), revision_of("web-x", content_of(wanted, names or {})), 7)
    return made["spec"]["template"]["spec"]["volumes"][-1]


def renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: renamed(one) for name, one in value.items()}
    return "s-7" if value == "s" else value


@pytest.mark.parametrize("volume", SECRETS, ids=str)
def test_every_place_that_names_a_secret_gets_the_number_where_asked(volume: Json) -> None:
    assert volumes(volume) == volumes(volume, TO_CONFIG_MAPS) == volume
    assert volumes(volume, TO_SECRETS) == renamed(volume)


@pytest.mark.parametrize("volume", CONFIG_MAPS, ids=str)
def test_every_place_that_names_a_config_map_gets_the_number_where_asked(volume: Json) -> None:
    assert volumes(volume) == volumes(volume, TO_SECRETS) == volume
    assert volumes(volume, TO_CONFIG_MAPS) == renamed(volume)


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        ({"dataVolume": {"name": "disk"}}, {"dataVolume": {"name": "disk-7"}}),
        ({"persistentVolumeClaim": {"claimName": "disk"}}, {"persistentVolumeClaim": {"claimName": "disk-7"}}),
        ({"dataVolume": {"name": "shared"}}, {"dataVolume": {"name": "shared"}}),
        ({"persistentVolumeClaim": {"claimName": "shared"}}, {"persistentVolumeClaim": {"claimName": "shared"}}),
    ],
)
def test_only_volumes_that_the_template_owns_are_renamed(volume: Json, expected: Json) -> None:
    assert volumes(volume) == expected


def test_a_machine_has_labels_owner_and_revision_of_its_pool() -> None:
    made = machine_document(pool(), revision(A), 2)
    assert made["metadata"]["labels"] == {"tier": "front", "herder.dev/pool-revision": name_of(A)}
    assert made["spec"]["template"]["metadata"]["labels"] == {"app": "web", "herder.dev/pool-revision": name_of(A)}
    owner = made["metadata"]["ownerReferences"][0]
    assert (made["metadata"]["name"], owner["uid"], owner["controller"]) == ("web-2", "pool-uid", True)


def test_a_template_is_not_changed_by_making_a_machine_of_it() -> None:
    wanted = template(disk="http://images/1", volumes=SECRETS)
    before = str(wanted)
    machine_document(pool(), revision_of("web-x", content_of(wanted, TO_SECRETS)), 7)
    assert str(wanted) == before


@pytest.mark.parametrize(
    ("own", "wanted", "said"),
    [
        (None, RunField("running", True), RunField("running", True)),
        (RunField("runStrategy", "Halted"), RunField("running", True), RunField("runStrategy", "Always")),
        (RunField("runStrategy", "Always"), RunField("running", False), RunField("runStrategy", "Halted")),
        (RunField("running", True), RunField("runStrategy", "Halted"), RunField("running", False)),
        (RunField("running", False), RunField("runStrategy", "Always"), RunField("running", True)),
        (RunField("running", True), RunField("runStrategy", "Manual"), RunField("runStrategy", "Manual")),
    ],
)
def test_running_by_hand_and_run_strategy_in_the_new_template(own: RunField | None, wanted: RunField, said: RunField) -> None:
    assert in_words_of(own, wanted) == said


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (RunField("running", True), RunField("runStrategy", "Always"), True),
        (RunField("running", False), RunField("runStrategy", "Halted"), True),
        (None, RunField("running", False), True),
        (RunField("running", True), RunField("runStrategy", "Manual"), False),
        (RunField("runStrategy", "Once"), RunField("runStrategy", "Manual"), False),
    ],
)
def test_another_word_for_the_same_is_no_change(one: RunField | None, other: RunField, same: bool) -> None:
    assert same_run(one, other) is same


def with_disk(size: str = "1Gi", url: str = "http://images/1") -> Json:
    source = {"source": {"http": {"url": url}}, "pvc": {"resources": {"requests": {"storage": size}}}}
    return {"spec": {"dataVolumeTemplates": [{"metadata": {"name": "disk"}, "spec": source}]}}


@pytest.mark.parametrize(
    ("after", "changed"),
    [
        (with_disk(), ()),
        (with_disk("1024Mi"), ()),
        (with_disk("2Gi"), ()),
        (with_disk("512Mi"), ("disk",)),
        (with_disk(url="http://images/2"), ("disk",)),
        (with_disk("2Gi", "http://images/2"), ("disk",)),
        (with_disk("nonsense"), ("disk",)),
        ({"spec": {}}, ()),
    ],
)
def test_a_larger_disk_is_grown_and_any_other_change_is_one(after: Json, changed: tuple[str, ...]) -> None:
    assert volume_changes(with_disk(), after) == changed


def test_an_empty_list_is_not_written_and_an_empty_selector_is() -> None:
    """A list with keys that was applied empty stays when it is applied no longer, and would ask for a restart."""
    affinity = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {}, "topologyKey": "zone"}]}
    }
    wanted = template(volumes=[], affinity=affinity, networks=[])
    made = machine_document(pool(), revision_of("web-x", content_of(wanted, {})), 7)["spec"]["template"]["spec"]
    assert made.get("volumes") is None and made.get("networks") is None and made["affinity"] == affinity
