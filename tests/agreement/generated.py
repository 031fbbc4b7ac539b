"""Clusters and pods by seed: small numbers of values, so that rules meet and contradict each other often."""

from __future__ import annotations

from random import Random
from typing import Any

Document = dict[str, Any]
ZONE, HOST, RACK = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "rack"
ZONES, RACKS, APPS, TIERS, BUILDS = ("a", "b", "c"), ("r1", "r2"), ("web", "db", "cache"), ("x", "y"), ("1", "2")
NAMESPACES = {"left": {"team": "one"}, "right": {"team": "two"}}
TAINTS = (
    {"key": "dedicated", "value": "vm", "effect": "NoSchedule"},
    {"key": "dedicated", "value": "db", "effect": "NoExecute"},
    {"key": "slow", "value": "", "effect": "PreferNoSchedule"},
    {"key": "level", "value": "7", "effect": "NoSchedule"},
)
NODES, PLACED, PENDING = 14, 40, 60


class Generated:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.nodes = [self._node(f"node-{number:02}") for number in range(NODES)]
        self.volumes = [self._volume(f"volume-{number}") for number in range(6)]
        self.claims = [self._claim(number, namespace) for number in range(6) for namespace in NAMESPACES]
        self.placed = [self._pod(f"placed-{number}", self._pick(self._names())) for number in range(PLACED)]
        self.pending = [self._pod(f"pending-{number}") for number in range(PENDING)]

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _pick(self, values: Any) -> Any:
        return self._random.choice(list(values))

    def _some(self, values: Any, most: int) -> list[Any]:
        return self._random.sample(list(values), self._random.randint(1, most))

    def _names(self) -> list[str]:
        return [node["metadata"]["name"] for node in self.nodes]

    # Nodes and disks.

    def _node(self, name: str) -> Document:
        labels = {HOST: name, "size": str(self._random.randint(1, 9))}
        labels |= {ZONE: self._pick(ZONES)} if self._chance(0.85) else {}
        labels |= {RACK: self._pick(RACKS)} if self._chance(0.6) else {}
        offered = {"cpu": self._pick(("2", "4", "3500m")), "memory": self._pick(("4Gi", "8Gi")), "pods": self._pick(("4", "20"))}
        offered |= {"example.com/gpu": self._pick(("1", "2"))} if self._chance(0.4) else {}
        taints = self._some(TAINTS, 2) if self._chance(0.4) else []
        spec = {"taints": taints, **({"unschedulable": True} if self._chance(0.1) else {})}
        return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"capacity": offered, "allocatable": offered}}

    def _volume(self, name: str) -> Document:
        spec: Document = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
        if self._chance(0.7):
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [self._term() for _ in range(self._random.randint(1, 2))]}}
        labels = {ZONE: "__".join(self._some(ZONES, 2))} if self._chance(0.3) else {}
        return {"metadata": {"name": name, "labels": labels}, "spec": spec}

    def _claim(self, number: int, namespace: str) -> Document:
        mode = self._pick(("ReadWriteOnce", "ReadWriteOncePod"))
        spec: Document = {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
        metadata: Document = {"name": f"claim-{number}", "namespace": namespace}
        if self._chance(0.8):
            spec["volumeName"] = f"volume-{number if self._chance(0.9) else 99}"
            metadata["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        return {"metadata": metadata, "spec": spec}

    # Pods.

    def _pod(self, name: str, node: str = "") -> Document:
        labels = {"app": self._pick(APPS), "tier": self._pick(TIERS), "build": self._pick(BUILDS)}
        ports = [self._port()] if self._chance(0.25) else []
        container: Document = {"name": "c", "image": "i", "resources": self._resources(bool(node)), "ports": ports}
        spec: Document = {"containers": [container], "affinity": self._affinity(), "terminationGracePeriodSeconds": 0}
        if self._chance(0.3):
            before = {"name": "i", "image": "i", "resources": self._resources(bool(node))}
            spec["initContainers"] = [{**before, **({"restartPolicy": "Always"} if self._chance(0.5) else {})}]
        spec |= {"tolerations": [self._toleration() for _ in range(2)]} if self._chance(0.5) else {}
        spec |= {"nodeSelector": {ZONE: self._pick(ZONES)}} if self._chance(0.2) else {}
        spec |= {"topologySpreadConstraints": self._spread()} if self._chance(0.4) else {}
        spec |= {"volumes": [self._disk()]} if self._chance(0.2) else {}
        spec |= {"nodeName": node} if node else {}
        return {"metadata": {"name": name, "namespace": self._pick(NAMESPACES), "labels": labels}, "spec": spec}

    def _resources(self, small: bool) -> Document:
        wanted = {"cpu": self._pick(("100m", "250m") if small else ("100m", "1", "2500m"))} if self._chance(0.8) else {}
        wanted |= {"memory": self._pick(("64Mi", "128M") if small else ("256Mi", "1G", "5Gi"))} if self._chance(0.8) else {}
        gpu = {"example.com/gpu": "1"} if self._chance(0.1) else {}
        return {"requests": wanted | gpu, "limits": gpu}

    def _port(self) -> Document:
        address = {"hostIP": self._pick(("127.0.0.1", "0.0.0.0", "10.0.0.1"))} if self._chance(0.5) else {}
        return {"containerPort": 80, "hostPort": self._pick((8080, 8081)), "protocol": self._pick(("TCP", "UDP")), **address}

    def _disk(self) -> Document:
        return {"name": "disk", "persistentVolumeClaim": {"claimName": f"claim-{self._random.randint(0, 6)}"}}

    def _toleration(self) -> Document:
        taint = self._pick(TAINTS)
        exists = self._chance(0.4)
        made: Document = {"key": taint["key"], "operator": "Exists"} if exists else {"key": taint["key"], "value": taint["value"]}
        return {**made, **({"effect": taint["effect"]} if self._chance(0.5) else {})}

    def _affinity(self) -> Document:
        made: Document = {}
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        if self._chance(0.3):
            made["nodeAffinity"] = {required: {"nodeSelectorTerms": [self._term() for _ in range(self._random.randint(1, 2))]}}
        if self._chance(0.2):
            made["podAffinity"] = {required: [self._pod_term() for _ in range(self._random.randint(1, 2))]}
        if self._chance(0.15):
            made["podAntiAffinity"] = {required: [self._pod_term()]}
        return made

    def _term(self) -> Document:
        tests = (
            {"key": ZONE, "operator": self._pick(("In", "NotIn")), "values": self._some(ZONES, 2)},
            {"key": RACK, "operator": self._pick(("Exists", "DoesNotExist"))},
            {"key": "size", "operator": self._pick(("Gt", "Lt")), "values": [str(self._random.randint(2, 8))]},
        )
        named = {
            "key": "metadata.name",
            "operator": self._pick(("In", "NotIn")),
            "values": [f"node-{self._random.randint(0, NODES):02}"],
        }
        made: Document = {"matchExpressions": self._some(tests, 2)}
        return made | ({"matchFields": [named]} if self._chance(0.15) else {})

    def _selector(self) -> Document:
        tests = (
            {"key": "app", "operator": self._pick(("In", "NotIn")), "values": self._some(APPS, 2)},
            {"key": "tier", "operator": self._pick(("Exists", "DoesNotExist"))},
        )
        if self._chance(0.1):
            return {}
        return {"matchLabels": {"app": self._pick(APPS)}} if self._chance(0.6) else {"matchExpressions": self._some(tests, 2)}

    def _pod_term(self) -> Document:
        made: Document = {"topologyKey": self._pick((ZONE, HOST, RACK)), "labelSelector": self._selector()}
        if self._chance(0.2):
            made["namespaces"] = self._some(NAMESPACES, 2)
        if self._chance(0.2):
            made["namespaceSelector"] = {"matchLabels": {"team": self._pick(("one", "two"))}} if self._chance(0.7) else {}
        if self._chance(0.15):
            made[self._pick(("matchLabelKeys", "mismatchLabelKeys"))] = ["build"]
        return made

    def _spread(self) -> list[Document]:
        made: list[Document] = []
        for key in self._some((ZONE, HOST, RACK), 2):
            one: Document = {"maxSkew": self._random.randint(1, 4), "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
            one |= {"labelSelector": self._selector()} if self._chance(0.9) else {}
            one |= {"minDomains": self._random.randint(1, 4)} if self._chance(0.3) else {}
            one |= {"nodeAffinityPolicy": "Ignore"} if self._chance(0.3) else {}
            one |= {"nodeTaintsPolicy": "Honor"} if self._chance(0.3) else {}
            one |= {"matchLabelKeys": ["build"]} if "labelSelector" in one and self._chance(0.2) else {}
            made.append(one)
        return made
