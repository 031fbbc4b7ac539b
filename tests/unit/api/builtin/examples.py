"""One ordinary object of each built-in kind, as people write them, and ways to spoil them."""

from __future__ import annotations

from typing import Any

import msgspec

EXAMPLES = b"""{
"pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
  "spec": {
    "serviceAccountName": "robot",
    "initContainers": [{"name": "setup", "image": "busybox:1.36", "command": ["true"]},
                       {"name": "proxy", "image": "proxy", "restartPolicy": "Always", "startupProbe": {"tcpSocket": {"port": 1}}}],
    "containers": [
      {"name": "main", "image": "registry:5000/web:latest",
       "ports": [{"containerPort": 8080, "name": "http"}],
       "env": [{"name": "A", "value": "1"}, {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
               {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}],
       "resources": {"limits": {"cpu": 0.5, "memory": "1.5Gi"}, "requests": {"memory": "1024Mi"}},
       "livenessProbe": {"httpGet": {"port": "http"}}, "readinessProbe": {"grpc": {"port": 9}},
       "lifecycle": {"preStop": {"sleep": {"seconds": 3}}},
       "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "cfg", "mountPath": "/cfg", "subPath": "a/b"}]},
      {"name": "side", "image": "side@sha256:0123456789012345678901234567890123456789012345678901234567890123"}],
    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "cfg", "configMap": {"name": "cfg"}},
      {"name": "tmp"}, {"name": "sec", "secret": {"secretName": "s", "items": [{"key": "k", "path": "p"}]}},
      {"name": "host", "hostPath": {"path": "/var"}},
      {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}}}},
      {"name": "mix", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}},
        {"downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}}]}}],
    "nodeSelector": {"zone": "a"},
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
    "affinity": {
      "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}],
         "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": {"matchExpressions": [
          {"key": "disk", "operator": "Exists"}]}}]},
      "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {
        "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}}]}},
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
      "labelSelector": {"matchLabels": {"app": "web"}}}]}},
"node": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
  "spec": {"podCIDRs": ["10.0.0.0/24"], "taints": [{"key": "a", "effect": "NoSchedule"}]},
  "status": {"capacity": {"cpu": "4", "memory": "8Gi", "example.com/gpu": "2"}}},
"namespace": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
"secret": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop"}, "stringData": {"a": "b"},
  "data": {"c": "ZA=="}},
"configmap": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"}, "data": {"a.conf": "x"},
  "binaryData": {"b": "AAEC"}},
"serviceaccount": {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "shop"}},
"claim": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "shop"},
  "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}, "storageClassName": "fast"}},
"volume": {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v1"},
  "spec": {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "local": {"path": "/disk"},
    "nodeAffinity": {"required": {"nodeSelectorTerms": [
      {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}]}]}}}},
"storageclass": {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"},
  "provisioner": "example.com/disks", "parameters": {"a": "b"}},
"event": {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e.1", "namespace": "shop"},
  "involvedObject": {"kind": "Pod", "name": "web", "namespace": "shop"}, "reason": "Started", "message": "started",
  "type": "Normal"},
"newevent": {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e.2", "namespace": "shop"},
  "regarding": {"kind": "Pod", "name": "web", "namespace": "shop"}, "reason": "Started", "note": "started", "type": "Normal",
  "action": "Start", "reportingController": "example.com/c", "reportingInstance": "c-1",
  "eventTime": "2026-01-02T03:04:05.000006Z"},
"lease": {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l", "namespace": "shop"},
  "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}},
"budget": {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "shop"},
  "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}}},
"priority": {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000},
"replicaset": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "r", "namespace": "shop"},
  "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "web", "resources": {"limits": {"cpu": "1"}}}]}}}},
"deployment": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "shop"},
  "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "web:1"}]}}}},
"statefulset": {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "shop"},
  "spec": {"serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": {"metadata": {"labels": {"app": "db"}},
    "spec": {"containers": [{"name": "main", "image": "db:1", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}]}},
    "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
      "resources": {"requests": {"storage": "1Gi"}}}}]}},
"daemonset": {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "each", "namespace": "shop"},
  "spec": {"selector": {"matchLabels": {"app": "each"}}, "minReadySeconds": 3,
    "updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}},
    "template": {"metadata": {"labels": {"app": "each"}}, "spec": {"containers": [{"name": "main", "image": "each:1"}]}}}},
"job": {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once", "namespace": "shop"},
  "spec": {"parallelism": 2, "completions": 3, "activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 5,
    "manualSelector": true, "selector": {"matchLabels": {"app": "once"}},
    "template": {"metadata": {"labels": {"app": "once"}},
      "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "once:1"}]}}}},
"autoscaler": {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a", "namespace": "shop"},
  "spec": {"scaleTargetRef": {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachinePool", "name": "web"},
    "minReplicas": 2, "maxReplicas": 9,
    "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
      {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1.5Gi"}}}],
    "behavior": {"scaleUp": {"selectPolicy": "Min", "tolerance": "0.05",
        "policies": [{"type": "Pods", "value": 3, "periodSeconds": 60}, {"type": "Percent", "value": 50, "periodSeconds": 1800}]},
      "scaleDown": {"stabilizationWindowSeconds": 60}}}},
"revision": {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "d-1", "namespace": "shop"},
  "revision": 1, "data": {"a": 1}},
"role": {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "system:r", "namespace": "shop"},
  "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]},
"clusterrole": {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "cr"},
  "rules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}]},
"rolebinding": {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
  "metadata": {"name": "rb", "namespace": "shop"},
  "roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "jane"},
    {"kind": "ServiceAccount", "name": "robot", "namespace": "shop"}]},
"clusterrolebinding": {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "crb"},
  "roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [{"kind": "Group", "name": "ops"}]},
"definition": {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
  "metadata": {"name": "cows.farm.example.com"},
  "spec": {"group": "farm.example.com", "scope": "Namespaced", "names": {"plural": "cows", "kind": "Cow", "shortNames": ["cw"]},
    "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}, "scale": {
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
      "additionalPrinterColumns": [{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}],
      "schema": {"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"replicas": {"type": "integer"},
          "name": {"type": "string", "pattern": "^a+$"}}},
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "conditions": {"type": "array",
          "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"], "items": {"type": "object", "required": ["type"],
            "properties": {"type": {"type": "string"}}}}}}}}}}]}}
}"""


def example(name: str) -> dict[str, Any]:
    """A fresh copy."""
    return msgspec.json.decode(EXAMPLES)[name]


def names_of_examples() -> list[str]:
    return list(msgspec.json.decode(EXAMPLES))


def group_and_kind(obj: dict[str, Any]) -> tuple[str, str]:
    group, slash, _ = obj["apiVersion"].partition("/")
    return (group if slash else ""), obj["kind"]


def spoiled(obj: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The object with another value at a path such as `spec/containers/0/name`; None takes the field away."""
    *steps, last = path.split("/")
    part: Any = obj
    for step in steps:
        part = part[int(step)] if isinstance(part, list) else part.setdefault(step, {})
    if isinstance(part, list):
        part[int(last)] = value
    elif value is None:
        part.pop(last, None)
    else:
        part[last] = value
    return obj
