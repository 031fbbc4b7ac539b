// The oracle of autoscaling answers what Kubernetes' own HorizontalPodAutoscaler controller does with a series of looks at one
// autoscaler: one JSON line for one JSON line. Its clock is made: fifteen seconds between two looks take no time at all.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// question is one autoscaler and what there is at each look.
type question struct {
	Autoscaler *autoscalingv2.HorizontalPodAutoscaler `json:"autoscaler"`
	Replicas   int32                                  `json:"replicas"`
	Looks      []look                                 `json:"looks"`
}

type look struct {
	// Seconds since the look before.
	After float64 `json:"after"`
	// What a person has set meanwhile.
	Scaled *int32 `json:"scaled"`
	// Why the scale cannot be read, or cannot be written.
	NoScale string `json:"noScale"`
	NoWrite string `json:"noWrite"`
	// What the scale says of its pods; the pods that there are, and what is known of them.
	Selector  string                      `json:"selector"`
	Pods      []*v1.Pod                   `json:"pods"`
	Metrics   []metricsv1beta1.PodMetrics `json:"metrics"`
	NoMetrics string                      `json:"noMetrics"`
}

type seen struct {
	Replicas int32                                       `json:"replicas"`
	Status   autoscalingv2.HorizontalPodAutoscalerStatus `json:"status"`
	Events   []string                                    `json:"events"`
}

func main() {
	klog.SetLogger(logr.Discard()) // what it says is in what it does
	// One of them holds back who fails too often, by the real clock: on the made one for years.
	utilruntime.ErrorHandlers = nil
	// A made clock is only to be had in a test.
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "oracle", F: serve}}, nil, nil)
}

func serve(t *testing.T) {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(make([]byte, 1<<20), 1<<26)
	output := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(output)
	for input.Scan() {
		if len(input.Bytes()) == 0 { // an empty line ends a batch
			output.Flush()
			continue
		}
		if err := encoder.Encode(reply(t, input.Bytes())); err != nil {
			t.Fatal(err)
		}
	}
	output.Flush()
}

func reply(t *testing.T, line []byte) map[string]any {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return map[string]any{"error": fmt.Sprint(err)}
	}
	var answers []seen
	synctest.Test(t, func(*testing.T) { answers = play(asked) })
	return map[string]any{"looks": answers}
}

func play(asked question) []seen {
	stage := newStage(asked)
	defer stage.end()
	answers := make([]seen, 0, len(asked.Looks))
	for index := range asked.Looks {
		time.Sleep(time.Duration(asked.Looks[index].After * float64(time.Second)))
		answers = append(answers, stage.look(&asked.Looks[index]))
	}
	return answers
}
