"""What the schemas of our kinds refuse, on every engine, and what is said then."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from herder.api import registry
from tests.behaviour.our_kinds import install_crds, make_owned_pod, resource_of
from tests.engines.api import Api, Reply

Json = dict[str, Any]
Unique = Callable[..., str]

MACHINES = resource_of(registry.MACHINE)
INSTANCES = resource_of(registry.INSTANCE)
POOLS = resource_of(registry.POOL)
MIGRATIONS = resource_of(registry.MIGRATION)
SETTINGS = resource_of(registry.SETTINGS)
POLICIES = resource_of(registry.POLICY)
JOBS = resource_of(registry.JOB)
RESERVATIONS = resource_of(registry.RESERVATION)
DATA_VOLUMES = resource_of(registry.DATA_VOLUME)

DOMAIN: Json = {"domain": {}}
CLAIM: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
POD: Json = {"namespace": "default", "name": "web-0"}
OWNER: Json = {"labelSelector": {"matchLabels": {"app": "web"}}}
ROOM: Json = {"spec": {"containers": [{"name": "main"}]}}


def _machine(**spec: Any) -> Json:
    return {"running": False, "template": {"spec": DOMAIN}, **spec}


def _guest(**spec: Any) -> Json:
    return _machine(template={"spec": {**DOMAIN, **spec}})


def _kernel(path: str = "vmlinuz", **boot: Any) -> Json:
    return {"firmware": {"kernelBoot": {"volume": {"name": "k", "kernelPath": path}, **boot}}}


def _pool(**spec: Any) -> Json:
    return {"replicas": 1, "template": {"spec": _machine()}, **spec}


def _scaling_in(**proactive: Any) -> Json:
    return {"scaleInStrategy": {"proactive": proactive}}


def _levels(**migrations: Any) -> Json:
    return {"configuration": {"migrations": migrations}}


def _reserving(**options: Any) -> Json:
    return {"podRef": POD, "paused": True, "reservationOptions": options}


PREFERRED = {"level": 50}
SELECTORS = {"selectors": {"namespaceSelector": {"hpc": True}}}
EMPTY_VOLUME: Json = {"name": "a"}
TWO_SOURCES: Json = {"name": "a", "emptyDisk": {"capacity": "1Gi"}, "configMap": {"name": "b"}}

# kind, spec, where the problem is, and the sentence (or the heart of it)
REFUSED = [
    (
        MACHINES,
        _machine(runStrategy="Always"),
        "spec",
        "must have exactly one of running, runStrategy, but has these: running runStrategy",
    ),
    (MACHINES, {"template": {"spec": DOMAIN}}, "spec", "must have exactly one of running, runStrategy, but has none"),
    (MACHINES, {"runStrategy": "Sometimes", "template": {"spec": DOMAIN}}, "spec.runStrategy", 'Unsupported value: "Sometimes"'),
    (MACHINES, {"running": True}, "spec.template", "Required value"),
    (MACHINES, _guest(volumes=[EMPTY_VOLUME]), "spec.template.spec.volumes[0]", "but has none"),
    (MACHINES, _guest(volumes=[TWO_SOURCES]), "spec.template.spec.volumes[0]", "but has these: emptyDisk configMap"),
    (MACHINES, _guest(domain={"memory": {"guest": "-1Gi"}}), "spec.template.spec.domain.memory.guest", '"-1Gi"'),
    (MACHINES, _guest(domain={"cpu": {"cores": 0}}), "spec.template.spec.domain.cpu.cores", "greater than or equal to 1"),
    (
        MACHINES,
        _guest(evictionStrategy="Perhaps"),
        "spec.template.spec.evictionStrategy",
        'supported values: "External", "LiveMigrate"',
    ),
    (POOLS, {"template": {"spec": _machine()}}, "spec.replicas", "Required value"),
    (POOLS, _pool(replicas=-1), "spec.replicas", "greater than or equal to 0"),
    (POOLS, _pool(maxUnavailable=0), "spec.maxUnavailable", "must be at least 1 or 1%"),
    (POOLS, _pool(maxUnavailable="0%"), "spec.maxUnavailable", "must be at least 1 or 1%"),
    (POOLS, _pool(maxUnavailable="ten"), "spec.maxUnavailable", '"ten"'),
    (POOLS, _pool(maxUnavailable=-3), "spec.maxUnavailable", "greater than or equal to 0"),
    (
        POOLS,
        _pool(updateStrategy={"unmanaged": {}, "proactive": {}}),
        "spec.updateStrategy",
        "at most one of unmanaged, opportunistic",
    ),
    (POOLS, _pool(autohealing={"startupFailureThreshold": 0}), "spec.autohealing.startupFailureThreshold", "equal to 1"),
    (POOLS, _pool(replicas=100_001), "spec.replicas", "less than or equal to 100000"),
    (POOLS, _pool(minReadySeconds=-1), "spec.minReadySeconds", "greater than or equal to 0"),
    (POOLS, _pool(progressDeadlineSeconds=0), "spec.progressDeadlineSeconds", "greater than or equal to 1"),
    (POOLS, _pool(updateStrategy={"proactive": {"limit": -1}}), "proactive.limit", "greater than or equal to 0"),
    (POOLS, _pool(updateStrategy={"proactive": {"onFailure": "halt"}}), "onFailure", 'supported values: "Halt", "Rollback"'),
    # As the seed's prose spells them.
    (POOLS, {"replica": 1, "template": {"spec": _machine()}}, "spec.replica", "Forbidden: unknown field: did you mean replicas?"),
    *(
        (POOLS, _pool(**spec), f"spec.{field}", f"Forbidden: unknown field: did you mean {meant}")
        for spec, field, meant in (
            ({"replica": 1}, "replica", "replicas?"),
            ({"MaxUnavailable": 10}, "MaxUnavailable", "maxUnavailable?"),
            ({"MaxUnavailable": "10%"}, "MaxUnavailable", "maxUnavailable?"),
            ({"Autohealing": {}}, "Autohealing", "autohealing?"),
            ({"UpdateStrategy": {"unmanaged": {}}}, "UpdateStrategy", "updateStrategy?"),
            ({"updateStrategy": {"Proactive": {}}}, "updateStrategy.Proactive", "proactive?"),
            (
                {"nameGeneration": {"AppendPostfixToSecretReferences": True}},
                "nameGeneration.AppendPostfixToSecretReferences",
                "appendPostfixToSecretReferences?",
            ),
            ({"scaleInPreserveState": "Offline"}, "scaleInPreserveState", "statePreservation, in scaleInStrategy.proactive or"),
            (_scaling_in(Preservation="Disabled"), "scaleInStrategy.proactive.Preservation", "statePreservation, in"),
            (_scaling_in(StatePreservation="Offline"), "scaleInStrategy.proactive.StatePreservation", "statePreservation?"),
        )
    ),
    *(
        (
            POOLS,
            _pool(**_scaling_in(selectionPolicy={"basePolicy": written})),
            "basePolicy",
            f'"{written}": supported values: "Newest"',
        )
        for written in ("oldest", "newest", "random")
    ),
    (MIGRATIONS, {"vmiName": "a", "priority": "urgent"}, "spec.priority", 'Unsupported value: "urgent"'),
    (MIGRATIONS, {}, "spec.vmiName", "Required value"),
    (SETTINGS, _levels(requireHostModelMigratabilityLevel=101), "requireHostModelMigratabilityLevel", "less than or equal to 100"),
    (
        SETTINGS,
        _levels(preferedHostModelMigratabilityLevel={"level": 5, "weight": 0}),
        "Level.weight",
        "greater than or equal to 1",
    ),
    (
        SETTINGS,
        _levels(preferedHostModelMigratabilityLevel=PREFERRED, preferredHostModelMigratabilityLevel=PREFERRED),
        "spec.configuration.migrations",
        "are two spellings of one setting: write only one",
    ),
    (POLICIES, {"allowPostCopy": True}, "spec.selectors", "a policy without selectors applies to no machine"),
    (POLICIES, {**SELECTORS, "completionTimeoutPerGiB": -1}, "spec.completionTimeoutPerGiB", "greater than or equal to 0"),
    (POLICIES, {**SELECTORS, "bandwidthPerMigration": "fast"}, "spec.bandwidthPerMigration", '"fast"'),
    (JOBS, {"podRef": POD, "mode": "EvictionDirectly"}, "spec.mode", 'supported values: "EvictDirectly", "ReservationFirst"'),
    (JOBS, {"podRef": POD, "timeoutInSeconds": 300}, "spec.timeoutInSeconds", "write the time in ttl"),
    (JOBS, {"podRef": POD, "TimeoutInSeconds": 300}, "spec.TimeoutInSeconds", "write the time in ttl"),
    (JOBS, {"podRef": POD, "ttl": "5 minutes"}, "spec.ttl", '"5 minutes"'),
    (JOBS, {"podRef": POD, "deleteOptions": {"dryRun": ["All"]}}, "spec.deleteOptions.dryRun", "must be left out: a pod that"),
    (
        JOBS,
        {"podRef": POD, "deleteOptions": {"orphanDependents": True, "propagationPolicy": "Orphan"}},
        "spec.deleteOptions",
        "must have at most one of orphanDependents, propagationPolicy",
    ),
    (
        JOBS,
        _reserving(preemptionOptions={"allow": True}),
        "spec.reservationOptions.preemptionOptions",
        'must be left out or empty, not {"allow":true}: no pod is moved away for another one',
    ),
    (JOBS, {"podRef": {"name": "web-0"}}, "spec.podRef.namespace", "Required value"),
    (JOBS, {}, "spec.podRef", "Required value"),
    (RESERVATIONS, {"template": ROOM, "owners": []}, "spec.owners", "should have at least 1 items"),
    (RESERVATIONS, {"template": ROOM, "owners": [{}]}, "spec.owners[0]", "must say who may use the room"),
    (RESERVATIONS, {"owners": [OWNER]}, "spec.template", "Required value"),
    (
        RESERVATIONS,
        {"template": ROOM, "owners": [OWNER], "ttl": "1h", "expires": "2030-01-01T00:00:00Z"},
        "spec",
        "must have at most one of ttl, expires",
    ),
    (DATA_VOLUMES, {"source": {}, "pvc": CLAIM}, "spec.source", "must have exactly one of http, blank, pvc, but has none"),
    (DATA_VOLUMES, {"source": {"blank": {}}}, "spec", "must have exactly one of pvc, storage, but has none"),
    (DATA_VOLUMES, {"source": {"http": {"url": "ftp://a/b"}}, "pvc": CLAIM}, "spec.source.http.url", '"ftp://a/b"'),
    *(
        (MACHINES, _guest(domain=domain), f"spec.template.spec.domain.{field}", f"Invalid value: {value}: {words}")
        for domain, field, value, words in (
            ({"cpu": {"model": "qemu64,+avx"}}, "cpu.model", '"qemu64,+avx"', "must be one word of letters, digits"),
            ({"cpu": {"features": [{"name": "avx,x=y"}]}}, "cpu.features[0].name", '"avx,x=y"', "must be one word of letters"),
            ({"machine": {"type": "q35,accel=kvm"}}, "machine.type", '"q35,accel=kvm"', "must be one word of letters, digits"),
            (_kernel(kernelArgs="a\tb"), "firmware.kernelBoot.kernelArgs", '"a\\tb"', "must have no control characters"),
            (
                _kernel("../../etc/shadow"),
                "firmware.kernelBoot.volume.kernelPath",
                '"../../etc/shadow"',
                "must be the path of a file",
            ),
            ({"clock": {"timezone": "../etc/shadow"}}, "clock.timezone", '"../etc/shadow"', "must be the name of a time zone"),
            ({"firmware": {"uuid": "mine"}}, "firmware.uuid", '"mine"', "must be a UUID such as"),
            ({"firmware": {"serial": "a\tb"}}, "firmware.serial", '"a\\tb"', "must have no control characters"),
            ({"memory": {"guest": "much"}}, "memory.guest", '"much"', "must be an amount that is not below zero: a number, or"),
            ({"memory": {"guest": -5}}, "memory.guest", "-5", "must be an amount that is not below zero: a number, or"),
        )
    ),
    # How NUL is shown differs.
    (MACHINES, _guest(domain=_kernel(kernelArgs="a\0b")), "firmware.kernelBoot.kernelArgs", "must have no control characters"),
    (MACHINES, _guest(domain=None), "spec.template.spec.domain", "Required value"),
    (MACHINES, _guest(terminationGracePeriodSeconds=2**62), "terminationGracePeriodSeconds", f"{2**62}: "),
    (POOLS, _pool(maxUnavailable="ten"), "spec.maxUnavailable", "must be a whole number, or a percentage such as 25%"),
    (JOBS, {"podRef": POD, "ttl": "-5m"}, "spec.ttl", '"-5m": must be a length of time, not below zero, such as 90s'),
]


@pytest.fixture(scope="module", autouse=True)
async def crds(api: Api) -> None:
    await install_crds(api)


@pytest.fixture
async def job(api: Api, namespace: str, unique: Unique) -> AsyncIterator[str]:
    name = unique("job")
    await make_owned_pod(api, POD["name"], namespace)
    spec = {**_reserving(template={"spec": {"ttl": "1h"}}), "podRef": {**POD, "namespace": namespace}}
    (await api.create(JOBS, {"metadata": {"name": name}, "spec": spec})).ok  # noqa: B018
    yield name
    await api.delete(JOBS, name)


def _says(reply: Reply, field: str, words: str) -> None:
    reply.refused(422, "Invalid")
    assert any(cause["field"].endswith(field) and words in cause["message"] for cause in reply.body["details"]["causes"]), (
        reply.message
    )


@pytest.mark.parametrize(("resource", "spec", "field", "words"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
async def test_a_bad_object_is_refused(
    api: Api, namespace: str, unique: Unique, resource: Any, spec: Json, field: str, words: str
) -> None:
    place = namespace if resource.namespaced else ""
    reply = await api.create(resource, {"metadata": {"name": unique()}, "spec": spec}, place, fieldValidation="Strict")
    _says(reply, field, words)


async def test_a_migration_cannot_be_changed_but_labelled(api: Api, namespace: str) -> None:
    term = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}]
    body = {"metadata": {"name": "a"}, "spec": {"vmiName": "a", "addedNodeSelectorTerm": term}}
    (await api.create(INSTANCES, {"metadata": {"name": "a"}, "spec": DOMAIN}, namespace)).ok  # noqa: B018
    (await api.create(MIGRATIONS, body, namespace)).ok  # noqa: B018
    words = "spec is immutable: delete this migration"
    for change in ({"vmiName": "b"}, {"priority": "system-critical"}, {"addedNodeSelectorTerm": None}):
        _says(await api.patch(MIGRATIONS, "a", {"spec": change}, namespace), "spec", words)
    elsewhere = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-2"]}]}]
    _says(await api.patch(MIGRATIONS, "a", {"spec": {"addedNodeSelectorTerm": elsewhere}}, namespace), "spec", words)
    labelled = await api.patch(MIGRATIONS, "a", {"metadata": {"labels": {"x": "y"}}}, namespace)
    assert labelled.ok["spec"] == body["spec"]


async def test_a_data_volume_cannot_be_changed(api: Api, namespace: str) -> None:
    body = {"metadata": {"name": "a"}, "spec": {"source": {"blank": {}}, "pvc": CLAIM}}
    (await api.create(DATA_VOLUMES, body, namespace)).ok  # noqa: B018
    larger = {"spec": {"pvc": {"resources": {"requests": {"storage": "2Gi"}}}}}
    _says(await api.patch(DATA_VOLUMES, "a", larger, namespace), "spec", "spec is immutable: delete this DataVolume")


async def test_only_paused_of_a_job_can_be_changed(api: Api, job: str) -> None:
    assert (await api.patch(JOBS, job, {"spec": {"paused": False}})).ok["spec"]["paused"] is False
    for change, field in (
        ({"mode": "EvictDirectly"}, "spec.mode"),
        ({"ttl": "1h"}, "spec.ttl"),
        ({"podRef": {"name": "web-1"}}, "spec.podRef"),
        ({"deleteOptions": {"gracePeriodSeconds": 1}}, "spec.deleteOptions"),
        ({"reservationOptions": {"template": {"spec": {"ttl": "2h"}}}}, "spec.reservationOptions"),
        ({"reservationOptions": None}, "spec.reservationOptions"),
    ):
        _says(await api.patch(JOBS, job, {"spec": change}), field, "is immutable: delete this job")


async def test_the_reservation_of_a_job_is_set_once(api: Api, job: str) -> None:
    first = {"reservationOptions": {"reservationRef": {"name": "room-1"}}}
    assert (await api.patch(JOBS, job, {"spec": first})).ok["spec"]["reservationOptions"]["reservationRef"] == {"name": "room-1"}
    for reference in ({"name": "room-2"}, None):
        change = {"spec": {"reservationOptions": {"reservationRef": reference}}}
        _says(await api.patch(JOBS, job, change), "spec.reservationOptions", "can be set once and then stays")


async def test_a_pool_is_scaled_and_its_status_written_apart_from_it(api: Api, namespace: str) -> None:
    created = (await api.create(POOLS, {"metadata": {"name": "a"}, "spec": _pool()}, namespace)).ok
    assert created["spec"] == _pool()
    (await api.patch(POOLS, "a", {"spec": {"replicas": 7}}, namespace, "scale")).ok  # noqa: B018
    status = {"replicas": 3, "labelSelector": "herder.dev/pool=a", "readyReplicas": 2}
    (await api.patch(POOLS, "a", {"spec": {"replicas": 9}, "status": status}, namespace, "status")).ok  # noqa: B018
    scale = (await api.get(POOLS, "a", namespace, "scale")).ok
    assert (scale["spec"], scale["status"]) == ({"replicas": 7}, {"replicas": 3, "selector": "herder.dev/pool=a"})


async def test_two_writers_share_the_conditions_of_a_machine(api: Api, namespace: str) -> None:
    (await api.create(MACHINES, {"metadata": {"name": "a"}, "spec": _machine()}, namespace)).ok  # noqa: B018
    for writer, type_ in (("one", "Ready"), ("two", "Paused")):
        condition = {"type": type_, "status": "False", "reason": "Halted", "lastProbeTime": None}
        body = {"apiVersion": MACHINES.api_version, "kind": MACHINES.kind, "status": {"conditions": [condition]}}
        (await api.patch(MACHINES, "a", body, namespace, "status", kind="apply", fieldManager=writer)).ok  # noqa: B018
    stored = (await api.get(MACHINES, "a", namespace)).ok["status"]["conditions"]
    assert {one["type"] for one in stored} == {"Ready", "Paused"}
