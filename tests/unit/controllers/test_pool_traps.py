"""What may come between two steps of who keeps a pool: a leader that is late, a person who is faster, a guest that is another."""

import asyncio
from typing import Any

import pytest

from herder.api import labels
from herder.kube.resources import DATA_VOLUMES, MACHINES, POOLS, Key
from herder.kube.transport import Reply
from tests.unit.controllers.pools import SOON, WEB, Go, Json, Stage, play, template

OFFLINE: Json = {"proactive": {"statePreservation": "Offline"}}


@pytest.mark.parametrize("answered", [True, False], ids=["done, and answered too late", "done too late"])
def test_a_create_answered_too_late_leader_changed_same_number_twice(answered: bool) -> None:
    """The leader of before is gone when its write comes, or the answer to it: nobody makes a second one, and nobody goes back."""

    async def story(stage: Stage) -> None:
        line, late = stage.transport(), asyncio.Event()
        arrived: list[asyncio.Task[Reply]] = []

        async def slow(go: Go) -> Reply:
            async def travel() -> Reply:
                if not answered:
                    await late.wait()
                reply = await go()
                await late.wait()
                return reply

            arrived.append(asyncio.create_task(travel()))
            return await asyncio.shield(arrived[0])

        line.around("PATCH", "web-1", slow)
        await stage.make(2)
        async with stage.leads(line):
            await asyncio.sleep(SOON)
            assert arrived, "it was about to be made"
        async with stage.leads():
            await asyncio.sleep(SOON)
            before = await stage.machines()
            assert list(before) == ["web-1", "web-2"]
            await stage.change(template=template("96Mi"))
            changed = (await stage.machine("web-1")).metadata.resource_version
            late.set()
            reply = await arrived[0]
            assert reply.status == (201 if answered else 409)
            await asyncio.sleep(SOON)
            after = await stage.machines()
        assert {name: one.uid for name, one in after.items()} == {name: one.uid for name, one in before.items()}
        assert after["web-1"].metadata.resource_version == changed

    play(story)


def test_a_create_that_comes_when_nobody_wants_it_any_more_is_surplus() -> None:
    async def story(stage: Stage) -> None:
        line, late = stage.transport(), asyncio.Event()
        arrived: list[asyncio.Task[Reply]] = []

        async def slow(go: Go) -> Reply:
            async def travel() -> Reply:
                await late.wait()
                return await go()

            arrived.append(asyncio.create_task(travel()))
            return await asyncio.shield(arrived[0])

        line.around("PATCH", "web-2", slow)
        await stage.make(2)
        async with stage.leads(line):
            await asyncio.sleep(SOON)
        await stage.person.patch(POOLS, WEB, {"spec": {"replicas": 1}})
        async with stage.leads():
            await asyncio.sleep(SOON)
            late.set()
            assert (await arrived[0]).status == 201
            await asyncio.sleep(SOON)
            assert len(await stage.machines()) == 1
            assert (await stage.status()).replicas == 1

    play(story)


@pytest.mark.parametrize(
    ("strategy", "started"),
    [("Halted", {"spec": {"runStrategy": "Always"}}), ("Manual", {"metadata": {"annotations": {labels.START_REQUEST: "1"}}})],
    ids=["by its run strategy", "by a request"],
)
def test_opportunistic_vm_started_between_choice_and_delete(strategy: str, started: Json) -> None:
    """It was halted when it was chosen, and when it was looked at once more: only its version tells."""

    async def story(stage: Stage) -> None:
        line = stage.transport()
        async with stage.leads(line):
            await stage.make(2, template(strategy=strategy), scaleInStrategy={"opportunistic": {}})
            await asyncio.sleep(SOON)
            before = (await stage.machine("web-1")).uid
            await stage.person.patch(MACHINES, Key(WEB.namespace, "web-2"), started)
            line.before("DELETE", "web-1", lambda: stage.person.patch(MACHINES, Key(WEB.namespace, "web-1"), started))
            await stage.change(replicas=1)
            assert not line.waits, "it was chosen"
            found = await stage.machine("web-1")
            assert (found.uid, found.being_deleted) == (before, False)
            assert ((await stage.status()).replicas, (await stage.status()).surplus_replicas) == (2, 1)

    play(story)


