"""From an instance to its pod, and from what the pod shows to the instance's status."""

from typing import Any

import msgspec
import pytest

from herder.api import labels
from herder.api.core import Node, Pod
from herder.api.guest import GuestReport, Started, definition_of
from herder.api.kinds.instance import StartedCPU
from herder.rules.instances import InstancePlan, InstanceSnapshot, plan_instance
from herder.rules.instances.needs import Found
from herder.rules.plans import moment
from tests.unit.rules.machines import NOW, Json, claim, data_volume, instance, instance_view, later, node, pod

RUNNING = GuestReport(state="Running")
SEED = {"name": "seed", "cloudInitNoCloud": {"secretRef": {"name": "user-data"}}}


def plan(document: Json, *pods: Pod, nodes: tuple[Node, ...] = (node(),), **found: Any) -> InstancePlan:
    known = {one.name: one for one in nodes}
    return plan_instance(InstanceSnapshot(instance_view(document), msgspec.json.encode(document), pods, known, Found(**found)), NOW)


def status(plan: InstancePlan) -> Json:
    assert plan.status is not None
    return plan.status


def condition(plan: InstancePlan, kind: str) -> Json:
    return next((one for one in status(plan)["conditions"] if one["type"] == kind), {})


def spec(*volumes: Json, **more: Any) -> Json:
    return {"domain": {}, "volumes": list(volumes), **more}


def made_pod(document: Json) -> Json:
    made = plan(document).create_pod
    assert made is not None
    return made


def test_a_new_instance_gets_a_pod_whose_name_follows_from_it() -> None:
    made = plan(instance())
    assert made.create_pod is not None
    assert made.create_pod["metadata"]["name"] == "virt-launcher-web-aaaaaaaa"
    assert made.create_pod["metadata"]["ownerReferences"][0]["uid"] == "aaaaaaaa-0001"
    assert made.create_pod["metadata"]["labels"][labels.APP] == "virt-launcher"
    assert not made.add_finalizer


def test_an_instance_that_a_person_made_gets_its_finalizer_first() -> None:
    assert plan(instance(owner="", finalizers=[])).add_finalizer


def test_the_pod_tells_its_node_what_to_run_and_nothing_about_places() -> None:
    document = instance(
        spec=spec({"name": "root", "emptyDisk": {"capacity": "1Gi"}}, nodeSelector={"zone": "a"}),
        annotations={labels.SIMULATED + "boot-seconds": "3", "note": "x", labels.CLOUD_INIT_AGAIN: "true"},
    )
    definition = definition_of(msgspec.convert(made_pod(document), Pod))
    assert definition is not None
    assert definition.instance.uid == "aaaaaaaa-0001"
    assert definition.spec.volumes is not None
    assert definition.spec.volumes[0].name == "root"
    assert definition.spec.node_selector is None
    assert definition.simulated == {"boot-seconds": "3"}
    assert definition.cloud_init_again
    assert definition.incoming is None


def test_the_pod_goes_where_guests_can_run_and_where_the_instance_wants_to() -> None:
    made = made_pod(
        instance(
            spec=spec(
                nodeSelector={"zone": "a"},
                tolerations=[{"key": "own", "operator": "Exists"}],
                affinity={"nodeAffinity": {}},
                priorityClassName="high",
                terminationGracePeriodSeconds=5,
            )
        )
    )["spec"]
    assert made["nodeSelector"] == {"zone": "a", "kubevirt.io/schedulable": "true"}
    assert [one["key"] for one in made["tolerations"]] == ["own", "herder.dev/vm-host"]
    assert made["affinity"] == {"nodeAffinity": {}}
    assert made["priorityClassName"] == "high"
    assert made["schedulerName"] == "herder-scheduler"
    assert made["terminationGracePeriodSeconds"] == 20
    assert made_pod(instance(spec=spec(schedulerName="mine")))["spec"]["schedulerName"] == "mine"


