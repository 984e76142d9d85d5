package otlp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/world"
	"github.com/threeport/threeport-agent/internal/testing/databases"
	"github.com/threeport/threeport-agent/internal/testing/postgres"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// api is a control-plane API that exports logs. It can be killed and started again.
type api struct {
	*testing.T
	endpoint string // of the backend
	database string // an address
	process  *process.Process
	url      string
	workload threeport.Instance
	sent     int
}

// newAPI starts an API with a workload.
func newAPI(t *testing.T, endpoint, database string) *api {
	t.Helper()
	a := &api{T: t, endpoint: endpoint, database: database}
	a.start()
	var answer struct{ Data []struct{ ID int64 } }
	a.must(json.Unmarshal(a.request(http.MethodPost, "/v0/workload-instances", map[string]string{"Name": "web"}), &answer))
	a.workload = threeport.Instance{Type: threeport.TypeWorkloadInstance, ID: threeport.ID(answer.Data[0].ID)}
	return a
}

// start starts the API, also after its end.
func (a *api) start() {
	a.Helper()
	started, err := process.Start(shared.controlAPI, nil, []string{
		"--bind-address=127.0.0.1:0", "--auth-enabled=false", "--database=" + a.database, "--otlp-logs-endpoint=" + a.endpoint,
	})
	a.must(err)
	a.process = started
	a.Cleanup(func() {
		if err := world.KillControlPlane(started); err != nil {
			a.Error(err)
		}
		if a.Failed() {
			a.Logf("the end of the log of the API:\n%s", world.End(started.Output(), 4<<10))
		}
	})
	a.url, err = a.process.URL(a.Context())
	a.must(err)
}

func (a *api) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

// request sends a request, whose body is JSON, and returns the answer.
func (a *api) request(method, path string, body any) []byte {
	a.Helper()
	text, err := json.Marshal(body)
	a.must(err)
	req, err := http.NewRequestWithContext(a.Context(), method, a.url+path, bytes.NewReader(text))
	a.must(err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	a.must(err)
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	a.must(err)
	if resp.StatusCode >= http.StatusBadRequest {
		a.Fatalf("%s %s: HTTP %d %s", method, path, resp.StatusCode, answer)
	}
	return answer
}

// send reports an Event with a count of 1, the last one again with a count of 2, and a status, each as an agent does.
func (a *api) send() {
	a.Helper()
	now := time.Now()
	a.sent++
	statuses := []string{"Healthy", "Unhealthy"}
	set := threeport.ReportSet{Agent: threeport.Agent{ClusterUID: "cluster", ClusterName: "demo", Time: now}, Reports: []threeport.Report{
		{Instance: a.workload, Version: threeport.ID(now.UnixMicro()), Status: &threeport.StatusReport{
			Status: statuses[a.sent%2], Reason: "Reason", Cause: fmt.Sprint("cause ", a.sent),
		}},
		a.event(a.sent, 1, now),
	}}
	if a.sent > 1 {
		set.Reports = append(set.Reports, a.event(a.sent-1, 2, now))
	}
	var answer threeport.ReportSetAnswer
	a.must(json.Unmarshal(a.request(http.MethodPost, "/v0/workload-report-sets", set), &answer))
	for _, item := range answer.Items {
		if item.Problem != nil {
			a.Fatalf("a report was rejected: %v", item.Problem)
		}
	}
}

func (a *api) event(n int, count int64, at time.Time) threeport.Report {
	return threeport.Report{Instance: a.workload, Version: threeport.ID(count), Event: &threeport.EventReport{
		UID: fmt.Sprint("event ", n), Involved: threeport.ObjectRef{Version: "v1", Kind: "Pod", Namespace: "shop", Name: "web-1", UID: "pod"},
		Type: "Warning", Reason: "BackOff", Message: fmt.Sprint("message ", n), Time: at, Count: count,
	}}
}

// metric is the value of a metric without labels.
func (a *api) metric(name string) (value string) {
	a.Helper()
	for line := range strings.Lines(string(a.request(http.MethodGet, "/metrics", nil))) {
		if text, found := strings.CutPrefix(line, name+" "); found {
			return strings.TrimSpace(text)
		}
	}
	a.Fatalf("there is no metric %s", name)
	return ""
}

// newLossyProxy starts a proxy to the collector that loses the first answers.
func newLossyProxy(t *testing.T, collector string) *httptest.Server {
	t.Helper()
	const lost = 3
	var answers atomic.Int64
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: collector}) },
		ModifyResponse: func(*http.Response) error {
			if answers.Add(1) <= lost {
				panic(http.ErrAbortHandler)
			}
			return nil
		},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server
}

// eventually repeats a check until it returns no error.
func eventually(t *testing.T, condition string, check func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, world.Timeout, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("the test waited %s for %s: %v", world.Timeout, condition, last)
	}
}

