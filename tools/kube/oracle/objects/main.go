// What the real API server's own code makes of an object that is created or updated: the object as it would be stored, or the
// refusal with its causes. One JSON line in, one out. The unit tests of herder/api/builtin ask it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

type question struct {
	Object json.RawMessage `json:"object"`
	Old    json.RawMessage `json:"old"`
}

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
		if err := encoder.Encode(reply(input.Bytes())); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	output.Flush()
}

func reply(line []byte) map[string]any {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return map[string]any{"unreadable": err.Error()}
	}
	stored, err := write(asked)
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
		return map[string]any{"refused": status.Status()}
	case err != nil:
		return map[string]any{"unreadable": err.Error()}
	default:
		return map[string]any{"stored": json.RawMessage(stored)}
	}
}

func write(asked question) ([]byte, error) {
	object, kind, scheme, err := decode(asked.Object)
	if err != nil {
		return nil, err
	}
	strategy, known := strategies[kind.GroupKind()]
	if !known {
		return nil, fmt.Errorf("no strategy for %s", kind)
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	ctx := genericapirequest.WithRequestInfo(
		genericapirequest.WithNamespace(context.Background(), accessor.GetNamespace()),
		&genericapirequest.RequestInfo{APIGroup: kind.Group, APIVersion: kind.Version, Namespace: accessor.GetNamespace()},
	)
	accessor.SetResourceVersion("")
	if asked.Old == nil {
		rest.FillObjectMetaSystemFields(accessor)
		err = rest.BeforeCreate(strategy, ctx, object)
	} else {
		err = update(ctx, strategy, object, asked.Old)
	}
	if err != nil {
		return nil, err
	}
	codec := serializer.NewCodecFactory(scheme).LegacyCodec(kind.GroupVersion())
	return runtime.Encode(codec, object)
}

func update(ctx context.Context, strategy rest.RESTCreateUpdateStrategy, object runtime.Object, old []byte) error {
	before, _, _, err := decode(old)
	if err != nil {
		return err
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	accessor.SetResourceVersion("1") // which version is replaced is not what is asked here
	return rest.BeforeUpdate(strategy, ctx, object, before)
}

// decode reads, defaults and converts, as the server does with a request's body.
func decode(body []byte) (runtime.Object, schema.GroupVersionKind, *runtime.Scheme, error) {
	var header metav1.TypeMeta
	if err := json.Unmarshal(body, &header); err != nil {
		return nil, schema.GroupVersionKind{}, nil, err
	}
	kind := header.GroupVersionKind()
	scheme := schemeOf(kind.Group)
	object, err := runtime.Decode(serializer.NewCodecFactory(scheme).UniversalDecoder(internal(kind.Group)), body)
	return object, kind, scheme, err
}

func internal(group string) schema.GroupVersion {
	return schema.GroupVersion{Group: group, Version: runtime.APIVersionInternal}
}
