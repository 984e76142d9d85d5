package server

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/threeport/threeport-agent/internal/threeport"
)

const (
	someAgent = `"agent":{"clusterUID":"c","time":"2026-01-02T03:04:05Z","delaySeconds":0,"pending":0,"deadLetters":0,"dropped":0}`
	someTree  = `{"object":{"kind":"Pod","name":"a"},"health":"Healthy"}`
)

// reportOf is a set of one report with additional fields.
func reportOf(fields string) string {
	return `{` + someAgent + `,"reports":[{"instance":{"type":"WorkloadInstance","id":"1"},"version":"2"` + fields + `}]}`
}

// podOf is a set with a Pod whose containers are given as JSON. Its faults are at podAt.
func podOf(containers string) string {
	return reportOf(`,"tree":{"objects":[{"object":{"kind":"Pod","name":"a"},"health":"Down","pod":{"containers":` + containers + `}}]}`)
}

const podAt = "body.reports[0].tree.objects[0].pod.containers"

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
		{reason: "an empty body", code: http.StatusBadRequest},
		{reason: "no JSON", body: "hunter2", code: http.StatusBadRequest},
		{reason: "cut off", body: reportOf("")[:60], code: http.StatusBadRequest},
		{reason: "cut off within a report", body: strings.TrimSuffix(reportOf(""), "}]}"), code: http.StatusBadRequest},

		{reason: "a comma too many", body: `{` + someAgent + `,"reports":[],}`, code: http.StatusBadRequest},
		{reason: "a comma too many in a list", body: `{` + someAgent + `,"reports":[{},]}`, code: http.StatusBadRequest},
		{reason: "brackets that do not match", body: `{` + someAgent + `,"reports":[}`, code: http.StatusBadRequest},

		{reason: "more behind it", body: reportOf("") + `{}`, code: http.StatusBadRequest},
		{reason: "no JSON behind it", body: reportOf("") + `x`, code: http.StatusBadRequest},
		{reason: "a number beyond the range, for an object", body: `1e999`, code: http.StatusBadRequest},
		{reason: "a number beyond the range, for a list", body: `{` + someAgent + `,"reports":1e999}`, code: http.StatusBadRequest},
		{reason: "not an object", body: `[]`, code: http.StatusUnprocessableEntity, at: "body"},
		{reason: "null", body: `null`, code: http.StatusUnprocessableEntity, at: "body"},
		{reason: "no agent", body: `{"reports":[]}`, code: http.StatusUnprocessableEntity, at: "body.agent"},
		{reason: "no reports", body: `{` + someAgent + `}`, code: http.StatusUnprocessableEntity, at: "body.reports"},
		{
			reason: "reports are no list", body: `{` + someAgent + `,"reports":{"hunter2":1}}`,
			code: http.StatusUnprocessableEntity, at: "body.reports",
		},
		{
			reason: "a report is no object", body: `{` + someAgent + `,"reports":["hunter2"]}`,
			code: http.StatusUnprocessableEntity, at: "body.reports[0]",
		},
		{
			reason: "an unknown field", body: `{"x":["hunter2"],` + someAgent + `,"reports":[]}`,
			code: http.StatusUnprocessableEntity, at: "body.x",
		},

		{
			reason: "an unknown field of a report", body: reportOf(`,"x":{"y":"hunter2"}`),
			code: http.StatusUnprocessableEntity, at: "body.reports[0].x",
		},
		{
			reason: "an unknown field below", body: reportOf(`,"event":{"involved":{"x":"hunter2"}}`),
			code: http.StatusUnprocessableEntity, at: "body.reports[0].event.involved.x",
		},

		{reason: "another case", body: reportOf(`,"Event":{}`), code: http.StatusUnprocessableEntity, at: "body.reports[0].Event"},
		{reason: "a field twice", body: reportOf(`,"version":"3"`), code: http.StatusUnprocessableEntity, at: "body.reports[0].version"},

		{
			reason: "a field below twice", body: reportOf(`,"status":{"status":"Down","status":"hunter2"}`),
			code: http.StatusUnprocessableEntity, at: "body.reports[0].status.status",
		},
		{
			reason: "an ID that is a number",
			body:   `{` + someAgent + `,"reports":[{"instance":{"type":"WorkloadInstance","id":1}}]}`,
			code:   http.StatusUnprocessableEntity, at: "body.reports[0].instance.id",
		},
		{
			reason: "a report without its key", body: `{` + someAgent + `,"reports":[{"version":"1"}]}`,
			code: http.StatusUnprocessableEntity, at: "body.reports[0].instance",
		},
		{
			reason: "a report without a version",
			body:   `{` + someAgent + `,"reports":[{"instance":{"type":"WorkloadInstance","id":"1"}}]}`,
			code:   http.StatusUnprocessableEntity, at: "body.reports[0].version",
		},

		{
			reason: "a version that is null", body: `{` + someAgent + `,"reports":[{"version":null}]}`,
			code: http.StatusUnprocessableEntity, at: "body.reports[0].version",
		},
		{
			reason: "a version with a sign", body: `{` + someAgent + `,"reports":[{"version":"+5"}]}`,
			code: http.StatusUnprocessableEntity, at: "body.reports[0].version",
		},
		{
			reason: "a version with more digits than one has",
			body:   `{` + someAgent + `,"reports":[{"version":"00000000000000000005"}]}`,
			code:   http.StatusUnprocessableEntity, at: "body.reports[0].version",
		},

		{reason: "an agent that is null", body: `{"agent":null,"reports":[]}`, code: http.StatusUnprocessableEntity, at: "body.agent"},
		{
			reason: "a tree without objects", body: reportOf(`,"tree":{}`), code: http.StatusUnprocessableEntity,
			at: "body.reports[0].tree.objects",
		},
		{
			reason: "objects that are null", body: reportOf(`,"tree":{"objects":null}`),
			code: http.StatusUnprocessableEntity, at: "body.reports[0].tree.objects",
		},
		{
			reason: "an object that is null", body: reportOf(`,"tree":{"objects":[null]}`),
			code: http.StatusUnprocessableEntity, at: "body.reports[0].tree.objects[0]",
		},
		{
			reason: "an Event without a message", body: reportOf(`,"event":{"uid":"u"}`),
			code: http.StatusUnprocessableEntity, at: "body.reports[0].event.message",
		},
		{
			reason: "a name that is null",
			body:   reportOf(`,"tree":{"objects":[{"object":{"kind":"Pod","name":null},"health":"Down"}]}`),
			code:   http.StatusUnprocessableEntity, at: "body.reports[0].tree.objects[0].object.name",
		},

		{
			reason: "an ID beyond 64 bits",
			body:   `{` + someAgent + `,"reports":[{"version":"9223372036854775808"}]}`,
			code:   http.StatusUnprocessableEntity, at: "body.reports[0].version",
		},

		{
			reason: "an ID that is a word", body: reportOf(`,"operation":{"resourceInstanceID":"hunter2"}`),
			code: http.StatusUnprocessableEntity, at: "body.reports[0].operation.resourceInstanceID",
		},
		{
			reason: "a string that is a number", body: reportOf(`,"event":{"reason":1}`),
			code: http.StatusUnprocessableEntity, at: "body.reports[0].event.reason",
		},

		{
			reason: "a count that is a fraction", body: reportOf(`,"event":{"count":1.5}`),
			code: http.StatusUnprocessableEntity, at: "body.reports[0].event.count",
		},
		{
			reason: "a time that is none", body: reportOf(`,"event":{"time":"hunter2"}`),
			code: http.StatusUnprocessableEntity, at: "body.reports[0].event.time",
		},

		{
			reason: "a time that is a number", body: reportOf(`,"event":{"gap":{"first":5}}`),
			code: http.StatusUnprocessableEntity, at: "body.reports[0].event.gap.first",
		},
		{reason: "an object that is a list", body: reportOf(`,"event":[]`), code: http.StatusUnprocessableEntity, at: "body.reports[0].event"},
		{reason: "a tree that is a list", body: reportOf(`,"tree":[]`), code: http.StatusUnprocessableEntity, at: "body.reports[0].tree"},

		{
			reason: "an object of a tree",
			body:   reportOf(`,"tree":{"objects":[` + someTree + `,{"listed":"hunter2"}]}`),
			code:   http.StatusUnprocessableEntity, at: "body.reports[0].tree.objects[1].listed",
		},
		{
			reason: "containers that are no list", body: podOf(`{"hunter2":1}`),
			code: http.StatusUnprocessableEntity, at: podAt,
		},
		{
			reason: "a container that is no object", body: podOf(`[{"name":"a","state":"Running"},"hunter2"]`),
			code: http.StatusUnprocessableEntity, at: podAt + "[1]",
		},
		{
			reason: "a container that is null", body: podOf(`[null]`),
			code: http.StatusUnprocessableEntity, at: podAt + "[0].name",
		},
		{
			reason: "a container without a state", body: podOf(`[{"name":"a","state":"Running"},{"name":"b"}]`),
			code: http.StatusUnprocessableEntity, at: podAt + "[1].state",
		},
		{
			reason: "a restart count that is no number", body: podOf(`[{"name":"a","state":"Running","restarts":"hunter2"}]`),
			code: http.StatusUnprocessableEntity, at: podAt + "[0].restarts",
		},
		{
			reason: "a termination message", body: podOf(`[{"name":"a","state":"Waiting","lastExit":{"code":1,"message":"hunter2"}}]`),
			code: http.StatusUnprocessableEntity, at: podAt + "[0].lastExit.message",
		},
		{
			reason: "an agent's number", body: `{"agent":{"pending":"hunter2"},"reports":[]}`,
			code: http.StatusUnprocessableEntity, at: "body.agent.pending",
		},
		{
			reason: "too many reports", body: `{` + someAgent + `,"reports":[{},{},{},{}]}`,
			code: http.StatusRequestEntityTooLarge, at: "body.reports",
		},
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

	half := tree(maxTree/2 + 1)
	_, err := decodeReportSet(strings.NewReader(`{`+someAgent+`,"reports":[`+half+`,`+half+`]}`), 1000)
	wantProblem(t, err, http.StatusRequestEntityTooLarge, "body")
	_, err = decodeReportSet(strings.NewReader(`{`+strings.Repeat(`"x":0,`, 1000)+`"y":0}`), 1000)
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

