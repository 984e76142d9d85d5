package attacks

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// An agent reports long causes of many workloads while viewers have watches.
func TestMemory_WatchesReceiveLongCauses(t *testing.T) {
	const (
		workloads = 60
		watches   = 20
		sets      = 3
	)
	onDatabases(t, func(t *testing.T, address string) {
		t.Helper()
		a := newAPI(t, address)
		set := a.statuses(workloads, threeport.StatusReport{Status: "Down", Reason: "R", Cause: strings.Repeat("<", 64<<10)})
		a.start()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		received := make(chan struct{}, sets*watches*workloads)
		var viewers sync.WaitGroup
		for range watches {
			stream := a.openWatch(ctx)
			viewers.Go(func() {
				defer stream.Close() //nolint:errcheck // the test ends it
				lines := bufio.NewScanner(stream)
				lines.Buffer(nil, 1<<20)
				for lines.Scan() {
					if lines.Text() == "event: workload" {
						received <- struct{}{}
					}
				}
			})
		}
		for range sets {
			for i := range set.Reports {
				set.Reports[i].Version = threeport.ID(time.Now().UnixMicro())
			}
			a.sendCompressed(ctx, a.agent, set)
			for range watches * workloads {
				select {
				case <-received:
				case <-ctx.Done():
					t.Fatal("the watches do not receive all changes")
				}
			}
		}
		cancel()
		viewers.Wait()
		a.expectAlive()
	})
}

// Viewers resume watches on HTTP/2 connections, and give the server no window for the changes.
func TestMemory_ResumedWatchesAreNotRead(t *testing.T) {
	onDatabases(t, func(t *testing.T, address string) {
		t.Helper()
		a := newAPI(t, address)
		now := time.Now()
		insert := func(first, last int, texts string, age time.Duration) {
			t.Helper()
			a.exec(fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d)
				INSERT INTO workloads (type, id, name, cause, changedat) SELECT 'WorkloadInstance', i, 'w', '%s', %d FROM n`,
				first, last, texts, now.Add(-age).UnixMicro()))
		}
		insert(1, 4000, strings.Repeat("x", 2000), time.Hour)
		insert(4001, 4250, strings.Repeat("x", 1000), 20*time.Minute)
		a.start()
		a.resumeWatches(a.viewer, now.Add(-6*time.Hour))         // more rows than a watch replays
		a.resumeWatches(a.otherViewer, now.Add(-40*time.Minute)) // as many as it does
		a.expectAlive()
	})
}

// resumeWatches opens as many watches as a viewer may on six connections, and reads nothing but the headers of their answers.
func (a *api) resumeWatches(bearer string, since time.Time) {
	a.Helper()
	const streams = 32 // of a connection, the most
	fields := append(requestFields("/v0/workloads/watch", 0, ""),
		hpack.HeaderField{Name: "authorization", Value: bearer},
		hpack.HeaderField{Name: "last-event-id", Value: strconv.FormatInt(since.UnixMicro(), 10)})
	sent, err := requestsWithoutWindow(streams, fields)
	a.must(err)
	var viewers sync.WaitGroup
	for range 6 {
		viewers.Go(func() {
			answered := 0
			isLast := func(frame http2.Frame) bool {
				if frame.Header().Type == http2.FrameHeaders {
					answered++
				}
				return answered == streams
			}
			if err := a.holdAnswers(sent, isLast, patience); err != nil || answered != streams {
				a.Errorf("%d watches of a connection were answered, %v, want %d", answered, err, streams)
			}
		})
	}
	viewers.Wait()
}

// openWatch opens a watch of a viewer, which the caller closes.
func (a *api) openWatch(ctx context.Context) io.ReadCloser {
	a.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+"/v0/workloads/watch", http.NoBody)
	a.must(err)
	req.Header.Set("Authorization", a.viewer)
	resp, err := a.client.Do(req)
	a.must(err)
	if resp.StatusCode != http.StatusOK {
		a.Fatalf("a watch: the answer is %d, want %d", resp.StatusCode, http.StatusOK)
	}
	return resp.Body
}

// sendCompressed sends a report set, which is small when compressed.
func (a *api) sendCompressed(ctx context.Context, bearer string, set threeport.ReportSet) {
	a.Helper()
	a.must(a.trySendCompressed(ctx, bearer, set))
}

// trySendCompressed is sendCompressed that returns the error.
func (a *api) trySendCompressed(ctx context.Context, bearer string, set threeport.ReportSet) error {
	var body bytes.Buffer
	compressor := gzip.NewWriter(&body)
	encoder := json.NewEncoder(compressor)
	encoder.SetEscapeHTML(false)
	if err := errors.Join(encoder.Encode(set), compressor.Close()); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+"/v0/workload-report-sets", &body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", bearer)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Content-Encoding", "gzip")
	resp, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("a report set: the answer is %d %s, want %d", resp.StatusCode, text, http.StatusOK)
	}
	return err
}
