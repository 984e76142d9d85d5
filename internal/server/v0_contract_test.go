package server

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/testing/databases"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(databases.Main(m)) }

// start serves an empty database and returns its URL.
func start(t *testing.T, database string) string {
	t.Helper()
	_, url := startStore(t, database)
	return url
}

// startStore serves an empty database, and returns its store and its URL.
func startStore(t *testing.T, database string) (opened *store.Store, url string) {
	t.Helper()
	opened, err := store.Open(t.Context(), store.Config{Address: database})
	if err != nil {
		t.Fatal(err)
	}
	return opened, serve(t, opened, slog.DiscardHandler)
}

// serve serves a store until the test ends, and closes it.
func serve(t *testing.T, opened *store.Store, log slog.Handler) (url string) {
	t.Helper()
	server := httptest.NewServer(Handler(opened, slog.New(log)))
	t.Cleanup(func() {
		server.Close()
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return server.URL
}

// A bad request is not logged as an error of the server, although v0 answers some with 500.
func TestV0_Contract_LogsNoErrors(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		opened, err := store.Open(t.Context(), store.Config{Address: address})
		if err != nil {
			t.Fatal(err)
		}
		var logged bytes.Buffer
		url := serve(t, opened, slog.NewJSONHandler(&logged, nil))
		ids := seed(t, url)
		for _, x := range contract {
			replay(t, url, ids, x)
		}
		if text := logged.String(); text != "" {
			t.Errorf("logged %s, want none", text)
		}
	})
}

// exchange is one row of the contract: a request and the required parts of its answer.
// {wi}, {hwi}, {wri}, {event} and {gone} stand for IDs of rows that exist, or of
// one that was deleted.
type exchange struct {
	reason  string
	method  string
	path    string
	body    string
	content string // Content-Type; application/json if empty, "none" for none
	code    int
	has     []string // fragments of the answer's body
	hasNot  []string
}

const (
	okEnvelope  = `{"Meta":{"Page":1,"Size":1,"TotalCount":1},"Type":"`
	badEnvelope = `{"Meta":{"Page":0,"Size":0,"TotalCount":0},"Type":"WorkloadEvent","Data":null,"Status":{"code":`
	event       = `{"RuntimeEventUID":"new","Type":"Normal","Reason":"Created","Message":"m","Timestamp":"2026-01-02T03:04:05.678901Z"`
)

// A text and a document beyond the limits of this server.
var longText, longDocument = strings.Repeat("x", 64<<10+1), strings.Repeat("x", 4<<20)

