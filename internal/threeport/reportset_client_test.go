package threeport

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

func TestReportSetVersions(t *testing.T) {
	for _, tc := range []struct {
		reason string
		code   int
		body   string
		takes  bool
		fails  bool
	}{
		{"sets are taken", 200, `{"API":"WorkloadReportSet","Versions":["v0"],"Encodings":["gzip","zstd"],"MaxReports":7}`, true, false},
		{"only another version is", 200, `{"API":"WorkloadReportSet","Versions":["v1"]}`, false, false},
		{"the router of v0 knows no such path", 404, `{"message":"Not Found"}`, false, false},
		{"another server has nothing there", 404, `no`, false, false},

		{"a server that has the path, for something else", 405, ``, false, false},
		{"a proxy's page proves nothing", 200, `<html>`, false, true},
		{"a server that is not ready", 503, ``, false, true},
		{"one that does not know the agent", 401, ``, false, true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method+r.URL.Path != "GET/workload-report-sets/versions" {
					t.Errorf("asked was %s %s", r.Method, r.URL)
				}
				w.WriteHeader(tc.code)
				_, _ = io.WriteString(w, tc.body)
			})
			got, err := client.ReportSetVersions(t.Context())
			if got.Takes() != tc.takes || (err != nil) != tc.fails {
				t.Errorf("got %+v, %v", got, err)
			}
			if tc.takes && (got.Encoding() != EncodingZstd || got.MaxReports != 7) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// sent has the body of a request that a server received.
type sent struct {
	encoding string
	bytes    int
	set      ReportSet
}

func receive(t *testing.T, r *http.Request) sent {
	t.Helper()
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	out := sent{encoding: r.Header.Get("Content-Encoding"), bytes: len(raw)}
	var body io.Reader = strings.NewReader(string(raw))
	switch out.encoding {
	case EncodingGzip:
		body, err = gzip.NewReader(body)
	case EncodingZstd:
		var decoder *zstd.Decoder
		decoder, err = zstd.NewReader(body, zstd.WithDecoderConcurrency(1))
		body = decoder
	}
	if err != nil {
		t.Error(err)
	}
	if err := json.NewDecoder(body).Decode(&out.set); err != nil {
		t.Error(err)
	}
	return out
}

func answerAll(w http.ResponseWriter, n int, outcome string) {
	_ = json.NewEncoder(w).Encode(ReportSetAnswer{Items: repeat(ReportAnswer{Outcome: outcome}, n)})
}

func repeat(a ReportAnswer, n int) []ReportAnswer {
	out := make([]ReportAnswer, n)
	for i := range out {
		out[i] = a
	}
	return out
}

func eventOf(message string) Report {
	return Report{
		Instance: Instance{TypeWorkloadInstance, ID(bigID)}, Version: 9007199254740993,
		Event: &EventReport{UID: "u", Type: "Normal", Reason: "r", Message: message, Time: time.Unix(9, 123456789).UTC()},
	}
}

func TestSendReportSet(t *testing.T) {
	long := strings.Repeat("again and ", 1000)
	var noise strings.Builder
	for range 2000 {
		fmt.Fprintf(&noise, "%c", 0x4e00+rand.IntN(20000))
	}
	for _, tc := range []struct {
		reason, message, encoding string
		encoded                   string
	}{
		{"a small body is not worth it", "m", EncodingZstd, ""},
		{"zstd", long, EncodingZstd, EncodingZstd},
		{"gzip", long, EncodingGzip, EncodingGzip},
		{"no encoding is offered", long, "", ""},
		{"an unknown encoding", long, "br", ""},
		{"an incompressible body is sent as it is", noise.String(), EncodingZstd, ""},
		{"characters that a database cannot store are replaced", "a\x00b\xffc", "", ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var got sent
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method+r.URL.Path != "POST/v0/workload-report-sets" || r.Header.Get("Content-Type") != "application/json" {
					t.Errorf("sent was %s %s %s", r.Method, r.URL, r.Header)
				}
				got = receive(t, r)
				answerAll(w, 1, OutcomeCreated)
			})
			set := ReportSet{Agent: Agent{ClusterUID: "c"}, Reports: []Report{eventOf(tc.message)}}
			answer, err := client.SendReportSet(t.Context(), set, tc.encoding)
			if err != nil || len(answer.Items) != 1 || answer.Items[0].Outcome != OutcomeCreated {
				t.Fatalf("%+v, %v", answer, err)
			}
			if got.encoding != tc.encoded || tc.encoded != "" && got.bytes >= len(tc.message) {
				t.Errorf("%d bytes came as %q", got.bytes, got.encoding)
			}
			r := got.set.Reports[0]
			want := strings.NewReplacer("\x00", replacement, "\xff", replacement).Replace(tc.message)
			if r.Event.Message != want || r.Version != 9007199254740993 || r.Instance.ID != ID(bigID) || got.set.Agent.ClusterUID != "c" {
				t.Errorf("got %+v", got.set)
			}
		})
	}
}

