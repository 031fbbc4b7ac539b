"""Which importer pods a node obeys: judged by the objects, whatever the pod says."""

from typing import Any

import msgspec
import pytest

from herder.api import labels
from herder.api.account import SYSTEM_NAMESPACE
from herder.api.core import PersistentVolume, PersistentVolumeClaim, Pod
from herder.api.imports import ImportDefinition, import_of
from herder.api.kinds import DataVolume
from herder.rules.volumes.importer import clearing_pod, growing_pod, importer_pod
from herder.rules.volumes.source import Source
from herder.rules.volumes.verification import Filling, clearing_problem, filling_problem, growing_problem
from tests.unit.rules.machines import Json, later
from tests.unit.rules.volumes import claim, data_volume, volume

COPY: Json = {"pvc": {"name": "golden", "namespace": "images"}}


def bound(name: str = "disk", namespace: str = "shop", **more: Any) -> PersistentVolume:
    reference = {"namespace": namespace, "name": name, "uid": f"claim-{name}"}
    return msgspec.convert(volume(name, claimRef=more.pop("claimRef", reference), **more), PersistentVolume)


def allowed(namespaces: str = "shop") -> PersistentVolumeClaim:
    return claim(name="golden", namespace="images", owner="", annotations={"herder.dev/allow-clone-from": namespaces})


def golden() -> Source:
    return Source("images", "golden", allowed(), bound("golden", "images"))


def importer(document: Json, source: Source | None = None) -> tuple[Pod, ImportDefinition]:
    """As our controller makes it."""
    made = importer_pod(document, msgspec.convert(document, DataVolume), bound(), source.volume if source else None, 0)
    return read(made)


def read(made: Json) -> tuple[Pod, ImportDefinition]:
    pod = msgspec.convert(made, Pod)
    definition = import_of(pod)
    assert definition is not None
    return pod, definition


def found(document: Json, source: Source | None = None, **other: Any) -> Filling:
    return msgspec.structs.replace(Filling(msgspec.convert(document, DataVolume), claim(), bound(), source), **other)


def test_what_our_controller_asks_for_is_done() -> None:
    for document, source in (
        (data_volume(), None),
        (data_volume(source={"blank": {}}), None),
        (data_volume(source=COPY), golden()),
    ):
        assert filling_problem(*importer(document, source), found(document, source)) == ""


def test_a_change_of_how_a_simulated_node_behaves_is_none_of_the_order() -> None:
    document = data_volume()
    made = importer(document)
    document["metadata"]["annotations"] = {f"{labels.SIMULATED}import-duration": "3s"}
    assert filling_problem(*made, found(document)) == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"action": "clone", "source": "pvc-golden"}, "action, http, source of it differ"),
        ({"volume": "pvc-golden"}, "volume of it differ"),
        ({"capacity": 1 << 60}, "capacity of it differ"),
        ({"preallocate": True}, "preallocate of it differ"),
        ({"http": {"url": "http://169.254.169.254/"}}, "http of it differ"),
    ],
)
def test_a_pod_that_asks_for_something_else_than_its_data_volume_is_not_obeyed(change: Json, words: str) -> None:
    document = data_volume()
    pod, definition = importer(document)
    written = {**msgspec.to_builtins(definition), "http": {"url": "http://images.example.com/a"}, **change}
    if written["action"] == "clone":
        del written["http"]
    assert words in filling_problem(pod, msgspec.convert(written, ImportDefinition), found(document))


@pytest.mark.parametrize(
    ("owner", "words"),
    [
        ({"uid": "another"}, "with uid another does not exist in namespace shop"),
        ({"kind": "ReplicaSet", "apiVersion": "apps/v1"}, "has no DataVolume as its controller"),
        ({"apiVersion": "example.com/v1"}, "has no DataVolume as its controller"),
        ({"controller": False}, "has no DataVolume as its controller"),
    ],
)
def test_a_pod_of_somebody_else_is_not_obeyed(owner: Json, words: str) -> None:
    document = data_volume()
    pod, definition = importer(document)
    written = msgspec.to_builtins(pod)
    (known,) = written["metadata"]["ownerReferences"]
    written["metadata"]["ownerReferences"] = [{**known, **owner}]
    assert words in filling_problem(msgspec.convert(written, Pod), definition, found(document))


@pytest.mark.parametrize(
    "other",
    [
        {"data_volume": None},
        {"data_volume": msgspec.convert(data_volume(deleted=True), DataVolume)},
        {"claim": None},
        {"claim": claim(owner="another")},
        {"claim": claim("Pending")},
        {"claim": claim("Lost")},
        {"volume": None},
        {"volume": bound("golden")},
        {"volume": bound(claimRef=None)},
        {"volume": bound(claimRef={"namespace": "shop", "name": "disk", "uid": "claim-of-before"})},
        {"volume": bound(claimRef={"namespace": "images", "name": "disk", "uid": "claim-disk"})},
        {"volume": bound(ours=False)},
    ],
)
def test_a_volume_is_filled_only_where_it_and_the_claim_of_the_data_volume_are_bound_to_each_other(other: Json) -> None:
    document = data_volume()
    assert filling_problem(*importer(document), found(document, **other))


def test_a_data_volume_of_the_same_identity_in_another_namespace_is_another() -> None:
    document = data_volume()
    pod, definition = importer(document)
    elsewhere = {**document, "metadata": {**document["metadata"], "namespace": "images"}}
    assert "does not exist" in filling_problem(pod, definition, found(elsewhere))


