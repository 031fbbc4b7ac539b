"""Machines that do not start are deleted with their storage and made again; those that a template broke are not."""

from collections.abc import Callable

from herder.api import labels
from tests.engines.resources import CLAIMS, SECRETS
from tests.engines.watching import Watch, WatchEvent
from tests.machines.herd import MACHINES, PATIENCE, Json
from tests.machines.volumes import BLANK, becomes, fetched
from tests.pools.pool import FIRST, PING, POOLS, Pool, memory, template, uid

HEALS: Json = {"startupFailureThreshold": 1}


async def healed(pool: Pool, number: int, before: str) -> Json:
    """The machine that was made in place of that one, once there is one and the pool says so."""

    async def look() -> Json:
        found = await pool.herd.find(MACHINES, pool.vm(number))
        assert found is not None
        assert uid(found) != before
        records = {one["name"]: one for one in (await pool.get())["status"].get("healing", ())}
        assert pool.vm(number) in records, records
        return found

    return await pool.herd.eventually(look)


async def first(watch: Watch, fits: Callable[[WatchEvent], bool]) -> WatchEvent:
    while True:
        event = await watch.next(PATIENCE)
        if fits(event):
            return event


async def test_a_machine_that_does_not_start_is_made_again_with_a_new_disk(pool: Pool) -> None:
    """Its guest never passes its first liveness probe: the disk is spoilt. `status.healing` is written before the delete."""
    await pool.make(2, template(disk=BLANK, livenessProbe=PING), autohealing=HEALS)
    await pool.settled(2)
    for number in (1, 2):
        await becomes(pool.herd, "Succeeded", pool.volume(number))
    other = uid((await pool.machines())["web-2"])
    claim = uid((await pool.api.get(CLAIMS, "disk-1", pool.namespace)).ok)
    # By hand: from its next start on this one never answers.
    before = await pool.herd.machine("web-1")
    dead = {"spec": {"template": {"metadata": {"annotations": {labels.SIMULATED + "dies-after": "0s"}}}}}
    instance = (await pool.uids())[1]
    await pool.herd.patch("web-1", {**dead, "metadata": {"annotations": {labels.RESTART_REQUEST: instance}}})
    async with pool.api.watch(MACHINES, pool.namespace) as machines, pool.api.watch(POOLS, pool.namespace) as pools:
        noted = await first(pools, lambda event: bool(event.object["status"].get("healing")))
        deleted = await first(machines, lambda event: "deletionTimestamp" in event.object["metadata"])
        assert deleted.name == "web-1"
        assert int(noted.version) < int(deleted.version)
        again = await healed(pool, 1, uid(before))
    await pool.herd.running("web-1")
    await becomes(pool.herd, "Succeeded", "disk-1")
    assert uid((await pool.api.get(CLAIMS, "disk-1", pool.namespace)).ok) != claim
    assert uid((await pool.machines())["web-2"]) == other
    (record,) = (await pool.get())["status"]["healing"]
    assert (record["name"], record["attempts"]) == ("web-1", 1)
    assert record["lastHealedTime"] <= again["metadata"]["creationTimestamp"]
    assert record["retryAfterTime"] > record["lastHealedTime"]
    assert "web-1" in await pool.herd.told("VirtualMachinePool", "Healed", "web")


async def test_nobody_is_healed_while_the_pool_is_paused_or_before_it_has_failed_for_long_enough(pool: Pool) -> None:
    heals = {**HEALS, "minFailingDuration": "1h"}
    await pool.make(1, template(livenessProbe=PING, simulated={"dies-after": "0s"}), autohealing=heals)
    await pool.herd.shows("CrashLoopBackOff", "web-1")
    before = uid(await pool.herd.machine("web-1"))
    await pool.change(paused=True)
    await pool.says("Paused", status="True")
    await pool.change(autohealing={"minFailingDuration": None})
    shown = await pool.shows(replicas=1)
    assert "healing" not in shown["status"]
    assert uid(await pool.herd.machine("web-1")) == before
    await pool.change(paused=False)
    await healed(pool, 1, before)


