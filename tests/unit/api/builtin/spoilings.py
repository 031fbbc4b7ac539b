"""Ways to spoil the examples that the plain replacing of values does not reach: pairs, repeats, amounts, whole parts."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec


class Spoiling(NamedTuple):
    example: str
    path: str
    value: Any


LINES = r"""
["autoscaler", "spec/minReplicas", 0]
["autoscaler", "spec/minReplicas", 10]
["autoscaler", "spec/maxReplicas", -2]
["autoscaler", "spec/metrics", []]
["autoscaler", "spec/behavior", {}]
["autoscaler", "spec/behavior/scaleUp", {"policies": []}]
["autoscaler", "spec/behavior/scaleUp", {"selectPolicy": "Disabled", "stabilizationWindowSeconds": 3601}]
["autoscaler", "spec/behavior/scaleUp/policies", [{"type": "Pods", "value": 0, "periodSeconds": 1801}, {}]]
["autoscaler", "spec/behavior/scaleDown/tolerance", "-1m"]
["autoscaler", "spec/scaleTargetRef", {"kind": "ReplicationController", "name": "r"}]
["autoscaler", "spec/scaleTargetRef", {"apiVersion": "v1", "kind": "Pod", "name": "a/b"}]
["autoscaler", "spec/scaleTargetRef/apiVersion", "a/b/c"]
["autoscaler", "spec/metrics/0/resource/target", {"type": "Value", "value": "0", "averageValue": "0", "averageUtilization": 0}]
["autoscaler", "spec/metrics/0/resource/target", {"type": "Utilization"}]
["pod", "spec/containers/1/name", "main"]
["pod", "spec/initContainers/0/name", "main"]
["pod", "spec/containers/0/resources/requests", {"cpu": "2", "example.com/gpu": "1"}]
["pod", "spec/containers/0/resources/limits", {"cpu": "-1", "example.com/gpu": "1500m", "hugepages-2Mi": "4Mi", "foo": "1",
  "a.kubernetes.io/x": "1"}]
["pod", "spec/containers/0/ports", [{"containerPort": 80, "name": "a", "hostPort": 80}, {"containerPort": 81, "name": "a",
  "hostPort": 80}, {"containerPort": 0, "protocol": "ICMP"}]]
["pod", "spec/containers/0/env", [{"name": "=x"}, {"name": "a", "value": "b",
  "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}, {"name": "c", "valueFrom": {}}, {"name": "d",
  "valueFrom": {"secretKeyRef": {"name": "s"}, "configMapKeyRef": {"name": "c", "key": "k"}}}, {"name": "e",
  "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}}, {"name": "f",
  "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels"}}}, {"name": "g",
  "valueFrom": {"resourceFieldRef": {"resource": "limits.x"}}}]]
["pod", "spec/containers/0/envFrom", [{}, {"secretRef": {"name": "s"}, "configMapRef": {"name": "c"}}, {"secretRef": {}}]]
["pod", "spec/containers/0/volumeMounts", [{"name": "nope", "mountPath": "/a"}, {"name": "data", "mountPath": "/a",
  "subPath": "../x"}, {"name": "data", "mountPath": "", "subPath": "/x"}]]
["pod", "spec/containers/0/volumeDevices", [{"name": "data", "devicePath": "/dev/x"}, {"name": "", "devicePath": ""}]]
["pod", "spec/containers/0/livenessProbe", {"exec": {}, "httpGet": {"port": 1}}]
["pod", "spec/containers/0/livenessProbe", {}]
["pod", "spec/containers/0/livenessProbe", {"httpGet": {"port": 0, "scheme": "FTP", "httpHeaders": [{"name": "a b"}]},
  "successThreshold": 2}]
