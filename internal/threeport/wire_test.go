package threeport

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// canned answers every request with the same, and keeps the last body that was sent.
type canned struct {
	status int
	body   []byte
	sent   []byte
}

func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		c.sent, _ = io.ReadAll(r.Body)
	}
	return &http.Response{
		StatusCode: c.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, Header: http.Header{},
		ContentLength: int64(len(c.body)), Body: io.NopCloser(bytes.NewReader(c.body)),
	}, nil
}

// cannedClient returns a client that the answer comes to without a network.
func cannedClient(tb testing.TB, answer *canned) *Client {
	tb.Helper()
	client, err := New(Config{Server: "127.0.0.1:1", Timeout: DefaultTimeout})
	if err != nil {
		tb.Fatal(err)
	}
	client.http.SetTransport(answer)
	return client
}

const askedID = 1234567890123456789

// calls are all requests of a client, about one row. Each returns the IDs that it read.
var calls = map[string]func(context.Context, *Client) ([]int64, error){
	"update status": func(ctx context.Context, c *Client) ([]int64, error) {
		return nil, c.UpdateWorkloadInstanceStatus(ctx, askedID, "Down")
	},
	"create": func(ctx context.Context, c *Client) ([]int64, error) {
		id, _, err := c.CreateWorkloadEvent(ctx, WorkloadEvent{RuntimeEventUID: new("u"), Timestamp: new(time.Unix(1, 0))})
		return []int64{id}, err
	},
	"find": func(ctx context.Context, c *Client) ([]int64, error) {
		id, found, err := c.FindWorkloadEvent(ctx, "u")
		if !found {
			return nil, err
		}
		return []int64{id}, err
	},
	"list": func(ctx context.Context, c *Client) ([]int64, error) {
		rows, total, err := c.ListWorkloadEvents(ctx, EventFilter{WorkloadInstanceID: askedID}, 1, 50)
		var ids []int64
		for _, row := range rows {
			ids = append(ids, *row.ID, *row.WorkloadInstanceID)
		}
		if err == nil && total < int64(len(rows)) {
			return nil, fmt.Errorf("%d rows of %d", len(rows), total)
		}
		return ids, err
	},
	"get instance": func(ctx context.Context, c *Client) ([]int64, error) {
		row, err := c.GetWorkloadInstance(ctx, askedID)
		return idOf(row.ID), err
	},
	"get helm instance": func(ctx context.Context, c *Client) ([]int64, error) {
		row, err := c.GetHelmWorkloadInstance(ctx, askedID)
		return idOf(row.ID), err
	},
	"get resource": func(ctx context.Context, c *Client) ([]int64, error) {
		row, err := c.GetWorkloadResourceInstance(ctx, askedID)
		if row.JSONDefinition != nil {
			return nil, fmt.Errorf("the JSONDefinition was kept")
		}
		return idOf(row.ID), err
	},
}

func idOf(id *int64) []int64 {
	if id == nil {
		return nil
	}
	return []int64{*id}
}