// A container of three bytes takes more than a hundred in memory. Commas in texts are not those of a list.
func TestDecodeReportSet_Containers_AreLimited(t *testing.T) {
	const container = `{"name":"a","state":"Running","lastExit":{"code":1}}`
	list := func(n int, item string) string { return `[` + strings.Repeat(item+`,`, n-1) + item + `]` }
	for reason, body := range map[string]string{
		"many":          podOf(list(2*maxObjectCommas, container)),
		"empty":         podOf(list(2*maxObjectCommas, `{}`)),
		"not objects":   podOf(list(2*maxObjectCommas, `0`)),
		"in two fields": strings.Replace(podOf(`[]`), `"pod"`, `"pod":{"containers":`+list(2*maxObjectCommas, container)+`},"pod"`, 1),
	} {
		t.Run(reason, func(t *testing.T) {
			_, err := decodeReportSet(strings.NewReader(body), 1)
			wantProblem(t, err, http.StatusUnprocessableEntity, podAt)
		})
	}
	full := list(threeport.MaxContainers, `{"name":"a","type":"init","image":"i","state":"Running","reason":"r","ready":true,"restarts":1,`+
		`"lastExit":{"code":1,"reason":"r","time":"2026-01-02T03:04:05Z"}}`)
	cause := `"cause":"` + strings.Repeat(`,\"`, maxObjectCommas) + `",`
	body := strings.Replace(podOf(full), `"health"`, cause+`"health"`, 1)
	set, err := decodeReportSet(strings.NewReader(body), 1)
	if err != nil || len(set.Reports[0].Tree.Objects[0].Pod.Containers) != threeport.MaxContainers {
		t.Errorf("a Pod with as many containers as are accepted: %v", err)
	}
	pod := `{"object":{"kind":"Pod","name":"a"},"health":"Down","pod":{"containers":[` + container + `,` + container + `]}}`
	d := setDecoder{
		text:       newSetText(strings.NewReader(reportOf(`,"tree":{"objects":[` + pod + `,` + pod + `]}`))),
		maxReports: 1, maxTree: 2, maxObjects: 2, maxContainers: 3,
	}
	_, err = d.decode()
	wantProblem(t, err, http.StatusRequestEntityTooLarge, "body")
}

func FuzzDecodeReportSet(f *testing.F) {
	f.Add(reportOf(`,"event":{"uid":"u","gap":{"first":"2026-01-02T03:04:05Z"}}`))
	f.Add(reportOf(`,"tree":{"objects":[` + someTree + `]}`))
	f.Add(podOf(`[{"name":"a","state":"Waiting","lastExit":{"code":137,"time":"2026-01-02T03:04:05Z"}}]`))
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
