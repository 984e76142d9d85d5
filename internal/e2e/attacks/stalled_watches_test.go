package attacks

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// Three principals open watches between the report sets of an agent with long causes, and read only the first changes. So each group of watches
// has received other versions of all rows.
func TestMemory_WatchesStallAtDifferentVersions(t *testing.T) {
	const (
		workloads   = 900
		groups      = 3  // of watches of a principal
		connections = 2  // of a group
		watches     = 32 // of a connection, the most
	)
	onDatabases(t, func(t *testing.T, address string) {
		t.Helper()
		a := newAPI(t, address)
		set := a.statuses(workloads, threeport.StatusReport{Status: "Down", Reason: "R"})
		a.start()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		for range groups {
			for _, viewer := range []string{a.viewer, a.otherViewer, a.admin} {
				for range connections {
					a.openStalledWatches(viewer, watches)
				}
				for i := range set.Reports {
					set.Reports[i].Version = threeport.ID(time.Now().UnixMicro())
					set.Reports[i].Status.Cause = time.Now().String() + strings.Repeat("\U0001F600", 4000) // four bytes each
				}
				a.sendCompressed(ctx, a.agent, set)
			}
		}
		a.expectAlive()
	})
}

// openStalledWatches opens watches on a connection with the window that HTTP/2 gives by default. It reads the headers only.
func (a *api) openStalledWatches(bearer string, watches int) {
	a.Helper()
	fields := append(requestFields("/v0/workloads/watch", 0, ""), hpack.HeaderField{Name: "authorization", Value: bearer})
	sent, err := requestsWithoutWindow(watches, fields)
	a.must(err)
	var window bytes.Buffer
	framer := http2.NewFramer(&window, nil)
	a.must(framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 64<<10 - 1}))
	a.must(framer.WriteWindowUpdate(0, 1<<24)) // of the connection
	answered := 0
	isLast := func(frame http2.Frame) bool {
		if frame.Header().Type == http2.FrameHeaders {
			answered++
		}
		return answered == watches
	}
	if err := a.holdAnswers(append(sent, window.Bytes()...), isLast, patience); err != nil || answered != watches {
		a.Errorf("%d watches of a connection were answered, %v, want %d", answered, err, watches)
	}
}
