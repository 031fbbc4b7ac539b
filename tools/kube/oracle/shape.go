package main

import (
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

var kinds = map[string]any{
	"/ConfigMap":             v1.ConfigMap{},
	"/Event":                 v1.Event{},
	"/Namespace":             v1.Namespace{},
	"/Node":                  v1.Node{},
	"/PersistentVolume":      v1.PersistentVolume{},
	"/PersistentVolumeClaim": v1.PersistentVolumeClaim{},
	"/Pod":                   v1.Pod{},
	"/Secret":                v1.Secret{},
	"/ServiceAccount":        v1.ServiceAccount{},
	"apiextensions.k8s.io/CustomResourceDefinition": apiextensionsv1.CustomResourceDefinition{},
	"apps/ControllerRevision":                       appsv1.ControllerRevision{},
	"apps/DaemonSet":                                appsv1.DaemonSet{},
	"apps/Deployment":                               appsv1.Deployment{},
	"apps/ReplicaSet":                               appsv1.ReplicaSet{},
	"apps/StatefulSet":                              appsv1.StatefulSet{},
	"autoscaling/HorizontalPodAutoscaler":           autoscalingv2.HorizontalPodAutoscaler{},
	"batch/CronJob":                                 batchv1.CronJob{},
	"batch/Job":                                     batchv1.Job{},
	"coordination.k8s.io/Lease":                     coordinationv1.Lease{},
	"events.k8s.io/Event":                           eventsv1.Event{},
	"policy/PodDisruptionBudget":                    policyv1.PodDisruptionBudget{},
	"rbac.authorization.k8s.io/ClusterRole":         rbacv1.ClusterRole{},
	"rbac.authorization.k8s.io/ClusterRoleBinding":  rbacv1.ClusterRoleBinding{},
	"rbac.authorization.k8s.io/Role":                rbacv1.Role{},
	"rbac.authorization.k8s.io/RoleBinding":         rbacv1.RoleBinding{},
	"scheduling.k8s.io/PriorityClass":               schedulingv1.PriorityClass{},
	"storage.k8s.io/StorageClass":                   storagev1.StorageClass{},
}

// Types that are one JSON value, whatever Go holds in them.
var scalars = map[string]string{
	"Time":            "time",
	"MicroTime":       "time",
	"Quantity":        "quantity",
	"IntOrString":     "int-or-string",
	"RawExtension":    "any",
	"JSON":            "any",
	"JSONSchemaProps": "any",
	"FieldsV1":        "any",
}

// shape says which fields a kind has in JSON, and of what type, down to the leaves.
func shape(asked question) (answer, error) {
	return answer{"shape": shapeOf(reflect.TypeOf(kinds[asked.Text]))}, nil
}

func shapeOf(t reflect.Type) any {
	if scalar, known := scalars[t.Name()]; known {
		return scalar
	}
	switch t.Kind() {
	case reflect.Pointer:
		return shapeOf(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return []any{shapeOf(t.Elem())}
	case reflect.Map:
		return map[string]any{"*": shapeOf(t.Elem())}
	case reflect.Struct:
		fields := map[string]any{}
		addFields(t, fields)
		return fields
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	default:
		return "integer"
	}
}

func addFields(t reflect.Type, fields map[string]any) {
	for index := range t.NumField() {
		field := t.Field(index)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "":
			addFields(field.Type, fields) // embedded, written inline
		default:
			fields[name] = shapeOf(field.Type)
		}
	}
}
