package oracle

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// set is a report of each kind, about a workload and about one of Helm.
const set = `{"agent": {"clusterUID": "c", "time": "2026-01-02T03:04:05Z"}, "reports": [
	{"instance": {"type": "WorkloadInstance", "id": "1"}, "version": "7",
		"operation": {"resourceInstanceID": "2", "object": {"kind": "ConfigMap", "name": "conf", "uid": "u"}, "operation": "ADDED",
			"definition": {"metadata": {"uid": "u", "resourceVersion": "7"}}}},
	{"instance": {"type": "WorkloadInstance", "id": "1"}, "version": "8",
		"event": {"uid": "e", "resourceInstanceID": "2", "involved": {"kind": "Pod", "name": "web-0"}, "derived": true,
			"type": "Normal", "reason": "Started", "message": "it runs", "time": "2026-01-02T03:04:05.000001Z"}},
	{"instance": {"type": "HelmWorkloadInstance", "id": "3"}, "version": "9",
		"event": {"uid": "f", "involved": {"kind": "Pod", "name": "web-0"},
			"type": "Warning", "reason": "Failed", "message": "it does not", "time": "2026-01-02T03:04:06Z"}},
	{"instance": {"type": "WorkloadInstance", "id": "1"}, "version": "10", "status": {"status": "Healthy"}},
	{"instance": {"type": "HelmWorkloadInstance", "id": "3"}, "version": "11", "status": {"status": "Down"}},
	{"instance": {"type": "HelmWorkloadInstance", "id": "3"}, "version": "12",
		"operation": {"object": {"kind": "ConfigMap", "name": "conf"}, "operation": "DELETED"}}
]}`

// setInV0 is what it tells, but for the last, of which v0 knows nothing.
var setInV0 = []string{
	`PATCH /v0/workload-resource-instances/2 {"LastOperation":"ADDED","RuntimeDefinition":{"metadata":{"uid":"u","resourceVersion":"7"}}}`,
	`POST /v0/workload-events {"RuntimeEventUID":"e","Type":"Normal","Reason":"Started","Message":"Pod web-0: it runs",` +
		`"Timestamp":"2026-01-02T03:04:05.000001Z","WorkloadInstanceID":1,"WorkloadResourceInstanceID":2}`,
	`POST /v0/workload-events {"RuntimeEventUID":"f","Type":"Warning","Reason":"Failed","Message":"it does not",` +
		`"Timestamp":"2026-01-02T03:04:06Z","HelmWorkloadInstanceID":3}`,
	`PATCH /v0/workload-instances/1 {"Status":"Healthy"}`,
	`PATCH /v0/helm-workload-instances/3 {"Status":"Down"}`,
}

func texts(writes []Write) []string {
	var out []string
	for _, w := range writes {
		out = append(out, fmt.Sprintf("%s %s %s", w.Method, w.Path, w.Body))
	}
	return out
}

func TestReportedWrites(t *testing.T) {
	request := Write{Method: "POST", Path: "/v0/workload-report-sets", Body: []byte(set)}
	told, err := Told(request)
	if err != nil || len(told) != 6 || told[5].Path != request.Path {
		t.Fatalf("the set tells %q: %v", texts(told), err)
	}
	if got := texts(told[:5]); !reflect.DeepEqual(got, setInV0) {
		t.Errorf("the set tells\n%q, expected\n%q", got, setInV0)
	}
	single := Write{Method: "PATCH", Path: "/v0/workload-resource-instances/2", Body: []byte(`{"LastOperation":"ADDED"}`)}
	if told, err := Told(single); err != nil || !reflect.DeepEqual(told, []Write{single}) {
		t.Errorf("a request of v0 tells %q: %v", texts(told), err)
	}
	if _, err := Told(Write{Method: "POST", Path: "/v0/workload-report-sets", Body: []byte("{")}); err == nil {
		t.Error("what is no set was read")
	}
}

func TestAcceptedWrites(t *testing.T) {
	request := Write{Method: "POST", Path: "/v0/workload-report-sets", Body: []byte(set)}
	told, err := Told(request)
	if err != nil {
		t.Fatal(err)
	}
	const answer = `{"items": [{"outcome": "created"}, {"outcome": "stale", "version": "20"}, {"outcome": "updated"},
		{"outcome": "rejected", "problem": {"code": "invalid", "detail": "it is"}}, {"outcome": "unchanged"}, {"outcome": "stale"}]}`
	taken, err := Taken(request, told, []byte(answer))
	if want := []Write{told[0], told[2], told[4]}; err != nil || !reflect.DeepEqual(taken, want) {
		t.Errorf("taken was %q: %v, expected %q", texts(taken), err, texts(want))
	}
	if _, err := Taken(request, told, []byte(`{"items": [{"outcome": "created"}]}`)); err == nil {
		t.Error("an answer with too few items was read")
	}
}

func TestDecodeBody(t *testing.T) {
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write([]byte(set))
	_ = w.Close()
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for encoding, body := range map[string][]byte{"": []byte(set), "gzip": zipped.Bytes(), "zstd": encoder.EncodeAll([]byte(set), nil)} {
		if got, err := Decoded(body, encoding); err != nil || string(got) != set {
			t.Errorf("with encoding %q the body is %.40q: %v", encoding, got, err)
		}
	}
	if _, err := Decoded(nil, "br"); err == nil {
		t.Error("an unknown encoding was read")
	}
}
