package controller

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// The lists of two of three ThreeportWorkloads fit. The youngest is excluded until an older one is deleted, or lists less.
func TestReconcile_TooManyResources_YoungestIsExcluded(t *testing.T) {
	w := newWorld(t)
	long := func(name string) *v1alpha1.ThreeportWorkload { return workload(name, "a", "b", "c", "d") }
	oldest, older, youngest := long("excluded-1"), long("excluded-2"), long("excluded-3")
	for _, wl := range []*v1alpha1.ThreeportWorkload{oldest, older, youngest} {
		w.create(wl)
	}
	size := func(wl *v1alpha1.ThreeportWorkload) int64 {
		one := NewResourceLists(math.MaxInt64)
		one.put(wl)
		return one.bytes
	}
	w.lists.maxBytes = 2*size(older) + size(older)/2
	reconcileAll := func() {
		for range 2 {
			w.clock = w.clock.Add(resyncInterval)
			for _, wl := range []*v1alpha1.ThreeportWorkload{youngest, older, oldest} {
				w.reconcile(wl.Name)
			}
		}
	}
	expect := func(when string, want ...string) {
		t.Helper()
		if got := w.targets.WorkloadNames(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s, %v are tracked, want %v", when, got, want)
		}
		if w.lists.bytes > 3*w.lists.maxBytes {
			t.Errorf("%s, the lists have %d bytes", when, w.lists.bytes)
		}
	}

	reconcileAll()
	expect("with three lists", oldest.Name, older.Name)
	status := w.stored(youngest.Name).Status
	watching := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionWatching)
	if watching == nil || watching.Status != metav1.ConditionFalse || watching.Reason != "TooManyResources" || !strings.Contains(watching.Message, "GOMEMLIMIT") {
		t.Errorf("the condition Watching is %+v, want False TooManyResources with a hint", watching)
	}
	if status.Health != "Unknown" || status.Reason != "TooManyResources" {
		t.Errorf("the health is %s %s, want Unknown TooManyResources", status.Health, status.Reason)
	}
	w.expectEnded(fmt.Sprintf("%s: ThreeportWorkload %s lists more resources than the agent has memory for", instanceOf(youngest), youngest.Name))
	if err := w.reconciler.Ready(t.Context()); err != nil {
		t.Errorf("the agent is not ready: %v", err)
	}

	w.must(shared.client.Delete(t.Context(), youngest))
	w.reconcile(youngest.Name)
	if w.stored(youngest.Name) != nil {
		t.Error("an excluded ThreeportWorkload waits for its deletion")
	}
	youngest = long(youngest.Name)
	w.create(youngest)
	reconcileAll()
	expect("after the youngest was created again", oldest.Name, older.Name)

	shorter := w.stored(older.Name)
	shorter.Spec.WorkloadResourceInstances = shorter.Spec.WorkloadResourceInstances[:1]
	w.must(shared.client.Update(t.Context(), shorter))
	reconcileAll()
	expect("with a shorter list", oldest.Name, older.Name, youngest.Name)
	if status := w.stored(youngest.Name).Status; status.Health != "Healthy" || len(status.Resources) != 4 {
		t.Errorf("the health is %s with %d resources, want Healthy with 4", status.Health, len(status.Resources))
	}

	longer := w.stored(oldest.Name)
	longer.Spec.WorkloadResourceInstances = long("").Spec.WorkloadResourceInstances
	for i := range 4 {
		longer.Spec.WorkloadResourceInstances = append(longer.Spec.WorkloadResourceInstances, workload("", fmt.Sprint("more-", i)).Spec.WorkloadResourceInstances...)
	}
	w.must(shared.client.Update(t.Context(), longer))
	reconcileAll()
	expect("with a longer list of the oldest", oldest.Name, older.Name)
	w.must(shared.client.Delete(t.Context(), longer))
	w.reconcile(longer.Name)
	reconcileAll()
	expect("without the oldest", older.Name, youngest.Name)

	moved := w.stored(youngest.Name)
	moved.Spec.WorkloadInstanceID++
	moved.Spec.WorkloadResourceInstances = slices.Concat(longer.Spec.WorkloadResourceInstances, workload("", "e", "f", "g", "h").Spec.WorkloadResourceInstances)
	w.must(shared.client.Update(t.Context(), moved))
	w.reporter.ended, w.delivery.forgot = nil, nil
	reconcileAll()
	expect("with a longer list of the youngest for another instance", older.Name)
	w.expectEnded(fmt.Sprintf("%s: ThreeportWorkload %s lists more resources than the agent has memory for", instanceOf(youngest), youngest.Name))
	if got := w.delivery.forgotten(); len(got) != 1 || got[0] != instanceOf(youngest) {
		t.Errorf("forgotten instances are %v, want %s", got, instanceOf(youngest))
	}
}

func TestResourceLists_Transform_TakesListAndUnusedMetadata(t *testing.T) {
	lists := NewResourceLists(math.MaxInt64)
	wl := workload("stripped", "a", "b")
	wl.UID, wl.Generation = "1", 3
	wl.Annotations = map[string]string{v1alpha1.AnnotationNamespaces: "a", v1alpha1.AnnotationRetryRejected: strings.Repeat("1", maxAnnotation+1), "kubectl.kubernetes.io/last-applied-configuration": "{}"}
	wl.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "a"}}
	wl.Labels = map[string]string{"a": "b"}
	wl.Finalizers = []string{"another", v1alpha1.Finalizer}
	whole := wl.DeepCopy()
	obj, err := lists.Transform(wl)
	if err != nil {
		t.Fatal(err)
	}
	kept := obj.(*v1alpha1.ThreeportWorkload)
	if len(kept.Spec.WorkloadResourceInstances) > 0 || len(kept.Annotations) != 1 || kept.Labels != nil || len(kept.Finalizers) != 1 || kept.Spec.WorkloadInstanceID == 0 {
		t.Errorf("the cache has %+v", kept)
	}
	if _, err := lists.Transform(kept); err != nil {
		t.Fatal(err)
	}
	list, err := lists.of(t.Context(), nil, kept)
	if err != nil || len(list.resources) != 2 || list.objectBytes != jsonBytes(whole) {
		t.Errorf("the list has %d resources of an object of %d bytes: %v; want 2 of %d", len(list.resources), list.objectBytes, err, jsonBytes(whole))
	}
	older := whole.DeepCopy()
	older.Generation = 2
	lists.put(older)
	if _, err := lists.of(t.Context(), nil, older); !errors.Is(err, errNewerList) {
		t.Errorf("the error for an older generation is %v, want %v", err, errNewerList)
	}
}