func FuzzAnswer(f *testing.F) {
	id := strconv.Itoa(askedID)
	envelope := func(meta, data, status string) []byte {
		return []byte(`{"Meta":{"Page":1,"Size":1,"TotalCount":` + meta + `},"Type":"X","Data":` + data + `,"Status":` + status + `}`)
	}
	ok := `{"code":200,"message":"OK","error":""}`
	for _, body := range [][]byte{
		envelope("1", `[{"ID":`+id+`,"RuntimeEventUID":"u","WorkloadInstanceID":`+id+`,"JSONDefinition":{"data":"hush"}}]`, ok),
		envelope("2", `[{"ID":9007199254740993,"RuntimeEventUID":"u","WorkloadInstanceID":`+id+`},{"ID":7}]`, ok),
		envelope("0", `[]`, ok),
		envelope("-1", `[{}]`, ok),
		envelope("1", `[{"ID":1.2e18}]`, ok),
		envelope("1", `[{"ID":12345678901234567890}]`, ok),
		envelope("1", `[{"ID":"`+id+`"}]`, ok),
		envelope("1", `[null]`, ok),
		envelope("0", `null`, `{"code":404,"message":"Not Found","error":"record not found"}`),
		envelope("0", `null`, `{"code":500,"message":"","error":"`+strings.Repeat("long ", 100)+`\n\u0000\ud800"}`),
		envelope("1", `"hush"`, `{"code":400,"error":"why"}`),
		envelope("1", `[{"ID":`+id+`}]`, `{"code":500}`),
		envelope("1", `[{"ID":`+id+`}]`, `{"code":"200"}`),
		[]byte(`{"message":"Not Found"}`),
		[]byte(`{"ok":true}`),
		[]byte("<html>hush"),
		[]byte(`{"Meta"`),
		[]byte(`null`),
		[]byte(`[[[[`),
		{},
		{0xff, 0, 0xfe},
	} {
		for _, status := range []uint16{200, 201, 204, 400, 401, 404, 429, 500, 503} {
			f.Add(status, body)
		}
	}
	answer := &canned{}
	client := cannedClient(f, answer)
	f.Fuzz(func(t *testing.T, status uint16, body []byte) {
		answer.status, answer.body = 200+int(status)%400, body
		if status >= 200 && status < 600 {
			answer.status = int(status)
		}
		if answer.status >= 300 && answer.status < 400 {
			return // a redirect: net/http looks for a Location
		}
		for name, call := range calls {
			ids, err := call(t.Context(), client)
			if err == nil {
				expectEnvelope(t, name, answer, ids)
				continue
			}
			expectNothingOf(t, name, answer, err)
		}
	})
}

// expectEnvelope checks a success: the answer was the API's, and the IDs are those of its text.
func expectEnvelope(t *testing.T, name string, answer *canned, ids []int64) {
	t.Helper()
	var envelope struct{ Status struct{ Code int } }
	if err := json.Unmarshal(answer.body, &envelope); err != nil {
		t.Fatalf("%s: a success of %q", name, answer.body)
	}
	if answer.status >= 300 || envelope.Status.Code < 200 || envelope.Status.Code >= 300 {
		t.Fatalf("%s: a success of HTTP %d, %q", name, answer.status, answer.body)
	}
	for _, id := range ids {
		if !bytes.Contains(answer.body, strconv.AppendInt(nil, id, 10)) && id != 0 { // -0
			t.Errorf("%s: ID %d of %q", name, id, answer.body)
		}
	}
}

// expectNothingOf checks an error: of the answer it has no more than the Status.error.
func expectNothingOf(t *testing.T, name string, answer *canned, err error) {
	t.Helper()
	if kind := KindOf(err); kind == KindNone || kind == KindNotFound && answer.status != 404 {
		t.Errorf("%s: HTTP %d is %v", name, answer.status, kind)
	}
	text := err.Error()
	if !utf8.ValidString(text) || len(text) > 512 || strings.ContainsAny(text, "\n\x00") {
		t.Errorf("%s: the error is %q", name, text)
	}
	var envelope Response[json.RawMessage]
	_ = json.Unmarshal(answer.body, &envelope)
	says := []string{
		": the answer is not one of the control-plane API", ": the server does not filter by workloadinstanceid",
		": the server does not filter by runtimeeventuid", ": " + shorten(envelope.Status.Error), "",
	}
	for _, said := range says {
		before, found := strings.CutSuffix(text, said)
		for _, status := range []int{answer.status, http.StatusOK, http.StatusCreated} { // the latter of garbled successes
			before = strings.TrimSuffix(before, fmt.Sprintf(": HTTP %d", status))
		}
		if found && slices.Contains(operations, before) {
			return
		}
	}
	t.Errorf("%s: the error of %q is %q", name, answer.body, text)
}

var operations = []string{
	fmt.Sprintf("update workload instance %d", int64(askedID)), "create workload event", "find workload event",
	"list workload events", fmt.Sprintf("get workload instance %d", int64(askedID)),
	fmt.Sprintf("get helm workload instance %d", int64(askedID)), fmt.Sprintf("get workload resource instance %d", int64(askedID)),
}