async def test_who_was_healed_and_scaled_in_keeps_nobody_from_being_healed(pool: Pool) -> None:
    """One at a time: the first is done with as soon as nobody waits for it any more."""
    await pool.make(2, template(livenessProbe=PING), autohealing=HEALS, maxUnavailable=1)
    await pool.settled(2)
    machines = {name: uid(one) for name, one in (await pool.machines()).items()}
    dead = {"spec": {"template": {"metadata": {"annotations": {labels.SIMULATED + "dies-after": "0s"}}}}}
    for number in (2, 1):
        instance = (await pool.uids())[number]
        await pool.herd.patch(pool.vm(number), {**dead, "metadata": {"annotations": {labels.RESTART_REQUEST: instance}}})
        await healed(pool, number, machines[pool.vm(number)])
        if number == 2:
            await pool.annotate(2, FIRST)
            await pool.change(replicas=1)
        await pool.settled(1)


async def test_a_data_volume_that_failed_for_good_counts_as_the_threshold_reached(pool: Pool) -> None:
    made_of = template(disk=fetched())
    fails = {labels.SIMULATED + "import-fails": "SourceNotFound", labels.SIMULATED + "import-duration": "50ms"}
    made_of["spec"]["dataVolumeTemplates"][0]["metadata"]["annotations"] = fails
    await pool.make(1, made_of, autohealing={})
    await pool.has(1)
    before = uid((await pool.machines())["web-1"])
    await healed(pool, 1, before)


async def test_bad_template_with_autohealing_on_wipes_no_volume_of_a_vm_that_was_ready_on_an_earlier_revision(pool: Pool) -> None:
    await pool.make(
        2, template(disk=BLANK, livenessProbe=PING), autohealing=HEALS, progressDeadlineSeconds=3, maxUnavailable="100%"
    )
    await pool.settled(2)
    machines = {name: uid(one) for name, one in (await pool.machines()).items()}
    claims = {number: uid((await pool.api.get(CLAIMS, pool.volume(number), pool.namespace)).ok) for number in (1, 2)}
    await pool.roll(memory("65Mi", fails_at="boot"))
    said = await pool.says("HealingWithheld", status="True")
    assert "web-" in said["message"]
    await pool.says("Progressing", status="False", reason="ProgressDeadlineExceeded")
    await pool.roll(memory("64Mi", fails_at=None))
    await pool.settled(2)
    assert {name: uid(one) for name, one in (await pool.machines()).items()} == machines
    assert {number: uid((await pool.api.get(CLAIMS, pool.volume(number), pool.namespace)).ok) for number in (1, 2)} == claims
    await pool.says_not("HealingWithheld")


async def test_a_disk_that_came_back_under_a_bad_template_is_not_wiped_either(pool: Pool) -> None:
    await pool.make(
        2,
        template(disk=BLANK, livenessProbe=PING),
        autohealing=HEALS,
        scaleInStrategy={"proactive": {"statePreservation": "Offline"}},
        updateStrategy={"unmanaged": {}},
    )
    await pool.settled(2)
    await becomes(pool.herd, "Succeeded", "disk-1")

    async def proven() -> bool:
        return "readyRevision" in (await pool.herd.machine("web-1"))["status"]

    await pool.herd.eventually(proven)
    claim = uid((await pool.api.get(CLAIMS, "disk-1", pool.namespace)).ok)
    await pool.annotate(1, FIRST)
    await pool.change(replicas=1)
    await pool.herd.gone(MACHINES, "web-1")
    await pool.roll(memory("65Mi", fails_at="boot"))
    await pool.change(replicas=2)
    assert "web-1" in (await pool.says("HealingWithheld", status="True"))["message"]
    assert uid((await pool.api.get(CLAIMS, "disk-1", pool.namespace)).ok) == claim


