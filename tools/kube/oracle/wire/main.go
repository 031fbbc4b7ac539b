// Answers how Kubernetes writes an object as protobuf, one JSON line for one JSON line:
// {"op":"tables"} describes every message, {"op":"encode","document":{...}} encodes one object.
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

type question struct {
	Op       string          `json:"op"`
	Kinds    []string        `json:"kinds"`
	Document json.RawMessage `json:"document"`
}

var scheme = func() *runtime.Scheme {
	made := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme, autoscalingv1.AddToScheme,
		autoscalingv2.AddToScheme, batchv1.AddToScheme,
		coordinationv1.AddToScheme, corev1.AddToScheme, eventsv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme,
		schedulingv1.AddToScheme, storagev1.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		if err := add(made); err != nil {
			panic(err)
		}
	}
	return made
}()

func main() {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(make([]byte, 1<<20), 1<<26)
	output := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(output)
	for input.Scan() {
		if len(input.Bytes()) == 0 { // an empty line ends a batch
			output.Flush()
			continue
		}
		said, err := reply(input.Bytes())
		if err != nil {
			said = map[string]any{"error": err.Error()}
		}
		if err := encoder.Encode(said); err != nil {
			panic(err)
		}
	}
	output.Flush()
}

func reply(line []byte) (any, error) {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, err
	}
	switch asked.Op {
	case "tables":
		return tables(asked.Kinds)
	case "encode":
		return encode(asked.Document)
	}
	return nil, fmt.Errorf("unknown op %q", asked.Op)
}

// encode answers the bytes that a Go client sends for a document, and the JSON that it would send instead.
func encode(document []byte) (any, error) {
	var head runtime.TypeMeta
	if err := json.Unmarshal(document, &head); err != nil {
		return nil, err
	}
	object, err := scheme.New(schema.FromAPIVersionAndKind(head.APIVersion, head.Kind))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(document, object); err != nil {
		return nil, err
	}
	var wire bytes.Buffer
	serializer := protobuf.NewSerializer(scheme, scheme)
	if err := serializer.Encode(object, &wire); err != nil {
		return nil, err
	}
	read, _, err := serializer.Decode(wire.Bytes(), nil, nil)
	if err != nil {
		return nil, err
	}
	return map[string]any{"wire": base64.StdEncoding.EncodeToString(wire.Bytes()), "document": read}, nil
}