// FuzzEventBody checks that whatever is to be sent is sent as the server accepts it.
func FuzzEventBody(f *testing.F) {
	f.Add("uid", "Normal", "Created", "message", int64(askedID), int64(1), int64(1_700_000_000))
	f.Add("", "\x00", "\xff\xfe", "<&>\u2028\"\\u0000", int64(-1), int64(1<<62), int64(-62135596800))
	f.Fuzz(func(t *testing.T, uid, kind, reason, message string, instance, resource, seconds int64) {
		at := time.Unix(seconds, 123456789)
		answer := &canned{status: 201, body: []byte(`{"Data":[{"ID":1}],"Status":{"code":201}}`)}
		_, _, err := cannedClient(t, answer).CreateWorkloadEvent(t.Context(), WorkloadEvent{
			RuntimeEventUID: &uid, Type: &kind, Reason: &reason, Message: &message, Timestamp: &at,
			WorkloadInstanceID: &instance, WorkloadResourceInstanceID: &resource,
		})
		if year := at.UTC().Year(); year < 0 || year > 9999 {
			if KindOf(err) != KindPermanent || answer.sent != nil {
				t.Errorf("%v was sent: %v", at, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if !utf8.Valid(answer.sent) {
			t.Errorf("sent %q", answer.sent)
		}
		var got struct {
			RuntimeEventUID, Type, Reason, Message, Timestamp *string
			WorkloadInstanceID, WorkloadResourceInstanceID    int64
		}
		decoder := json.NewDecoder(bytes.NewReader(answer.sent))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&got); err != nil {
			t.Fatalf("%v: sent %q", err, answer.sent)
		}
		for _, text := range []struct{ got, want *string }{
			{got.RuntimeEventUID, &uid}, {got.Type, &kind}, {got.Reason, &reason}, {got.Message, &message},
		} {
			if text.got == nil || *text.got != cleanText(*text.want) {
				t.Errorf("%q is not in %q", *text.want, answer.sent)
			}
		}
		if got.WorkloadInstanceID != instance || got.WorkloadResourceInstanceID != resource {
			t.Errorf("sent %q", answer.sent)
		}
		if sent, err := time.Parse(time.RFC3339Nano, *got.Timestamp); err != nil || !sent.Equal(at) || !strings.HasSuffix(*got.Timestamp, "Z") {
			t.Errorf("%v: sent %q", at, answer.sent)
		}
	})
}

func TestListWorkloadEvents(t *testing.T) {
	row := func(id, instance, helm int64) string {
		return fmt.Sprintf(`{"ID":%d,"RuntimeEventUID":"u","WorkloadInstanceID":%d,"HelmWorkloadInstanceID":%d,`+
			`"CreatedAt":"2026-01-02T03:04:05.678901Z","Reason":"r"}`, id, instance, helm)
	}
	var asked, rows string
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.RawQuery
		_, _ = io.WriteString(w, `{"Meta":{"TotalCount":3},"Data":[`+rows+`],"Status":{"code":200}}`)
	})
	for _, tc := range []struct {
		reason string
		filter EventFilter
		rows   string
		asks   string // the query
		fails  string // with this text
	}{
		{"of an instance", EventFilter{WorkloadInstanceID: bigID}, row(bigID+1, bigID, 0), "page=2&size=500&workloadinstanceid=" + fmt.Sprint(bigID), ""},
		{"of a helm instance", EventFilter{HelmWorkloadInstanceID: bigID}, row(1, 2, bigID), "helmworkloadinstanceid=" + fmt.Sprint(bigID) + "&page=2&size=500", ""},
		{"of a UID", EventFilter{RuntimeEventUID: "u"}, row(1, 2, 3) + "," + row(2, 2, 3), "page=2&runtimeeventuid=u&size=500", ""},
		{"none", EventFilter{WorkloadInstanceID: 5}, "", "page=2&size=500&workloadinstanceid=5", ""},
		{"no filter", EventFilter{}, "", "", "no filter is given"},
		{"instance ignored", EventFilter{WorkloadInstanceID: 5}, row(1, 5, 0) + "," + row(2, 6, 0), "page=2&size=500&workloadinstanceid=5", "does not filter by workloadinstanceid"},
		{"helm instance ignored", EventFilter{HelmWorkloadInstanceID: 5}, `{"ID":1,"WorkloadInstanceID":5}`, "helmworkloadinstanceid=5&page=2&size=500", "does not filter by helmworkloadinstanceid"},
		{"UID ignored", EventFilter{RuntimeEventUID: "v"}, row(1, 2, 3), "page=2&runtimeeventuid=v&size=500", "does not filter by runtimeeventuid"},
		{"a row without an ID", EventFilter{WorkloadInstanceID: 5}, `{"WorkloadInstanceID":5}`, "page=2&size=500&workloadinstanceid=5", "not one of the control-plane API"},
		{"more rows than there are", EventFilter{RuntimeEventUID: "u"}, strings.Repeat(row(1, 2, 3)+",", 3) + row(2, 2, 3), "page=2&runtimeeventuid=u&size=500", "not one of the control-plane API"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			asked, rows = "", tc.rows
			got, total, err := client.ListWorkloadEvents(t.Context(), tc.filter, 2, 500)
			if asked != tc.asks {
				t.Errorf("asked for %s, want %s", asked, tc.asks)
			}
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) || len(got) > 0 {
					t.Errorf("got %v, %v", got, err)
				}
				if wantKind := KindOf(err); strings.Contains(tc.fails, "filter") && wantKind != KindPermanent {
					t.Errorf("%v is %v", err, wantKind)
				}
				return
			}
			if err != nil || total != 3 || len(got) != strings.Count(tc.rows, `"ID"`) {
				t.Fatalf("got %v, %d, %v", got, total, err)
			}
			if len(got) > 0 && (got[0].CreatedAt.Nanosecond() != 678901000 || *got[0].Reason != "r") {
				t.Errorf("got %+v", got[0])
			}
		})
	}
}

