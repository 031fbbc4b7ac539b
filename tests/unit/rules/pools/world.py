"""A small world in which plans of pools are carried out: machines, instances and volumes that obey the rules of VirtualMachines
roughly, a controller that dies between two writes and knows of instances late, and people who do what people do."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from herder.api import labels
from herder.api.int_or_percent import scaled_value
from herder.api.kinds.pool import VirtualMachinePoolStatus
from herder.rules.pools import PoolPlan, PoolSnapshot, plan_pool
from herder.rules.pools.actions import Create, Remove, Resume, Suspend, Update
from herder.rules.pools.member import Member, RunField, Suspension
from herder.rules.pools.revisions import Revision, revision_of
from herder.rules.pools.save_failure import save_failure_of
from herder.rules.pools.selection.inputs import NodeState
from herder.rules.pools.snapshot import Attachable, OwnedVolume

from .things import NOW, Json, pool, template

GOOD, BAD = [f"{number}Gi" for number in range(1, 4)], ["13Gi", "14Gi"]
# What nobody has rolled out before: a revision that failed once, for whatever reason, waits for another template.
MENDED = "4Gi"
# Of every second one the disk is made from another image.
TEMPLATES = {memory: template(memory, disk=f"http://images/{number % 2}") for number, memory in enumerate((*GOOD, *BAD, MENDED))}
POOL = "pool-uid"
NODES = ("node-1", "node-2")
THRESHOLD = 3
PROVEN_AFTER = 30.0


class Instance(msgspec.Struct):
    uid: str
    revision: str
    bad: bool
    node: str
    ready_since: float = 0.0


class Volume(msgspec.Struct):
    uid: str
    machine: str
    controller: str
    version: int = 0
    kept_by_pool: bool = False
    spoiled: bool = False
    ready_revision: str = ""
    # In truth: whether a machine was ever ready with it.
    was_ready: bool = False


class Memory(msgspec.Struct):
    """What was saved of a guest."""

    uid: str
    machine: str
    controller: str
    revision: str
    version: int = 0
    kept_by_pool: bool = False
    used: bool = False


class Machine(msgspec.Struct):
    name: str
    uid: str
    created: float
    revision: str
    bad: bool
    run: str
    updated: float
    owner: str = POOL
    # A reference to the pool that does not say that it is the controller.
    offered: bool = False
    version: int = 0
    deleting: bool = False
    restart_request: str = ""
    scale_in: str = ""
    instance: Instance | None = None
    failures: int = 0
    # In truth: how many of them were on a template that is not at fault.
    own_failures: int = 0
    failing_since: float = 0.0
    ready_revision: str = ""
    # Its disk is made again once its instance has ended.
    reprovisions: bool = False
    # To be suspended; by its pool, to take it away; by what the pool applies; and why it cannot be.
    suspended: bool = False
    by_pool: bool = False
    applied: bool = False
    problem: str = ""
    save_failed: str = ""
    standby: str = ""
    # It was made to go on from memory.
    resumes: bool = False


class Died(Exception):
    """The controller, between two writes."""


class World:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.now = NOW
        self.ids = 0
        self.replicas, self.memory = self.dice.randint(1, 5), "1Gi"
        self.spec: Json = {"autohealing": {}, "progressDeadlineSeconds": 120}
        self.status: VirtualMachinePoolStatus | None = None
        self.revisions: dict[str, Revision] = {}
        self.machines: dict[str, Machine] = {}
        self.volumes: dict[str, Volume] = {}
        self.memories: dict[str, Memory] = {}
        self.lost: set[str] = set()
        # What the controller knows of instances, which may be old.
        self.seen: dict[str, Instance | None] = {}
        self.wrong: list[str] = []

    def fresh(self, kind: str) -> str:
        self.ids += 1
        return f"{kind}-{self.ids}"

    def note(self, what: str) -> None:
        self.wrong.append(f"at {self.now - NOW:.0f} s: {what}")

    # What the controller sees.

    def sync(self) -> None:
        self.seen = {name: msgspec.structs.replace(one.instance) if one.instance else None for name, one in self.machines.items()}

    def snapshot(self) -> PoolSnapshot:
        wanted = TEMPLATES[self.memory]
        view = msgspec.structs.replace(pool(self.replicas, wanted, **self.spec), status=self.status)
        ours = [one for one in self.machines.values() if one.owner == POOL]
        others = [one for one in self.machines.values() if one.owner != POOL]
        offered = [one for one in others if one.offered and not one.owner]
        return PoolSnapshot(
            pool=view,
            template=wanted,
            name_generation={},
            members=tuple(sorted((self.member(one) for one in ours), key=lambda one: one.number or 0)),
            held=frozenset(one.name for one in others),
            attachable=tuple(
                Attachable(name=one.name, uid=one.uid, resource_version=str(one.version), references=({"uid": POOL},))
                for one in offered
            ),
            volumes=(
                *(_owned(name, one) for name, one in self.volumes.items() if one.kept_by_pool),
                *(_owned_memory(name, one) for name, one in self.memories.items() if one.kept_by_pool),
            ),
            living=frozenset(one.uid for one in self.machines.values() if not one.deleting),
            revisions=tuple(self.revisions.values()),
            nodes={name: NodeState({labels.SAVE_MEMORY: "true"}, name not in self.lost) for name in NODES},
            burst=4,
        )

    def member(self, one: Machine) -> Member:
        instance = self.seen.get(one.name)
        restarting = instance is not None and one.restart_request == instance.uid and one.run == "Always"
        off = one.run == "Halted" or (one.suspended and instance is None)
        ready = instance is not None and bool(instance.ready_since) and not restarting and not off
        return Member(
            name=one.name,
            uid=one.uid,
            resource_version=str(one.version),
            number=int(one.name.rpartition("-")[2]),
            created=one.created,
            labels={},
            scale_in=one.scale_in,
            deleting=one.deleting,
            revision=one.revision,
            instance_revision=instance.revision if instance else "",
            updated=one.updated,
            instance_uid=instance.uid if instance else "",
            restarting=restarting,
            restart_request=one.restart_request,
            node=instance.node if instance else "",
            off=off,
            halted=off and instance is None,
            ready=ready,
            ready_since=instance.ready_since if instance and ready else 0.0,
            running=instance is not None and bool(instance.ready_since),
            failures=one.failures,
            failing_since=one.failing_since,
            ready_revision=one.ready_revision,
            run=RunField("runStrategy", one.run),
            suspension=self._suspension(one) if one.suspended else None,
            resuming=not one.suspended and instance is None and (one.resumes or self._has_memory(one)),
            save_failure=save_failure_of(one.save_failed),
            standby=one.standby,
        )

    def _suspension(self, one: Machine) -> Suspension:
        if one.problem:
            return Suspension(one.by_pool, reason="SaveFailed", message=one.problem)
        saved, holds = self._has_memory(one), one.instance is None
        return Suspension(one.by_pool, holds, ("MemorySaved" if saved else "NothingSaved") if holds else "SavingMemory")

    def _has_memory(self, one: Machine) -> bool:
        memory = self.memories.get(_memory(one.name))
        return memory is not None and memory.controller == one.uid and not memory.used

    # The pool's controller.

    def reconcile(self, crash: float = 0.0) -> bool:
        """Whether anything was done."""
        try:
            plan = plan_pool(self.snapshot(), self.now)
            if plan.destroys:
                self.sync()
                plan = plan_pool(self.snapshot(), self.now)
            return self._carry_out(plan, crash)
        except Died:
            # Who leads next lists afresh.
            self.sync()
            return True

    def _carry_out(self, plan: PoolPlan, crash: float) -> bool:
        self._judge(plan)
        if plan.heal:
            self._show(plan, crash)
        if plan.create_revision is not None:
            document = plan.create_revision
            self._may_die(crash)
            name = document["metadata"]["name"]
            self.revisions[name] = revision_of(name, document["data"], uid=name, number=document["revision"])
        if plan.renumber is not None:
            self.revisions[plan.renumber[0].name] = msgspec.structs.replace(plan.renumber[0], number=plan.renumber[1])
        for gone in plan.forget:
            self._may_die(crash)
            self.revisions.pop(gone.name)
        parts: list[list[Any]] = [
            list(part)
            for part in (
                *(plan.adopt, plan.release, plan.heal, plan.remove, plan.resume, plan.suspend),
                *(plan.activate, plan.update, plan.create, plan.standby),
            )
        ]
        for part in parts:
            self.dice.shuffle(part)
            for one in part:
                self._may_die(crash)
                self._write(one, healed=part is parts[2])
        self._show(plan_pool(self.snapshot(), self.now), crash)
        return any(parts) or plan.create_revision is not None

    def _show(self, plan: PoolPlan, crash: float) -> None:
        self._may_die(crash)
        self.status = msgspec.convert(plan.status, VirtualMachinePoolStatus)

    def _may_die(self, crash: float) -> None:
        if self.dice.random() < crash:
            raise Died

    def _write(self, one: Any, *, healed: bool) -> None:
        if isinstance(one, Create):
            self._create(one)
            return
        if hasattr(one, "references") and (one.name in self.volumes or one.name in self.memories):
            volume = self.volumes.get(one.name) or self.memories[one.name]
            if str(volume.version) == one.resource_version:
                volume.kept_by_pool, volume.version = False, volume.version + 1
            return
        machine = self.machines.get(one.name)
        if machine is None or machine.uid != one.uid or str(machine.version) != one.resource_version:
            return  # a conflict
        machine.version += 1
        if isinstance(one, Update | Remove | Suspend | Resume) and machine.owner != POOL:
            self.note(f"{machine.name} is not the pool's and was touched")
        if isinstance(one, Update):
            self._update(machine, one)
        elif isinstance(one, Remove):
            self._remove(machine, one, healed=healed)
        elif isinstance(one, Suspend):
            machine.suspended = machine.by_pool = True
            if one.document is not None:
                machine.revision = one.document["metadata"]["labels"][labels.POOL_REVISION]
                machine.bad, machine.applied = _is_bad(one.document), True
        elif isinstance(one, Resume):
            machine.suspended = machine.by_pool = machine.applied = False
            machine.problem, machine.save_failed = "", one.failure or machine.save_failed
        else:
            machine.owner, machine.offered = POOL, False

    def _create(self, wanted: Create) -> None:
        if wanted.name in self.machines:
            return
        run = wanted.document["spec"]["runStrategy"]
        made = Machine(wanted.name, self.fresh("vm"), self.now, wanted.revision, _is_bad(wanted.document), run, self.now)
        made.standby = wanted.document["metadata"]["labels"].get(labels.STANDBY, "")
        made.suspended = made.applied = wanted.document["spec"].get("suspended", False)
        made.resumes = wanted.resumes
        if bool(made.standby) != wanted.standby:
            self.note(f"{made.name} is a standby, or is none, and the plan does not say so")
        self.machines[wanted.name] = made

    def _update(self, machine: Machine, wanted: Update) -> None:
        annotations = wanted.document["metadata"]["annotations"]
        # One that sleeps beside the replicas is booted for another revision, and saved again.
        machine.resumes = machine.resumes and (not machine.standby or machine.revision == wanted.revision)
        machine.revision, machine.bad, machine.updated = wanted.revision, _is_bad(wanted.document), self.now
        machine.restart_request = annotations.get("herder.dev/restart-requested", "")
        machine.run = wanted.document["spec"]["runStrategy"]
        machine.standby = wanted.document["metadata"]["labels"].get(labels.STANDBY, "")
        suspended = wanted.document["spec"].get("suspended", False)
        if suspended or machine.applied:
            machine.suspended = machine.applied = suspended
            machine.problem = machine.problem if suspended else ""
        machine.save_failed = annotations.get(labels.SAVE_FAILED, machine.save_failed)
        machine.reprovisions = "herder.dev/reprovision" in annotations
        if machine.reprovisions != wanted.wipes:
            self.note(f"{machine.name} is wiped, and that is not said in the plan")

    def _remove(self, machine: Machine, wanted: Remove, *, healed: bool) -> None:
        volume = self.volumes.get(_disk(machine.name))
        own = volume is not None and volume.controller == machine.uid
        known = volume is not None and volume.kept_by_pool and wanted.ready_revision in ("", volume.ready_revision)
        if volume is not None and own and wanted.preserve and not known:
            volume.kept_by_pool, volume.version = True, volume.version + 1
            volume.ready_revision = wanted.ready_revision or volume.ready_revision
            self._may_die(0.1)
        if volume is not None and own and healed:
            if volume.was_ready and machine.own_failures < THRESHOLD - 1:
                self.note(f"{machine.name} was ready before, fails because of its template, and was wiped")
            if volume.kept_by_pool:
                self.note(f"the disk of {machine.name} outlives its healing")
        memory = self.memories.get(_memory(machine.name))
        if memory is not None and memory.controller == machine.uid and wanted.memory and not memory.used and not healed:
            memory.kept_by_pool, memory.version = True, memory.version + 1
            self._may_die(0.1)
        strategy = self.spec.get("scaleInStrategy") or {}
        keeps = any(one.get("statePreservation") in ("Offline", "Online") for one in strategy.values())
        online = any(one.get("statePreservation") == "Online" for one in strategy.values())
        runs = (
            machine.instance is not None and bool(machine.instance.ready_since) and machine.restart_request != machine.instance.uid
        )
        if runs and online and not healed and machine.run == "Always" and not machine.standby:
            self.note(f"{machine.name} ran, and was scaled in without its memory")
        if volume is not None and own and not healed and keeps and not volume.kept_by_pool:
            self.note(f"{machine.name} was scaled in, and its disk is lost")
        machine.deleting = True

    def _judge(self, plan: PoolPlan) -> None:
        """Before it is carried out, by what the controller knows."""
        self._judge_updates(plan)
        ready = [one.name for one in plan.heal if self.member(self.machines[one.name]).ready]
        if ready:
            self.note(f"{ready} are ready and were healed")
        silent = [one.name for one in plan.heal if self.member(self.machines[one.name]).node in self.lost]
        if silent:
            self.note(f"{silent} were wiped while their node did not answer")
        done = (plan.heal, plan.remove, plan.update, plan.create, plan.suspend, plan.resume, plan.activate, plan.standby)
        touched = [one.name for part in done for one in part]
        if len(touched) != len(set(touched)):
            self.note(f"one machine has two parts in a plan: {touched}")

    def _judge_updates(self, plan: PoolPlan) -> None:
        staying = [one for one in self.machines.values() if one.owner == POOL and not one.deleting and not one.standby]
        resumed = {one.uid for one in plan.resume}
        saved = {one.uid for one in staying if one.by_pool and one.uid not in resumed}
        gone = saved.union(one.uid for one in (*plan.remove, *plan.heal, *plan.suspend))
        known = {one.uid: self.member(one) for one in staying if one.uid not in gone}
        missed = sum(not self._available(one) and not one.halted for one in known.values()) + max(0, self.replicas - len(known))
        down = [known[one.uid] for one in plan.update if one.effect != "InPlace" and known[one.uid].ready]
        most = max(1, scaled_value(self.spec.get("maxUnavailable", "25%"), self.replicas, round_up=False))
        # One that is not ready for long enough is missed already.
        if down and missed + sum(self._available(one) for one in down) > most:
            self.note(f"{[one.name for one in down]} were taken down while {missed} of at most {most} were unavailable")
        strategy = self.spec.get("updateStrategy") or {"proactive": {}}
        if "proactive" not in strategy and (down or ("unmanaged" in strategy and plan.update)):
            self.note(f"{[one.name for one in plan.update]} were updated, and that is left to people")
        wiped = [one.name for one in plan.update if one.wipes]
        if wiped and (strategy.get("proactive") or {}).get("volumes") != "Reprovision":
            self.note(f"disks of {wiped} are wiped, and nobody asked for it")

    def _available(self, one: Member) -> bool:
        return one.ready and self.now - one.ready_since >= self.spec.get("minReadySeconds", 0)

    # Machines, by their own controller and their nodes.

    def run_machines(self) -> None:
        for name in self.dice.sample(sorted(self.machines), len(self.machines)):
            self._run(self.machines[name])

    def _run(self, machine: Machine) -> None:
        instance = machine.instance
        if instance is not None and instance.node in self.lost:
            instance.ready_since = 0.0
            return
        if machine.deleting:
            machine.instance = None
            self._go(machine)
        elif machine.suspended:
            self._suspend(machine)
        elif instance is None:
            self._start(machine)
        elif machine.run == "Halted" or machine.restart_request == instance.uid:
            machine.instance = None
            machine.version += 1
        else:
            self._boot(machine, instance)

    def _suspend(self, machine: Machine) -> None:
        """It is saved once it is ready; or that fails, and it goes on until somebody takes it back."""
        instance = machine.instance
        if instance is None:
            self._take_memory_back(machine)
        elif not instance.ready_since:
            self._boot(machine, instance)
        elif not machine.problem and self.dice.random() < 0.15:
            machine.problem, machine.version = "the disk is full", machine.version + 1
        elif not machine.problem:
            self.memories[_memory(machine.name)] = Memory(self.fresh("memory"), machine.name, machine.uid, instance.revision)
            machine.instance, machine.version = None, machine.version + 1

    def _take_memory_back(self, machine: Machine) -> Memory | None:
        memory = self.memories.get(_memory(machine.name))
        if memory is not None and not memory.controller and memory.kept_by_pool and machine.owner == POOL:
            memory.controller, memory.version, machine.version = machine.uid, memory.version + 1, machine.version + 1
        return memory if memory is not None and memory.controller == machine.uid and not memory.used else None

    def _goes_on(self, machine: Machine) -> bool:
        """From memory, once, as what it was; else nothing is left of that."""
        memory = self._take_memory_back(machine)
        resumes, machine.resumes = machine.resumes, False
        if memory is None:
            return False
        if memory.revision != machine.revision or machine.run == "Halted":
            if resumes:
                self.note(f"{machine.name} was to go on from memory of {memory.revision}, and has {machine.revision}")
            del self.memories[_memory(machine.name)]
            return False
        memory.used = True
        return True

    def _go(self, machine: Machine) -> None:
        del self.machines[machine.name]
        memory = self.memories.get(_memory(machine.name))
        if memory is not None and memory.controller == machine.uid:
            if memory.kept_by_pool:
                memory.controller, memory.version = "", memory.version + 1
            else:
                del self.memories[_memory(machine.name)]
        volume = self.volumes.get(_disk(machine.name))
        if volume is None or volume.controller != machine.uid:
            return
        if volume.kept_by_pool:
            volume.controller, volume.version = "", volume.version + 1
        else:
            del self.volumes[_disk(machine.name)]

    def _start(self, machine: Machine) -> None:
        if machine.run == "Halted":
            machine.failures, machine.own_failures, machine.failing_since = 0, 0, 0.0
            return
        volume = self.volumes.get(_disk(machine.name))
        if volume is not None and volume.controller == machine.uid and machine.reprovisions:
            volume = None
        machine.reprovisions = False
        if volume is None:
            volume = self.volumes[_disk(machine.name)] = Volume(self.fresh("disk"), machine.name, machine.uid)
        if not volume.controller and volume.kept_by_pool and machine.owner == POOL:
            volume.controller, volume.kept_by_pool, volume.version = machine.uid, False, volume.version + 1
            machine.ready_revision = machine.ready_revision or volume.ready_revision
        if volume.controller != machine.uid or set(NODES) == self.lost:
            return
        node = self.dice.choice([one for one in NODES if one not in self.lost])
        resumed = self._goes_on(machine)
        machine.instance = Instance(self.fresh("vmi"), machine.revision, machine.bad, node, self.now if resumed else 0.0)

    def _boot(self, machine: Machine, instance: Instance) -> None:
        volume = self.volumes[_disk(machine.name)]
        if not instance.ready_since and (instance.bad or volume.spoiled):
            machine.failures += 1
            machine.own_failures += not instance.bad
            machine.failing_since = machine.failing_since or self.now
            machine.version += 1
            machine.instance = None
        elif not instance.ready_since:
            instance.ready_since = self.now
            volume.was_ready = True
            machine.failures, machine.own_failures, machine.failing_since = 0, 0, 0.0
            machine.ready_revision = machine.ready_revision or instance.revision
            machine.version += 1
        elif machine.ready_revision != instance.revision and self.now - instance.ready_since > PROVEN_AFTER:
            machine.ready_revision = instance.revision
            machine.version += 1


def _owned(name: str, one: Volume) -> OwnedVolume:
    return OwnedVolume(
        name=name,
        uid=one.uid,
        resource_version=str(one.version),
        machine=one.machine,
        controller=one.controller,
        ready_revision=one.ready_revision,
        references=({"uid": POOL},),
    )


def _owned_memory(name: str, one: Memory) -> OwnedVolume:
    return OwnedVolume(
        name=name,
        uid=one.uid,
        resource_version=str(one.version),
        machine=one.machine,
        controller=one.controller,
        revision=one.revision,
        references=({"uid": POOL},),
        memory=True,
    )


def _memory(machine: str) -> str:
    return f"{machine}-memory"


def _disk(machine: str) -> str:
    return f"disk-of-{machine}"


def _is_bad(document: Json) -> bool:
    return document["spec"]["template"]["spec"]["domain"]["memory"]["guest"] in BAD