func TestSendReportSet_HeartbeatHasAnEmptyList(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), `"reports":[]`) {
			t.Errorf("sent was %s", body)
		}
		_, _ = io.WriteString(w, `{"items":null}`)
	})
	if _, err := client.SendReportSet(t.Context(), ReportSet{}, ""); err != nil {
		t.Error(err)
	}
}

func TestSendReportSetFails(t *testing.T) {
	for _, tc := range []struct {
		reason, body string
		code         int
		kind         Kind
		message      string
		after        time.Duration
	}{
		{"too large", `{"title":"Request Entity Too Large","status":413,"detail":"too large"}`, 413, KindPermanent, "too large", 0},
		{"the database is away", `{"title":"Service Unavailable","detail":""}`, 503, KindRetryable, "Service Unavailable", 0},
		{"too much", `{}`, 429, KindRetryable, "", 7 * time.Second},
		{"not this cluster", `{"detail":"no\nway"}`, 403, KindUnauthorized, "no way", 0},
		{"a proxy's page", `<html>secret</html>`, 200, KindRetryable, "the answer is not one of the control-plane API", 0},
		{"too few answers", `{"items":[]}`, 200, KindRetryable, "the answer is not one of the control-plane API", 0},
		{"an unknown outcome", `{"items":[{"outcome":"fine"}]}`, 200, KindRetryable, "the answer is not one of the control-plane API", 0},
		{"rejected without a problem", `{"items":[{"outcome":"rejected"}]}`, 200, KindRetryable, "the answer is not one of the control-plane API", 0},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if tc.after > 0 {
					w.Header().Set("Retry-After", "7")
				}
				w.WriteHeader(tc.code)
				_, _ = io.WriteString(w, tc.body)
			})
			_, err := client.SendReportSet(t.Context(), ReportSet{Reports: []Report{eventOf("m")}}, "")
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Kind() != tc.kind || e.Message != tc.message || e.RetryAfter != tc.after || StatusOf(err) != tc.code {
				t.Errorf("got %+v", err)
			}
		})
	}
}

func TestReportAnswers(t *testing.T) {
	for _, tc := range []struct {
		outcome, code string
		want          Kind
	}{
		{OutcomeCreated, "", KindNone},
		{OutcomeStale, "", KindNone},
		{OutcomeRejected, ProblemNotFound, KindNotFound},
		{OutcomeRejected, ProblemForbidden, KindForbidden},
		{OutcomeRejected, ProblemInvalid, KindPermanent},
		{OutcomeRejected, ProblemQuota, KindQuotaExceeded},
		{OutcomeRejected, "a newer code", KindPermanent},
	} {
		a := ReportAnswer{Outcome: tc.outcome}
		if tc.code != "" {
			a.Problem = &ReportProblem{tc.code, "detail"}
		}
		if got := KindOf(a.Err()); got != tc.want {
			t.Errorf("%s %s: %s, want %s", tc.outcome, tc.code, got, tc.want)
		}
	}
}