func TestGetInstances(t *testing.T) {
	var path string
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		path = r.Method + " " + r.URL.Path
		reply(w, 200, fmt.Sprintf(`[{"ID":%d,"Status":"Healthy","Reconciled":false}]`, bigID), "")
	})
	got, err := client.GetWorkloadInstance(t.Context(), bigID)
	if err != nil || *got.Status != "Healthy" || *got.ID != bigID || path != "GET /v0/workload-instances/"+fmt.Sprint(bigID) {
		t.Errorf("got %+v, %v of %s", got, err, path)
	}
	chart, err := client.GetHelmWorkloadInstance(t.Context(), bigID)
	if err != nil || *chart.Status != "Healthy" || *chart.ID != bigID || path != "GET /v0/helm-workload-instances/"+fmt.Sprint(bigID) {
		t.Errorf("got %+v, %v of %s", chart, err, path)
	}
	for _, call := range []error{
		func() error { _, err := client.GetWorkloadInstance(t.Context(), 1); return err }(),
		func() error { _, err := client.GetHelmWorkloadInstance(t.Context(), 1); return err }(),
	} {
		if call == nil || !strings.Contains(call.Error(), "not one of the control-plane API") {
			t.Errorf("another row: %v", call)
		}
	}
}

func TestGetWorkloadResourceInstance_SkipsTheJSONDefinition(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 200, `[{"ID":1,"JSONDefinition":{"data":"hush"},"jsondefinition":"hush","LastOperation":"ADDED","RuntimeDefinition":{"a":9223372036854775807}}]`, "")
	})
	got, err := client.GetWorkloadResourceInstance(t.Context(), 1)
	if err != nil || got.JSONDefinition != nil || string(got.RuntimeDefinition) != `{"a":9223372036854775807}` || *got.LastOperation != OperationAdded {
		t.Errorf("got %+v, %v", got, err)
	}
}
