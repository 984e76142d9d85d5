package worker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
)

func TestQueue_Work_RetriesAFailedKeyAndLogsItsFirstFailure(t *testing.T) {
	for _, tt := range []struct {
		reason string
		err    error
		logs   int
	}{
		{"a failure", errors.New("connection refused"), 1},
		{"a retry that is expected", ErrRetry, 0},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var logs []string
				log := funcr.New(func(_, args string) { logs = append(logs, args) }, funcr.Options{})
				queue := NewQueue[string]("")
				var at []time.Duration
				start := time.Now()
				process := func(context.Context, string) error {
					if at = append(at, time.Since(start)); len(at) <= 3 {
						return tt.err
					}
					return nil
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					queue.Work(t.Context(), process, log)
				}()
				queue.Add("web")
				time.Sleep(time.Minute)
				queue.ShutDown()
				<-done
				want := []time.Duration{0, retryMin, 3 * retryMin, 7 * retryMin}
				if !slices.Equal(at, want) || queue.NumRequeues("web") != 0 {
					t.Errorf("processed after %v, want %v", at, want)
				}
				if len(logs) != tt.logs || tt.logs > 0 && !strings.Contains(logs[0], `"key"="web" "error"="connection refused"`) {
					t.Errorf("logged %q, want %d lines", logs, tt.logs)
				}
			})
		})
	}
}

func TestQueue_ShutDown_EndsWorkAfterTheQueuedKeys(t *testing.T) {
	queue := NewQueue[int]("")
	for key := range 3 {
		queue.Add(key)
	}
	queue.ShutDown()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	processed := 0
	queue.Work(ctx, func(context.Context, int) error { processed++; return errors.New("canceled") }, funcr.New(
		func(_, args string) { t.Errorf("logged %s after the context has ended", args) }, funcr.Options{}))
	if processed != 3 {
		t.Errorf("processed %d keys, want 3, each once", processed)
	}
}