def test_a_named_model_and_required_features_need_a_node_that_has_them() -> None:
    cpu = {"model": "Skylake-Client", "features": [{"name": "pcid"}, {"name": "vmx", "policy": "disable"}]}
    selector = made_pod(instance(spec={"domain": {"cpu": cpu}}))["spec"]["nodeSelector"]
    assert selector["cpu-model.node.kubevirt.io/Skylake-Client"] == "true"
    assert selector["cpu-feature.node.kubevirt.io/pcid"] == "true"
    assert "cpu-feature.node.kubevirt.io/vmx" not in selector
    assert made_pod(instance(spec={"domain": {"cpu": {"model": "host-model"}}}))["spec"]["nodeSelector"] == {
        "kubevirt.io/schedulable": "true"
    }


@pytest.mark.parametrize(
    ("domain", "cpu", "memory"),
    [
        # 1 processor, 512Mi: 96Mi + 8Mi + 1Mi beside it.
        ({}, "100m", 617),
        ({"cpu": {"cores": 2, "sockets": 2}, "memory": {"guest": "1Gi"}}, "400m", 1024 + 96 + 32 + 2),
        ({"resources": {"requests": {"cpu": "2", "memory": "2Gi"}}}, "2", 2048 + 96 + 8 + 4),
        ({"resources": {"limits": {"cpu": "3", "memory": "1Gi"}}}, "3", 1024 + 96 + 8 + 2),
    ],
)
def test_the_pod_asks_for_the_guest_and_what_it_takes_beside(domain: Json, cpu: str, memory: int) -> None:
    from herder.api.quantity import parse_quantity

    requests = made_pod(instance(spec={"domain": domain}))["spec"]["containers"][0]["resources"]["requests"]
    assert requests["cpu"] == cpu
    assert parse_quantity(requests["memory"]).value() == memory * 1024 * 1024


def test_the_pod_mounts_what_the_guest_mounts() -> None:
    volumes = [
        {"name": "root", "dataVolume": {"name": "disk"}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "keys", "secret": {"secretName": "keys"}},
        {"name": "conf", "configMap": {"name": "conf", "optional": True}},
        SEED,
    ]
    document = instance(spec=spec(*volumes))
    made = plan(
        document,
        secrets=frozenset({"keys", "user-data"}),
        data_volumes={"disk": data_volume("disk")},
        claims={"data": claim("data", "ReadWriteMany")},
    ).create_pod
    assert made is not None
    mounted = [{key: value for key, value in one.items() if key != "name"} for one in made["spec"]["volumes"]]
    assert mounted == [
        {"persistentVolumeClaim": {"claimName": "data"}},
        {"persistentVolumeClaim": {"claimName": "disk"}},
        {"secret": {"secretName": "keys", "optional": True}},
        {"secret": {"secretName": "user-data", "optional": True}},
        {"configMap": {"name": "conf", "optional": True}},
    ]


@pytest.mark.parametrize(
    ("volume", "reason", "name"),
    [
        (SEED, "MissingSecret", "user-data"),
        ({"name": "k", "secret": {"secretName": "keys"}}, "MissingSecret", "keys"),
        ({"name": "c", "configMap": {"name": "conf"}}, "MissingConfigMap", "conf"),
        ({"name": "s", "sysprep": {"configMap": {"name": "answers"}}}, "MissingConfigMap", "answers"),
        ({"name": "p", "persistentVolumeClaim": {"claimName": "data"}}, "MissingClaim", "data"),
        ({"name": "d", "dataVolume": {"name": "disk"}}, "MissingDataVolume", "disk"),
    ],
)
def test_what_is_missing_keeps_it_pending_and_is_said_by_name(volume: Json, reason: str, name: str) -> None:
    waiting = plan(instance(spec=spec(volume)))
    assert waiting.create_pod is None
    assert status(waiting)["phase"] == "Pending"
    assert status(waiting)["reason"] == reason
    assert name in status(waiting)["message"]
    assert condition(waiting, "Ready")["reason"] == reason
    assert [event.reason for event in waiting.events] == [reason]
    told = instance("Pending", spec=spec(volume), reason=reason, message=status(waiting)["message"])
    assert not plan(told).events, "said once, not at every look"


def test_what_is_optional_is_not_waited_for() -> None:
    volumes = [
        {"name": "k", "secret": {"secretName": "keys", "optional": True}},
        {"name": "c", "configMap": {"name": "conf", "optional": True}},
    ]
    assert plan(instance(spec=spec(*volumes))).create_pod is not None


