package informers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// clientsOf returns clients of a server that a test writes.
func clientsOf(t *testing.T, serve http.HandlerFunc) *Clients {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	clients, err := NewClients(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

// An aggregated API may answer discovery with any number of bytes.
func TestDiscovery_LargeAnswer_IsNotRead(t *testing.T) {
	const size = 64 << 20
	written := make(chan int64, 10)
	clients := clientsOf(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"evil.example/v1","resources":[`)
		n, _ := io.CopyN(w, spaces{}, size)
		_, _ = io.WriteString(w, "]}")
		written <- n
	})
	_, err := clients.resolve(t.Context(), schema.GroupVersionKind{Group: "evil.example", Version: "v1", Kind: "X"}, false)
	if !errors.Is(err, errLargeAnswer) {
		t.Errorf("the error is %v, want %v", err, errLargeAnswer)
	}
	if n := <-written; n >= size {
		t.Errorf("%d bytes were read, want about %d", n, maxDiscoveryBytes)
	}
}

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// Anybody who may create objects may give them a megabyte of finalizers. Few of them are in one answer.
func TestEachMetadata_LargeObjects_AreReadInSmallPages(t *testing.T) {
	const objects, finalizers = 40, 100_000 // 0.6 MB each
	long := strings.Split(strings.Repeat("a/b,", finalizers), ",")[:finalizers]
	largest := 0
	clients := clientsOf(t, func(w http.ResponseWriter, r *http.Request) {
		first, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		var page metav1.PartialObjectMetadataList
		page.APIVersion, page.Kind = "meta.k8s.io/v1", "PartialObjectMetadataList"
		for i := first; i < min(first+limit, objects); i++ {
			page.Items = append(page.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i), Finalizers: long}})
			page.Continue = strconv.Itoa(i + 1)
		}
		if first+limit >= objects {
			page.Continue = ""
		}
		body, err := json.Marshal(page)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		if n, err := w.Write(body); err == nil && n <= maxMetadataBytes {
			largest = max(largest, len(page.Items))
		}
	})
	var names []string
	err := clients.eachMetadata(t.Context(), schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "app", func(o *metav1.PartialObjectMetadata) {
		names = append(names, o.Name)
	})
	if err != nil || len(names) != objects || names[objects-1] != fmt.Sprint(objects-1) {
		t.Errorf("%d objects were visited: %v; want %d in their order", len(names), err, objects)
	}
	if largest == 0 || largest > 10 {
		t.Errorf("the largest page has %d objects, want few", largest)
	}
}
