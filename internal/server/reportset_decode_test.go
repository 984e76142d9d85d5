package server

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
)

const (
	someAgent = `"agent":{"clusterUID":"c","time":"2026-01-02T03:04:05Z","delaySeconds":0,"pending":0,"deadLetters":0,"dropped":0}`
	someTree  = `{"object":{"kind":"Pod","name":"a"},"health":"Healthy"}`
)

// reportOf is a set of one report with additional fields.
func reportOf(fields string) string {
	return `{` + someAgent + `,"reports":[{"instance":{"type":"WorkloadInstance","id":"1"},"version":"2"` + fields + `}]}`
}

// wantProblem checks the code of an error, and the location of one of its faults.
func wantProblem(t *testing.T, err error, code int, at string) {
	t.Helper()
	found, ok := errors.AsType[*huma.ErrorModel](err)
	if !ok {
		t.Fatalf("got %v, want a problem", err)
	}
	if found.Status != code {
		t.Errorf("code %d, want %d: %v", found.Status, code, found)
	}
	if at == "" {
		return
	}
	for _, fault := range found.Errors {
		if fault.Location == at {
			return
		}
	}
	t.Errorf("the problem has no error at %s, its detail is %s", at, found.Detail)
}

func TestDecodeReportSet_InvalidSet_IsRefused(t *testing.T) {
	for _, tc := range []struct {
		reason, body string
		code         int
		at           string
	}{
		{"nothing", "", http.StatusBadRequest, ""},
		{"no JSON", "hunter2", http.StatusBadRequest, ""},
		{"cut off", reportOf("")[:60], http.StatusBadRequest, ""},
		{"cut off within a report", strings.TrimSuffix(reportOf(""), "}]}"), http.StatusBadRequest, ""},

		{"a comma too many", `{` + someAgent + `,"reports":[],}`, http.StatusBadRequest, ""},
		{"a comma too many in a list", `{` + someAgent + `,"reports":[{},]}`, http.StatusBadRequest, ""},
		{"brackets that do not match", `{` + someAgent + `,"reports":[}`, http.StatusBadRequest, ""},

		{"more behind it", reportOf("") + `{}`, http.StatusBadRequest, ""},
		{"no JSON behind it", reportOf("") + `x`, http.StatusBadRequest, ""},
		{"not an object", `[]`, http.StatusUnprocessableEntity, "body"},
		{"null", `null`, http.StatusUnprocessableEntity, "body"},
		{"no agent", `{"reports":[]}`, http.StatusUnprocessableEntity, "body.agent"},
		{"no reports", `{` + someAgent + `}`, http.StatusUnprocessableEntity, "body.reports"},
		{"reports are no list", `{` + someAgent + `,"reports":{"hunter2":1}}`, http.StatusUnprocessableEntity, "body.reports"},
		{"a report is no object", `{` + someAgent + `,"reports":["hunter2"]}`, http.StatusUnprocessableEntity, "body.reports[0]"},
		{"an unknown field", `{"x":["hunter2"],` + someAgent + `,"reports":[]}`, http.StatusUnprocessableEntity, "body.x"},

		{"an unknown field of a report", reportOf(`,"x":{"y":"hunter2"}`), http.StatusUnprocessableEntity, "body.reports[0].x"},
		{"an unknown field below", reportOf(`,"event":{"involved":{"x":"hunter2"}}`), http.StatusUnprocessableEntity, "body.reports[0].event.involved.x"},

		{"another case", reportOf(`,"Event":{}`), http.StatusUnprocessableEntity, "body.reports[0].Event"},
		{"a field twice", reportOf(`,"version":"3"`), http.StatusUnprocessableEntity, "body.reports[0].version"},

		{"a field below twice", reportOf(`,"status":{"status":"Down","status":"hunter2"}`), http.StatusUnprocessableEntity, "body.reports[0].status.status"},
		{"an ID that is a number", `{` + someAgent + `,"reports":[{"instance":{"type":"WorkloadInstance","id":1}}]}`, http.StatusUnprocessableEntity, "body.reports[0].instance.id"},
		{"a report without its key", `{` + someAgent + `,"reports":[{"version":"1"}]}`, http.StatusUnprocessableEntity, "body.reports[0].instance"},
		{"a report without a version", `{` + someAgent + `,"reports":[{"instance":{"type":"WorkloadInstance","id":"1"}}]}`, http.StatusUnprocessableEntity, "body.reports[0].version"},

		{"a version that is null", `{` + someAgent + `,"reports":[{"version":null}]}`, http.StatusUnprocessableEntity, "body.reports[0].version"},
		{"a version with a sign", `{` + someAgent + `,"reports":[{"version":"+5"}]}`, http.StatusUnprocessableEntity, "body.reports[0].version"},
		{"a version with more digits than one has", `{` + someAgent + `,"reports":[{"version":"00000000000000000005"}]}`, http.StatusUnprocessableEntity, "body.reports[0].version"},

		{"an agent that is null", `{"agent":null,"reports":[]}`, http.StatusUnprocessableEntity, "body.agent"},
		{"a tree without objects", reportOf(`,"tree":{}`), http.StatusUnprocessableEntity, "body.reports[0].tree.objects"},
		{"objects that are null", reportOf(`,"tree":{"objects":null}`), http.StatusUnprocessableEntity, "body.reports[0].tree.objects"},
		{"an object that is null", reportOf(`,"tree":{"objects":[null]}`), http.StatusUnprocessableEntity, "body.reports[0].tree.objects[0]"},
		{"an Event without a message", reportOf(`,"event":{"uid":"u"}`), http.StatusUnprocessableEntity, "body.reports[0].event.message"},
		{"a name that is null", reportOf(`,"tree":{"objects":[{"object":{"kind":"Pod","name":null},"health":"Down"}]}`), http.StatusUnprocessableEntity, "body.reports[0].tree.objects[0].object.name"},

		{"an ID beyond 64 bits", `{` + someAgent + `,"reports":[{"version":"9223372036854775808"}]}`, http.StatusUnprocessableEntity, "body.reports[0].version"},

		{"an ID that is a word", reportOf(`,"operation":{"resourceInstanceID":"hunter2"}`), http.StatusUnprocessableEntity, "body.reports[0].operation.resourceInstanceID"},
		{"a string that is a number", reportOf(`,"event":{"reason":1}`), http.StatusUnprocessableEntity, "body.reports[0].event.reason"},

		{"a count that is a fraction", reportOf(`,"event":{"count":1.5}`), http.StatusUnprocessableEntity, "body.reports[0].event.count"},
		{"a time that is none", reportOf(`,"event":{"time":"hunter2"}`), http.StatusUnprocessableEntity, "body.reports[0].event.time"},

		{"a time that is a number", reportOf(`,"event":{"gap":{"first":5}}`), http.StatusUnprocessableEntity, "body.reports[0].event.gap.first"},
		{"an object that is a list", reportOf(`,"event":[]`), http.StatusUnprocessableEntity, "body.reports[0].event"},
		{"a tree that is a list", reportOf(`,"tree":[]`), http.StatusUnprocessableEntity, "body.reports[0].tree"},

		{"an object of a tree", reportOf(`,"tree":{"objects":[` + someTree + `,{"listed":"hunter2"}]}`), http.StatusUnprocessableEntity, "body.reports[0].tree.objects[1].listed"},
		{"an agent's number", `{"agent":{"pending":"hunter2"},"reports":[]}`, http.StatusUnprocessableEntity, "body.agent.pending"},
		{"too many reports", `{` + someAgent + `,"reports":[{},{},{},{}]}`, http.StatusRequestEntityTooLarge, "body.reports"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			_, err := decodeReportSet(strings.NewReader(tc.body), 3)
			wantProblem(t, err, tc.code, tc.at)
			if found, ok := errors.AsType[*huma.ErrorModel](err); ok {
				for _, fault := range append(found.Errors, &huma.ErrorDetail{Message: found.Detail}) {
					if strings.Contains(fault.Error(), "hunter2") && fault.Location != "body.reports.hunter2" {
						t.Errorf("the error quotes the content of the body: %v", fault)
					}
				}
			}
		})
	}
}