@pytest.mark.parametrize(
    ("phase", "makes", "reason"),
    [
        ("Succeeded", True, None),
        ("WaitForFirstConsumer", True, None),
        ("ImportInProgress", False, "WaitingForDataVolume"),
        ("Failed", False, "DataVolumeFailed"),
    ],
)
def test_a_data_volume_is_waited_for_until_its_content_is_there(phase: str, makes: bool, reason: str | None) -> None:
    document = instance(spec=spec({"name": "d", "dataVolume": {"name": "disk"}}))
    made = plan(document, data_volumes={"disk": data_volume("disk", phase, progress="45.0%")})
    assert (made.create_pod is not None) is makes
    assert (made.status or {}).get("reason") == reason


def test_a_data_volume_that_failed_for_good_is_said_before_what_may_still_come() -> None:
    document = instance(spec=spec(SEED, {"name": "d", "dataVolume": {"name": "disk"}}))
    made = plan(document, data_volumes={"disk": data_volume("disk", "Failed", reason="VolumeTooSmall", message="it is too small")})
    assert status(made)["message"] == "DataVolume disk failed for good: it is too small"
    assert [(event.type, event.reason) for event in made.events] == [("Warning", "DataVolumeFailed")]


def test_what_a_data_volume_fails_with_is_what_its_instance_waits_for() -> None:
    fails = {"type": "Synchronized", "status": "False", "reason": "Forbidden", "message": "exceeded quota"}
    document = instance(spec=spec({"name": "d", "dataVolume": {"name": "disk"}}))
    waiting = plan(document, data_volumes={"disk": data_volume("disk", "PVCBound", conditions=[fails])})
    assert (status(waiting)["reason"], status(waiting)["message"]) == (
        "DataVolumeError",
        "DataVolume disk: PVCBound: exceeded quota",
    )


def test_a_claim_whose_data_volume_is_gone_will_do() -> None:
    document = instance(spec=spec({"name": "d", "dataVolume": {"name": "disk"}}))
    assert plan(document, claims={"disk": claim("disk", "ReadWriteOnce")}).create_pod is not None


def test_an_unbound_pod_is_scheduling_and_says_why_it_waits() -> None:
    assert status(plan(instance(), pod()))["phase"] == "Scheduling"
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}
    waiting = status(plan(instance(), pod(conditions=[refused])))
    assert (waiting["phase"], waiting["reason"], waiting["message"]) == ("Scheduling", "Unschedulable", "0/3 nodes are available")


def test_a_bound_pod_is_scheduled_and_a_reported_guest_runs() -> None:
    assert status(plan(instance(), pod(node="node-1")))["phase"] == "Scheduled"
    assert status(plan(instance(), pod(GuestReport(state="Preparing"), node="node-1")))["phase"] == "Scheduled"
    running = plan(instance("Scheduled"), pod(RUNNING, phase="Running", node="node-1", ready=True))
    assert status(running)["phase"] == "Running"
    assert status(running)["nodeName"] == "node-1"
    assert status(running)["activePods"] == {"uid-of-virt-launcher-web-aaaaaaaa": "node-1"}
    assert condition(running, "Ready")["status"] == "True"
    assert running.node_label == "node-1"
    assert [event.reason for event in running.events] == ["Started"]


def test_a_guest_that_has_not_passed_its_readiness_probe_runs_and_is_not_ready() -> None:
    waiting = plan(instance("Running"), pod(RUNNING, phase="Running", node="node-1", ready=False))
    assert status(waiting)["phase"] == "Running"
    assert condition(waiting, "Ready")["status"] == "False"


def test_what_the_guest_was_started_as_is_kept() -> None:
    started = Started(
        machine_type="pc-q35-8.2", accelerator="tcg", runtime="qemu", cpu=StartedCPU(model="Nehalem"), memory_bytes=42
    )
    report = GuestReport(state="Running", started=started)
    shown = status(plan(instance(), pod(report, phase="Running", node="node-1")))
    assert shown["cpu"] == {"model": "Nehalem"}
    assert shown["memory"] == {"guestAtBoot": "42", "guestCurrent": "42"}
    kept = status(plan(instance("Running", runtime="qemu", cpu={"model": "Nehalem"}), pod(RUNNING, node="node-1")))
    assert kept["cpu"] == {"model": "Nehalem"}