// contract replays the measured behaviour of v0, row by row, in order.
var contract = []exchange{
	// Successes.
	{
		reason: "a resource's operation", method: "PATCH", path: "/v0/workload-resource-instances/{wri}",
		body: `{"LastOperation":"ADDED","RuntimeDefinition":{"b":1.50,"a":{"d":[2,1],"c":12345678901234567890}}}`,
		code: 200, has: []string{okEnvelope + `WorkloadResourceInstance","Data":[{"ID":{wri},`, `"LastOperation":"ADDED"`, `"WorkloadInstanceID":{wi}`, `"RuntimeDefinition":{"a":{"c":12345678901234567890,"d":[2,1]},"b":1.50}`, `"Status":{"code":200,"message":"OK","error":""}}`},
	},
	{
		reason: "an omitted and a null field are unchanged", method: "PATCH", path: "/v0/workload-resource-instances/{wri}",
		body: `{"LastOperation":"MODIFIED","RuntimeDefinition":null}`,
		code: 200, has: []string{`"LastOperation":"MODIFIED"`, `"b":1.50`, `"JSONDefinition":{"kind":"ConfigMap"}`},
	},
	{
		reason: "the whole object is read back", method: "GET", path: "/v0/workload-resource-instances/{wri}",
		code: 200, has: []string{okEnvelope, `"LastOperation":"MODIFIED"`, `"b":1.50`}, hasNot: []string{"DeletedAt"},
	},
	{reason: "an instance's status", method: "PATCH", path: "/v0/workload-instances/{wi}", body: `{"Status":"Healthy"}`, code: 200, has: []string{`"Name":"web"`, `"Status":"Healthy"`}},
	{reason: "a helm instance's status", method: "PATCH", path: "/v0/helm-workload-instances/{hwi}", body: `{"Status":"Down","Reconciled":true}`, code: 200, has: []string{`"Status":"Down"`, `"Reconciled":true`, `"Type":"HelmWorkloadInstance"`}},
	{
		reason: "an event", method: "POST", path: "/v0/workload-events", body: event + `,"WorkloadInstanceID":{wi},"WorkloadResourceInstanceID":{wri},"HelmWorkloadInstanceID":{hwi}}`,
		code: 201, has: []string{okEnvelope + `WorkloadEvent"`, `"ID":1`, `"Timestamp":"2026-01-02T03:04:05.678901Z"`, `"WorkloadInstanceID":{wi}`, `"HelmWorkloadInstanceID":{hwi}`, `"code":201,"message":"Created"`},
	},
	{reason: "the same event again is the row that exists", method: "POST", path: "/v0/workload-events", body: `{"RuntimeEventUID":"uid-1","Type":"","Reason":"","Message":"","Timestamp":"2026-01-02T03:04:05Z"}`, code: 200, has: []string{`"ID":{event},`, `"Message":"first"`}},
	{reason: "an event's repeat", method: "PATCH", path: "/v0/workload-events/{event}", body: `{"Message":"twice","Timestamp":"2026-01-02T04:04:05+01:00"}`, code: 200, has: []string{`"Message":"twice"`, `"Timestamp":"2026-01-02T03:04:05Z"`, `"Reason":"Created"`}},
	{reason: "required strings may be empty, and a time zero", method: "POST", path: "/v0/workload-events", body: `{"RuntimeEventUID":"","Type":"","Reason":"","Message":"","Timestamp":"0001-01-01T00:00:00Z"}`, code: 201, has: []string{`"Timestamp":"0001-01-01T00:00:00Z"`, `"Message":""`}},
	{reason: "an empty UID identifies nothing", method: "POST", path: "/v0/workload-events", body: `{"RuntimeEventUID":"","Type":"","Reason":"","Message":"other","Timestamp":"0001-01-01T00:00:00Z"}`, code: 201, has: []string{`"Message":"other"`}},
	{reason: "a content type with a parameter", method: "PATCH", path: "/v0/workload-events/{event}", content: "application/json; charset=UTF-8", body: `{"Reason":"R"}`, code: 200},

	// Capabilities.
	{reason: "versions of an object", method: "GET", path: "/workload-events/versions", code: 200, has: []string{`{"API":"WorkloadEvent","Versions":["v0"]}`}},
	{reason: "versions of an unknown object", method: "GET", path: "/workload-event-batches/versions", code: 404, has: []string{`{"message":"Not Found"}`}},

	// Names in a body.
	{reason: "unknown fields, nothing applied", method: "PATCH", path: "/v0/workload-events/{event}", body: `{"Message":"no","Count":2,"Also":1}`, code: 400, has: []string{badEnvelope + `400,"message":"Bad Request","error":"Unsupported fields are not allowed : Also,Count"`}},
	{reason: "nothing was applied", method: "GET", path: "/v0/workload-events/{event}", code: 200, has: []string{`"Message":"twice"`}},
	{reason: "ID in a body", method: "PATCH", path: "/v0/workload-events/{event}", body: `{"ID":1}`, code: 400, has: []string{"is not allowed : ID"}},
	{reason: "CreatedAt in a body", method: "POST", path: "/v0/workload-events", body: event + `,"CreatedAt":"2026-01-02T03:04:05Z"}`, code: 400, has: []string{"CreatedAt"}},
	{reason: "UpdatedAt in a body", method: "PATCH", path: "/v0/workload-instances/{wi}", body: `{"UpdatedAt":null}`, code: 400, has: []string{"UpdatedAt"}},
	{reason: "DeletedAt in a body", method: "PATCH", path: "/v0/workload-instances/{wi}", body: `{"DeletedAt":null}`, code: 400, has: []string{"DeletedAt"}},
	{reason: "ID in another case", method: "PATCH", path: "/v0/workload-events/{event}", body: `{"iD":1}`, code: 400, has: []string{"Update of GORM Model fields is not allowed : iD"}},
	{reason: "fields in another case", method: "PATCH", path: "/v0/workload-resource-instances/{wri}", body: `{"lastOperation":"ADDED","LASTOPERATION":"MODIFIED"}`, code: 200, has: []string{`"LastOperation":"MODIFIED"`}},
	{reason: "an association in a change", method: "PATCH", path: "/v0/workload-instances/{wi}", body: `{"workloadResourceInstances":[],"Other":1}`, code: 400, has: []string{`"error":"Update of associated objects is not allowed. Use PUT for each associated object : workloadResourceInstances"`}},
	{reason: "missing required fields", method: "POST", path: "/v0/workload-events", body: `{"Type":"Normal","Message":"m"}`, code: 400, has: []string{"Missing required field(s) : RuntimeEventUID,Reason,Timestamp"}},
	{reason: "a null required field", method: "POST", path: "/v0/workload-instances", body: `{"Name":null}`, code: 400, has: []string{"Missing required field(s) : Name"}},
	{reason: "an empty object", method: "POST", path: "/v0/workload-events", body: `{}`, code: 400, has: []string{"JSON payload is empty"}},
	{reason: "an empty list", method: "POST", path: "/v0/workload-events", body: `[]`, code: 400, has: []string{"JSON payload is empty"}},
	{reason: "null", method: "PATCH", path: "/v0/workload-events/{event}", body: `null`, code: 400, has: []string{"JSON payload is empty"}},

	// Bad requests that v0 answers with 500.
	{reason: "malformed JSON", method: "POST", path: "/v0/workload-events", body: `{"Type":`, code: 500, has: []string{badEnvelope + `500,"message":"Internal Server Error"`}},
	{reason: "no body", method: "POST", path: "/v0/workload-events", code: 500},
	{reason: "a list with an object", method: "POST", path: "/v0/workload-events", body: `[{"Type":"Normal"}]`, code: 500},

	{reason: "a wrong type", method: "PATCH", path: "/v0/workload-events/{event}", body: `{"Message":7}`, code: 500, hasNot: []string{"7,"}},
	{reason: "an ID as a string", method: "PATCH", path: "/v0/workload-events/{event}", body: `{"WorkloadInstanceID":"{wi}"}`, code: 500},

	{reason: "an ID as a float", method: "PATCH", path: "/v0/workload-events/{event}", body: `{"WorkloadInstanceID":1.2e18}`, code: 500},
	{reason: "a bad timestamp", method: "PATCH", path: "/v0/workload-events/{event}", body: `{"Timestamp":"yesterday"}`, code: 500, hasNot: []string{"yesterday"}},
	{reason: "a wrong content type", method: "PATCH", path: "/v0/workload-events/{event}", content: "text/plain", body: `{"Message":"m"}`, code: 500},
	{reason: "no content type", method: "PATCH", path: "/v0/workload-events/{event}", content: "none", body: `{"Message":"m"}`, code: 500},
	{reason: "an ID that is not a number", method: "GET", path: "/v0/workload-events/abc", code: 500},

	{reason: "an ID over int64", method: "GET", path: "/v0/workload-events/9223372036854775808", code: 500},
	{reason: "a parent that does not exist, in words of our own", method: "POST", path: "/v0/workload-events", body: strings.Replace(event, "new", "orphan", 1) + `,"HelmWorkloadInstanceID":1}`, code: 500, has: []string{`"error":"a referenced row does not exist"`}},
	{reason: "a parent that does not exist", method: "POST", path: "/v0/workload-events", body: strings.Replace(event, "new", "orphan", 1) + `,"WorkloadInstanceID":1}`, code: 500},
	{reason: "a parent that does not exist, in a change", method: "PATCH", path: "/v0/workload-resource-instances/{wri}", body: `{"WorkloadInstanceID":1}`, code: 500},

	{reason: "NUL in a string", method: "PATCH", path: "/v0/workload-events/{event}", body: `{"Message":"a\u0000b"}`, code: 500},
	{reason: "a UID that no index takes", method: "POST", path: "/v0/workload-events", body: strings.Replace(event, "new", strings.Repeat("0123456789ab", 1000), 1) + `}`, code: 400, has: []string{`"error":"RuntimeEventUID: must be a text of at most 2048 bytes"`}},
	{reason: "a long text", method: "PATCH", path: "/v0/workload-events/{event}", body: `{"Message":"` + longText + `"}`, code: 400, has: []string{`"error":"Message: must be a text of at most 65536 bytes"`}},
	{reason: "a long document", method: "PATCH", path: "/v0/workload-resource-instances/{wri}", body: `{"RuntimeDefinition":"` + longDocument + `"}`, code: 400, has: []string{`"error":"RuntimeDefinition: must be JSON of at most 4194304 bytes"`}},
	{reason: "NUL in a document", method: "PATCH", path: "/v0/workload-resource-instances/{wri}", body: `{"RuntimeDefinition":{"a":["\\\u0000"]}}`, code: 500},
	{reason: "the letters u0000 in a document", method: "PATCH", path: "/v0/workload-resource-instances/{wri}", body: `{"RuntimeDefinition":{"a":["\\u0000"]}}`, code: 200},

	// Missing rows.
	{reason: "an unknown ID", method: "GET", path: "/v0/workload-events/1", code: 404, has: []string{badEnvelope + `404,"message":"Not Found","error":"record not found"`}},
	{reason: "an unknown ID, before the body is looked at", method: "PATCH", path: "/v0/workload-events/1", body: `{`, code: 404, has: []string{"record not found"}},
	{reason: "a deleted ID read", method: "GET", path: "/v0/workload-events/{gone}", code: 404, has: []string{"record not found"}},
	{reason: "a deleted ID changed", method: "PATCH", path: "/v0/workload-events/{gone}", body: `{"Message":"m"}`, code: 404, has: []string{"record not found"}},
	{reason: "a deleted ID deleted", method: "DELETE", path: "/v0/workload-events/{gone}", code: 404, has: []string{"record not found"}},
	{reason: "the UID of a deleted event is free", method: "POST", path: "/v0/workload-events", body: `{"RuntimeEventUID":"uid-gone","Type":"","Reason":"","Message":"again","Timestamp":"2026-01-02T03:04:05Z"}`, code: 201, hasNot: []string{"{gone}"}},

	// Lists: uid-1, new, two without a UID, and uid-gone once more.
	{reason: "all events, the oldest first", method: "GET", path: "/v0/workload-events", code: 200, has: []string{`{"Meta":{"Page":1,"Size":50,"TotalCount":5},"Type":"WorkloadEvent","Data":[{"ID":{event},`}, hasNot: []string{"{gone}"}},
	{reason: "by UID", method: "GET", path: "/v0/workload-events?runtimeeventuid=new", code: 200, has: []string{`"TotalCount":1}`, `"RuntimeEventUID":"new"`}},
	{reason: "by instance", method: "GET", path: "/v0/workload-events?workloadinstanceid={wi}&page=1&size=50", code: 200, has: []string{`"TotalCount":1}`}},
	{reason: "by resource instance", method: "GET", path: "/v0/workload-events?workloadresourceinstanceid={wri}", code: 200, has: []string{`"TotalCount":1}`}},
	{reason: "by helm instance", method: "GET", path: "/v0/workload-events?helmworkloadinstanceid={hwi}", code: 200, has: []string{`"TotalCount":1}`}},
	{reason: "filters are ANDed", method: "GET", path: "/v0/workload-events?workloadinstanceid={wi}&runtimeeventuid=uid-1", code: 200, has: []string{`"TotalCount":0},"Type":"WorkloadEvent","Data":[],`}},
	{reason: "an unknown key is ignored", method: "GET", path: "/v0/workload-events?nosuchfield=1", code: 200, has: []string{`"TotalCount":5`}},
	{reason: "a page", method: "GET", path: "/v0/workload-events?page=3&size=2", code: 200, has: []string{`{"Page":3,"Size":2,"TotalCount":5}`, `"RuntimeEventUID":"uid-gone"`}},
	{reason: "a page past the end", method: "GET", path: "/v0/workload-events?page=9223372036854775807&size=50", code: 200, has: []string{`"TotalCount":5}`, `"Data":[]`}},
	{reason: "size -1 is all", method: "GET", path: "/v0/workload-events?size=-1", code: 200, has: []string{`"TotalCount":5}`}},
	{reason: "size 0 is none", method: "GET", path: "/v0/workload-events?size=0", code: 200, has: []string{`"Data":[]`, `"TotalCount":5}`}},
	{reason: "a size that is not a number", method: "GET", path: "/v0/workload-events?size=many", code: 400, has: []string{badEnvelope + `400,"message":"Bad Request","error":"Query parameter is not a valid integer value: size"`}},
	{reason: "a page that is not a number", method: "GET", path: "/v0/workload-events?page=x", code: 400, has: []string{badEnvelope + `400,"message":"Bad Request","error":"Query parameter is not a valid integer value: page"`}},
	{reason: "a size below -1", method: "GET", path: "/v0/workload-events?size=-2", code: 400, has: []string{"is not a valid integer value: size"}},
	{reason: "a filter with NUL", method: "GET", path: "/v0/workload-events?runtimeeventuid=%00", code: 200, has: []string{`{"Meta":{"Page":1,"Size":50,"TotalCount":0},"Type":"WorkloadEvent","Data":[],`}},
	{reason: "a filter that is no UTF-8", method: "GET", path: "/v0/workload-instances?name=%ff", code: 200, has: []string{`"TotalCount":0}`, `"Data":[]`}},
	{reason: "a filter of the wrong type", method: "GET", path: "/v0/workload-events?workloadinstanceid=x", code: 500},

	// Answers of the router.
	{reason: "no such path", method: "GET", path: "/v0/nothing", code: 404, has: []string{`{"message":"Not Found"}`}, hasNot: []string{"Meta"}},
	{reason: "no such version", method: "GET", path: "/v9/workload-events", code: 404, has: []string{`{"message":"Not Found"}`}},
	{reason: "no such method", method: "PATCH", path: "/v0/workload-events", body: `{}`, code: 405, has: []string{`{"message":"Method Not Allowed"}`}, hasNot: []string{"Meta"}},
	{reason: "no such method on a row", method: "POST", path: "/v0/workload-events/{event}", body: `{}`, code: 405, has: []string{`{"message":"Method Not Allowed"}`}},

	// Deletion.
	{reason: "a row is deleted", method: "DELETE", path: "/v0/workload-events/{event}", code: 200, has: []string{`"ID":{event},`, `"DeletedAt":"2`}},
	{reason: "the deleted event is not found", method: "GET", path: "/v0/workload-events/{event}", code: 404, has: []string{"record not found"}},
	{reason: "an instance with rows that refer to it is deleted", method: "DELETE", path: "/v0/workload-instances/{wi}", code: 200},
}

