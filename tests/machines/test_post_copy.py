"""Migrations that may go by post-copy, to simulated nodes that can do it and to nodes that cannot."""

from collections.abc import Callable

from herder.api import labels, reasons
from tests.engines.resources import NODES
from tests.machines.migrations import MIGRATIONS, POLICIES, Movers

# Its time is up after two seconds; a guest that writes faster than it is sent is never done by then.
HURRY = {"completionTimeoutPerGiB": 2, "bandwidthPerMigration": "32Mi", "allowPostCopy": True}
RESTLESS = {"dirty-rate": "4Gi"}
KIND = "VirtualMachineInstanceMigration"


async def moved(movers: Movers, policy: str, *, can: bool, **settings: object) -> None:
    """A restless guest with that policy, told to go where post-copy can be had, or cannot."""
    selectors = {"virtualMachineInstanceSelector": {movers.label: "hurry"}}
    spec = {**HURRY, **settings, "selectors": selectors}
    (await movers.herd.api.create(POLICIES, {"metadata": {"name": policy}, "spec": spec})).ok  # noqa: B018
    for node in movers.nodes if not can else ():
        patch = {"metadata": {"labels": {labels.POST_COPY: "false"}}}
        (await movers.herd.api.patch(NODES, node, patch, kind="merge")).ok  # noqa: B018
    selector = {movers.label: "yes"}
    await movers.herd.make(name="vm", nodeSelector=selector, marked={movers.label: "hurry"}, simulated=RESTLESS)
    await movers.herd.running()
    await movers.move()


async def test_a_node_says_that_guests_can_come_to_it_by_post_copy(movers: Movers) -> None:
    node = (await movers.herd.api.get(NODES, movers.nodes[0])).ok
    assert node["metadata"]["labels"][labels.POST_COPY] == "true"


async def test_where_it_can_be_had_it_is_used_and_nothing_is_said(movers: Movers, unique: Callable[..., str]) -> None:
    await moved(movers, unique("hurry"), can=True)
    status = (await movers.phase("Succeeded"))["status"]
    assert status["migrationState"]["mode"] == "PostCopy"
    assert "postCopyUnavailable" not in status["migrationState"]
    assert reasons.POST_COPY_NOT_AVAILABLE not in [reason for reason, _ in await movers.herd.events(KIND, "move")]


async def test_where_it_cannot_be_had_the_guest_is_paused_at_the_deadline_and_everybody_is_told(
    movers: Movers, unique: Callable[..., str]
) -> None:
    await moved(movers, unique("hurry"), can=False)
    status = (await movers.phase("Succeeded"))["status"]
    assert status["migrationState"]["mode"] == "Paused"
    assert status["effectiveSettings"]["allowPostCopy"] is True, "the settings are what they were"
    why = status["migrationState"]["postCopyUnavailable"]
    assert why.startswith(f"node {status['targetNode']}: ")
    assert why in await movers.herd.told(KIND, reasons.POST_COPY_NOT_AVAILABLE, "move")

    async def known() -> bool:
        state = (await movers.herd.phase("Running"))["status"]["migrationState"]
        assert state.get("postCopyUnavailable") == why
        return True

    await movers.herd.eventually(known)


async def test_while_it_goes_on_without_that_is_its_reason(movers: Movers, unique: Callable[..., str]) -> None:
    await moved(movers, unique("hurry"), can=False, completionTimeoutPerGiB=0, progressTimeout=0)
    status = (await movers.phase("Running"))["status"]
    assert status["reason"] == reasons.POST_COPY_NOT_AVAILABLE
    assert status["message"].endswith("it goes on without post-copy")
    await movers.herd.delete("move", MIGRATIONS)
    await movers.herd.gone(MIGRATIONS, "move")
    await movers.herd.shows("Running", ready=True)


async def test_where_a_pause_is_not_allowed_either_it_ends_and_says_both(movers: Movers, unique: Callable[..., str]) -> None:
    await moved(movers, unique("hurry"), can=False, allowWorkloadDisruption=False)
    message = await movers.failed(reasons.COMPLETION_TIMEOUT)
    assert "allowWorkloadDisruption is not set, while post-copy, which is allowed, cannot be had: node " in message
    await movers.herd.shows("Running", ready=True)


async def test_a_target_that_cannot_be_prepared_ends_the_migration_and_the_machine_can_be_deleted(movers: Movers) -> None:
    await movers.make(simulated={"fails-at": "incoming"})
    await movers.move()
    assert "it could not be prepared" in await movers.failed(reasons.TARGET_POD_FAILED)
    assert "it could not be prepared" in await movers.herd.told(KIND, reasons.TARGET_POD_FAILED, "move")
    await movers.herd.delete("vm")
    await movers.herd.no_pods()
