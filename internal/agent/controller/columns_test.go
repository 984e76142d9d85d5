package controller

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// table reads a workload as a table, as kubectl get does.
func (w *world) table(name string) (columns []metav1.TableColumnDefinition, cells []string) {
	w.Helper()
	config := rest.CopyConfig(shared.api.Config())
	config.GroupVersion, config.APIPath = &v1alpha1.GroupVersion, "/apis"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	c, err := rest.RESTClientFor(config)
	w.must(err)
	text, err := c.Get().Resource("threeportworkloads").Name(name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(w.Context()).Raw()
	w.must(err)
	var got metav1.Table
	w.must(json.Unmarshal(text, &got))
	if len(got.Rows) != 1 {
		w.Fatalf("the table has %d rows", len(got.Rows))
	}
	for _, cell := range got.Rows[0].Cells {
		cells = append(cells, fmt.Sprint(cell))
	}
	return got.ColumnDefinitions, cells
}

func TestCRD_PrinterColumns(t *testing.T) {
	w := newWorld(t)
	wl := workload("columns", "a", "b", "c", "d")
	w.create(wl)
	columns, cells := w.table(wl.Name)
	var narrow, wide []string
	for _, c := range columns {
		if c.Priority > 0 {
			wide = append(wide, c.Name)
		} else {
			narrow = append(narrow, c.Name)
		}
	}
	if want := []string{"Name", "Status", "Ready", "Pods", "Delivered", "Confirmed", "Age"}; !slices.Equal(narrow, want) {
		t.Errorf("the columns are %v, want %v", narrow, want)
	}
	if want := []string{"Reason"}; !slices.Equal(wide, want) {
		t.Errorf("the additional columns of -o wide are %v, want %v", wide, want)
	}
	if len(cells) != len(columns) {
		t.Fatalf("%d cells in %d columns", len(cells), len(columns))
	}

	cause := "5 pods ImagePullBackOff: image example/app:9 cannot be pulled → ReplicaSet web-78 → Deployment web has 0 of 5 replicas ready"
	statuses := observedStatuses(wl, "Healthy", "")
	statuses[0].Health, statuses[0].Cause, statuses[0].Pods = "Down", cause, target.Count{Total: 5}
	statuses[1].Pods = target.Count{Total: 3, Healthy: 3}
	statuses[2].Pods, statuses[3].Pods = target.Count{}, target.Count{}
	w.reporter.set(func(f *fakeReporter) { f.statuses, f.labelled = statuses, target.Count{Total: 2, Healthy: 1} })
	w.verdict("Down", "ImagePullBackOff", cause)
	w.delivery.set(target.DeliveryProgress{Pending: 3, Since: w.clock.Add(-time.Minute)})
	w.reconcile(wl.Name)
	_, cells = w.table(wl.Name)
	if want := []string{"columns", "Down", "3/4", "4/10", "False"}; !slices.Equal(cells[:5], want) || cells[7] != cause {
		t.Errorf("the row is %q, want %q and %q", cells, want, cause)
	}

	w.reporter.set(func(f *fakeReporter) { f.statuses, f.labelled = observedStatuses(wl, "Healthy", ""), target.Count{} })
	w.verdict("Healthy", "", "")
	w.delivery.set(target.DeliveryProgress{})
	w.clock = w.clock.Add(statusInterval)
	w.reconcile(wl.Name)
	_, cells = w.table(wl.Name)
	if want := []string{"columns", "Healthy", "4/4", "1996/2000", "True"}; !slices.Equal(cells[:5], want) || strings.Trim(cells[7], "<nil>") != "" {
		t.Errorf("the row is %q, want %q", cells, want)
	}
}
