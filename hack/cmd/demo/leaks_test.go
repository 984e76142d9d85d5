package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

func TestLeakDetector_Check_NamesPlaces(t *testing.T) {
	leaks := newLeakDetector(http.DefaultTransport)
	encoded := base64.StdEncoding.EncodeToString([]byte(leaks.secret))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := "nothing"
		switch r.URL.Path {
		case "/plain":
			body = "the value " + leaks.secret
		case "/encoded":
			body = "the value " + encoded
		}
		_, _ = fmt.Fprint(w, body)
	}))
	defer server.Close()
	for _, path := range []string{"/plain", "/encoded", "/clean"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := leaks.client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || len(body) == 0 {
			t.Errorf("GET %s: expected the body to be left to the reader, got %q, %v", path, body, err)
		}
	}
	var want []string
	for _, place := range []string{"the answer to GET /encoded", "the answer to GET /plain", "the log of the agent"} {
		want = append(want, "web: expected the agent to keep the Secret's value in the cluster, it is in "+place)
	}
	if got := leaks.check(map[string]string{"agent": "… " + encoded, "control-plane API": "clean"}); !slices.Equal(got, want) {
		t.Errorf("expected %q, got %q", want, got)
	}
}
