package notify

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestV0Sender_EventRepeat_UpdatesTheRow(t *testing.T) {
	p := newReferenceAPI(t)
	ev := p.event("uid-1", "1")
	ev.ResourceID = p.resource
	repeat := ev
	repeat.ResourceVersion, repeat.Message = "2", "again"
	b := p.deliver(ev, repeat)
	p.expectRequests("POST workload-events", "PATCH workload-events")
	rows := p.events()
	if len(rows) != 1 || rows[0].Message != "again" || rows[0].RuntimeEventUID != "uid-1" || rows[0].Type != "Warning" || rows[0].Reason != "BackOff" {
		t.Fatalf("rows are %+v", rows)
	}
	if want := time.Date(2026, 1, 2, 2, 4, 5, 123456000, time.UTC); !rows[0].Timestamp.Equal(want) {
		t.Errorf("it happened at %s, want %s", rows[0].Timestamp, want)
	}
	if *rows[0].WorkloadInstanceID != p.instance.ID || *rows[0].WorkloadResourceInstanceID != p.resource || rows[0].HelmWorkloadInstanceID != nil {
		t.Errorf("rows are %+v", rows)
	}
	if got := b.box.Progress(p.instance); got.Accepted != 2 || got.Pending > 0 {
		t.Errorf("progress is %+v", got)
	}
}

func TestV0Sender_HelmEvent_HasTheHelmInstance(t *testing.T) {
	p := newReferenceAPI(t)
	ev := p.event("uid-1", "1")
	ev.Workload = p.helm
	p.deliver(ev)
	rows := p.events()
	if len(rows) != 1 || rows[0].WorkloadInstanceID != nil || rows[0].WorkloadResourceInstanceID != nil || *rows[0].HelmWorkloadInstanceID != p.helm.ID {
		t.Errorf("rows are %+v", rows)
	}
}

func TestV0Sender_AmbiguousPost_EndsInOneRow(t *testing.T) {
	const post, get, patch = "POST workload-events", "GET workload-events", "PATCH workload-events"
	tests := []struct {
		reason string
		cut    func(method string, n int) (reaches, answers bool)
		want   []string
	}{
		{
			"the answer is lost after the row was made",
			func(_ string, n int) (bool, bool) { return true, n > 1 },
			[]string{post, get, patch},
		},
		{
			"the request is lost",
			func(_ string, n int) (bool, bool) { return n > 1, n > 1 },
			[]string{post, get, post},
		},
		{
			"the answer is lost, and so is what is asked about it",
			func(_ string, n int) (bool, bool) { return n == 1 || n > 3, n > 3 },
			[]string{post, get, get, get, patch},
		},
		{
			"every answer to a POST is lost",
			func(method string, _ int) (bool, bool) { return true, method != http.MethodPost },
			[]string{post, get, patch},
		},
		{
			"the answer to the update is lost too",
			func(method string, n int) (bool, bool) { return true, method == http.MethodGet || n > 3 },
			[]string{post, get, patch, get, patch},
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			p := newReferenceAPI(t)
			p.cut = tt.cut
			b := p.deliver(p.event("uid-1", "1"))
			p.expectRequests(tt.want...)
			if rows := p.events(); len(rows) != 1 {
				t.Errorf("%d rows", len(rows))
			}
			expectLogged(t, b, 1, 1)
		})
	}
}

func TestV0Sender_DeletedRow_IsCreatedAgainOnce(t *testing.T) {
	p := newReferenceAPI(t)
	p.cut = func(_ string, n int) (bool, bool) {
		if n == 2 {
			for _, row := range p.events() {
				p.call("DELETE", fmt.Sprintf("/v0/workload-events/%d", row.ID), "")
			}
		}
		return true, n != 4
	}
	p.deliver(p.event("uid-1", "1"), p.event("uid-1", "2"))
	p.expectRequests("POST workload-events", "PATCH workload-events", "GET workload-events", "POST workload-events",
		"PATCH workload-events", "GET workload-events", "PATCH workload-events")
	if rows := p.events(); len(rows) != 1 || rows[0].Message != "message 2" {
		t.Errorf("rows are %+v", rows)
	}
}

