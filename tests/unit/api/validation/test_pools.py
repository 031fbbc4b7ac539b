"""VirtualMachinePool, beyond its schema: amounts, the order, and names that get a machine's number."""

from typing import Any

import pytest

from herder.api.problems import INVALID, NOT_SUPPORTED, TOO_MANY, TYPE_INVALID, Problem
from herder.api.validation import advice_on, problems_of
from herder.api.validation.made import LARGEST
from herder.api.validation.ordered_policies import MOST_EXPRESSIONS, MOST_PAIRS, MOST_VALUES

Json = dict[str, Any]
TEMPLATE = "spec.template.spec"
VOLUMES = f"{TEMPLATE}.template.spec.volumes"
CLAIM: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
BOTH_POSTFIXES = {"appendPostfixToSecretReferences": True, "appendPostfixToConfigMapReferences": True}


def _pool(template: Json | None = None, metadata: Json | None = None, **spec: Any) -> Json:
    machine = template or {"running": False, "template": {"spec": {"domain": {}}}}
    body = {"replicas": 1, "template": {"metadata": metadata or {}, "spec": machine}, **spec}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachinePool", "metadata": {"name": "pool"}, "spec": body}


def _ordered(*policies: Any) -> Json:
    return _pool(scaleInStrategy={"proactive": {"selectionPolicy": {"orderedPolicies": list(policies)}}})


def _with_volumes(*volumes: Json, templates: tuple[str, ...] = (), annotations: Json | None = None, **spec: Any) -> Json:
    disks = [{"name": f"v{index}", "disk": {}} for index, _ in enumerate(volumes)]
    named = [{"name": f"v{index}", **volume} for index, volume in enumerate(volumes)]
    instance = {"domain": {"devices": {"disks": disks}}, "volumes": named}
    made = [{"metadata": {"name": name}, "spec": {"source": {"blank": {}}, "pvc": CLAIM}} for name in templates]
    template = {"metadata": {"annotations": annotations or {}}, "spec": instance}
    return _pool({"running": False, "template": template, "dataVolumeTemplates": made}, **spec)


def _found(document: Json) -> list[tuple[str, str]]:
    return [(problem.field, problem.reason) for problem in problems_of(document)]


def _only(document: Json) -> Problem:
    (problem,) = problems_of(document)
    return problem


@pytest.mark.parametrize(
    ("times", "right"),
    [
        ({"minReadySeconds": 599}, True),
        ({"minReadySeconds": 600}, False),
        ({"progressDeadlineSeconds": 1}, True),
        ({"progressDeadlineSeconds": 30, "minReadySeconds": 30}, False),
    ],
)
def test_a_machine_must_be_able_to_become_available_in_time(times: dict[str, Any], right: bool) -> None:
    assert _found(_pool(**times)) == ([] if right else [("spec.progressDeadlineSeconds", INVALID)])


@pytest.mark.parametrize(("limit", "right"), [(0, True), (500, True), ("0%", True), ("100%", True), ("101%", False)])
def test_the_limit_of_a_rollout_is_a_number_or_at_most_all(limit: Any, right: bool) -> None:
    wrong = [] if right else [("spec.updateStrategy.proactive.limit", INVALID)]
    assert _found(_pool(updateStrategy={"proactive": {"limit": limit}})) == wrong


ORDER = "spec.scaleInStrategy.proactive.selectionPolicy.orderedPolicies[0]"
RIGHT_SHAPE = "orderedPolicies: [{labelSelector: {matchLabels: {…}}}]"


@pytest.mark.parametrize("entry", ["labelSelector - non-important-vms", ["labelSelector"], None, {}, {"labelSelector": None}])
def test_an_ordered_policy_of_another_shape_is_shown_the_right_one(entry: Any) -> None:
    problem = _only(_ordered(entry))
    assert problem.field == ORDER
    assert RIGHT_SHAPE in problem.message