def test_phases_are_dated_once() -> None:
    first = status(plan(instance(), pod(node="node-1")))["phaseTransitionTimestamps"]
    assert first == [{"phase": "Scheduled", "phaseTransitionTimestamp": later(0)}]
    known = [{"phase": "Scheduled", "phaseTransitionTimestamp": later(-9)}]
    again = plan(instance("Scheduled", phaseTransitionTimestamps=known), pod(node="node-1"))
    assert status(again)["phaseTransitionTimestamps"] == known


@pytest.mark.parametrize(
    ("phase", "report", "reason"),
    [
        ("Succeeded", GuestReport(state="ShutDown"), "GuestShutDown"),
        ("Failed", GuestReport(state="Crashed", message="triple fault"), "GuestCrashed"),
        ("Failed", GuestReport(state="Failed", reason="Unsupported", message="no such machine type"), "Unsupported"),
        ("Failed", None, "GuestCrashed"),
    ],
)
def test_the_end_of_the_pod_is_the_end_of_the_instance(phase: str, report: GuestReport | None, reason: str) -> None:
    ended = plan(instance("Running"), pod(report, phase=phase, node="node-1"))
    assert status(ended)["phase"] == phase
    assert status(ended)["reason"] == reason
    if report:
        assert status(ended).get("message", "") == report.message
    assert plan(instance(phase), pod(report, phase=phase, node="node-1")).status is None, "nothing changes after the end"


def test_a_pod_that_vanished_fails_the_instance_once_that_is_certain() -> None:
    ended = plan(instance("Running", launcherPodName="virt-launcher-web-aaaaaaaa"))
    assert ended.gone == "virt-launcher-web-aaaaaaaa"
    assert status(ended)["phase"] == "Failed"
    assert status(ended)["reason"] == "PodGone"
    assert ended.create_pod is None


def test_a_node_that_does_not_answer_makes_the_phase_unknown_and_deletes_nothing() -> None:
    lost = plan(instance("Running"), pod(RUNNING, phase="Running", node="node-1"), nodes=(node("node-1", "Unknown"),))
    assert status(lost)["phase"] == "Unknown"
    assert status(lost)["reason"] == "NodeNotFenced"
    assert not lost.delete_pods
    back = plan(instance("Unknown"), pod(RUNNING, phase="Running", node="node-1"))
    assert status(back)["phase"] == "Running"
    assert not back.events


@pytest.mark.parametrize("nodes", [(), (node("node-1", "Unknown", labels.OUT_OF_SERVICE_TAINT),)])
def test_a_fenced_node_gives_its_pod_up_by_force(nodes: tuple[Node, ...]) -> None:
    lost = plan(instance("Running"), pod(RUNNING, phase="Running", node="node-1"), nodes=nodes)
    (gone,) = lost.delete_pods
    assert gone.grace_period_seconds == 0


def test_an_instance_that_is_deleted_ends_its_pods_and_goes_when_they_are_gone() -> None:
    ending = plan(instance("Running", deleted=True), pod(RUNNING, phase="Running", node="node-1"))
    assert [one.grace_period_seconds for one in ending.delete_pods] == [None]
    assert not ending.remove_finalizer
    waiting = plan(instance("Running", deleted=True), pod(RUNNING, phase="Running", node="node-1", deleted=True))
    assert not waiting.delete_pods
    assert not waiting.remove_finalizer
    over = plan(instance("Running", deleted=True))
    assert over.remove_finalizer
    assert over.gone == "virt-launcher-web-aaaaaaaa"


def test_a_deleted_instance_on_a_silent_node_waits_until_the_node_is_fenced() -> None:
    stuck = pod(RUNNING, phase="Running", node="node-1", deleted=True)
    silent = plan(instance("Running", deleted=True), stuck, nodes=(node("node-1", "Unknown"),))
    assert not silent.delete_pods
    assert not silent.remove_finalizer
    fenced = plan(instance("Running", deleted=True), stuck, nodes=())
    assert [one.grace_period_seconds for one in fenced.delete_pods] == [0]


