package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
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
