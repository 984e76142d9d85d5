package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
)

type fakeReconciler struct{ err error }

func (f fakeReconciler) Ready(context.Context) error { return f.err }

type fakeReporter bool

func (f fakeReporter) Ready() bool { return bool(f) }

func TestReadiness_Check(t *testing.T) {
	leading := make(chan struct{})
	close(leading)
	tracked, untracked := fakeReconciler{}, fakeReconciler{errors.New("a workload is not tracked yet")}
	for _, tt := range []struct {
		reason string
		ready  readiness
		want   bool
	}{
		{"not started, without an election", readiness{make(chan struct{}), false, tracked, fakeReporter(true)}, false},
		{"waits to lead", readiness{make(chan struct{}), true, untracked, fakeReporter(false)}, true},
		{"leads, a workload is not tracked", readiness{leading, true, untracked, fakeReporter(true)}, false},
		{"leads, informers have not synced", readiness{leading, true, tracked, fakeReporter(false)}, false},
		{"leads", readiness{leading, true, tracked, fakeReporter(true)}, true},
	} {
		if err := tt.ready.check(httptest.NewRequestWithContext(t.Context(), "GET", "/readyz", nil)); (err == nil) != tt.want {
			t.Errorf("%s: got %v, want ready %t", tt.reason, err, tt.want)
		}
	}
}

func TestWithoutReason_ErrorIsLoggedOnly(t *testing.T) {
	var logged strings.Builder
	log := funcr.New(func(_, args string) { logged.WriteString(args) }, funcr.Options{Verbosity: 1})
	req := httptest.NewRequestWithContext(t.Context(), "GET", "/readyz/caches", nil)
	for _, want := range []error{nil, errors.New("ThreeportWorkload payments is not tracked yet")} {
		got := withoutReason(func(*http.Request) error { return want }, log)(req)
		if (got == nil) != (want == nil) {
			t.Errorf("got error %v for a check with error %v", got, want)
		}
		if got != nil && strings.Contains(got.Error(), "payments") {
			t.Errorf("got error %q, want one without the name of the workload", got)
		}
	}
	if !strings.Contains(logged.String(), "payments") {
		t.Errorf("the log has %q, want the reason", logged.String())
	}
}