@pytest.mark.parametrize(
    ("entry", "field", "reason"),
    [
        ({"labelSelector": {"matchLabels": {"a": "b"}}, "nodeSelector": {"a": "b"}}, "", INVALID),
        ({"labelSelector": {}, "agent": "b"}, ".agent", INVALID),
        ({"labelSelector": ["a"]}, ".labelSelector", TYPE_INVALID),
        ({"labelSelector": {"a": "b"}}, ".labelSelector.a", INVALID),
        ({"labelSelector": {"matchLabels": ["a"]}}, ".labelSelector.matchLabels", TYPE_INVALID),
        ({"labelSelector": {"matchLabels": {"a": True}}}, ".labelSelector.matchLabels.a", TYPE_INVALID),
        (
            {"labelSelector": {"matchLabels": {str(one): "b" for one in range(MOST_PAIRS + 1)}}},
            ".labelSelector.matchLabels",
            TOO_MANY,
        ),
        ({"labelSelector": {"matchExpressions": {}}}, ".labelSelector.matchExpressions", TYPE_INVALID),
        ({"labelSelector": {"matchExpressions": [{}] * (MOST_EXPRESSIONS + 1)}}, ".labelSelector.matchExpressions", TOO_MANY),
        ({"labelSelector": {"matchExpressions": ["a"]}}, ".labelSelector.matchExpressions[0]", TYPE_INVALID),
        ({"nodeSelector": {}}, ".nodeSelector", INVALID),
        ({"nodeSelector": "a"}, ".nodeSelector", TYPE_INVALID),
        ({"nodeSelector": {"a b": "c"}}, ".nodeSelector", INVALID),
    ],
)
def test_an_ordered_policy_is_judged_as_closely_as_by_a_schema(entry: Json, field: str, reason: str) -> None:
    assert _found(_ordered(entry)) == [(f"{ORDER}{field}", reason)]


@pytest.mark.parametrize(
    ("expression", "field"),
    [
        ({"key": 1, "operator": "Exists"}, ".key"),
        ({"key": "a", "operator": "Is", "values": ["b"]}, ".operator"),
        ({"key": "a", "operator": "In", "values": "b"}, ".values"),
        ({"key": "a", "operator": "In", "values": [1]}, ".values[0]"),
        ({"key": "a", "operator": "In", "values": ["b"] * (MOST_VALUES + 1)}, ".values"),
        ({"operator": "Exists"}, ".key"),
    ],
)
def test_an_expression_of_the_order_is_judged_as_closely_as_by_a_schema(expression: Json, field: str) -> None:
    problem = _only(_ordered({"labelSelector": {"matchExpressions": [expression]}}))
    assert problem.field == f"{ORDER}.labelSelector.matchExpressions[0]{field}"


def test_a_right_order_is_accepted() -> None:
    expressions = [{"key": "a", "operator": "In", "values": ["b"]}, {"key": "c", "operator": "Exists"}]
    assert problems_of(_ordered({"labelSelector": {"matchExpressions": expressions}}, {"nodeSelector": {"a": "b"}})) == []


def test_the_name_of_a_disk_leaves_room_for_the_number() -> None:
    for length, wrong in ((246, []), (247, [(f"{TEMPLATE}.dataVolumeTemplates[0].metadata.name", INVALID)])):
        name = "d" * length
        assert _found(_with_volumes({"dataVolume": {"name": name}}, templates=(name,))) == wrong


LONG = "s" * 247
IN_SECRETS = [
    ({"secret": {"secretName": LONG}}, "secret.secretName"),
    ({"sysprep": {"secret": {"name": LONG}}}, "sysprep.secret.name"),
    ({"cloudInitNoCloud": {"secretRef": {"name": LONG}}}, "cloudInitNoCloud.secretRef.name"),
    ({"cloudInitNoCloud": {"networkDataSecretRef": {"name": LONG}}}, "cloudInitNoCloud.networkDataSecretRef.name"),
    ({"cloudInitConfigDrive": {"secretRef": {"name": LONG}}}, "cloudInitConfigDrive.secretRef.name"),
    ({"cloudInitConfigDrive": {"networkDataSecretRef": {"name": LONG}}}, "cloudInitConfigDrive.networkDataSecretRef.name"),
]
IN_CONFIG_MAPS = [
    ({"configMap": {"name": LONG}}, "configMap.name"),
    ({"sysprep": {"configMap": {"name": LONG}}}, "sysprep.configMap.name"),
]


