"""From caches, or from what the API server says at this moment, to the snapshot that a pool's plan is made from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from herder.api import labels
from herder.api.core import ControllerRevision
from herder.api.kinds import VirtualMachine, VirtualMachineInstance, VirtualMachinePool
from herder.api.reading import part
from herder.controllers.configuration import HerderConfig
from herder.controllers.pool.members import BY_OWNER_WITHOUT_CONTROLLER, BY_POOL_NAME, Members
from herder.kube.cache import BY_OWNER, Change, Stored, owned, view_of
from herder.kube.client import Client, Selection
from herder.kube.kit import Kit
from herder.kube.resources import CLAIMS, CONTROLLER_REVISIONS, DATA_VOLUMES, INSTANCES, MACHINES, Key
from herder.rules.plans import Document
from herder.rules.pools.gather import attachable, by_number, owned_volume, was_ours
from herder.rules.pools.member import Member, member_of
from herder.rules.pools.naming import number_of
from herder.rules.pools.revisions import Revision, is_genuine, stored_revision
from herder.rules.pools.snapshot import Attachable, OwnedVolume, PoolSnapshot, Refusal

# Others keep revisions too: of their StatefulSets and DaemonSets there may be many.
REVISIONS = Selection(labels=labels.POOL)


class SnapshotBuilder:
    def __init__(self, kit: Kit, members: Members, config: HerderConfig) -> None:
        self._client: Client = kit.client
        self._members = members
        self._config = config
        self._machines = kit.caches.of(MACHINES)
        self._instances = kit.caches.of(INSTANCES)
        self._volumes = kit.caches.of(DATA_VOLUMES)
        self._claims = kit.caches.of(CLAIMS)
        self._revisions = kit.caches.of(CONTROLLER_REVISIONS, REVISIONS)
        for cache in (self._volumes, self._claims, self._revisions):
            cache.add_index(BY_OWNER)
        # What was read of a revision, by its identity and version: templates are long, and looked at often.
        self._read: dict[str, tuple[int, Revision]] = {}
        self._revisions.subscribe(self._revision_changed)
        self._world = kit.world
        # By pool: what its machines are made of, and when that was first seen. Lost with the term: then it has long stood so.
        self._templates: dict[str, tuple[tuple[Document, Document], float | None]] = {}

    def cached(self, stored: Stored[VirtualMachinePool], refusals: Mapping[str, Refusal]) -> PoolSnapshot:
        pool = stored.view
        members = self._members.of(pool.namespace, pool.uid)
        others = [key for key in self._machines.keys_by(BY_POOL_NAME, f"{pool.namespace}/{pool.name}") if key.name not in members]
        return self._snapshot(
            stored,
            refusals,
            members=sorted(members.values(), key=by_number),
            others=[one for key in others if (one := self._machines.stored(key)) is not None],
            to_attach=self._attachable(pool),
        )

    async def live(
        self, stored: Stored[VirtualMachinePool], refusals: Mapping[str, Refusal], wiped: Iterable[str] = ()
    ) -> PoolSnapshot:
        """Machines as the API server knows them now, before anything is deleted or wiped; of those of these names their instances,
        too."""
        pool = stored.view
        listing = await self._client.list(MACHINES, Selection(namespace=pool.namespace))
        ours = [machine for machine in listing.items if machine.controller_uid == pool.uid]
        instances = await self._live_instances(pool, wiped)
        members = [member_of(pool.name, machine, instances(machine.name), self._members.memory_of(machine)) for machine in ours]
        cached = self.cached(stored, refusals)
        others = [machine for machine in listing.items if machine.controller_uid != pool.uid and number_of(pool.name, machine.name)]
        return msgspec.structs.replace(
            cached,
            members=tuple(sorted(members, key=by_number)),
            held=frozenset(machine.name for machine in others),
            detached=tuple(machine.name for machine in others if was_ours(pool.name, machine.labels)),
            living=frozenset(machine.uid for machine in listing.items if not machine.being_deleted),
        )

    async def _live_instances(
        self, pool: VirtualMachinePool, wiped: Iterable[str]
    ) -> Callable[[str], VirtualMachineInstance | None]:
        """Where only halted machines may be taken, or volumes that were in use are wiped, the cache must not be behind; else the
        version of the machine is enough."""
        strategy = pool.spec.scale_in_strategy
        if strategy is not None and strategy.opportunistic is not None:
            listed = (await self._client.list(INSTANCES, Selection(namespace=pool.namespace))).items
            return {instance.name: instance for instance in listed}.get
        found = {name: await self._client.find(INSTANCES, Key(pool.namespace, name)) for name in wiped}
        return lambda name: found[name] if name in found else view_of(self._instances.stored(Key(pool.namespace, name)))

    def forget(self, uid: str) -> None:
        self._templates.pop(uid, None)

    def _revision_changed(self, change: Change[ControllerRevision]) -> None:
        if change.old is not None and change.new is None:
            self._read.pop(change.old.uid, None)

    def _template_since(self, uid: str, made_of: tuple[Document, Document]) -> float | None:
        known = self._templates.get(uid)
        if known is None or known[0] != made_of:
            known = self._templates[uid] = made_of, None if known is None else self._world.now()
        return known[1]

    def _snapshot(
        self,
        stored: Stored[VirtualMachinePool],
        refusals: Mapping[str, Refusal],
        *,
        members: Iterable[Member],
        others: list[Stored[VirtualMachine]],
        to_attach: tuple[Attachable, ...],
    ) -> PoolSnapshot:
        pool = stored.view
        spec = part(msgspec.json.decode(stored.raw), "spec")
        template, name_generation = part(spec, "template"), part(spec, "nameGeneration")
        numbered = [one for one in others if number_of(pool.name, one.key.name)]
        volumes = tuple(self._owned_volumes(pool))
        return PoolSnapshot(
            pool=pool,
            template=template,
            name_generation=name_generation,
            template_since=self._template_since(pool.uid, (template, name_generation)),
            members=tuple(members),
            held=frozenset(one.key.name for one in numbered),
            detached=tuple(one.key.name for one in numbered if was_ours(pool.name, one.labels)),
            attachable=to_attach,
            volumes=volumes,
            living=self._living(pool.namespace, volumes),
            revisions=tuple(self._known_revisions(pool)),
            nodes=self._members.nodes,
            refusals=refusals,
            burst=self._config.pools().burst,
        )

    def _attachable(self, pool: VirtualMachinePool) -> tuple[Attachable, ...]:
        """Those that name the pool as an owner and nobody as their controller."""
        candidates = self._machines.by(BY_OWNER_WITHOUT_CONTROLLER, owned(pool.namespace, pool.uid))
        return tuple(found for machine in candidates if (found := attachable(pool, machine)) is not None)

    def _owned_volumes(self, pool: VirtualMachinePool) -> Iterable[OwnedVolume]:
        for cache in (self._volumes, self._claims):
            for key in cache.keys_by(BY_OWNER, owned(pool.namespace, pool.uid)):
                volume = view_of(cache.stored(key))
                found = owned_volume(pool, volume) if volume is not None else None
                if found is not None:
                    yield found

    def _living(self, namespace: str, volumes: tuple[OwnedVolume, ...]) -> frozenset[str]:
        """Of the machines that control these volumes, those that are not being deleted."""
        found = (self._machines.stored(Key(namespace, volume.machine)) for volume in volumes if volume.controller)
        return frozenset(one.uid for one in found if one is not None and not one.deleting)

    def _known_revisions(self, pool: VirtualMachinePool) -> Iterable[Revision]:
        for key in self._revisions.keys_by(BY_OWNER, owned(pool.namespace, pool.uid)):
            stored = self._revisions.stored(key)
            if stored is None or stored.controller is None or stored.controller.uid != pool.uid or stored.deleting:
                continue
            revision = self._revision(stored)
            if revision is not None and is_genuine(pool, revision):
                yield revision

    def _revision(self, stored: Stored[ControllerRevision]) -> Revision | None:
        known = self._read.get(stored.uid)
        if known is not None and known[0] == stored.version:
            return known[1]
        view = view_of(stored)
        if view is None:
            return None
        revision = stored_revision(view)
        self._read[stored.uid] = (stored.version, revision)
        return revision
