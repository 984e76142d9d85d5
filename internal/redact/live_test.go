package redact

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestLive_InvalidRules_PreviousRulesStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`rules: [{group: "", kinds: [A], path: a, action: drop}]`)
	metrics := NewMetrics("test")
	live, err := Open(path, metrics, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	changed := make(chan struct{}, 1)
	var running sync.WaitGroup
	running.Go(func() { live.Run(ctx, func() { changed <- struct{}{} }) })
	defer func() { cancel(); running.Wait() }()
	const object = `{"a":"1","b":"2","kind":"A"}`
	expect := func(want string, rules, failing float64) {
		t.Helper()
		if got := live.Current().Document(object); got != want {
			t.Errorf("the rules make it %s, want %s", got, want)
		}
		if gotRules, gotFailing := testutil.ToFloat64(metrics.InUse), testutil.ToFloat64(metrics.Rejected); gotRules != rules || gotFailing != failing {
			t.Errorf("the metrics are %v rules, %v failing, want %v and %v", gotRules, gotFailing, rules, failing)
		}
	}
	expect(`{"a":"[redacted]","b":"2","kind":"A"}`, 1, 0)
	write(`rules: [{}]`)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(30 * time.Second); testutil.ToFloat64(metrics.Rejected) == 0; {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the metric does not show the invalid rules")
		}
	}
	expect(`{"a":"[redacted]","b":"2","kind":"A"}`, 1, 1)
	write(`rules: [{group: "", kinds: [A], path: b, action: drop}, {group: "", kinds: [B], path: b, action: keep}]`)
	<-changed
	expect(`{"a":"1","b":"[redacted]","kind":"A"}`, 2, 0)
}

func TestLive_Nil_HasBuiltInRules(t *testing.T) {
	var live *Live
	if live.Current() != builtInRules || live.Collectors() != nil {
		t.Error("a nil Live has other rules than the built-in ones, or metrics")
	}
}