@pytest.mark.parametrize(
    ("flag", "volume", "place"),
    [
        *(("appendPostfixToSecretReferences", *one) for one in IN_SECRETS),
        *(("appendPostfixToConfigMapReferences", *one) for one in IN_CONFIG_MAPS),
    ],
)
def test_a_name_that_gets_the_number_leaves_room_for_it(flag: str, volume: Json, place: str) -> None:
    """And one that does not get it need not."""
    assert _found(_with_volumes(volume, nameGeneration={flag: True})) == [(f"{VOLUMES}[0].{place}", INVALID)]
    assert _found(_with_volumes(volume, nameGeneration={**BOTH_POSTFIXES, flag: False})) == []


@pytest.mark.parametrize(
    ("volume", "templates"),
    [({"dataVolume": {"name": "d"}}, ("d",)), ({"cloudInitNoCloud": {"secretRef": {"name": "s"}}}, ())],
)
def test_a_template_is_as_large_as_its_machine_with_the_longest_number(volume: Json, templates: tuple[str, ...]) -> None:
    def padded(size: int) -> Json:
        annotations = {"simulated.herder.dev/a": "x" * size}
        return _with_volumes(volume, templates=templates, annotations=annotations, nameGeneration=BOTH_POSTFIXES)

    size = next(size for size in range(LARGEST, 0, -1) if not problems_of(padded(size)))
    too_large = problems_of(padded(size + 1))
    assert [problem.field for problem in too_large] == [f"{TEMPLATE}.template.spec"]
    machine = padded(size + 1)["spec"]["template"]["spec"]
    assert problems_of({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "a"}, "spec": machine}) == []


SCALE_IN = "herder.dev/scale-in"


@pytest.mark.parametrize(("value", "right"), [("first", True), ("never", True), ("Never", False), ("", False), ("true", False)])
def test_who_goes_first_or_never_is_spelled_right(value: str, right: bool) -> None:
    metadata = {"annotations": {SCALE_IN: value}}
    spec: Json = {"running": False, "template": {"spec": {"domain": {}}}}
    machine = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "a", **metadata}, "spec": spec}
    for document, path in ((machine, "metadata"), (_pool(metadata=metadata), "spec.template.metadata")):
        assert _found(document) == ([] if right else [(f"{path}.annotations[{SCALE_IN}]", NOT_SUPPORTED)])


@pytest.mark.parametrize("strategy", ["opportunistic", "proactive"])
def test_memory_that_cannot_be_kept_is_warned_of(strategy: str) -> None:
    def pool(kept: str, volumes: list[Json]) -> Json:
        machine = {"running": True, "template": {"spec": {"domain": {}, "volumes": volumes}}}
        return _pool(machine, scaleInStrategy={strategy: {"statePreservation": kept}}, standby={"replicas": 1, "state": kept})

    scratch = [{"name": "scratch", "emptyDisk": {"capacity": "1Gi"}}]
    why = "memory cannot be saved, because volume scratch is an emptyDisk"
    assert advice_on(pool("Online", scratch)) == [
        f"spec.scaleInStrategy.{strategy}.statePreservation: {why}: no machine that runs is taken",
        f"spec.standby.state: {why}: standby machines are stopped, as with Offline",
    ]
    assert advice_on(pool("Offline", scratch)) == advice_on(pool("Online", [])) == []
    assert problems_of(pool("Online", scratch)) == []


@pytest.mark.parametrize("label", ["herder.dev/pool", "herder.dev/pool-revision", "herder.dev/standby"])
def test_labels_that_the_pool_writes_are_not_taken_from_the_template(label: str) -> None:
    labelled = {"labels": {label: "a", "mine": "b"}}
    pool = _pool({"running": False, "template": {"metadata": labelled, "spec": {"domain": {}}}}, labelled)
    assert problems_of(pool) == []
    places = ("spec.template.metadata", "spec.template.spec.template.metadata")
    assert advice_on(pool) == [f"{place}.labels[{label}]: is not used: the pool writes this label itself" for place in places]


def test_a_template_that_protects_every_machine_is_warned_of() -> None:
    (sentence,) = advice_on(_pool(metadata={"annotations": {SCALE_IN: "never"}}))
    assert "the pool can never shrink" in sentence
