package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Types whose JSON is not that of their fields.
var special = map[string]string{
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":                                             "Time",
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":                                        "MicroTime",
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":                                         "Json",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":                                          "Json",
	"k8s.io/apimachinery/pkg/api/resource.Quantity":                                         "Quantity",
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString":                                       "IntOrString",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON":                         "Json",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray":       "SchemaOrList",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool":        "SchemaOrBool",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray": "SchemaOrStrings",
}

var (
	unmarshaler = reflect.TypeFor[interface{ Unmarshal([]byte) error }]()
	marshaler   = reflect.TypeFor[json.Marshaler]()
)

// field is [number, JSON name, type, shape, when it is left out].
type field [5]any

type describer struct{ messages map[string][]field }

func tables(wanted []string) (answer any, err error) {
	defer func() {
		if wrong := recover(); wrong != nil {
			err = fmt.Errorf("%v", wrong)
		}
	}()
	made := describer{map[string][]field{}}
	kinds := map[string]string{}
	for _, one := range wanted {
		version, kind := one[:strings.LastIndex(one, "/")], one[strings.LastIndex(one, "/")+1:]
		object, err := scheme.New(schema.FromAPIVersionAndKind(version, kind))
		if err != nil {
			return nil, err
		}
		kinds[one] = made.message(reflect.TypeOf(object).Elem())
	}
	return map[string]any{"kinds": kinds, "messages": made.messages}, nil
}

func (d describer) message(t reflect.Type) string {
	name := short(t)
	if _, known := d.messages[name]; known {
		return name
	}
	d.messages[name] = nil
	fields := []field{}
	for index := range t.NumField() {
		one := t.Field(index)
		if tag := one.Tag.Get("protobuf"); tag != "" {
			fields = append(fields, d.field(one, tag))
		} else if one.Name != "TypeMeta" {
			panic(fmt.Sprintf("%s.%s is not in protobuf", name, one.Name))
		}
	}
	d.messages[name] = fields
	return name
}

func short(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	return strings.Join(append(parts[max(0, len(parts)-2):], t.Name()), ".")
}

func (d describer) field(one reflect.StructField, tag string) field {
	number, err := strconv.Atoi(strings.Split(tag, ",")[1])
	if err != nil {
		panic(err)
	}
	name, options, _ := strings.Cut(one.Tag.Get("json"), ",")
	left := ""
	if strings.Contains(options, "omitzero") {
		left = "zero"
	} else if strings.Contains(options, "omitempty") {
		left = "empty"
	}
	shape, element := shapeOf(one.Type)
	if name == "" && shape == "value" {
		if _, custom := special[one.Type.PkgPath()+"."+one.Type.Name()]; !custom && strings.Contains(options, "inline") {
			shape = "inline"
		}
	}
	if name == "" && shape != "inline" {
		name = strings.ToLower(one.Name[:1]) + one.Name[1:]
	}
	return field{number, name, d.element(element), shape, left}
}

func shapeOf(t reflect.Type) (string, reflect.Type) {
	switch {
	case wrapped(t):
		return "value", t
	case t.Kind() == reflect.Pointer:
		return "pointer", t.Elem()
	case t.Kind() == reflect.Map:
		if t.Key().Kind() != reflect.String {
			panic("a map without names: " + t.String())
		}
		return "map", t.Elem()
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return "list", t.Elem()
	}
	return "value", t
}

// wrapped: a list with a name of its own is a message with that list in it.
func wrapped(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && reflect.PointerTo(t).Implements(unmarshaler)
}

func (d describer) element(t reflect.Type) string {
	if wrapped(t) {
		if t.Elem().Kind() != reflect.String {
			panic("a list of something else: " + t.String())
		}
		return "Strings"
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int32, reflect.Int64, reflect.Float64:
		return t.Kind().String()
	case reflect.Slice:
		return "bytes"
	case reflect.Struct:
		return d.structured(t)
	}
	panic("no rule for " + t.String())
}

func (d describer) structured(t reflect.Type) string {
	custom, known := special[t.PkgPath()+"."+t.Name()]
	if !known {
		if reflect.PointerTo(t).Implements(marshaler) {
			panic(t.String() + " makes its own JSON")
		}
		return d.message(t)
	}
	if strings.HasPrefix(custom, "Schema") {
		// What is in it is one of two; the message says which.
		d.message(t)
	}
	return custom
}