async def test_a_vm_that_was_ready_before_it_was_attached_keeps_its_volume_under_a_bad_template(pool: Pool) -> None:
    by_hand = {"metadata": {"name": "web-7"}, "spec": template(disk=BLANK)["spec"]}
    (await pool.api.create(MACHINES, by_hand, pool.namespace)).ok  # noqa: B018
    await pool.herd.shows("Running", "web-7", ready=True)
    claim = uid((await pool.api.get(CLAIMS, "disk", pool.namespace)).ok)
    bad = template(livenessProbe=PING, simulated={"fails-at": "boot"})
    await pool.make(1, bad, autohealing=HEALS, paused=True)
    await pool.own(7, await pool.reference(controller=True))
    await pool.change(paused=False)
    assert "web-7" in (await pool.says("HealingWithheld", status="True"))["message"]
    assert uid((await pool.api.get(CLAIMS, "disk", pool.namespace)).ok) == claim
    assert "healing" not in (await pool.get())["status"]


async def test_secret_7_missing_one_waits_the_rest_goes_on_and_is_not_healed(pool: Pool) -> None:
    made_of = template()
    spec = made_of["spec"]["template"]["spec"]
    spec["volumes"] = [{"name": "seed", "cloudInitNoCloud": {"secretRef": {"name": "user"}}}]
    spec["domain"]["devices"] = {"disks": [{"name": "seed", "disk": {"bus": "virtio"}}]}

    async def secret(number: int) -> None:
        body = {"metadata": {"name": f"user-{number}"}, "stringData": {"userdata": "#cloud-config\n"}}
        (await pool.api.create(SECRETS, body, pool.namespace)).ok  # noqa: B018

    for number in (1, 2):
        await secret(number)
    await pool.make(
        3, made_of, autohealing=HEALS, nameGeneration={"appendPostfixToSecretReferences": True}, progressDeadlineSeconds=1
    )
    await pool.shows(replicas=3, readyReplicas=2)
    await pool.says("Progressing", status="False")
    waits = await pool.herd.machine("web-3")
    assert "healing" not in (await pool.get())["status"]
    await secret(3)
    await pool.settled(3)
    assert uid(await pool.herd.machine("web-3")) == uid(waits)


async def test_healed_vms_old_claim_still_terminating(pool: Pool) -> None:
    """Its name is held until the claim is gone: nothing is made in its place, mounts the spoilt disk or takes it over before."""
    made_of = template(disk=BLANK, livenessProbe=PING, simulated={"dies-after": "0s"})
    await pool.make(1, made_of, autohealing=HEALS, scaleInStrategy={"proactive": {"statePreservation": "Offline"}})
    await becomes(pool.herd, "Succeeded", "disk-1")
    claim = (await pool.api.get(CLAIMS, "disk-1", pool.namespace)).ok
    held = [*claim["metadata"].get("finalizers", ()), "example.com/held"]
    await pool.herd.patch("disk-1", {"metadata": {"finalizers": held}}, CLAIMS)
    before = uid(await pool.herd.machine("web-1"))

    async def going() -> bool:
        found = (await pool.api.get(CLAIMS, "disk-1", pool.namespace)).ok
        return "deletionTimestamp" in found["metadata"]

    await pool.herd.eventually(going)
    # Those that are made from now on start well. The second is made meanwhile, and so would be another one in place of the first.
    mended = {"updateStrategy": {"unmanaged": {}}, "template": memory("64Mi", dies_after=None)}
    await pool.change(replicas=2, **mended)
    await pool.herd.running("web-2")
    waits = await pool.machines()
    assert {name: "deletionTimestamp" in one["metadata"] for name, one in waits.items()} == {"web-1": True, "web-2": False}
    assert uid(waits["web-1"]) == before
    assert list(await pool.instances()) == [2], "nothing mounts it"
    old = (await pool.api.get(CLAIMS, "disk-1", pool.namespace)).ok
    assert (uid(old), old["metadata"].get("ownerReferences")) == (uid(claim), claim["metadata"].get("ownerReferences"))
    assert (await pool.get())["status"]["preservedStates"] == 0
    await pool.herd.patch("disk-1", {"metadata": {"finalizers": None}}, CLAIMS)
    await healed(pool, 1, before)
    await pool.herd.running("web-1")
    assert uid((await pool.api.get(CLAIMS, "disk-1", pool.namespace)).ok) != uid(claim)
