package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/server"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// referenceAPI is the reference control plane with one instance of each type, behind a connection that can be cut.
type referenceAPI struct {
	t       *testing.T
	handler http.Handler
	sender  *V0Sender

	instance, helm target.Instance
	resource       int64

	mu       sync.Mutex
	requests []string
	// cut decides about a request: whether it reaches the server, and whether the answer comes back.
	cut func(method string, n int) (reaches, answers bool)
}

func newReferenceAPI(t *testing.T) *referenceAPI {
	t.Helper()
	opened, err := store.Open(t.Context(), store.Config{Address: "sqlite::memory:", StrictV0: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	p := &referenceAPI{t: t, handler: server.Handler(opened, slog.New(slog.DiscardHandler))}
	wire := httptest.NewServer(http.HandlerFunc(p.serve))
	wire.Config.SetKeepAlivesEnabled(false) // on a connection that it used before, a client repeats a GET by itself
	t.Cleanup(wire.Close)
	config := threeport.DefaultConfig()
	config.Server, config.AuthEnabled = wire.URL, false
	client, err := threeport.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	p.sender = NewV0Sender(client)
	p.instance = target.Instance{Type: target.WorkloadInstance, ID: p.create("workload-instances", `{"Name":"shop"}`)}
	p.helm = target.Instance{Type: target.HelmWorkloadInstance, ID: p.create("helm-workload-instances", `{"Name":"chart"}`)}
	p.resource = p.create("workload-resource-instances",
		fmt.Sprintf(`{"JSONDefinition":{},"WorkloadInstanceID":%d}`, p.instance.ID))
	return p
}

// serve records a request and loses it, or its answer, if the connection is cut.
func (p *referenceAPI) serve(w http.ResponseWriter, req *http.Request) {
	p.mu.Lock()
	p.requests = append(p.requests, req.Method+" "+strings.Split(req.URL.Path, "/")[2])
	reaches, answers := true, true
	if p.cut != nil {
		reaches, answers = p.cut(req.Method, len(p.requests))
	}
	p.mu.Unlock()
	if reaches && answers {
		p.handler.ServeHTTP(w, req)
		return
	}
	if reaches {
		p.handler.ServeHTTP(httptest.NewRecorder(), req)
	}
	panic(http.ErrAbortHandler)
}

func (p *referenceAPI) create(path, body string) int64 {
	p.t.Helper()
	return p.call(http.MethodPost, "/v0/"+path, body)[0].ID
}

// row has fields of rows of all types.
type row struct {
	ID                         int64
	RuntimeEventUID            string
	Type, Reason, Message      string
	Timestamp                  time.Time
	Status, LastOperation      string
	RuntimeDefinition          json.RawMessage
	WorkloadInstanceID         *int64
	HelmWorkloadInstanceID     *int64
	WorkloadResourceInstanceID *int64
}

// call makes a request that cannot be cut.
func (p *referenceAPI) call(method, path, body string) []row {
	p.t.Helper()
	var content io.Reader
	if body != "" {
		content = bytes.NewBufferString(body)
	}
	req := httptest.NewRequestWithContext(context.Background(), method, path, content)
	req.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	p.handler.ServeHTTP(answer, req)
	var envelope threeport.Response[row]
	if err := json.Unmarshal(answer.Body.Bytes(), &envelope); err != nil || answer.Code >= 300 {
		p.t.Fatalf("%s %s: %d %s", method, path, answer.Code, answer.Body)
	}
	return envelope.Data
}

func (p *referenceAPI) events() []row {
	p.t.Helper()
	return p.call("GET", "/v0/workload-events?size=-1", "")
}

// deliver sends a series of reports, each of which replaces the one before it while that is being sent.
func (p *referenceAPI) deliver(reports ...observe.Report) *bench {
	p.t.Helper()
	config := DefaultConfig()
	config.Concurrency = 1
	impatient := outbox.Config{Backoff: outbox.Backoff{Base: time.Microsecond, Max: time.Microsecond}}
	ctx, cancel := context.WithCancel(p.t.Context())
	defer cancel()
	var b *bench
	offer := func() {
		if len(reports) > 0 {
			b.box.Offer(reports[0])
			reports = reports[1:]
		}
		if len(reports) == 0 {
			cancel() // the rest is flushed
		}
	}
	b = newBenchOf(config, impatient, &script{answer: func(ctx context.Context, item outbox.Item) (outbox.Receipt, error) {
		offer()
		return p.sender.Send(ctx, item)
	}})
	offer()
	if err := b.Run(ctx); err != nil {
		p.t.Error(err)
	}
	return b
}

func (p *referenceAPI) expectRequests(want ...string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.requests, want) {
		p.t.Errorf("requests were %q, want %q", p.requests, want)
	}
}

// event returns an Event of the workload, in a version.
func (p *referenceAPI) event(uid types.UID, version string) observe.Event {
	return observe.Event{
		Workload: p.instance, UID: uid, ResourceVersion: version, Type: "Warning", Reason: "BackOff",
		Message: "message " + version, Time: time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.FixedZone("", 3600)),
	}
}

func (p *referenceAPI) operation(version string, body string) observe.Operation {
	p.t.Helper()
	ref := target.Ref{Group: "apps", Kind: "Deployment", Namespace: "app", Name: "web"}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(body)); err != nil {
		p.t.Fatal(err)
	}
	return observe.Operation{
		Attribution: target.Attribution{Instance: p.instance, Listed: true, Resource: target.Resource{Ref: ref, ID: p.resource}},
		Object:      target.Identity{Ref: ref, UID: "uid-web"}, ResourceVersion: version, Body: u,
	}
}