["pod", "spec/containers/0/lifecycle", {"postStart": {}, "preStop": {"sleep": {"seconds": 100}}}]
["pod", "spec/containers/0/restartPolicy", "Sometimes"]
["pod", "spec/initContainers/0/livenessProbe", {"exec": {"command": ["a"]}}]
["pod", "spec/containers/0/imagePullPolicy", "Maybe"]
["pod", "spec/containers/0/image", " web "]
["pod", "spec/containers/0/terminationMessagePolicy", "x"]
["pod", "spec/containers", []]
["pod", "spec/restartPolicy", "X"]
["pod", "spec/dnsPolicy", "X"]
["pod", "spec/hostNetwork", true]
["pod", "spec/activeDeadlineSeconds", 0]
["pod", "spec/terminationGracePeriodSeconds", -3]
["pod", "spec/ephemeralContainers", [{"name": "e", "image": "i"}]]
["pod", "spec/schedulingGates", [{"name": "a"}, {"name": "a"}, {"name": ""}]]
["pod", "spec/readinessGates", [{"conditionType": "a b"}]]
["pod", "spec/volumes", [{"name": "a", "emptyDir": {"sizeLimit": "-1"}}, {"name": "a", "emptyDir": {}}, {"name": "b",
  "emptyDir": {}, "hostPath": {"path": "/"}}, {"name": "c", "hostPath": {"path": "/../x", "type": "Foo"}}, {"name": "d",
  "secret": {"defaultMode": 5000, "items": [{"key": "", "path": "..x"}]}}, {"name": "e", "nfs": {"path": "x"}}, {"name": "f",
  "projected": {"sources": [{"secret": {"name": ""}, "configMap": {"name": "c"}}, {"serviceAccountToken": {"path": "",
  "expirationSeconds": 5}}]}}, {"name": "g", "ephemeral": {}}, {"name": "h", "downwardAPI": {"items": [{"path": "/a"},
  {"path": "b", "fieldRef": {"fieldPath": "spec.nodeName"}}, {"path": "c",
  "resourceFieldRef": {"resource": "limits.cpu"}}]}}, {"name": "i", "csi": {}}, {"name": "j", "persistentVolumeClaim": {}}]]
["pod", "spec/tolerations", [{"value": "x"}, {"key": "a", "operator": "Exists", "value": "x"}, {"key": "a",
  "operator": "Near"}, {"key": "a", "effect": "Nope"}, {"key": "a", "effect": "NoSchedule", "tolerationSeconds": 3},
  {"key": "a", "operator": "Lt", "value": "x"}, {"key": "a b"}]]
["pod", "spec/affinity", {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []},
  "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 101, "preference": {"matchFields": [{"key": "x",
  "operator": "Exists"}]}}]}, "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "",
  "namespaces": ["A"]}, {"topologyKey": "a b", "labelSelector": {"matchLabels": {"a b": "c"}}}]}}]
["pod", "spec/topologySpreadConstraints", [{"maxSkew": 0, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule",
  "minDomains": 0}, {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}, {"maxSkew": 1,
  "topologyKey": "", "whenUnsatisfiable": "X", "minDomains": 2, "nodeTaintsPolicy": "x"}]]