@pytest.mark.parametrize("consent", ["", "other", "shopping", "sho"])
def test_consent_that_was_withdrawn_counts_and_nothing_is_told_of_the_claim(consent: str) -> None:
    document = data_volume(source=COPY)
    pod, definition = importer(document, golden())
    withdrawn = Source("images", "golden", allowed(consent), bound("golden", "images"))
    said = filling_problem(pod, definition, found(document, withdrawn))
    assert said == filling_problem(pod, definition, found(document, Source("images", "golden")))
    assert "only if its annotation herder.dev/allow-clone-from names them (shop)" in said


@pytest.mark.parametrize(
    "volume_of_source",
    [
        None,
        bound("golden", "images", ours=False),
        bound("golden", claimRef={"namespace": "images", "name": "golden", "uid": "old"}),
    ],
)
def test_what_is_copied_is_the_volume_that_the_source_claim_is_bound_to(volume_of_source: PersistentVolume | None) -> None:
    document = data_volume(source=COPY)
    made = importer(document, golden())
    assert filling_problem(*made, found(document, Source("images", "golden", allowed(), volume_of_source)))


# --- clearing --------------------------------------------------------------------------------------------------------------------


def released(**more: Any) -> PersistentVolume:
    return bound(**{"phase": "Released", **more})


def clearing(made_for: Json | None = None) -> tuple[Pod, ImportDefinition]:
    document = made_for or volume()
    return read(clearing_pod(document, msgspec.convert(document, PersistentVolume), "a"))


@pytest.mark.parametrize("phase", ["Released", "Failed"])
def test_a_volume_that_nobody_claims_any_more_is_cleared(phase: str) -> None:
    assert clearing_problem(*clearing(), released(phase=phase), None) == ""
    assert clearing_problem(*clearing(), released(phase=phase), claim(uid="of-another-life")) == ""


def test_a_volume_that_is_being_deleted_is_cleared_whatever_its_phase() -> None:
    gone = released(phase="Bound", metadata={"deletionTimestamp": later(0)})
    assert clearing_problem(*clearing(), gone, None) == ""


@pytest.mark.parametrize(
    ("there", "of_it", "words"),
    [
        (None, None, "does not exist"),
        (released(metadata={"uid": "another"}), None, "does not exist"),
        (released(ours=False), None, "its content stays"),
        (released(persistentVolumeReclaimPolicy="Retain"), None, "its content stays"),
        (bound(), None, "is Bound, and not being deleted"),
        (released(phase="Available"), None, "is Available, and not being deleted"),
        (released(), claim(), "still exists"),
        (released(phase="Bound", metadata={"deletionTimestamp": later(0)}), claim(), "still exists"),
    ],
)
def test_content_that_somebody_may_still_want_stays(
    there: PersistentVolume | None, of_it: PersistentVolumeClaim | None, words: str
) -> None:
    assert words in clearing_problem(*clearing(), there, of_it)


def test_a_volume_is_cleared_only_from_our_own_namespace() -> None:
    pod, definition = clearing()
    written = msgspec.to_builtins(pod)
    written["metadata"]["namespace"] = "shop"
    assert f"only by pods of namespace {SYSTEM_NAMESPACE}" in clearing_problem(
        msgspec.convert(written, Pod), definition, released(), None
    )


def test_a_pod_clears_only_the_volume_that_it_belongs_to() -> None:
    pod, _ = clearing()
    _, other = clearing(volume("golden"))
    assert "has no PersistentVolume pvc-golden as its controller" in clearing_problem(pod, other, released(), None)


def grower(**order: Any) -> tuple[Pod, ImportDefinition]:
    """As our controller makes it; the claim asks for 1Gi."""
    definition = ImportDefinition(action="grow", volume="pvc-disk", capacity=order.pop("capacity", 1 << 30), **order)
    return read(growing_pod(volume(), definition, "a", 0, ""))


def test_a_volume_grows_as_far_as_its_claim_asks() -> None:
    assert growing_problem(*grower(), bound(), claim()) == ""
    assert growing_problem(*grower(unfilled=True), bound(), claim(owner="")) == ""
    assert "asks for 1Gi" in growing_problem(*grower(capacity=(1 << 30) + 1), bound(), claim())
    assert "filled by its controller" in growing_problem(*grower(unfilled=True), bound(), claim())


@pytest.mark.parametrize(
    ("of", "its"),
    [
        (None, claim()),
        (bound(metadata={"uid": "another"}), claim()),
        (bound(ours=False), claim()),
        (bound(claimRef=None), claim()),
        (bound(claimRef={"namespace": "shop", "name": "disk", "uid": "claim-of-before"}), claim()),
        (bound(), None),
        (bound(), claim("Pending")),
        (bound(), claim(deletionTimestamp=later(0))),
    ],
)
def test_nothing_grows_but_a_volume_of_ours_that_is_bound_to_its_claim(
    of: PersistentVolume | None, its: PersistentVolumeClaim | None
) -> None:
    assert growing_problem(*grower(), of, its)


def test_a_tenants_pod_grows_nothing() -> None:
    pod, definition = grower()
    made = msgspec.to_builtins(pod)
    made["metadata"]["namespace"] = "shop"
    assert SYSTEM_NAMESPACE in growing_problem(msgspec.convert(made, Pod), definition, bound(), claim())