@pytest.mark.parametrize("updated", [False, True], ids=["made from the old template", "made from the new one"])
def test_instance_replaced_between_snapshot_and_restart_request(updated: bool) -> None:
    """A request names the instance that it is about: another one is not restarted for it, unless it is outdated as well."""

    async def story(stage: Stage) -> None:
        line, made = stage.transport(), dict[str, str]()
        async with stage.leads(line):
            await stage.make(1, template(strategy="Always"))
            await asyncio.sleep(SOON)
            old = (await stage.machine("web-1")).labels[labels.POOL_REVISION]
            first = await stage.runs("web-1", old)
            await asyncio.sleep(SOON)

            async def replaced(go: Go) -> Reply:
                if not updated:
                    made["uid"] = await stage.runs("web-1", old)
                reply = await go()
                if updated:
                    made["uid"] = await stage.runs("web-1", (await stage.machine("web-1")).labels[labels.POOL_REVISION])
                return reply

            line.around("PATCH", "web-1", replaced)
            await stage.change(template=template("96Mi", "Always"))
            assert not line.waits
            asked = (await stage.machine("web-1")).annotations[labels.RESTART_REQUEST]
            assert asked == (first if updated else made["uid"])

    play(story)


def test_300_detached_vms_status_still_writable() -> None:
    async def story(stage: Stage) -> None:
        await stage.make(1)
        async with stage.leads():
            await asyncio.sleep(SOON)
            revision = (await stage.machine("web-1")).labels[labels.POOL_REVISION]
            for number in range(2, 302):
                metadata: Json = {"name": f"web-{number}", "namespace": WEB.namespace, "labels": {labels.POOL_REVISION: revision}}
                await stage.person.create(MACHINES, {"metadata": metadata, "spec": template()["spec"]})
            await stage.change(replicas=2)
            status = await stage.status()
            assert (status.replicas, status.detached_replicas, len(status.detached or ())) == (2, 300, 256)
            assert "web-302" in await stage.machines(), "all numbers before it are taken"

    play(story)


def test_pool_recreated_under_its_name_old_uids_vms_and_disks_not_adopted() -> None:
    """What still names the pool of before is not its own, whatever it is called: neither machines nor what that one had kept."""

    async def story(stage: Stage) -> None:
        held: Any = {"metadata": {"finalizers": ["example.com/held"]}}
        async with stage.leads():
            first = await stage.make(2, scaleInStrategy=OFFLINE)
            await asyncio.sleep(SOON)
            before = {name: one.uid for name, one in (await stage.machines()).items()}
            for name in before:
                await stage.person.patch(MACHINES, Key(WEB.namespace, name), held)
            kept = await stage.keeps("disk-3", "web-3", first, "example.com/held")
            await asyncio.sleep(SOON)
            assert (await stage.status()).preserved_states == 1
            await stage.person.delete(POOLS, WEB, propagation="Background")
            await asyncio.sleep(SOON)
            again = await stage.make(2, scaleInStrategy=OFFLINE)
            await asyncio.sleep(SOON)
            found = await stage.machines()
            assert list(found) == ["web-1", "web-2", "web-3", "web-4"]
            owners = {name: one.controller_uid for name, one in found.items()}
            assert owners == {"web-1": first.uid, "web-2": first.uid, "web-3": again.uid, "web-4": again.uid}
            assert {name: found[name].uid for name in before} == before
            status = await stage.status()
            assert (status.replicas, status.surplus_replicas, status.preserved_states) == (2, 0, 0)
            disk = await stage.person.get(DATA_VOLUMES, Key(WEB.namespace, "disk-3"))
            assert (disk.uid, [one.uid for one in disk.metadata.owner_references or ()]) == (kept.uid, [first.uid])

    play(story)


def test_a_disk_that_somebody_began_to_keep_knows_what_its_machine_was_ready_on_since() -> None:
    """Crash between second-owner patch and VM delete, and it became ready meanwhile: no bad template may wipe the disk later."""

    async def story(stage: Stage) -> None:
        async with stage.leads():
            pool = await stage.make(1, scaleInStrategy=OFFLINE)
            await asyncio.sleep(SOON)
            await stage.change(paused=True)
            machine = await stage.machine("web-1")
            await stage.keeps("disk-1", "web-1", pool, of=machine)
            revision = machine.labels[labels.POOL_REVISION]
            said = {"status": {"readyRevision": revision}}
            await stage.person.patch(MACHINES, Key(WEB.namespace, "web-1"), said, subresource="status")
            await stage.change(paused=False, replicas=0)
            assert await stage.machines() == {}
            disk = await stage.person.get(DATA_VOLUMES, Key(WEB.namespace, "disk-1"))
            assert disk.annotations.get(labels.READY_REVISION) == revision
            assert [one.uid for one in disk.metadata.owner_references or ()] == [pool.uid]

    play(story)
