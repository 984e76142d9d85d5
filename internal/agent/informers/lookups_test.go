package informers

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// ignore is a Handler that ignores all changes.
type ignore struct{}

func (ignore) ObjectChanged(target.Ref)          {}
func (ignore) KindChanged(schema.GroupKind)      {}
func (ignore) OwnersResolved()                   {}
func (ignore) EventChanged(types.NamespacedName) {}
func (ignore) EventDeleted(*corev1.Event)        {}
func (ignore) EventsListed()                     {}

// newEmptyCluster returns informers of an API server without objects, and a channel with an element for each look-up of a
// ConfigMap.
func newEmptyCluster(t *testing.T) (*Informers, <-chan struct{}) {
	t.Helper()
	read := make(chan struct{}, 10_000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		answer := `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList"}`
		switch {
		case strings.HasSuffix(req.URL.Path, "/api/v1"):
			answer = `{"apiVersion":"v1","kind":"APIResourceList","resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true}]}`
		case strings.HasSuffix(req.URL.Path, "/configmaps"):
			read <- struct{}{}
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	clients, err := NewClients(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return New(DefaultConfig(), clients, target.NewRegistry(), ignore{}, NewMetrics(prometheus.NewRegistry()), logr.Discard()), read
}

// runLookups looks up owners until the end of the test.
func runLookups(t *testing.T, s *Informers) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.lookups.run(ctx, s.config.LookupWorkers) })
	t.Cleanup(func() {
		s.Close()
		cancel()
		running.Wait()
	})
}

func unknownOwner(i int) target.Identity {
	return target.Identity{
		Ref: target.Ref{Kind: "ConfigMap", Namespace: "app", Name: fmt.Sprintf("owner-%d", i)}, UID: types.UID(fmt.Sprintf("uid-%d", i)),
	}
}

// Requests of new workloads need a burst, which a flood of unknown owners must not use.
func TestLookups_Flood_LeavesOtherRequestsTheirBurst(t *testing.T) {
	t.Parallel()
	s, read := newEmptyCluster(t)
	for i := range 1000 {
		s.LookUpOwners([]target.Identity{unknownOwner(i)})
	}
	runLookups(t, s)
	for range clientBurst + 10 { // would use up the burst of a shared limit
		<-read
	}
	limiter := s.clients.typed.CoreV1().RESTClient().GetRateLimiter()
	for i := range clientBurst {
		if !limiter.TryAccept() {
			t.Fatalf("request %d of %d waits during a flood of look-ups", i, clientBurst)
		}
	}
}

func TestLookups_MoreThanLimit_ArePostponed(t *testing.T) {
	t.Parallel()
	s, _ := newEmptyCluster(t)
	const share, owners = 5, 20
	s.lookups.limit = share * namespaceShare
	for i := range owners {
		o := target.Object{
			Identity: target.Identity{
				Ref: target.Ref{Kind: "Pod", Namespace: "app", Name: fmt.Sprintf("pod-%d", i)}, UID: types.UID(fmt.Sprintf("pod-%d", i)),
			},
			Owners: []target.Identity{unknownOwner(i)},
		}
		s.targets.Upsert(o)
		for range 2 { // a repeat takes no place
			s.LookUpOwners(s.targets.UnresolvedOwners(o.Identity))
		}
	}
	if got := s.lookups.size(); got != share {
		t.Errorf("%d look-ups are pending, want %d", got, share)
	}
	elsewhere := unknownOwner(owners)
	elsewhere.Namespace = "other"
	s.LookUpOwners([]target.Identity{elsewhere})
	if got := s.lookups.size(); got != share+1 {
		t.Errorf("with one of another namespace, %d look-ups are pending, want %d", got, share+1)
	}
	runLookups(t, s)
	known := func() (n int) {
		for i := range owners {
			if _, ok := s.targets.Object(unknownOwner(i).UID); ok {
				n++
			}
		}
		return n
	}
	for deadline := time.Now().Add(time.Minute); known() < owners; {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d owners are known, want all", known(), owners)
		}
		<-time.After(10 * time.Millisecond)
	}
}