func TestDecodeReportSet_ValidSet(t *testing.T) {
	set, err := decodeReportSet(strings.NewReader(`
		{"reports":[
			{"version":"-7","instance":{"id":"9223372036854775807","type":"HelmWorkloadInstance"},
			 "operation":{"operation":"ADDED","object":{"kind":"K","name":"n"},"definition":{"a":1,"a":2,"b":[1.50,12345678901234567890]}}},
			{"instance":{"type":"WorkloadInstance","id":"1"},"version":"0","tree":{"objects":[`+someTree+`]},"status":null}
		],`+someAgent+`}`), 3)
	if err != nil {
		t.Fatal(err)
	}
	first := set.Reports[0]
	if set.Agent.ClusterUID != "c" || first.Version != -7 || first.Instance.ID != 1<<63-1 ||
		string(first.Operation.Definition) != `{"a":1,"a":2,"b":[1.50,12345678901234567890]}` {
		t.Errorf("the first report was decoded as %+v", set)
	}
	if second := set.Reports[1]; second.Status != nil || len(second.Tree.Objects) != 1 || second.Tree.Objects[0].Object.Kind != "Pod" {
		t.Errorf("the second report was decoded as %+v, want one Pod", second)
	}
}

// Tiny objects take a hundred times their text in memory, and faults take more text than the body.
func TestDecodeReportSet_Limits(t *testing.T) {
	tree := func(objects int) string {
		return `{"tree":{"objects":[` + someTree + strings.Repeat(`,`+someTree, objects-1) + `]}}`
	}
	for body, at := range map[string]string{
		tree(4):                 "body.reports[0].tree.objects",
		tree(3) + "," + tree(3): "body",
	} {
		d := setDecoder{
			text:       newSetText(strings.NewReader(`{` + someAgent + `,"reports":[` + body + `]}`)),
			maxReports: 10, maxTree: 3, maxObjects: 5,
		}
		_, err := d.decode()
		wantProblem(t, err, http.StatusRequestEntityTooLarge, at)
	}

	_, err := decodeReportSet(strings.NewReader(`{`+strings.Repeat(`"x":0,`, 1000)+`"y":0}`), 1000)
	wantProblem(t, err, http.StatusUnprocessableEntity, "body.x")
	if found, _ := errors.AsType[*huma.ErrorModel](err); len(found.Errors) != maxFaults {
		t.Errorf("%d faults, want %d", len(found.Errors), maxFaults)
	}
	name := strings.Repeat("n", 1<<20)
	_, err = decodeReportSet(strings.NewReader(`{"`+name+`":0}`), 1000)
	if found, _ := errors.AsType[*huma.ErrorModel](err); len(found.Detail) > 1000 {
		t.Errorf("the detail of the problem has %d bytes, want at most 1000", len(found.Detail))
	}
}

func FuzzDecodeReportSet(f *testing.F) {
	f.Add(reportOf(`,"event":{"uid":"u","gap":{"first":"2026-01-02T03:04:05Z"}}`))
	f.Add(reportOf(`,"tree":{"objects":[` + someTree + `]}`))
	f.Add(`{"agent":null,"reports":[null]}`)
	f.Fuzz(func(t *testing.T, body string) {
		set, err := decodeReportSet(strings.NewReader(body), 3)
		if _, isProblem := errors.AsType[*huma.ErrorModel](err); err != nil && !isProblem {
			t.Errorf("decoding %q returned the error %v, want a problem", body, err)
		}
		if len(set.Reports) > 3 {
			t.Errorf("the set has %d reports, want at most 3", len(set.Reports))
		}
	})
}
