"""Where the replacements of pods would find room: by the scheduler's own rules, one after the other."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from herder.api.core import Pod
from herder.api.kinds import PodMigrationJob, ReservationView, VirtualMachineInstance
from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.evacuation import Place
from herder.rules.jobs.execution.strategy import strategy_name
from herder.rules.jobs.reservation import reservation_document
from herder.rules.migration.where import asked_about
from herder.rules.placement import Rule, Snapshot, decide, message, needs_of
from herder.rules.plans import Document
from herder.rules.reservations.placing import place_reservation, without
from herder.rules.reservations.room import held_needs, placing_needs
from herder.rules.targets import explain_target

Name = tuple[str, str]


class Places:
    """Changes the snapshot: what one takes is not there for the next."""

    def __init__(
        self,
        snapshot: Snapshot,
        rules: tuple[Rule, ...],
        config: JobsConfig,
        written: Mapping[Name, Document],
        guests: Mapping[Name, tuple[VirtualMachineInstance, Document]],
    ) -> None:
        """`written`: pods as they are stored; `guests`: by pod, the instance whose guest runs in it, also as it is stored."""
        self._snapshot = snapshot
        self._rules = rules
        self._config = config
        self._written = written
        self._guests = guests

    def find(self, job: PodMigrationJob, pod: Pod) -> Place:
        guest = self._guests.get((pod.namespace, pod.name))
        if guest is not None:
            return self._migrated(*guest)
        # That the replacement comes first, where it does, changes nothing about where to.
        strategy = strategy_name(job, pod, self._config, machine=False, surges=False)
        return self._anywhere(pod) if strategy == "Eviction" else self._reserved(job, pod)

    def leave(self, pod: Pod) -> None:
        self._snapshot.remove_pod((pod.namespace, pod.name))

    def _reserved(self, job: PodMigrationJob, pod: Pod) -> Place:
        key = (pod.namespace, pod.name)
        document = reservation_document(job, pod, self._written[key], None, "0s")
        # A name of its own: the job has no uid yet, after which it would be called.
        document = {**document, "metadata": {"name": job.name}}
        needs = placing_needs(msgspec.convert(document, ReservationView))
        decision = place_reservation(needs, self._snapshot, self._rules, key if pod.spec.node_name else None)
        if not decision.node:
            return Place("", message(needs, decision, self._snapshot))
        held = held_needs(needs, {})
        if held is not None:
            self._snapshot.put_pod(held, decision.node)
        return Place(decision.node)

    def _anywhere(self, pod: Pod) -> Place:
        """Of a pod for which nothing is reserved: where its replacement would go, if it came at this moment."""
        needs = msgspec.structs.replace(needs_of(pod), node_name="", name=f"{pod.name}-moved")
        with without(self._snapshot, (pod.namespace, pod.name)):
            decision = decide(needs, self._snapshot, self._rules)
        if not decision.node:
            return Place("", message(needs, decision, self._snapshot))
        self._snapshot.put_pod(needs, decision.node)
        return Place(decision.node)

    def _migrated(self, instance: VirtualMachineInstance, document: Document) -> Place:
        asked = asked_about(instance, document)
        found = explain_target(asked, self._snapshot)
        if not found.node:
            return Place("", found.impossible.message if found.impossible is not None else found.summary)
        self._snapshot.put_pod(msgspec.structs.replace(needs_of(asked.pod), name=f"{asked.pod.name}-moved"), found.node)
        return Place(found.node)
