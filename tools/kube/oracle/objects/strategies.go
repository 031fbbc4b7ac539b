package main

import (
	crdinstall "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	"k8s.io/kubernetes/pkg/registry/apps/controllerrevision"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/event"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
)

const (
	crdGroup  = "apiextensions.k8s.io"
	rbacGroup = "rbac.authorization.k8s.io"
)

var crdScheme = runtime.NewScheme()

var strategies map[schema.GroupKind]rest.RESTCreateUpdateStrategy

func init() {
	crdinstall.Install(crdScheme)
	strategies = map[schema.GroupKind]rest.RESTCreateUpdateStrategy{
		{Kind: "ConfigMap"}:             configmap.Strategy,
		{Kind: "Event"}:                 event.Strategy,
		{Kind: "Namespace"}:             namespace.Strategy,
		{Kind: "Node"}:                  node.Strategy,
		{Kind: "PersistentVolume"}:      persistentvolume.Strategy,
		{Kind: "PersistentVolumeClaim"}: persistentvolumeclaim.Strategy,
		{Kind: "Pod"}:                   pod.Strategy,
		{Kind: "Secret"}:                secret.Strategy,
		{Kind: "ServiceAccount"}:        serviceaccount.Strategy,
		{Group: crdGroup, Kind: "CustomResourceDefinition"}:     customresourcedefinition.NewStrategy(crdScheme),
		{Group: "apps", Kind: "ControllerRevision"}:             controllerrevision.Strategy,
		{Group: "apps", Kind: "DaemonSet"}:                      daemonset.Strategy,
		{Group: "apps", Kind: "Deployment"}:                     deployment.Strategy,
		{Group: "apps", Kind: "ReplicaSet"}:                     replicaset.Strategy,
		{Group: "apps", Kind: "StatefulSet"}:                    statefulset.Strategy,
		{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: horizontalpodautoscaler.Strategy,
		{Group: "batch", Kind: "CronJob"}:                       cronjob.Strategy,
		{Group: "batch", Kind: "Job"}:                           job.Strategy,
		{Group: "coordination.k8s.io", Kind: "Lease"}:           lease.Strategy,
		{Group: "events.k8s.io", Kind: "Event"}:                 event.Strategy,
		{Group: "policy", Kind: "PodDisruptionBudget"}:          poddisruptionbudget.Strategy,
		{Group: rbacGroup, Kind: "ClusterRole"}:                 clusterrole.Strategy,
		{Group: rbacGroup, Kind: "ClusterRoleBinding"}:          clusterrolebinding.Strategy,
		{Group: rbacGroup, Kind: "Role"}:                        role.Strategy,
		{Group: rbacGroup, Kind: "RoleBinding"}:                 rolebinding.Strategy,
		{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:     priorityclass.Strategy,
		{Group: "storage.k8s.io", Kind: "StorageClass"}:         storageclass.Strategy,
	}
}

func schemeOf(group string) *runtime.Scheme {
	if group == crdGroup {
		return crdScheme
	}
	return legacyscheme.Scheme
}
