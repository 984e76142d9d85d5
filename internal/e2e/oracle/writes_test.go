package oracle

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// set has a report of each kind, for a workload and for a Helm workload.
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

// setInV0 has the writes of set, without the last one, which has no equivalent in v0.
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
	writes, err := Writes(request)
	if err != nil || len(writes) != 6 || writes[5].Path != request.Path {
		t.Fatalf("the writes are %q: %v", texts(writes), err)
	}
	if got := texts(writes[:5]); !reflect.DeepEqual(got, setInV0) {
		t.Errorf("the writes are\n%q, want\n%q", got, setInV0)
	}
	single := Write{Method: "PATCH", Path: "/v0/workload-resource-instances/2", Body: []byte(`{"LastOperation":"ADDED"}`)}
	if writes, err := Writes(single); err != nil || !reflect.DeepEqual(writes, []Write{single}) {
		t.Errorf("the writes of a request of v0 are %q: %v", texts(writes), err)
	}
	if _, err := Writes(Write{Method: "POST", Path: "/v0/workload-report-sets", Body: []byte("{")}); err == nil {
		t.Error("an invalid set was accepted")
	}
}

func TestAcceptedWrites(t *testing.T) {
	request := Write{Method: "POST", Path: "/v0/workload-report-sets", Body: []byte(set)}
	writes, err := Writes(request)
	if err != nil {
		t.Fatal(err)
	}
	const answer = `{"items": [{"outcome": "created"}, {"outcome": "stale", "version": "20"}, {"outcome": "updated"},
		{"outcome": "rejected", "problem": {"code": "invalid", "detail": "it is"}}, {"outcome": "unchanged"}, {"outcome": "stale"}]}`
	accepted, err := AcceptedWrites(request, writes, []byte(answer))
	if want := []Write{writes[0], writes[2], writes[4]}; err != nil || !reflect.DeepEqual(accepted, want) {
		t.Errorf("the accepted writes are %q: %v, want %q", texts(accepted), err, texts(want))
	}
	if _, err := AcceptedWrites(request, writes, []byte(`{"items": [{"outcome": "created"}]}`)); err == nil {
		t.Error("an answer with too few items was accepted")
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
		if got, err := DecodeBody(body, encoding); err != nil || string(got) != set {
			t.Errorf("with encoding %q the body is %.40q: %v", encoding, got, err)
		}
	}
	if _, err := DecodeBody(nil, "br"); err == nil {
		t.Error("an unknown encoding was accepted")
	}
}