func TestV0Sender_RepeatAfterAmbiguousPost_UpdatesTheRow(t *testing.T) {
	p := newReferenceAPI(t)
	p.cut = func(_ string, n int) (bool, bool) { return true, n > 1 }
	p.deliver(p.event("uid-1", "1"), p.event("uid-1", "2"), p.event("uid-1", "3"))
	p.expectRequests("POST workload-events", "GET workload-events", "PATCH workload-events", "PATCH workload-events")
	if rows := p.events(); len(rows) != 1 || rows[0].Message != "message 3" {
		t.Errorf("rows are %+v", rows)
	}
}

func TestV0Sender_Operation_UpdatesTheResource(t *testing.T) {
	const body = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"managedFields":[{"manager":"kubectl"}],"name":"web"},"spec":{"big":9007199254740993}}`
	p := newReferenceAPI(t)
	expect := func(word, definition string) {
		t.Helper()
		got := p.call("GET", fmt.Sprint("/v0/workload-resource-instances/", p.resource), "")[0]
		if got.LastOperation != word || string(got.RuntimeDefinition) != definition {
			t.Errorf("got %s %s\nwant %s %s", got.LastOperation, got.RuntimeDefinition, word, definition)
		}
	}
	const definition = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"big":9007199254740993}}`
	p.deliver(p.operation("1", body))
	expect("ADDED", definition)
	p.deliver(p.operation("1", body), p.operation("2", body))
	expect("MODIFIED", definition)
	deleted := p.operation("3", body)
	deleted.Deleted, deleted.Body = true, nil
	p.deliver(p.operation("2", body), deleted)
	expect("DELETED", definition)
}

func TestV0Sender_Status_UpdatesTheInstance(t *testing.T) {
	p := newReferenceAPI(t)
	p.deliver(observe.Status{Workload: p.instance, Status: "Healthy"})
	p.deliver(observe.Status{Workload: p.helm, Status: "Down"})
	p.expectRequests("PATCH workload-instances", "PATCH helm-workload-instances")
	if got := p.call("GET", "/v0/workload-instances?size=-1", "")[0].Status; got != "Healthy" {
		t.Errorf("the instance is %s", got)
	}
	if got := p.call("GET", "/v0/helm-workload-instances?size=-1", "")[0].Status; got != "Down" {
		t.Errorf("the helm instance is %s", got)
	}
}

func TestV0Sender_UnknownInstance_IsNotFound(t *testing.T) {
	p := newReferenceAPI(t)
	_, err := p.sender.Send(t.Context(), outbox.Item{Report: observe.Status{Workload: shop, Status: "Healthy"}})
	if threeport.KindOf(err) != threeport.KindNotFound {
		t.Errorf("the error is %v, want that of a missing row", err)
	}
	p.expectRequests("PATCH workload-instances")
}

func TestProtocolV0_Version(t *testing.T) {
	listed := observe.Operation{Attribution: target.Attribution{Listed: true, Resource: target.Resource{ID: 7}}}
	derived, helm := listed, listed
	derived.Attribution.Listed = false
	helm.Attribution.Resource.ID = 0
	for _, tt := range []struct {
		reason string
		report observe.Report
		want   bool
	}{
		{"a listed resource has a row", listed, true},
		{"a derived object has none", derived, false},
		{"a resource without an ID has none", helm, false},

		{"Events have rows of their own", observe.Event{}, true},
		{"an instance has a status", observe.Status{}, true},
		{"a tree has no place", observe.Tree{}, false},
	} {
		if _, got := ProtocolV0.Version(tt.report); got != tt.want {
			t.Errorf("%s: got %v", tt.reason, got)
		}
	}
}
