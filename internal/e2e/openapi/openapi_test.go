// Package openapi checks that the control-plane API answers as its OpenAPI document says.
package openapi

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/threeport/threeport-agent/internal/e2e/browser"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

const (
	someAgent = `"agent":{"clusterUID":"c","time":"2026-01-02T03:04:05Z","delaySeconds":0,"pending":0,"deadLetters":0,"dropped":0}`
	someTree  = `{"object":{"kind":"Pod","name":"a"},"health":"Healthy"}`
)

// start runs a control plane without authentication until the test ends, and returns its URL.
func start(t *testing.T) string {
	t.Helper()
	api := browser.NewAPI(filepath.Join(t.TempDir(), "rows.db"), time.Minute, slog.New(slog.DiscardHandler))
	if err := api.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.Stop(); err != nil {
			t.Error(err)
		}
	})
	return api.URL
}

// request returns the code, the content type and the body of an answer. Further texts are names and values of header fields.
func request(t *testing.T, method, url, body string, header ...string) (code int, contentType, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close(); http.DefaultClient.CloseIdleConnections() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Content-Type"), string(text)
}

// create makes a row of v0, and returns its ID.
func create(t *testing.T, url, body string) int64 {
	t.Helper()
	code, _, answer := request(t, http.MethodPost, url, body)
	var envelope threeport.Response[struct{ ID int64 }]
	if err := json.Unmarshal([]byte(answer), &envelope); err != nil || code != http.StatusCreated {
		t.Fatalf("%d %s", code, answer)
	}
	return envelope.Data[0].ID
}

// described is the OpenAPI document of a server, which checks answers.
type described struct {
	t     *testing.T
	paths map[string]map[string]struct {
		OperationID string
		Responses   map[string]struct {
			Content map[string]struct{ Schema any }
		}
	}
	compiler *jsonschema.Compiler
	// seen are the operations and codes of the checked answers.
	seen map[string]bool
}

const documentURL = "https://api.test/openapi.json"

func readDocument(t *testing.T, url string) *described {
	t.Helper()
	code, _, body := request(t, http.MethodGet, url+"/openapi.json", "")
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	d := &described{t: t, compiler: jsonschema.NewCompiler(), seen: map[string]bool{}}
	var document struct {
		OpenAPI string
		Paths   *json.RawMessage
	}
	if err := json.Unmarshal([]byte(body), &document); err != nil || document.OpenAPI != "3.1.0" {
		t.Fatalf("version %q, %v", document.OpenAPI, err)
	}
	if err := json.Unmarshal(*document.Paths, &d.paths); err != nil {
		t.Fatal(err)
	}
	whole, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource(documentURL, whole); err != nil {
		t.Fatal(err)
	}
	return d
}