func TestV0_Contract(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		url := start(t, address)
		ids := seed(t, url)
		for _, x := range contract {
			t.Run(x.reason, func(t *testing.T) { replay(t, url, ids, x) })
		}
	})
}

// seed creates the rows of the contract's placeholders.
func seed(t *testing.T, url string) *strings.Replacer {
	t.Helper()
	create := func(path, body string) string {
		code, answer := call(t, exchange{method: "POST", path: url + path, body: body})
		_, rest, found := strings.Cut(answer, `"ID":`)
		id, _, _ := strings.Cut(rest, ",")
		if code != http.StatusCreated || !found {
			t.Fatalf("create %s: %d %s, want %d", path, code, answer, http.StatusCreated)
		}
		return id
	}
	wi := create("/v0/workload-instances", `{"Name":"web"}`)
	hwi := create("/v0/helm-workload-instances", `{"Name":"chart"}`)
	wri := create("/v0/workload-resource-instances", `{"JSONDefinition":{"kind":"ConfigMap"},"WorkloadInstanceID":`+wi+`}`)
	const seeded = `{"RuntimeEventUID":"%s","Type":"Normal","Reason":"Created","Message":"first","Timestamp":"2026-01-02T03:04:05Z"}`
	event := create("/v0/workload-events", fmt.Sprintf(seeded, "uid-1"))
	gone := create("/v0/workload-events", fmt.Sprintf(seeded, "uid-gone"))
	if code, answer := call(t, exchange{method: "DELETE", path: url + "/v0/workload-events/" + gone}); code != http.StatusOK {
		t.Fatalf("delete: the answer is %d %s, want %d", code, answer, http.StatusOK)
	}
	return strings.NewReplacer("{wi}", wi, "{hwi}", hwi, "{wri}", wri, "{event}", event, "{gone}", gone)
}

// replay runs one exchange with the server at url.
func replay(t *testing.T, url string, ids *strings.Replacer, x exchange) {
	t.Helper()
	x.path, x.body = url+ids.Replace(x.path), ids.Replace(x.body)
	code, answer := call(t, x)
	if code != x.code {
		t.Errorf("answered %d, want %d: %s", code, x.code, answer)
	}
	for _, want := range x.has {
		if want = ids.Replace(want); !strings.Contains(answer, want) {
			t.Errorf("answered\n%s, without\n%s", answer, want)
		}
	}
	for _, unwanted := range x.hasNot {
		if unwanted = ids.Replace(unwanted); strings.Contains(answer, unwanted) {
			t.Errorf("answered\n%s, with\n%s", answer, unwanted)
		}
	}
}

func call(t *testing.T, x exchange) (code int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), x.method, x.path, strings.NewReader(x.body))
	if err != nil {
		t.Fatal(err)
	}
	switch x.content {
	case "":
		req.Header.Set("Content-Type", "application/json")
	case "none":
	default:
		req.Header.Set("Content-Type", x.content)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	return resp.StatusCode, string(body)
}