["pod", "spec/priorityClassName", "A"]
["pod", "spec/preemptionPolicy", "x"]
["pod", "spec/os", {"name": "dos"}]
["pod", "spec/overhead", {"cpu": "-1", "x": "1"}]
["pod", "spec/imagePullSecrets", [{"name": ""}]]
["pod", "spec/nodeName", "A_"]
["pod", "spec/hostname", "a.b"]
["pod", "spec/subdomain", "-"]
["pod", "metadata/ownerReferences", [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1", "controller": true},
  {"apiVersion": "apps/v1", "kind": "B", "name": "b", "uid": "2", "controller": true}, {"apiVersion": "", "kind": "",
  "name": "", "uid": ""}, {"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "u"}]]
["pod", "metadata/finalizers", ["a b", "orphan", "foregroundDeletion"]]
["pod", "metadata/annotations", {"a b": "c", "x.io/A": "y"}]
["pod", "metadata/labels", {"a b": "c d"}]
["pod", "metadata/generateName", "Web-"]
["pod", "metadata/generateName", "web-"]
["pod", "spec/serviceAccountName", null]
["pod", "spec/resources", {"limits": {"cpu": "1"}}]
["secret", "type", "kubernetes.io/tls"]
["secret", "type", "kubernetes.io/basic-auth"]
["secret", "type", "kubernetes.io/ssh-auth"]
["secret", "type", "kubernetes.io/dockerconfigjson"]
["secret", "type", "kubernetes.io/service-account-token"]
["secret", "data", {"../x": "YQ==", "..a": "", "b c": ""}]
["configmap", "data", {"b": "dup"}]
["claim", "spec/accessModes", ["ReadWriteOncePod", "ReadWriteOnce", "X"]]
["claim", "spec/dataSource", {"kind": "X", "name": ""}]
["claim", "spec/volumeMode", "X"]
["claim", "spec/selector", {"matchExpressions": [{"key": "a", "operator": "X"}]}]
["volume", "spec/hostPath", {"path": "/a"}]
["volume", "spec/local", null]
["volume", "spec/nodeAffinity", null]
["volume", "spec/csi", {}]
["volume", "spec/capacity", {"storage": "1", "cpu": "1"}]
["volume", "spec/persistentVolumeReclaimPolicy", "X"]
["volume", "spec/accessModes", ["X"]]
["storageclass", "reclaimPolicy", "Recycle"]
["storageclass", "volumeBindingMode", "X"]
["storageclass", "parameters", {"": "x"}]
["budget", "spec/maxUnavailable", 1]
["budget", "spec/minAvailable", "150%"]
["budget", "spec/minAvailable", "x"]
["budget", "spec/minAvailable", -1]
["budget", "spec/unhealthyPodEvictionPolicy", "X"]
["priority", "value", 2000000000]
["priority", "metadata/name", "system-foo"]
["priority", "metadata/name", "system-node-critical"]
["priority", "preemptionPolicy", "X"]
["lease", "spec/leaseDurationSeconds", 0]
["lease", "spec/leaseTransitions", -1]
["lease", "spec/preferredHolder", "x"]
["lease", "spec/strategy", "X"]
["deployment", "spec/strategy", {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}]
["deployment", "spec/strategy", {"type": "X"}]
["deployment", "spec/strategy", {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}]
["deployment", "spec/strategy", {"rollingUpdate": {"maxUnavailable": "200%"}}]
["deployment", "spec/progressDeadlineSeconds", 5]
["deployment", "spec/minReadySeconds", 700]
["deployment", "spec/template/spec/restartPolicy", "Never"]
["deployment", "spec/template/metadata/labels", {"x": "y"}]
["deployment", "spec/template/spec/activeDeadlineSeconds", 5]
["deployment", "spec/selector", {"matchExpressions": [{"key": "app", "operator": "Near"}]}]
["statefulset", "spec/updateStrategy", {"type": "OnDelete", "rollingUpdate": {}}]
["statefulset", "spec/updateStrategy", {"type": "RollingUpdate", "rollingUpdate": {"partition": -1, "maxUnavailable": 0}}]
["statefulset", "spec/updateStrategy", {"type": "X"}]
["statefulset", "spec/podManagementPolicy", "X"]
["statefulset", "spec/persistentVolumeClaimRetentionPolicy", {"whenDeleted": "X"}]
["statefulset", "spec/ordinals", {"start": -1}]
["statefulset", "spec/template/spec/activeDeadlineSeconds", 5]
["role", "rules", [{}, {"verbs": ["get"], "nonResourceURLs": ["/x"], "resources": ["pods"]}]]
["clusterrole", "aggregationRule", {}]
["clusterrole", "aggregationRule", {"clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "X"}]}]}]
["rolebinding", "roleRef", {"kind": "X", "name": "a/b", "apiGroup": "x"}]
["rolebinding", "subjects", [{"kind": "User", "name": "", "apiGroup": "x"}, {"kind": "ServiceAccount", "name": "A",
  "apiGroup": "x"}, {"kind": "Y", "name": "y"}]]
["clusterrolebinding", "subjects", [{"kind": "ServiceAccount", "name": "a"}]]
["clusterrolebinding", "roleRef", {"kind": "Role", "name": "a"}]
["node", "spec/taints", [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}, {"key": "b c",
  "effect": "X"}, {"key": "c"}]]
["node", "spec/podCIDRs", ["10.0.0.0/24", "10.0.1.0/24"]]
["node", "spec/podCIDRs", ["x"]]
["namespace", "spec/finalizers", ["x", "a.io/b"]]
["event", "eventTime", "2026-01-02T03:04:05.000006Z"]
["event", "involvedObject/namespace", "other"]
["newevent", "type", "X"]
["newevent", "deprecatedCount", 3]
["newevent", "series", {"count": 1}]
["definition", "spec/names/plural", "Cows"]
["definition", "spec/names/kind", "cow kind"]
["definition", "spec/names/listKind", "Cow"]
["definition", "spec/names/shortNames", ["A B"]]
["definition", "spec/group", "nodot"]
["definition", "spec/scope", "X"]
["definition", "spec/preserveUnknownFields", true]
["definition", "spec/conversion", {"strategy": "Webhook"}]
["definition", "spec/conversion", {"strategy": "X"}]
["definition", "spec/versions/0/additionalPrinterColumns", [{"name": "", "type": "x", "jsonPath": "a", "format": "q"}]]
["definition", "spec/versions/0/deprecationWarning", "x"]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a", {"type": "string", "nullable": true}]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a", {}]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a", {"type": "array"}]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a", {"type": "object",
  "additionalProperties": false}]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a", {"type": "object",
  "additionalProperties": {"type": "string"}, "properties": {"b": {"type": "string"}}}]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a", {"x-kubernetes-int-or-string": true}]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a", {"x-kubernetes-int-or-string": true,
  "type": "string"}]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a",
  {"x-kubernetes-preserve-unknown-fields": true}]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a", {"type": "object",
  "x-kubernetes-preserve-unknown-fields": false}]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a", {"type": "object",
  "x-kubernetes-embedded-resource": true}]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a", {"type": "string",
  "x-kubernetes-embedded-resource": true}]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a", {"type": "array",
  "items": {"type": "string"}, "uniqueItems": true}]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a", {"type": "object",
  "anyOf": [{"type": "string"}, {"required": ["a"]}]}]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a", {"type": "object",
  "oneOf": [{"properties": {"q": {"minimum": 1}}}]}]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a", {"$ref": "#/x"}]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a", {"type": "array",
  "items": {"type": "string"}, "x-kubernetes-list-type": "set"}]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a", {"type": "array",
  "items": {"type": "object"}, "x-kubernetes-list-type": "map"}]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a", {"type": "object",
  "x-kubernetes-map-type": "x"}]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a", {"anyOf": [{"type": "integer"},
  {"type": "string"}], "x-kubernetes-int-or-string": true}]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a", {"type": "integer",
  "not": {"type": "string"}}]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a", {"type": "array",
  "items": [{"type": "string"}]}]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/metadata", {"type": "object",
  "properties": {"labels": {"type": "object"}}}]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/metadata", {"type": "object",
  "properties": {"name": {"type": "string", "maxLength": 5}}}]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/metadata", {"type": "string"}]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/kind", {"type": "integer"}]
