package attacks

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// body is the body of a request: text with its arguments. Each request has its own text in place of nonce.
type body struct {
	Before, Piece, After string
	Size                 int64
}

const nonce = "NONCE"

func (b body) reader() io.Reader {
	if b == (body{}) {
		return http.NoBody
	}
	return text(strings.ReplaceAll(b.Before, nonce, strconv.FormatInt(time.Now().UnixNano(), 36)), cmp.Or(b.Piece, " "), b.After, b.Size)
}

// text is a body of about size bytes that repeats a piece. No copy of it is in memory.
func text(before, piece, after string, size int64) io.Reader {
	return io.MultiReader(strings.NewReader(before), io.LimitReader(&repeated{piece: piece}, size/int64(len(piece))*int64(len(piece))), strings.NewReader(after))
}

// repeated reads a piece repeatedly.
type repeated struct {
	piece string
	at    int
}

func (r *repeated) Read(p []byte) (n int, err error) {
	for n < len(p) {
		copied := copy(p[n:], r.piece[r.at:])
		n += copied
		r.at = (r.at + copied) % len(r.piece)
	}
	return n, nil
}

// attempt is a request that many clients repeat.
type attempt struct {
	reason, bearer, method, path string
	body                         body
	codes                        []int // that the API may answer; it may also cut the request off
}

// repeat sends a request on several connections for a second. With -measure it compares the latency of honest agents before.
func (a *api) repeat(clients int, try attempt) {
	a.Helper()
	if *measure > 0 {
		a.compareLatency(clients, try)
	}
	end := time.Now().Add(time.Second)
	var all sync.WaitGroup
	var mu sync.Mutex
	answers := map[int]int{}
	for range clients {
		all.Go(func() {
			for time.Now().Before(end) {
				code, _, _ := a.request(a.Context(), try.bearer, try.method, try.path, try.body.reader())
				mu.Lock()
				answers[code]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	a.Logf("%s: answers by code %v", try.reason, answers)
	for code := range answers {
		if code != 0 && !slices.Contains(try.codes, code) {
			a.Errorf("%s: the API answered %d, want one of %v", try.reason, code, try.codes)
		}
	}
}

// An agent sends bodies that are as large as it may, or larger, for rows of its own and of others.
func TestMemory_AgentSendsLargeBodies(t *testing.T) {
	onDatabases(t, func(t *testing.T, address string) {
		t.Helper()
		a := newAPI(t, address)
		a.start()
		const (
			huge     = 256 << 20
			agents   = 5 << 20
			document = 4 << 20
			busy     = http.StatusServiceUnavailable
			limited  = http.StatusTooManyRequests
		)
		event := fmt.Sprintf(`{"RuntimeEventUID":"","Type":"","Reason":"","Timestamp":"2026-01-02T03:04:05Z","WorkloadInstanceID":%d,"Message":"`, a.foreign.instance)
		ownResource, foreignResource := fmt.Sprintf("/v0/workload-resource-instances/%d", a.own.resource), fmt.Sprintf("/v0/workload-resource-instances/%d", a.foreign.resource)
		for _, try := range []attempt{
			{
				"Events of 256 MiB", a.agent, http.MethodPost, "/v0/workload-events",
				body{event, "x", `"}`, huge},
				[]int{413, busy, limited},
			},
			{
				"a resource of another cluster, 256 MiB", a.agent, http.MethodPatch, foreignResource,
				body{`{"RuntimeDefinition":"`, "x", `"}`, huge},
				[]int{403, busy, limited},
			},
			{
				"its resource, 256 MiB", a.agent, http.MethodPatch, ownResource,
				body{`{"RuntimeDefinition":"`, "x", `"}`, huge},
				[]int{413, busy, limited},
			},
			{
				"Events with a million names", a.agent, http.MethodPost, "/v0/workload-events",
				body{`{"a":0`, `,"b":0`, `}`, 1<<20 - 100},
				[]int{400, busy, limited},
			},
			{
				"its resource with a million names", a.agent, http.MethodPatch, ownResource,
				body{`{"a":0`, `,"b":0`, `}`, agents - 100},
				[]int{400, busy, limited},
			},
			{
				"its resource with a hostile document", a.agent, http.MethodPatch, ownResource,
				body{`{"RuntimeDefinition":[0`, `,{"b":0,"a":0}`, `]}`, document - 100},
				[]int{200, busy, limited},
			},
			{
				"its resource with a small change", a.agent, http.MethodPatch, ownResource,
				body{Before: `{"LastOperation":"MODIFIED"}`},
				[]int{200, busy, limited},
			},
			{
				"reading its resource", a.agent, http.MethodGet, ownResource,
				body{},
				[]int{200, busy, limited},
			},
			{
				"an administrator's body of the largest size", a.admin, http.MethodPatch, ownResource,
				body{`{"a":0`, `,"b":0`, `}`, 16<<20 - 100},
				[]int{400, busy},
			},
		} {
			a.repeat(8, try)
		}
		a.expectAlive()
	})
}
