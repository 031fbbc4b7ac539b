"""The resources that we talk about: how each is called on the wire, and the view that reads it."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from herder.api import core, kinds, registry
from herder.api.meta import Identified, ObjectMeta

V = TypeVar("V", bound=Identified, covariant=True)


class Key(NamedTuple):
    """Which object: what a controller is asked to look at, and nothing more."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(thing: Identified) -> Key:
    return Key(thing.namespace, thing.name)


@lru_cache(maxsize=4096)
def _quoted(part: str, safe: str) -> str:
    """Most names are asked for again and again."""
    return quote(part, safe=safe)


class Resource(msgspec.Struct, Generic[V], frozen=True, kw_only=True, eq=False):
    """One kind, as it is served. Compared by identity: there is one of each."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    view: type[V]

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """`pods`, `virtualmachines.kubevirt.io`: for people, logs and metrics."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Without a namespace: all of them."""
        parts = [f"/apis/{self.group}" if self.group else "/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", _quoted(namespace, "")]
        parts.append(self.plural)
        # A name is often somebody's text: it stays one part of the path, whatever is in it.
        parts += [_quoted(name, ":")] if name else []
        parts += [_quoted(subresource, "/")] if subresource else []
        return "/".join(parts)

    def decode(self, raw: bytes | msgspec.Raw) -> V:
        """Raises msgspec's error where the object is not what the view says."""
        return msgspec.json.decode(raw, type=self.view)


Anything = Resource[Any]


class Written(Identified, msgspec.Struct, frozen=True):
    """What most who write want of the answer: which version it has become. The rest comes with the watch, and is read there."""

    metadata: ObjectMeta


@cache
def written(resource: Anything) -> Resource[Written]:
    """The same kind, of which only that is read."""
    return msgspec.structs.replace(resource, view=Written)


def _core(view: type[V], plural: str, group: str = "", version: str = "v1", namespaced: bool = True, kind: str = "") -> Resource[V]:
    return Resource(group=group, version=version, plural=plural, kind=kind or view.__name__, namespaced=namespaced, view=view)


def _ours(view: type[V], info: registry.KindInfo) -> Resource[V]:
    return Resource(
        group=info.group, version=info.version, plural=info.plural, kind=info.kind, namespaced=info.namespaced, view=view
    )


CONFIG_MAPS = _core(core.ConfigMap, "configmaps")
EVENTS = _core(core.EventsEvent, "events", "events.k8s.io", kind="Event")
NAMESPACES = _core(core.Namespace, "namespaces", namespaced=False)
NODES = _core(core.Node, "nodes", namespaced=False)
VOLUMES = _core(core.PersistentVolume, "persistentvolumes", namespaced=False)
CLAIMS = _core(core.PersistentVolumeClaim, "persistentvolumeclaims")
PODS = _core(core.Pod, "pods")
SECRETS = _core(core.Secret, "secrets")
SERVICE_ACCOUNTS = _core(core.ServiceAccount, "serviceaccounts")
DEFINITIONS = _core(core.CustomResourceDefinition, "customresourcedefinitions", "apiextensions.k8s.io", namespaced=False)
CONTROLLER_REVISIONS = _core(core.ControllerRevision, "controllerrevisions", "apps")
DAEMON_SETS = _core(core.DaemonSet, "daemonsets", "apps")
DEPLOYMENTS = _core(core.Deployment, "deployments", "apps")
REPLICA_SETS = _core(core.ReplicaSet, "replicasets", "apps")
STATEFUL_SETS = _core(core.StatefulSet, "statefulsets", "apps")
AUTOSCALERS = _core(core.HorizontalPodAutoscaler, "horizontalpodautoscalers", "autoscaling", "v2")
# Measured and never stored: they are listed, and cannot be watched.
POD_METRICS = _core(core.PodMetrics, "pods", "metrics.k8s.io", "v1beta1")
LEASES = _core(core.Lease, "leases", "coordination.k8s.io")
BUDGETS = _core(core.PodDisruptionBudget, "poddisruptionbudgets", "policy")
# Of Kruise: only where discovery shows it.
UNAVAILABLE_BUDGETS = _core(core.PodUnavailableBudget, "podunavailablebudgets", "policy.kruise.io", "v1alpha1")
CLUSTER_ROLES = _core(core.ClusterRole, "clusterroles", "rbac.authorization.k8s.io", namespaced=False)
CLUSTER_ROLE_BINDINGS = _core(core.ClusterRoleBinding, "clusterrolebindings", "rbac.authorization.k8s.io", namespaced=False)
ROLES = _core(core.Role, "roles", "rbac.authorization.k8s.io")
ROLE_BINDINGS = _core(core.RoleBinding, "rolebindings", "rbac.authorization.k8s.io")
PRIORITY_CLASSES = _core(core.PriorityClass, "priorityclasses", "scheduling.k8s.io", namespaced=False)
STORAGE_CLASSES = _core(core.StorageClass, "storageclasses", "storage.k8s.io", namespaced=False)

MACHINES = _ours(kinds.VirtualMachine, registry.MACHINE)
INSTANCES = _ours(kinds.VirtualMachineInstance, registry.INSTANCE)
MIGRATIONS = _ours(kinds.VirtualMachineInstanceMigration, registry.MIGRATION)
POOLS = _ours(kinds.VirtualMachinePool, registry.POOL)
SETTINGS = _ours(kinds.KubeVirt, registry.SETTINGS)
POLICIES = _ours(kinds.MigrationPolicy, registry.POLICY)
JOBS = _ours(kinds.PodMigrationJob, registry.JOB)
RESERVATIONS = _ours(kinds.ReservationView, registry.RESERVATION)
DATA_VOLUMES = _ours(kinds.DataVolume, registry.DATA_VOLUME)
REVIEWS = _ours(kinds.MigrationReview, registry.REVIEW)
OUR_KINDS: tuple[Anything, ...] = (
    MACHINES,
    INSTANCES,
    MIGRATIONS,
    POOLS,
    SETTINGS,
    POLICIES,
    JOBS,
    RESERVATIONS,
    DATA_VOLUMES,
    REVIEWS,
)

_BY_VIEW: dict[type[Any], Anything] = {one.view: one for one in list(globals().values()) if isinstance(one, Resource)}


def reference(thing: Identified) -> dict[str, str]:
    """An ObjectReference to it. The items of lists do not say their kind; their view does."""
    resource = _BY_VIEW.get(type(thing))
    said = (getattr(thing, "api_version", ""), getattr(thing, "kind", ""))
    api_version, kind = (resource.api_version, resource.kind) if resource else said
    named = {"apiVersion": api_version, "kind": kind, "namespace": thing.namespace, "name": thing.name, "uid": thing.uid}
    return {field: value for field, value in named.items() if value}
