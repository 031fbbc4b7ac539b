package main

import (
	"context"
	"errors"
	"testing/synctest"
	"time"
	_ "unsafe" // for go:linkname

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	typedautoscaling "k8s.io/client-go/kubernetes/typed/autoscaling/v2"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	autoscalinglisters "k8s.io/client-go/listers/autoscaling/v2"
	corelisters "k8s.io/client-go/listers/core/v1"
	scaleclient "k8s.io/client-go/scale"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	resourceclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
)

// reconcileKey is one look: what the controller does when its queue hands out a name.
//
//go:linkname reconcileKey k8s.io/kubernetes/pkg/controller/podautoscaler.(*HorizontalController).reconcileKey
func reconcileKey(*podautoscaler.HorizontalController, context.Context, string) (bool, error)

// stage is all that the controller sees of a cluster: it answers as the current look says.
type stage struct {
	controller *podautoscaler.HorizontalController
	context    context.Context
	cancel     context.CancelFunc
	key        string
	now        *look
	replicas   int32
	events     []string
	autoscaler cache.SharedIndexInformer
	pods       cache.SharedIndexInformer
}

func newStage(asked question) *stage {
	s := &stage{replicas: asked.Replicas, key: asked.Autoscaler.Namespace + "/" + asked.Autoscaler.Name}
	s.context, s.cancel = context.WithCancel(context.Background())
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	s.autoscaler = cache.NewSharedIndexInformer(&cache.ListWatch{}, &autoscalingv2.HorizontalPodAutoscaler{}, 0, byNamespace)
	s.pods = cache.NewSharedIndexInformer(&cache.ListWatch{}, &v1.Pod{}, 0, byNamespace)
	must(s.autoscaler.GetIndexer().Add(asked.Autoscaler))
	client := metrics.NewRESTMetricsClient(podMetricses{stage: s}, nil, nil)
	// The rest as kube-controller-manager has it by default.
	s.controller = podautoscaler.NewHorizontalController(
		s.context, events{stage: s}, scales{stage: s}, autoscalers{stage: s}, mapper{}, client,
		autoscalerInformer{s.autoscaler}, podInformer{s.pods}, 15*time.Second, 5*time.Minute, 0.1, 5*time.Minute, 30*time.Second,
	)
	return s
}

func (s *stage) look(now *look) seen {
	s.now, s.events = now, []string{}
	if now.Scaled != nil {
		s.replicas = *now.Scaled
	}
	objects := make([]any, 0, len(now.Pods))
	for _, pod := range now.Pods {
		objects = append(objects, pod)
	}
	must(s.pods.GetIndexer().Replace(objects, ""))
	_, _ = reconcileKey(s.controller, s.context, s.key) // what fails is in the status
	synctest.Wait()                                     // until the events are told
	found, _, err := s.autoscaler.GetIndexer().GetByKey(s.key)
	must(err)
	return seen{s.replicas, found.(*autoscalingv2.HorizontalPodAutoscaler).Status, s.events}
}

// end lets all that the controller has started end: else its clock could not.
func (s *stage) end() {
	s.cancel()
	s.controller.Run(s.context, 0) // shuts its queue down, and does no work
	synctest.Wait()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

type autoscalerInformer struct{ informer cache.SharedIndexInformer }

func (a autoscalerInformer) Informer() cache.SharedIndexInformer { return a.informer }
func (a autoscalerInformer) Lister() autoscalinglisters.HorizontalPodAutoscalerLister {
	return autoscalinglisters.NewHorizontalPodAutoscalerLister(a.informer.GetIndexer())
}

type podInformer struct{ informer cache.SharedIndexInformer }

func (p podInformer) Informer() cache.SharedIndexInformer { return p.informer }
func (p podInformer) Lister() corelisters.PodLister {
	return corelisters.NewPodLister(p.informer.GetIndexer())
}

// mapper knows of one kind.
type mapper struct{ apimeta.RESTMapper }

func (mapper) RESTMappings(kind schema.GroupKind, _ ...string) ([]*apimeta.RESTMapping, error) {
	return []*apimeta.RESTMapping{{Resource: schema.GroupVersionResource{Group: kind.Group, Version: "v1", Resource: "targets"}}}, nil
}

type scales struct {
	scaleclient.ScaleInterface
	stage *stage
}

func (s scales) Scales(string) scaleclient.ScaleInterface { return s }

func (s scales) Get(context.Context, schema.GroupResource, string, metav1.GetOptions) (*autoscalingv1.Scale, error) {
	if s.stage.now.NoScale != "" {
		return nil, errors.New(s.stage.now.NoScale)
	}
	status := autoscalingv1.ScaleStatus{Replicas: s.stage.replicas, Selector: s.stage.now.Selector}
	return &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: s.stage.replicas}, Status: status}, nil
}

func (s scales) Update(
	_ context.Context, _ schema.GroupResource, scale *autoscalingv1.Scale, _ metav1.UpdateOptions,
) (*autoscalingv1.Scale, error) {
	if s.stage.now.NoWrite != "" {
		return nil, errors.New(s.stage.now.NoWrite)
	}
	s.stage.replicas = scale.Spec.Replicas
	return scale, nil
}

type autoscalers struct {
	typedautoscaling.HorizontalPodAutoscalerInterface
	stage *stage
}

func (a autoscalers) HorizontalPodAutoscalers(string) typedautoscaling.HorizontalPodAutoscalerInterface {
	return a
}

func (a autoscalers) UpdateStatus(
	_ context.Context, autoscaler *autoscalingv2.HorizontalPodAutoscaler, _ metav1.UpdateOptions,
) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	return autoscaler, a.stage.autoscaler.GetIndexer().Update(autoscaler.DeepCopy())
}

type podMetricses struct {
	resourceclient.PodMetricsInterface
	stage *stage
}

func (p podMetricses) PodMetricses(string) resourceclient.PodMetricsInterface { return p }

func (p podMetricses) List(context.Context, metav1.ListOptions) (*metricsv1beta1.PodMetricsList, error) {
	if p.stage.now.NoMetrics != "" {
		return nil, errors.New(p.stage.now.NoMetrics)
	}
	return &metricsv1beta1.PodMetricsList{Items: p.stage.now.Metrics}, nil
}

// events writes down what is told for the first time.
type events struct {
	typedcore.EventInterface
	stage *stage
}

func (e events) Events(string) typedcore.EventInterface { return e }

func (e events) CreateWithEventNamespace(event *v1.Event) (*v1.Event, error) {
	e.stage.events = append(e.stage.events, event.Type+" "+event.Reason+" "+event.Message)
	return event, nil
}

func (e events) PatchWithEventNamespace(event *v1.Event, _ []byte) (*v1.Event, error) {
	return event, nil
}
