package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// countingDatabase counts its pings.
type countingDatabase struct {
	mu    sync.Mutex
	pings int
	err   error
}

func (d *countingDatabase) Ping(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pings++
	return d.err
}

func TestReady_ManyRequests_ShareAPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		database := &countingDatabase{}
		p := &probes{database: database, now: time.Now}
		probe := func(ctx context.Context) int {
			answer := httptest.NewRecorder()
			p.ready(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", http.NoBody))
			return answer.Code
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		var group sync.WaitGroup
		for range 1000 {
			group.Go(func() {
				if code := probe(gone); code != http.StatusOK {
					t.Errorf("the answer is %d, want %d", code, http.StatusOK)
				}
			})
		}
		group.Wait()
		if database.pings != 1 {
			t.Errorf("1000 probes pinged the database %d times, want once", database.pings)
		}
		database.err = errors.New("connection refused")
		time.Sleep(readyMaxAge)
		for range 2 {
			if code := probe(t.Context()); code != http.StatusServiceUnavailable {
				t.Errorf("without the database the answer is %d, want %d", code, http.StatusServiceUnavailable)
			}
		}
		if database.pings != 2 {
			t.Errorf("the database was pinged %d times, want twice", database.pings)
		}
	})
}