func TestReport_Clean(t *testing.T) {
	far := time.Date(12345, 1, 1, 0, 0, 0, 0, time.UTC)
	long := strings.Repeat("ü", 40000)
	r := eventOf(long)
	r.Event.Reason, r.Event.FirstTime = long, &far
	r.Event.Gap = &Gap{First: far, Last: time.Unix(5, 999).In(time.FixedZone("", 3600))}
	got, err := r.Clean()
	if err != nil {
		t.Fatal(err)
	}
	e := got.Event
	if len(e.Message) > maxText || len(e.Reason) > maxWord || !strings.HasSuffix(e.Reason, "ü…") || e.FirstTime != nil {
		t.Errorf("%d and %d bytes, first at %v", len(e.Message), len(e.Reason), e.FirstTime)
	}
	if e.Time.Nanosecond() != 123456000 || !e.Gap.First.Equal(e.Time) || e.Gap.Last != time.Unix(5, 0).UTC() {
		t.Errorf("it happened at %s, the gap is %+v", e.Time, e.Gap)
	}
	tree := Report{Tree: &TreeReport{Objects: make([]TreeObject, MaxTreeObjects+1)}}
	tree.Tree.Objects[0].Cause = strings.Repeat(long, 2)
	if got, err = tree.Clean(); err != nil || len(got.Tree.Objects) != MaxTreeObjects || len(got.Tree.Objects[0].Cause) > maxText {
		t.Errorf("%d objects, %v", len(got.Tree.Objects), err)
	}
	container := ContainerFacts{Image: long, Reason: long, LastExit: &ContainerExit{Reason: long, Time: &far}}
	pod := PodFacts{Containers: slices.Repeat([]ContainerFacts{container}, MaxContainers+1)}
	tree = Report{Tree: &TreeReport{Objects: []TreeObject{{Pod: &pod}}}}
	got, err = tree.Clean()
	if c := got.Tree.Objects[0].Pod.Containers; err != nil || len(c) != MaxContainers || len(c[0].Image) > maxImage || len(c[0].Reason) > maxWord ||
		len(c[0].LastExit.Reason) > maxWord || c[0].LastExit.Time != nil {
		t.Errorf("the Pod has %d containers, the first is %+v, %v", len(c), c[0], err)
	}
	tree = Report{Tree: &TreeReport{}}
	for range MaxTreeContainers/MaxContainers + 1 {
		tree.Tree.Objects = append(tree.Tree.Objects, TreeObject{Pod: &PodFacts{Containers: make([]ContainerFacts, MaxContainers)}})
	}
	if got, err = tree.Clean(); err != nil || got.Tree.Objects[0].Pod == nil || got.Tree.Objects[MaxTreeContainers/MaxContainers].Pod != nil {
		t.Errorf("the facts of Pods beyond the limit of a tree are kept, or others are missing: %v", err)
	}
	for reason, bad := range map[string]Report{
		"no time":                {Event: &EventReport{UID: "u"}},
		"a time in no calendar":  {Event: &EventReport{UID: "u", Time: far}},
		"a status since no time": {Status: &StatusReport{Since: &time.Time{}}},
	} {
		if _, err := bad.Clean(); KindOf(err) != KindPermanent {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// Small values of an answer take many times their text in memory. They are counted, and the answer is bounded.
func TestAnswers_ManyValues_AreRefused(t *testing.T) {
	zeros := strings.Repeat("0,", 20_000) + "0"
	for reason, body := range map[string]string{
		"items": `{"items":[` + zeros + `]}`, "versions": `{"Versions":[` + zeros + `]}`,
		"spaces": `{` + strings.Repeat(" ", 128<<10) + `}`,
	} {
		client := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
		if _, err := client.SendReportSet(t.Context(), ReportSet{Reports: []Report{eventOf("m")}}, ""); KindOf(err) != KindRetryable {
			t.Errorf("%s, for a set: %v", reason, err)
		}
		if got, err := client.ReportSetVersions(t.Context()); KindOf(err) != KindRetryable || len(got.Versions) > 0 {
			t.Errorf("%s, for the versions: %v with %d versions", reason, err, len(got.Versions))
		}
	}
}