["definition", "spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a", {"type": "object",
  "additionalProperties": false, "properties": {"b": {"type": "string"}}}]
["claim", "spec/dataSource", {"kind": "PersistentVolumeClaim", "name": "x"}]
["claim", "spec/dataSourceRef", {"apiGroup": "a.io", "kind": "X", "name": "x"}]
["claim", "spec/dataSourceRef", {"apiGroup": "", "kind": "PersistentVolumeClaim", "name": "x"}]
["pod", "spec/resources", {"limits": {"memory": "8Gi"}, "requests": {"cpu": "1"}}]
"""

UPDATES = r"""
["pod", "spec/containers/0/image", "web:2"]
["pod", "spec/tolerations", [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}, {"key": "b",
  "operator": "Exists"}]]
["pod", "spec/tolerations", [{"key": "b", "operator": "Exists"}]]
["pod", "spec/nodeName", "n2"]
["pod", "spec/activeDeadlineSeconds", 30]
["pod", "spec/schedulingGates", [{"name": "a.io/late"}]]
["pod", "metadata/labels", {"app": "other"}]
["pod", "metadata/finalizers", ["a.io/b"]]
["pod", "spec/containers/1", {"name": "side", "image": "x", "command": ["y"]}]
["pod", "status", {"phase": "Running"}]
["deployment", "spec/replicas", 9]
["deployment", "spec/selector", {"matchLabels": {"app": "x"}}]
["deployment", "metadata/annotations", {"a": "b"}]
["statefulset", "spec/replicas", 9]
["statefulset", "spec/serviceName", "x"]
["statefulset", "spec/ordinals", {"start": 3}]
["statefulset", "spec/minReadySeconds", 3]
["claim", "spec/resources/requests/storage", "20Gi"]
["claim", "spec/volumeName", "v"]
["claim", "spec/storageClassName", "slow"]
["secret", "type", "x"]
["secret", "immutable", true]
["configmap", "immutable", true]
["rolebinding", "roleRef/name", "other"]
["priority", "value", 7]
["priority", "globalDefault", true]
["storageclass", "allowVolumeExpansion", true]
["storageclass", "parameters", {}]
["node", "spec/providerID", "x"]
["node", "spec/unschedulable", true]
["definition", "spec/names/shortNames", ["c"]]
["definition", "spec/scope", "Cluster"]
["autoscaler", "spec/scaleTargetRef/name", "other"]
["autoscaler", "spec/scaleTargetRef/apiVersion", "v1"]
["autoscaler", "spec/maxReplicas", 1]
["autoscaler", "spec/behavior/scaleDown", null]
["autoscaler", "status/desiredReplicas", 7]
["budget", "spec/minAvailable", 3]
["namespace", "metadata/labels", {"a": "b"}]
["volume", "spec/storageClassName", "x"]
["volume", "spec/persistentVolumeReclaimPolicy", "Delete"]
"""


def spoilings(lines: str) -> list[Spoiling]:
    """One for each JSON array; an array may go over several lines."""
    return [Spoiling(*msgspec.json.decode(line)) for line in lines.strip().replace("\n  ", " ").split("\n")]