def test_a_wish_to_pause_is_passed_on_to_the_pod() -> None:
    wish = instance("Running", annotations={labels.PAUSE: "true"})
    name = "virt-launcher-web-aaaaaaaa"
    assert plan(wish, pod(RUNNING, node="node-1")).pause == (name, "true")
    told = pod(RUNNING, node="node-1", annotations={labels.PAUSE: "true"})
    assert plan(wish, told).pause is None
    assert plan(instance("Running", annotations={labels.PAUSE: "false"}), told).pause == (name, "false")


def test_a_guest_that_stands_still_for_want_of_room_says_so_and_is_told_of_once() -> None:
    full = GuestReport(state="Paused", reason="InsufficientStorage", message="the storage is full")
    standing = plan(instance("Running"), pod(full, phase="Running", node="node-1"))
    for kind, value in (("Paused", "True"), ("Ready", "False")):
        shown = condition(standing, kind)
        assert (shown["status"], shown["reason"], shown["message"]) == (value, "InsufficientStorage", "the storage is full")
    assert [(one.reason, one.message) for one in standing.events] == [("InsufficientStorage", "the storage is full")]
    told = {**instance("Running"), "status": {"phase": "Running", "conditions": [condition(standing, "Paused")]}}
    assert plan(told, pod(full, phase="Running", node="node-1")).events == (), "it is told once"


