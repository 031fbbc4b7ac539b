// The oracle answers what Kubernetes' own code makes of an input, one JSON line for one JSON line.
// The unit tests of herder/api ask it, so that "as Kubernetes does" is measured and not believed.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// question holds the inputs of every operation; each uses those that it needs.
type question struct {
	Op       string                `json:"op"`
	Text     string                `json:"text"`
	Other    string                `json:"other"`
	Number   int64                 `json:"number"`
	RoundUp  bool                  `json:"roundUp"`
	Value    *intstr.IntOrString   `json:"value"`
	Labels   []map[string]string   `json:"labels"`
	Selector *metav1.LabelSelector `json:"selector"`
	Nodes    *v1.NodeSelector      `json:"nodes"`
	Names    []string              `json:"names"`
}

type answer map[string]any

var operations = map[string]func(question) (answer, error){
	"quantity":      quantity,
	"quantities":    quantities,
	"duration":      duration,
	"durationText":  durationText,
	"scaled":        scaled,
	"labels":        labelText,
	"labelSelector": labelSelector,
	"fields":        fieldText,
	"nodes":         nodes,
	"names":         names,
	"shape":         shape,
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

func reply(line []byte) answer {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{"error": err.Error()}
	}
	operation, known := operations[asked.Op]
	if !known {
		return answer{"error": "unknown op " + asked.Op}
	}
	said, err := operation(asked)
	if err != nil {
		return answer{"error": err.Error()}
	}
	return said
}

func decoded(text string) (resource.Quantity, error) {
	var amount resource.Quantity
	encoded, err := json.Marshal(text)
	if err != nil {
		return amount, err
	}
	return amount, json.Unmarshal(encoded, &amount)
}

func quantity(asked question) (answer, error) {
	amount, err := decoded(asked.Text)
	if err != nil {
		return nil, err
	}
	format := string(amount.Format)
	return answer{"string": amount.String(), "format": format, "sign": amount.Sign(), "value": amount.Value(), "milli": amount.MilliValue()}, nil
}

func quantities(asked question) (answer, error) {
	left, err := decoded(asked.Text)
	if err != nil {
		return nil, err
	}
	right, err := decoded(asked.Other)
	if err != nil {
		return nil, err
	}
	sum, difference := left.DeepCopy(), left.DeepCopy()
	sum.Add(right)
	difference.Sub(right)
	return answer{"compare": left.Cmp(right), "sum": sum.String(), "difference": difference.String()}, nil
}

func duration(asked question) (answer, error) {
	length, err := time.ParseDuration(asked.Text)
	if err != nil {
		return nil, err
	}
	return answer{"nanos": int64(length), "string": length.String()}, nil
}

func durationText(asked question) (answer, error) {
	return answer{"string": time.Duration(asked.Number).String()}, nil
}

func scaled(asked question) (answer, error) {
	value, err := intstr.GetScaledValueFromIntOrPercent(asked.Value, int(asked.Number), asked.RoundUp)
	if err != nil {
		return nil, err
	}
	return answer{"value": value}, nil
}

func matches(selector labels.Selector, sets []map[string]string) []bool {
	found := make([]bool, 0, len(sets))
	for _, set := range sets {
		found = append(found, selector.Matches(labels.Set(set)))
	}
	return found
}

func labelText(asked question) (answer, error) {
	selector, err := labels.Parse(asked.Text)
	if err != nil {
		return nil, err
	}
	return answer{"string": selector.String(), "empty": selector.Empty(), "matches": matches(selector, asked.Labels)}, nil
}

func labelSelector(asked question) (answer, error) {
	problems := []string{}
	for _, problem := range metavalidation.ValidateLabelSelector(asked.Selector, metavalidation.LabelSelectorValidationOptions{}, field.NewPath("spec")) {
		problems = append(problems, problem.Error())
	}
	selector, err := metav1.LabelSelectorAsSelector(asked.Selector)
	if err != nil {
		return answer{"problems": problems, "refused": true}, nil
	}
	return answer{"problems": problems, "string": selector.String(), "empty": selector.Empty(), "matches": matches(selector, asked.Labels)}, nil
}

func fieldText(asked question) (answer, error) {
	selector, err := fields.ParseSelector(asked.Text)
	if err != nil {
		return nil, err
	}
	found := []bool{}
	for _, set := range asked.Labels {
		found = append(found, selector.Matches(fields.Set(set)))
	}
	return answer{"string": selector.String(), "empty": selector.Empty(), "matches": found}, nil
}

func nodes(asked question) (answer, error) {
	selector := nodeaffinity.NewLazyErrorNodeSelector(asked.Nodes)
	_, wrong := nodeaffinity.NewNodeSelector(asked.Nodes)
	found := []bool{}
	for index, set := range asked.Labels {
		node := v1.Node{ObjectMeta: metav1.ObjectMeta{Name: asked.Names[index], Labels: set}}
		match, _ := selector.Match(&node)
		found = append(found, match)
	}
	said := answer{"matches": found, "wrong": ""}
	if wrong != nil {
		said["wrong"] = wrong.Error()
	}
	return said, nil
}

func names(asked question) (answer, error) {
	name := asked.Text
	return answer{
		"dns_label":         validation.IsDNS1123Label(name),
		"dns_subdomain":     validation.IsDNS1123Subdomain(name),
		"dns_1035_label":    validation.IsDNS1035Label(name),
		"qualified_name":    validation.IsQualifiedName(name),
		"label_value":       validation.IsValidLabelValue(name),
		"environment_name":  validation.IsRelaxedEnvVarName(name),
		"config_key":        validation.IsConfigMapKey(name),
		"c_identifier":      validation.IsCIdentifier(name),
		"port_name":         validation.IsValidPortName(name),
		"path_segment":      path.IsValidPathSegmentName(name),
		"name_is_subdomain": apivalidation.NameIsDNSSubdomain(name, true),
		"name_is_label":     apivalidation.NameIsDNSLabel(name, true),
	}, nil
}
