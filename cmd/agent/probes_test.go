package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
)

type fakeDeclarations struct{ err error }

func (f fakeDeclarations) Ready(context.Context) error { return f.err }

type fakeInformers bool

func (f fakeInformers) Ready() bool { return bool(f) }

func TestReadiness_Check(t *testing.T) {
	leading := make(chan struct{})
	close(leading)
	tracked, untracked := fakeDeclarations{}, fakeDeclarations{errors.New("a workload is not tracked yet")}
	for _, tt := range []struct {
		reason string
		ready  readiness
		want   bool
	}{
		{"not started, without an election", readiness{make(chan struct{}), false, tracked, fakeInformers(true)}, false},
		{"waits to lead", readiness{make(chan struct{}), true, untracked, fakeInformers(false)}, true},
		{"leads, a workload is not tracked", readiness{leading, true, untracked, fakeInformers(true)}, false},
		{"leads, informers have not synced", readiness{leading, true, tracked, fakeInformers(false)}, false},
		{"leads", readiness{leading, true, tracked, fakeInformers(true)}, true},
	} {
		if err := tt.ready.check(httptest.NewRequestWithContext(t.Context(), "GET", "/readyz", nil)); (err == nil) != tt.want {
			t.Errorf("%s: got %v, want ready %t", tt.reason, err, tt.want)
		}
	}
}
