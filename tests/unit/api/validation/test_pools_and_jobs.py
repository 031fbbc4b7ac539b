"""VirtualMachinePool, PodMigrationJob and Reservation, beyond their schemas."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herder.api.problems import FORBIDDEN, INVALID, REQUIRED
from herder.api.registry import KINDS
from herder.api.validation import VALIDATORS, advice_on, problems_of

Json = dict[str, Any]
SCHEDULING = "scheduling.koordinator.sh/v1alpha1"


def _pool(name: str = "pool", **spec: Any) -> Json:
    template = {"spec": {"running": False, "template": {"spec": {"domain": {}}}}}
    body = {"replicas": 1, "template": template, **spec}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachinePool", "metadata": {"name": name}, "spec": body}


def _ordered(strategy: str, policies: list[Json]) -> Json:
    document = _pool()
    document["spec"][strategy] = {"proactive": {"selectionPolicy": {"orderedPolicies": policies}}}
    return document


def _job(annotations: Json | None = None, **spec: Any) -> Json:
    body = {"podRef": {"namespace": "default", "name": "web-0"}, **spec}
    metadata = {"name": "a", "annotations": annotations or {}}
    return {"apiVersion": SCHEDULING, "kind": "PodMigrationJob", "metadata": metadata, "spec": body}


def _reservation(*owners: Json, **spec: Any) -> Json:
    body = {"template": {"spec": {}}, "owners": list(owners), **spec}
    return {"apiVersion": SCHEDULING, "kind": "Reservation", "metadata": {"name": "a"}, "spec": body}


def _found(document: Json) -> list[tuple[str, str]]:
    return [(problem.field, problem.reason) for problem in problems_of(document)]


def test_the_template_of_a_pool_is_judged_as_a_machine() -> None:
    document = _pool()
    document["spec"]["template"]["spec"]["template"]["spec"]["domain"] = {"devices": {"disks": [{"name": "root"}]}}
    assert _found(document) == [("spec.template.spec.template.spec.domain.devices.disks[0].name", INVALID)]


def test_the_name_of_a_pool_leaves_room_for_the_number() -> None:
    (problem,) = problems_of(_pool("p" * 57))
    assert problem.field == "metadata.name"
    assert "must be at most 56 characters" in problem.message
    assert problems_of(_pool("p" * 56)) == []
    assert VALIDATORS["kubevirt.io", "VirtualMachinePool"](_pool("p" * 57), _pool("p" * 57)) == []


def test_more_than_all_cannot_be_unavailable() -> None:
    assert _found(_pool(maxUnavailable="101%")) == [("spec.maxUnavailable", INVALID)]
    assert problems_of(_pool(maxUnavailable="100%")) == []
    assert problems_of(_pool(maxUnavailable=500)) == []


@pytest.mark.parametrize("strategy", ["updateStrategy", "scaleInStrategy"])
def test_selectors_of_the_order_are_checked(strategy: str) -> None:
    policies = [{"labelSelector": {"matchLabels": {"a": "b c"}}}, {"nodeSelector": {"a b": "c"}}]
    path = f"spec.{strategy}.proactive.selectionPolicy.orderedPolicies"
    document = _ordered(strategy, policies)
    assert _found(document) == [(f"{path}[0].labelSelector.matchLabels", INVALID), (f"{path}[1].nodeSelector", INVALID)]
    everyone = _ordered(strategy, [{"labelSelector": {}}])
    assert advice_on(everyone) == [f"{path}[0].labelSelector: is empty and fits every machine of the pool"]


@pytest.mark.parametrize("text", ["soon", "5", "-5m", "1000000000h", 300])
def test_lengths_of_time_are_written_as_kubernetes_writes_them(text: Any) -> None:
    assert _found(_job(ttl=text)) == [("spec.ttl", INVALID)]
    assert _found(_pool(autohealing={"minFailingDuration": text})) == [("spec.autohealing.minFailingDuration", INVALID)]
    assert _found(_reservation({"labelSelector": {"matchLabels": {"a": "b"}}}, ttl=text)) == [("spec.ttl", INVALID)]


@pytest.mark.parametrize("text", ["0", "0s", "5m", "1h30m", "1.5h", "300ms"])
def test_a_right_length_of_time_is_accepted(text: str) -> None:
    assert problems_of(_job(ttl=text)) == []


def test_a_job_names_a_pod_that_could_exist() -> None:
    document = _job(podRef={"namespace": "My Team", "name": "web_0"})
    assert [field for field, _ in _found(document)] == ["spec.podRef.namespace", "spec.podRef.name"]


def test_a_reservation_that_is_named_must_be_one() -> None:
    path = "spec.reservationOptions.reservationRef"
    assert _found(_job(reservationOptions={"reservationRef": {}})) == [(f"{path}.name", REQUIRED)]
    assert _found(_job(reservationOptions={"reservationRef": {"name": "a", "kind": "Pod"}})) == [(f"{path}.kind", INVALID)]
    assert _found(_job(reservationOptions={"reservationRef": {"name": "a", "apiVersion": "v1"}})) == [
        (f"{path}.apiVersion", INVALID)
    ]
    right = {"name": "a", "kind": "Reservation", "apiVersion": SCHEDULING}
    assert problems_of(_job(reservationOptions={"reservationRef": right})) == []


def test_what_a_job_would_not_use_is_pointed_out() -> None:
    assert advice_on(_job(mode="EvictDirectly", reservationOptions={"template": {}})) == [
        "spec.reservationOptions: not used with mode EvictDirectly, which reserves nothing"
    ]
    assert advice_on(_job(reservationOptions={"template": {}, "reservationRef": {"name": "a"}})) == [
        "spec.reservationOptions.template: not used, because reservationRef names a reservation that exists already"
    ]
    assert advice_on(_job()) == []


@pytest.mark.parametrize("name", ["herder.dev/abort", "herder.dev/surge"])
def test_a_wish_about_a_job_is_true_or_false(name: str) -> None:
    (problem,) = problems_of(_job({name: "True"}))
    assert str(problem) == f'metadata.annotations[{name}]: Invalid value: "True": must be "true" or "false", or be left out'
    assert problems_of(_job({name: "true"})) == problems_of(_job({name: "false"})) == []


def test_preemption_is_not_asked_for() -> None:
    (problem,) = problems_of(_job(reservationOptions={"preemptionOptions": {"a": 1}}))
    assert (problem.field, problem.reason) == ("spec.reservationOptions.preemptionOptions", FORBIDDEN)
    assert problems_of(_job(reservationOptions={"preemptionOptions": {}})) == []


@pytest.mark.parametrize("text", ["high", "1.5", str(2**31), "", "1_000", " 7"])
def test_the_priority_of_a_job_is_a_number(text: str) -> None:
    name = "herder.dev/migration-priority"
    assert _found(_job({name: text})) == [(f"metadata.annotations[{name}]", INVALID)]
    assert problems_of(_job({name: "-5"})) == []


def test_the_template_of_a_job_is_judged_as_a_reservation() -> None:
    template = {"spec": {"template": {"spec": {"nodeSelector": {"a b": "c"}}}, "owners": [{"object": {}}]}}
    path = "spec.reservationOptions.template.spec"
    assert _found(_job(reservationOptions={"template": template})) == [
        (f"{path}.owners[0].object.name", REQUIRED),
        (f"{path}.template.spec.nodeSelector", INVALID),
    ]


def test_who_may_use_the_room_must_be_said() -> None:
    assert _found(_reservation({"object": {"kind": "Pod"}})) == [("spec.owners[0].object.name", REQUIRED)]
    assert _found(_reservation({"object": {"uid": "1234"}})) == []
    wrong = {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}}
    assert [field for field, _ in _found(_reservation(wrong))] == ["spec.owners[0].labelSelector.matchExpressions[0].values"]
    assert advice_on(_reservation({"labelSelector": {}})) == [
        "spec.owners[0].labelSelector: is empty and fits every pod of the cluster"
    ]


def test_room_is_measured_in_amounts() -> None:
    document = _reservation({"object": {"name": "a"}})
    document["spec"]["template"]["spec"] = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "some"}}}]}
    assert _found(document) == [("spec.template.spec.containers[0].resources.requests.cpu", INVALID)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["template", "spec", "domain", "volumes", "owners", "podRef", "selectors", "ttl", "source", "pvc", "resources"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(st.sampled_from(KINDS), JSON)
def test_documents_of_any_shape_are_judged_and_never_crash(info: Any, spec: Any) -> None:
    """Where no schema stands before us, a controller still has to say what is wrong rather than fall over."""
    document = {"apiVersion": info.api_version, "kind": info.kind, "metadata": {"name": "a"}, "spec": spec}
    assert all(problem.field for problem in problems_of(document))
    advice_on(document)


def test_every_kind_of_ours_has_its_validation() -> None:
    assert VALIDATORS.keys() == {(info.group, info.kind) for info in KINDS}


def test_what_the_schema_keeps_as_written_must_be_a_pods() -> None:
    """Ports and volumes decide where the room is, too."""
    template = {"spec": {"containers": [{"name": "c", "ports": [{"hostPort": "eighty"}]}]}}
    found = problems_of(_reservation({"object": {"name": "p"}}, template=template))
    assert [problem.field for problem in found] == ["spec.template.spec.containers[0].ports[0].hostPort"]
    assert "must be as in a pod: Expected `int`, got `str`" in str(found[0])