def test_a_paused_guest_runs_and_is_not_ready() -> None:
    paused = plan(instance("Running"), pod(GuestReport(state="Paused"), phase="Running", node="node-1", ready=True))
    assert paused.events == ()
    assert status(paused)["phase"] == "Running"
    assert condition(paused, "Paused")["status"] == "True"
    assert condition(paused, "Ready")["reason"] == "GuestPaused"


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        ({"domain": {"devices": {"hostDevices": [{"name": "gpu", "deviceName": "x/gpu"}]}}}, "HostDeviceNotLiveMigratable"),
        ({"domain": {"devices": {"disks": [{"name": "root", "lun": {}}]}}}, "DisksNotLiveMigratable"),
        (
            {"domain": {"devices": {"interfaces": [{"name": "n", "bridge": {}}]}}, "networks": [{"name": "n", "pod": {}}]},
            "InterfaceNotLiveMigratable",
        ),
        ({"domain": {"cpu": {"model": "host-passthrough"}}}, "CPUNotLiveMigratable"),
        ({"domain": {}, "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "once"}}]}, "DisksNotLiveMigratable"),
        ({"domain": {}, "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "many"}}]}, "Migratable"),
        ({"domain": {}}, "Migratable"),
    ],
)
def test_whether_it_can_be_moved_and_why_not(shape: Json, reason: str) -> None:
    claims = {"once": claim("once", "ReadWriteOnce"), "many": claim("many", "ReadWriteMany")}
    shown = plan(instance("Running", spec=shape), pod(RUNNING, node="node-1"), claims=claims)
    assert condition(shown, "LiveMigratable")["reason"] == reason
    assert condition(shown, "LiveMigratable")["status"] == ("True" if reason == "Migratable" else "False")


def test_a_runtime_that_cannot_move_guests_says_so() -> None:
    report = GuestReport(state="Running", migratable=False, not_migratable_because="QEMU 7.2 loses pages")
    shown = plan(instance("Running"), pod(report, node="node-1"))
    assert condition(shown, "LiveMigratable")["message"] == "QEMU 7.2 loses pages"


def test_a_guest_that_ran_and_ended_before_anybody_looked_did_run() -> None:
    report = GuestReport(state="Crashed", started_at=moment(NOW - 3))
    ended = plan(instance("Scheduled"), pod(report, phase="Failed", node="node-1"))
    assert ended.status is not None
    phases = {one["phase"]: one["phaseTransitionTimestamp"] for one in ended.status["phaseTransitionTimestamps"]}
    assert phases == {"Running": later(-3), "Failed": later(0)}


def test_a_pod_that_someone_deletes_is_no_guest_that_shut_down() -> None:
    report = GuestReport(state="ShutDown", reason="GuestShutDown")
    ended = plan(instance("Running"), pod(report, phase="Succeeded", node="node-1", deleted=True))
    assert ended.status is not None
    assert (ended.status["phase"], ended.status["reason"]) == ("Failed", "PodGone")


def test_that_a_pod_which_was_only_just_made_has_no_node_is_not_worth_a_write() -> None:
    just_made = plan(instance(), pod(creationTimestamp=later(-1)))
    assert just_made.status is None
    assert just_made.next_look == pytest.approx(0.5)


@pytest.mark.parametrize(
    "waiting",
    [
        pod(creationTimestamp=later(-2)),
        pod(creationTimestamp=later(60)),  # by a clock that is ahead of ours
        pod(creationTimestamp=later(0), conditions=[{"type": "PodScheduled", "status": "False", "message": "0/5 nodes"}]),
    ],
    ids=["for long", "who knows how long", "and knows why"],
)
def test_but_that_it_waits_is(waiting: Pod) -> None:
    shown = plan(instance(), waiting)
    assert (status(shown)["phase"], shown.next_look) == ("Scheduling", None)


def test_a_pod_that_has_a_node_is_shown_at_once() -> None:
    shown = plan(instance(), pod(creationTimestamp=later(0), node="node-1"))
    assert (status(shown)["phase"], shown.next_look) == ("Scheduled", None)


WITH_PROBE: Json = {"domain": {}, "livenessProbe": {"guestAgentPing": {}}}
BEGAN = moment(NOW - 20)


def probed(phase: str, alive: bool | None = None, **more: Any) -> Json:
    """An instance with a liveness probe; `alive` is what was said of it before."""
    said = [{"type": "Alive", "status": "True" if alive else "False"}] if alive is not None else []
    return instance(phase, spec=WITH_PROBE, conditions=said, **more)


@pytest.mark.parametrize(
    ("before", "report", "status_and_reason"),
    [
        (None, GuestReport(state="Running", started_at=BEGAN), ("False", "LivenessProbePending")),
        (None, GuestReport(state="Running", started_at=BEGAN, alive=True), ("True", "LivenessProbePassed")),
        (False, GuestReport(state="Running", started_at=BEGAN, alive=True), ("True", "LivenessProbePassed")),
        (False, GuestReport(state="Crashed", started_at=BEGAN), ("False", "LivenessProbeNeverPassed")),
        # It ran and had crashed again before anybody looked.
        (None, GuestReport(state="Crashed", started_at=BEGAN), ("False", "LivenessProbeNeverPassed")),
        (None, GuestReport(state="Crashed", started_at=BEGAN, alive=True), ("True", "LivenessProbePassed")),
        # It was moved: the agent that has it now has asked it nothing yet.
        (True, GuestReport(state="Running", started_at=BEGAN), ("True", "LivenessProbePassed")),
        (True, GuestReport(state="Crashed", started_at=BEGAN), ("True", "LivenessProbePassed")),
        # It is only being prepared, or could not be.
        (None, GuestReport(state="Preparing", alive=True), None),
        (None, GuestReport(state="Failed", alive=True), None),
    ],
)
def test_alive_tells_whether_the_first_liveness_probe_has_passed_also_of_a_guest_that_has_ended(
    before: bool | None, report: GuestReport, status_and_reason: tuple[str, str] | None
) -> None:
    shown = condition(plan(probed("Scheduled", before), pod(report, node="node-1")), "Alive")
    assert ((shown["status"], shown["reason"]) if shown else None) == status_and_reason


def test_what_was_known_of_its_liveness_is_kept_when_its_pod_is_gone_or_its_node_silent() -> None:
    silent = plan(probed("Running", True), pod(RUNNING, node="node-1"), nodes=(node(ready="Unknown"),))
    assert condition(silent, "Alive")["status"] == "True"
    gone = plan(probed("Running", False, launcherPodName="virt-launcher-web-aaaaaaaa"))
    assert condition(gone, "Alive")["status"] == "False"


def test_a_guest_that_lived_before_it_was_moved_did_not_fail_to_start() -> None:
    dead = pod(GuestReport(state="Failed", reason="LivenessProbeNeverPassed", started_at=BEGAN), node="node-1", phase="Failed")
    assert status(plan(probed("Running", True), dead))["reason"] == "LivenessProbeFailed"
    assert status(plan(probed("Running", False), dead))["reason"] == "LivenessProbeNeverPassed"


def test_a_guest_without_a_liveness_probe_says_nothing_about_it() -> None:
    assert condition(plan(instance("Running"), pod(RUNNING, node="node-1")), "Alive") == {}