// check validates an answer against the schema of its operation, code and content type.
func (d *described) check(method, path string, code int, content, body string) {
	d.t.Helper()
	op, ok := d.paths[path][strings.ToLower(method)]
	if !ok {
		d.t.Errorf("%s %s is not described", method, path)
		return
	}
	key := fmt.Sprint(code)
	if _, ok := op.Responses[key]; !ok {
		key = "default"
	}
	media, _, _ := strings.Cut(content, ";")
	if _, ok := op.Responses[key].Content[media]; !ok {
		d.t.Errorf("%s: %d as %s is not described: %s", op.OperationID, code, media, body)
		return
	}
	escape := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")
	pointer := strings.Join([]string{
		"#/paths", escape.Replace(path), strings.ToLower(method), "responses", key, "content", escape.Replace(media), "schema",
	}, "/")
	schema, err := d.compiler.Compile(documentURL + pointer)
	if err != nil {
		d.t.Errorf("%s: %v", op.OperationID, err)
		return
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err != nil {
		d.t.Errorf("%s: %v: %s", op.OperationID, err, body)
		return
	}
	if err := schema.Validate(value); err != nil {
		d.t.Errorf("%s: %d: %v\n%s", op.OperationID, code, err, body)
	}
	d.seen[op.OperationID+" "+fmt.Sprint(code)] = true
}

// ask sends a request to a path of the document, with values for its parameters, and checks the answer.
func (d *described) ask(url, method, path, query, body string, want int, values ...string) string {
	d.t.Helper()
	filled := strings.NewReplacer(values...).Replace(path)
	code, contentType, answer := request(d.t, method, url+filled+query, body)
	if code != want {
		d.t.Errorf("%s %s%s: %d, want %d: %s", method, filled, query, code, want, answer)
	}
	if strings.Contains(answer, "hunter2") {
		d.t.Errorf("%s %s%s: quotes the request: %s", method, filled, query, answer)
	}
	d.check(method, path, code, contentType, answer)
	return answer
}

// fullSet is a set with every type of report about a workload and one of its resources.
func fullSet(workload, resource int64) string {
	about := fmt.Sprintf(`"instance":{"type":"WorkloadInstance","id":"%d"},"version":"5",`, workload)
	const pod = `{"version":"v1","kind":"Pod","namespace":"n","name":"web-1","uid":"pod"}`
	return `{` + someAgent + `,"reports":[` + strings.Join([]string{
		`{` + about + fmt.Sprintf(`"operation":{"resourceInstanceID":"%d","object":{"version":"v1","kind":"ConfigMap","namespace":"n","name":"conf","uid":"conf"},"operation":"ADDED","definition":{"kind":"ConfigMap"}}}`, resource),
		`{` + about + `"event":{"uid":"e1","involved":` + pod + `,"type":"Warning","reason":"BackOff","message":"m","time":"2026-01-02T03:04:05Z","firstTime":"2026-01-02T03:04:00Z","count":3}}`,
		`{` + about + `"event":{"uid":"e2","involved":` + pod + `,"type":"Warning","reason":"Lost","message":"m","time":"2026-01-02T03:04:06Z","gap":{"normal":"1","warning":1,"first":"2026-01-02T03:04:05Z","last":"2026-01-02T03:04:05Z"}}}`,
		`{` + about + `"status":{"status":"Down","reason":"CrashLoopBackOff","cause":"it crashes","since":"2026-01-02T03:04:05Z"}}`,
		`{` + about + `"tree":{"objects":[{"object":` + pod + `,"listed":true,"state":"Present","health":"Down"},` + someTree + `]}}`,
		`{"instance":{"type":"WorkloadInstance","id":"1"},"version":"5","status":{"status":"Down"}}`,
	}, ",") + `]}`
}

// checkOwnToken checks the operations that need a token in the request.
func checkOwnToken(d *described, url string) {
	d.t.Helper()
	const own, renewals = "/v0/tokens/own", "/v0/tokens/own/renewals"
	d.ask(url, "GET", own, "", "", 409)
	d.ask(url, "GET", own, "?x=hunter2", "", 422)
	d.ask(url, "POST", renewals, "", "", 409)
	expires := time.Now().Add(3 * time.Second).Format(time.RFC3339Nano)
	answer := d.ask(url, "POST", "/v0/tokens", "", `{"name":"t","role":"agent","clusterUID":"c","renewable":true,"expiresAt":"`+expires+`"}`, 201)
	var made threeport.RenewedToken
	if err := json.Unmarshal([]byte(answer), &made); err != nil {
		d.t.Fatal(err)
	}
	present := func(method, path string) int {
		d.t.Helper()
		code, contentType, answer := request(d.t, method, url+path, "", "Authorization", "Bearer "+made.Token)
		d.check(method, path, code, contentType, answer)
		return code
	}
	if code := present("GET", own); code != 200 {
		d.t.Errorf("the state of a token is answered with %d, want 200", code)
	}
	if code := present("POST", renewals); code != 409 {
		d.t.Errorf("an early renewal is answered with %d, want 409", code)
	}
	for code := present("POST", renewals); code != 201; code = present("POST", renewals) {
		if code == 401 {
			d.t.Fatal("the token ended before its renewal was due")
		}
		<-time.After(50 * time.Millisecond)
	}
}

// Each operation is called for success, and for each error that a client can cause.
func TestOpenAPI_Answers_MatchDocument(t *testing.T) {
	url := start(t)
	d := readDocument(t, url)
	workload := create(t, url+"/v0/workload-instances", `{"Name":"web"}`)
	resource := create(t, url+"/v0/workload-resource-instances", fmt.Sprintf(`{"JSONDefinition":{},"WorkloadInstanceID":%d}`, workload))
	sets, list := "/v0/workload-report-sets", "/v0/workloads"
	one, eventsOf := list+"/{type}/{id}", list+"/{type}/{id}/events"
	named := []string{"{type}", "WorkloadInstance", "{id}", fmt.Sprint(workload)}

	d.ask(url, "GET", "/workload-report-sets/versions", "", "", 200)
	full := strings.ReplaceAll(fullSet(workload, resource), `"normal":"1"`, `"normal":1`)
	if answer := d.ask(url, "POST", sets, "", full, 200); strings.Count(answer, `"created"`)+strings.Count(answer, `"updated"`) != 5 ||
		!strings.Contains(answer, `"rejected","problem":{"code":"not_found"`) {
		t.Errorf("answered %s", answer)
	}
	d.ask(url, "POST", sets, "", full, 200)
	d.ask(url, "POST", sets, "", `{`+someAgent+`,"reports":[]}`, 200)
	d.ask(url, "POST", sets, "", `hunter2`, 400)
	d.ask(url, "POST", sets, "", fullSet(workload, resource), 422)
	d.ask(url, "POST", sets, "", `{"agent":{"clusterUID":"","clusterName":"hunter2"},"reports":[]}`, 422)
	d.ask(url, "POST", sets, "?x=1", full, 422)
	d.ask(url, "POST", sets, "", `{`+someAgent+`,"reports":[`+strings.Repeat("{},", 1000)+`{}]}`, 413)

	first := d.ask(url, "GET", list, "?size=1&sort=name", "", 200)
	if !strings.Contains(first, `"status":"Down"`) || !strings.Contains(first, `"total":1`) {
		t.Errorf("the list is %s", first)
	}
	d.ask(url, "GET", list, "?status=Healthy", "", 200)
	for _, query := range []string{"?size=0", "?size=x", "?size=1001", "?sort=hunter2", "?status=hunter2", "?type=Pod", "?cursor=hunter2", "?x=hunter2", "?size=1&size=2", "?text=%00"} {
		d.ask(url, "GET", list, query, "", 422)
	}
	d.ask(url, "GET", list, "?text=%zz", "", 400)
	if tree := d.ask(url, "GET", one, "", "", 200, named...); !strings.Contains(tree, `"kind":"Pod"`) {
		t.Errorf("the workload is %s", tree)
	}
	d.ask(url, "GET", one, "", "", 404, "{type}", "HelmWorkloadInstance", "{id}", fmt.Sprint(workload))
	for _, id := range []string{"hunter2", "-1", "9223372036854775808", "1.5"} {
		d.ask(url, "GET", one, "", "", 422, "{type}", "WorkloadInstance", "{id}", id)
	}
	d.ask(url, "GET", one, "", "", 422, "{type}", "hunter2", "{id}", "1")
	timeline := d.ask(url, "GET", eventsOf, "?level=Warning&from=2026-01-02T03:04:05Z&size=1", "", 200, named...)
	if !strings.Contains(timeline, `"uid":"e2"`) || !strings.Contains(timeline, `"next":"`) {
		t.Errorf("the timeline is %s", timeline)
	}
	d.ask(url, "GET", eventsOf, "", "", 404, "{type}", "WorkloadInstance", "{id}", "1")
	for _, query := range []string{"?from=yesterday", "?to=1", "?level=Error", "?cursor=x"} {
		d.ask(url, "GET", eventsOf, query, "", 422, named...)
	}
	kept := list + "/{type}/{id}/event-retention"
	d.ask(url, "GET", kept, "", "", 200, named...)
	d.ask(url, "GET", kept, "", "", 404, "{type}", "HelmWorkloadInstance", "{id}", fmt.Sprint(workload))
	d.ask(url, "GET", kept, "", "", 422, "{type}", "WorkloadInstance", "{id}", "hunter2")
	if clusters := d.ask(url, "GET", "/v0/clusters", "", "", 200); !strings.Contains(clusters, `"clusterUID":"c"`) {
		t.Errorf("the clusters are %s", clusters)
	}
	d.ask(url, "GET", "/v0/clusters", "?x=1", "", 422)
	object := "/v0/clusters/{uid}/objects/{objectUID}"
	d.ask(url, "GET", object, "", "", 200, "{uid}", "c", "{objectUID}", "conf")
	for _, none := range []string{"%00", "%ff"} {
		d.ask(url, "GET", object, "", "", 404, "{uid}", "c", "{objectUID}", none)
		d.ask(url, "DELETE", "/v0/clusters/{uid}", "", "", 404, "{uid}", none)
	}
	d.ask(url, "GET", object, "", "", 422, "{uid}", strings.Repeat("c", 129), "{objectUID}", "conf")
	d.ask(url, "GET", "/v0/workloads/watch", "?status=hunter2", "", 422)
	cluster := "/v0/clusters/{uid}"
	d.ask(url, "DELETE", cluster, "", "", 422, "{uid}", strings.Repeat("c", 129))
	if released := d.ask(url, "DELETE", cluster, "", "", 200, "{uid}", "c"); !strings.Contains(released, `"workloads":1`) {
		t.Errorf("released %s", released)
	}
	d.ask(url, "DELETE", cluster, "", "", 404, "{uid}", "c")

	assignment := one + "/cluster"
	d.ask(url, "PUT", assignment, "", `{"clusterUID":"c"}`, 200, named...)
	d.ask(url, "PUT", assignment, "", `{"clusterUID":"hunter2`, 400, named...)
	d.ask(url, "PUT", assignment, "", `{"clusterUID":"c"}`, 404, "{type}", "HelmWorkloadInstance", "{id}", fmt.Sprint(workload))
	for _, body := range []string{`{}`, `{"clusterUID":""}`, `{"clusterUID":"hunter 2"}`, `{"clusterUID":"c","x":"hunter2"}`, `{"clusterUID":"c","clusterUID":"d"}`} {
		d.ask(url, "PUT", assignment, "", body, 422, named...)
	}
	d.ask(url, "DELETE", assignment, "", "", 200, named...)
	d.ask(url, "DELETE", assignment, "", "", 404, "{type}", "WorkloadInstance", "{id}", "1")
	d.ask(url, "DELETE", assignment, "", "", 422, "{type}", "WorkloadInstance", "{id}", "hunter2")

	token := d.ask(url, "POST", "/v0/tokens", "", `{"name":"t","role":"viewer"}`, 201)
	for _, body := range []string{
		`{"name":"t","name":"u","role":"viewer"}`, `{"name":"t","role":"admin","role":"viewer"}`, `{"Name":"t","role":"viewer"}`,
		`{"name":"t","ROLE":"viewer"}`, `{"name":"t","role":"viewer","Role":"admin"}`,
	} {
		if said := d.ask(url, "POST", "/v0/tokens", "", body, 422); !strings.Contains(said, "unknown or duplicate field") {
			t.Errorf("%s: %s", body, said)
		}
	}
	for _, body := range []string{`{"name":"t","role":"hunter2"}`, `{"name":"t","role":"viewer","x":"hunter2"}`, `{"name":"t","role":"viewer","expiresAt":"hunter2"}`} {
		d.ask(url, "POST", "/v0/tokens", "", body, 422)
	}
	d.ask(url, "POST", "/v0/tokens", "", `{"name":"hunter2`, 400)
	d.ask(url, "GET", "/v0/tokens", "", "", 200)
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(token), &made); err != nil {
		t.Fatal(err)
	}
	d.ask(url, "DELETE", "/v0/tokens/{id}", "", "", 200, "{id}", made.ID)
	d.ask(url, "DELETE", "/v0/tokens/{id}", "", "", 404, "{id}", "1")
	d.ask(url, "DELETE", "/v0/tokens/{id}", "", "", 422, "{id}", "word") // the records will have the path
	checkOwnToken(d, url)
	d.ask(url, "GET", "/v0/audit-records", "?size=1", "", 200)
	d.ask(url, "GET", "/v0/audit-records", "?cursor=hunter2", "", 422)

	for _, r := range store.Resources {
		d.ask(url, "GET", "/"+r.Path+"/versions", "", "", 200)
	}
	d.ask(url, "GET", "/v0/workload-instances/{id}", "", "", 200, "{id}", fmt.Sprint(workload))
	d.ask(url, "GET", "/v0/workload-events", "?size=1", "", 200)
	d.ask(url, "POST", "/v0/workload-events", "", `{"x":1}`, 400)
	for path, methods := range d.paths {
		for method, op := range methods {
			if !strings.HasPrefix(op.OperationID, "v0-") && op.OperationID != "watch-workloads" &&
				!d.seen[op.OperationID+" 200"] && !d.seen[op.OperationID+" 201"] {
				t.Errorf("%s %s, %s, was not seen to succeed", method, path, op.OperationID)
			}
		}
	}
}
