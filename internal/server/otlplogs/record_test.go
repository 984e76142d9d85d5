package otlplogs

import (
	"math"
	"slices"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// texts are attributes as NAME=VALUE.
func texts(all []*commonpb.KeyValue) []string {
	var out []string
	for _, one := range all {
		text := one.Value.GetStringValue()
		if n, ok := one.Value.Value.(*commonpb.AnyValue_IntValue); ok {
			text = prototext.MarshalOptions{}.Format(&commonpb.AnyValue{Value: n})
		}
		out = append(out, one.Key+"="+text)
	}
	return out
}

func TestEncode_RecordsOfTwoClusters(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	one := store.LoggedWorkload{Instance: threeport.Instance{Type: threeport.TypeWorkloadInstance, ID: 7}, Name: "web", ClusterUID: "uid-1", ClusterName: "one"}
	two := one
	two.ClusterUID, two.ClusterName = "uid-2", ""
	var event threeport.TimelineEvent
	event.UID, event.Type, event.Reason, event.Message, event.Time, event.Count = "ev", "Warning", "BackOff", "broken \xff", at, 3
	event.FirstTime = new(at.Add(-time.Hour))
	event.Involved = threeport.ObjectRef{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "front", UID: "o"}
	e := &Exporter{version: "v1"}
	body, err := e.encode([]store.LogRecord{
		{UID: "a", StoredAt: at.Add(time.Second), Workload: one, Event: &event},
		{UID: "b", StoredAt: at, Workload: two, Status: &store.StatusChange{Time: at, Status: "Down", Previous: "Healthy", Reason: "CrashLoopBackOff", Cause: "it crashes"}},
		{UID: "c", StoredAt: at, Workload: one, Status: &store.StatusChange{Time: at, Status: "Healthy", Previous: "Down"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var data logspb.LogsData
	if err := proto.Unmarshal(body, &data); err != nil {
		t.Fatal(err)
	}
	if len(data.ResourceLogs) != 2 || len(data.ResourceLogs[0].ScopeLogs[0].LogRecords) != 2 {
		t.Fatalf("the records are %v, want two of cluster one and one of the other", &data)
	}
	for i, want := range [][]string{
		{"service.name=threeport-controlplane", "service.version=v1", "k8s.cluster.name=one", "k8s.cluster.uid=uid-1"},
		{"service.name=threeport-controlplane", "service.version=v1", "k8s.cluster.uid=uid-2"},
	} {
		if got := texts(data.ResourceLogs[i].Resource.Attributes); !slices.Equal(got, want) {
			t.Errorf("the attributes of a resource are %q, want %q", got, want)
		}
	}
	records := slices.Concat(data.ResourceLogs[0].ScopeLogs[0].LogRecords, data.ResourceLogs[1].ScopeLogs[0].LogRecords)
	workload := []string{"threeport.workload.id=7", "threeport.workload.type=WorkloadInstance", "threeport.workload.name=web"}
	for i, want := range []struct {
		name, body, severity string
		number               logspb.SeverityNumber
		attributes           []string
	}{
		{"k8s.event", "broken �", "WARN", logspb.SeverityNumber_SEVERITY_NUMBER_WARN, []string{
			"k8s.event.uid=ev", "k8s.event.reason=BackOff", "k8s.event.type=Warning", "k8s.event.count=int_value:3", "k8s.event.start_time=2026-05-01T11:00:00Z",
			"k8s.namespace.name=shop", "k8s.object.kind=Deployment", "k8s.object.name=front", "k8s.object.uid=o", "k8s.object.api_version=apps/v1", "log.record.uid=a",
		}},
		{"threeport.workload.status", "WorkloadInstance web is Healthy, before Down", "INFO", logspb.SeverityNumber_SEVERITY_NUMBER_INFO, []string{
			"threeport.workload.status=Healthy", "threeport.workload.status.previous=Down", "log.record.uid=c",
		}},
		{"threeport.workload.status", "WorkloadInstance web is Down, before Healthy: it crashes", "ERROR", logspb.SeverityNumber_SEVERITY_NUMBER_ERROR, []string{
			"threeport.workload.status=Down", "threeport.workload.status.previous=Healthy", "threeport.workload.status.reason=CrashLoopBackOff", "log.record.uid=b",
		}},
	} {
		got := records[i]
		if got.EventName != want.name || got.Body.GetStringValue() != want.body || got.SeverityText != want.severity || got.SeverityNumber != want.number {
			t.Errorf("the record is %v, want %+v", got, want)
		}
		if attributes := texts(got.Attributes); !slices.Equal(attributes, append(want.attributes, workload...)) {
			t.Errorf("the attributes are\n%q, want\n%q", attributes, append(want.attributes, workload...))
		}
		if got.TimeUnixNano != uint64(at.UnixNano()) {
			t.Errorf("the time is %d, want that of %v", got.TimeUnixNano, at)
		}
	}
	if got := records[0].ObservedTimeUnixNano; got != uint64(at.Add(time.Second).UnixNano()) {
		t.Errorf("the observed time is %d, want a second later", got)
	}
}

func TestNanos_OutOfRange_IsUnknown(t *testing.T) {
	for _, micros := range []int64{math.MinInt64, -1, math.MaxInt64, time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()} {
		if got := nanos(time.UnixMicro(micros).UTC()); got != 0 {
			t.Errorf("nanos of %d µs is %d, want 0", micros, got)
		}
	}
}