// missing returns an error that names what the collector did not receive: the newest version of each Event, and each status.
func (a *api) missing(records []record) error {
	received := map[string]bool{}
	for _, r := range records {
		switch r.EventName {
		case "k8s.event":
			received[r.Attributes.get("k8s.event.uid")+" ×"+r.Attributes.get("k8s.event.count")] = true
		case "threeport.workload.status":
			_, cause, _ := strings.Cut(r.Body.StringValue, ": ")
			received[cause] = true
		}
	}
	var missing []string
	for n := 1; n <= a.sent; n++ {
		event := fmt.Sprintf("event %d ×2", n)
		if n == a.sent {
			event = fmt.Sprintf("event %d ×1", n)
		}
		for _, one := range []string{event, fmt.Sprint("cause ", n)} {
			if !received[one] {
				missing = append(missing, one)
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%d records are missing: %.300q", len(missing), missing)
	}
	return nil
}

// expectDuplicatesHaveUID fails the test if one UID has two records, or two UIDs one version of an Event or one status.
func expectDuplicatesHaveUID(t *testing.T, records []record) (duplicates int) {
	t.Helper()
	byUID, uids := map[string]record{}, map[string]string{}
	for _, r := range records {
		uid := r.Attributes.get("log.record.uid")
		if before, known := byUID[uid]; known {
			duplicates++
			if uid == "" || !reflect.DeepEqual(before, r) {
				t.Errorf("the UID %q has the records %+v and %+v", uid, before, r)
			}
		}
		byUID[uid] = r
		content := r.EventName + r.Attributes.get("k8s.event.uid") + r.Attributes.get("k8s.event.count") + r.Body.StringValue
		if other, known := uids[content]; known && other != uid {
			t.Errorf("%s has the UIDs %s and %s", content, other, uid)
		}
		uids[content] = uid
	}
	return duplicates
}

func TestLogs_CollectorAndAPIAreKilled_NothingIsMissing(t *testing.T) {
	c := newCollector(t, "logs")
	c.start()
	a := newAPI(t, "http://"+c.address, "sqlite:"+filepath.Join(t.TempDir(), "controlplane.db"))
	a.send()
	eventually(t, "the first records", func() error { return a.missing(c.records()) })
	for range 4 {
		// The collector is killed while it receives records.
		before := len(c.records())
		for len(c.records()) < before+20 {
			a.send()
		}
		c.process.Kill()
		failures := a.metric("controlplane_otlp_log_failures_total")
		for range 10 {
			a.send()
		}
		eventually(t, "a failed export", func() error {
			if a.metric("controlplane_otlp_log_failures_total") == failures || a.metric("controlplane_otlp_log_records_waiting") == "0" {
				return fmt.Errorf("the export has not failed since the collector was killed")
			}
			return nil
		})
		a.process.Kill()
		a.start()
		c.start()
		a.send()
	}
	// Some answers are lost, after the collector received the records.
	a.process.Kill()
	a.endpoint = newLossyProxy(t, c.address).URL
	a.start()
	for range 50 {
		a.send()
	}
	eventually(t, "all records", func() error { return a.missing(c.records()) })
	eventually(t, "an empty queue", func() error {
		if n := a.metric("controlplane_otlp_log_records_waiting"); n != "0" || a.metric("controlplane_otlp_log_lag_seconds") != "0" {
			return fmt.Errorf("%s records wait", n)
		}
		return nil
	})
	records := c.records()
	duplicates := expectDuplicatesHaveUID(t, records)
	t.Logf("%d records of %d reports, %d of them again", len(records), a.sent, duplicates)
	if duplicates == 0 {
		t.Error("no record arrived again, although answers were lost")
	}
	expectRecord(t, records)
	a.must(a.process.Stop(world.Timeout))
}

// Two replicas share a database. The records arrive in spite of the end of one, and each of them once before that.
func TestLogs_ReplicaIsKilled_OtherExports(t *testing.T) {
	databases.OnPrivatePostgres(t, func(t *testing.T, server *postgres.Server) {
		t.Helper()
		database, err := server.CreateDatabase(t.Context(), "logs", "")
		if err != nil {
			t.Fatal(err)
		}
		c := newCollector(t, "logs")
		c.start()
		one := newAPI(t, "http://"+c.address, database)
		two := &api{T: t, endpoint: one.endpoint, database: database, workload: one.workload}
		two.start()
		for range 50 {
			one.send()
		}
		eventually(t, "all records", func() error { return one.missing(c.records()) })
		if n := expectDuplicatesHaveUID(t, c.records()); n > 0 {
			t.Errorf("%d records arrived again, although one replica exports at a time", n)
		}
		for range 50 {
			one.send()
		}
		one.process.Kill()
		two.sent = one.sent
		for range 50 {
			two.send()
		}
		eventually(t, "all records", func() error { return two.missing(c.records()) })
		expectDuplicatesHaveUID(t, c.records())
	})
}

// expectRecord checks the fields of an Event as the collector understands them.
func expectRecord(t *testing.T, records []record) {
	t.Helper()
	i := slices.IndexFunc(records, func(r record) bool {
		return r.Attributes.get("k8s.event.uid") == "event 1" && r.Attributes.get("k8s.event.count") == "2"
	})
	r := records[i]
	for key, want := range map[string]string{
		"k8s.event.reason": "BackOff", "k8s.namespace.name": "shop", "k8s.object.kind": "Pod", "k8s.object.name": "web-1", "threeport.workload.name": "web",
	} {
		if got := r.Attributes.get(key); got != want {
			t.Errorf("the attribute %s is %q, want %q", key, got, want)
		}
	}
	if r.SeverityText != "WARN" || r.Body.StringValue != "message 1" || r.TimeUnixNano == "" || r.ObservedTimeUnixNano == "" {
		t.Errorf("the record is %+v, want WARN, the message and both times", r)
	}
}
