"""What a machine mounts and is not there: refused where it can never be right, waited for where it may come."""

import pytest

from tests.engines.resources import CLAIMS, CONFIG_MAPS, SECRETS, Resource
from tests.machines.herd import INSTANCES, MACHINES, Herd, Json, condition, machine

DISK = {"disks": [{"name": "seed", "disk": {}}]}
MEMORY = {"memory": {"guest": "64Mi"}}


async def _make(herd: Herd, volume: Json) -> None:
    written = machine(domain={**MEMORY, "devices": DISK})
    written["spec"]["template"]["spec"]["volumes"] = [{"name": "seed", **volume}]
    (await herd.api.create(MACHINES, written, herd.namespace)).ok  # noqa: B018


SECRET: Json = {"stringData": {"userdata": "#cloud-config"}}
CLAIM: Json = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
MISSING: list[tuple[Json, Resource, Json, str, str]] = [
    ({"secret": {"secretName": "x"}}, SECRETS, SECRET, "MissingSecret", "Secret x"),
    ({"cloudInitNoCloud": {"secretRef": {"name": "x"}}}, SECRETS, SECRET, "MissingSecret", "Secret x"),
    ({"cloudInitConfigDrive": {"secretRef": {"name": "x"}}}, SECRETS, SECRET, "MissingSecret", "Secret x"),
    ({"configMap": {"name": "x"}}, CONFIG_MAPS, {"data": {"a": "b"}}, "MissingConfigMap", "ConfigMap x"),
    ({"persistentVolumeClaim": {"claimName": "x"}}, CLAIMS, CLAIM, "MissingClaim", "PersistentVolumeClaim x"),
]


@pytest.mark.parametrize(("volume", "resource", "content", "reason", "name"), MISSING, ids=lambda one: str(one)[:24])
async def test_a_machine_waits_for_what_it_mounts_and_goes_on_when_it_appears(
    herd: Herd, volume: Json, resource: Resource, content: Json, reason: str, name: str
) -> None:
    await _make(herd, volume)
    waiting = await herd.phase("Pending")

    async def said() -> Json:
        found = await herd.phase("Pending")
        assert found["status"].get("reason") == reason
        return found

    waiting = await herd.eventually(said)
    assert waiting["status"]["message"] == f"waits for {name}, which does not exist"
    assert condition(waiting, "Ready")["reason"] == reason
    assert await herd.pods() == []
    assert await herd.told("VirtualMachineInstance", reason) == waiting["status"]["message"]
    await herd.shows("ErrorPvcNotFound" if reason == "MissingClaim" else "Starting", reason=reason)
    (await herd.api.create(resource, {"metadata": {"name": "x"}, **content}, herd.namespace)).ok  # noqa: B018
    assert (await herd.running())["metadata"]["uid"] == waiting["metadata"]["uid"]


async def test_what_is_optional_is_not_waited_for(herd: Herd) -> None:
    await _make(herd, {"secret": {"secretName": "x", "optional": True}})
    await herd.running()


async def test_a_data_volume_that_nobody_made_is_named(herd: Herd) -> None:
    await _make(herd, {"dataVolume": {"name": "nobody"}})

    async def said() -> Json:
        found = await herd.phase("Pending")
        assert found["status"].get("reason") == "MissingDataVolume"
        return found

    assert "DataVolume nobody" in (await herd.eventually(said))["status"]["message"]
    await herd.shows("Provisioning", reason="MissingDataVolume")


REFUSED: list[tuple[Json, str, str]] = [
    ({"domain": {**MEMORY, "devices": DISK}}, "domain.devices.disks[0].name", "there is no volume of this name"),
    ({"domain": {"memory": {"guest": "-1Gi"}}}, "domain.memory.guest", "-1Gi"),
    ({"domain": {"memory": {"guest": "0"}}}, "domain.memory.guest", "0"),
    ({"domain": {"resources": {"requests": {"memory": "-5Mi"}}}}, "domain.resources.requests", "-5Mi"),
]


@pytest.mark.parametrize(("spec", "field", "words"), REFUSED)
async def test_what_can_never_be_right_is_refused_by_name(herd: Herd, spec: Json, field: str, words: str) -> None:
    written = machine()
    written["spec"]["template"]["spec"] = spec
    reply = await herd.api.create(MACHINES, written, herd.namespace)
    assert reply.code == 422, reply.raw
    assert f"spec.template.spec.{field}" in reply.message
    assert words in reply.message
    direct = await herd.api.create(INSTANCES, {"metadata": {"name": "vm"}, "spec": spec}, herd.namespace)
    assert direct.code == 422
    assert f"spec.{field}" in direct.message


async def test_an_annotation_that_cannot_be_read_fails_the_start_and_says_which(herd: Herd) -> None:
    await herd.make(simulated={"boot": "soon"})
    machine = await herd.shows("CrashLoopBackOff")
    assert "simulated.herder.dev/boot: 'soon' cannot be read" in machine["status"]["startFailure"]["message"]
    assert machine["status"]["startFailure"]["reason"] == "Unsupported"
