package otlplogs

import (
	"fmt"
	"strings"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	"github.com/threeport/threeport-agent/internal/server/store"
)

// scopeName is the name of the instrumentation scope.
const scopeName = "github.com/threeport/threeport-agent/internal/server/otlplogs"

// The names of the records.
const (
	eventName        = "k8s.event"
	statusChangeName = "threeport.workload.status"
)

// encode returns the records as an ExportLogsServiceRequest, which has the wire format of LogsData. Each cluster is a resource.
func (e *Exporter) encode(records []store.LogRecord) ([]byte, error) {
	type cluster struct{ uid, name string }
	var request logspb.LogsData
	resources := map[cluster]*logspb.ScopeLogs{}
	for i := range records {
		of := cluster{records[i].Workload.ClusterUID, records[i].Workload.ClusterName}
		scope := resources[of]
		if scope == nil {
			var attributes attributes
			attributes.add("service.name", "threeport-controlplane")
			attributes.add("service.version", e.version)
			attributes.add("k8s.cluster.name", of.name)
			attributes.add("k8s.cluster.uid", of.uid)
			scope = &logspb.ScopeLogs{Scope: &commonpb.InstrumentationScope{Name: scopeName, Version: e.version}}
			resources[of] = scope
			request.ResourceLogs = append(request.ResourceLogs,
				&logspb.ResourceLogs{Resource: &resourcepb.Resource{Attributes: attributes}, ScopeLogs: []*logspb.ScopeLogs{scope}})
		}
		scope.LogRecords = append(scope.LogRecords, logRecord(&records[i]))
	}
	body, err := proto.Marshal(&request)
	if err != nil {
		return nil, fmt.Errorf("encode log records: %w", err)
	}
	return body, nil
}

func logRecord(r *store.LogRecord) *logspb.LogRecord {
	var out *logspb.LogRecord
	if r.Event != nil {
		out = eventRecord(r)
	} else {
		out = statusRecord(r)
	}
	attributes := attributes(out.Attributes)
	attributes.add("log.record.uid", r.UID)
	if r.Workload.ID != 0 {
		attributes.add("threeport.workload.id", fmt.Sprint(int64(r.Workload.ID)))
	}
	attributes.add("threeport.workload.type", r.Workload.Type)
	attributes.add("threeport.workload.name", r.Workload.Name)
	out.Attributes, out.ObservedTimeUnixNano = attributes, nanos(r.StoredAt)
	return out
}

// eventRecord has the attributes of the k8seventsreceiver of OpenTelemetry.
func eventRecord(r *store.LogRecord) *logspb.LogRecord {
	ev := r.Event
	var attributes attributes
	attributes.add("k8s.event.uid", ev.UID)
	attributes.add("k8s.event.reason", ev.Reason)
	attributes.add("k8s.event.type", ev.Type)
	if ev.Count > 0 {
		attributes.addValue("k8s.event.count", &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: ev.Count}})
	}
	if ev.FirstTime != nil {
		attributes.add("k8s.event.start_time", ev.FirstTime.Format(time.RFC3339Nano))
	}
	attributes.add("k8s.namespace.name", ev.Involved.Namespace)
	attributes.add("k8s.object.kind", ev.Involved.Kind)
	attributes.add("k8s.object.name", ev.Involved.Name)
	attributes.add("k8s.object.uid", ev.Involved.UID)
	if ev.Involved.Kind != "" {
		attributes.add("k8s.object.api_version", strings.TrimPrefix(ev.Involved.Group+"/"+ev.Involved.Version, "/"))
	}
	severity := logspb.SeverityNumber_SEVERITY_NUMBER_INFO
	if ev.Type == "Warning" {
		severity = logspb.SeverityNumber_SEVERITY_NUMBER_WARN
	}
	return newRecord(eventName, ev.Time, severity, ev.Message, attributes)
}

// statusSeverities are the severities of the statuses. Others are those of attention without a known fault.
var statusSeverities = map[string]logspb.SeverityNumber{
	"Healthy":     logspb.SeverityNumber_SEVERITY_NUMBER_INFO,
	"Reconciling": logspb.SeverityNumber_SEVERITY_NUMBER_INFO,
	"Unknown":     logspb.SeverityNumber_SEVERITY_NUMBER_WARN,
	"Unhealthy":   logspb.SeverityNumber_SEVERITY_NUMBER_ERROR,
	"Error":       logspb.SeverityNumber_SEVERITY_NUMBER_ERROR,
	"Down":        logspb.SeverityNumber_SEVERITY_NUMBER_ERROR,
}

func statusRecord(r *store.LogRecord) *logspb.LogRecord {
	change := r.Status
	var attributes attributes
	attributes.add("threeport.workload.status", change.Status)
	attributes.add("threeport.workload.status.previous", change.Previous)
	attributes.add("threeport.workload.status.reason", change.Reason)
	text := fmt.Sprintf("%s %s is %s, before %s", r.Workload.Type, r.Workload.Name, change.Status, change.Previous)
	if change.Cause != "" {
		text += ": " + change.Cause
	}
	return newRecord(statusChangeName, change.Time, statusSeverities[change.Status], text, attributes)
}

var severityTexts = map[logspb.SeverityNumber]string{
	logspb.SeverityNumber_SEVERITY_NUMBER_INFO:  "INFO",
	logspb.SeverityNumber_SEVERITY_NUMBER_WARN:  "WARN",
	logspb.SeverityNumber_SEVERITY_NUMBER_ERROR: "ERROR",
}

func newRecord(name string, at time.Time, severity logspb.SeverityNumber, body string, attributes attributes) *logspb.LogRecord {
	return &logspb.LogRecord{
		EventName: name, TimeUnixNano: nanos(at), SeverityNumber: severity, SeverityText: severityTexts[severity],
		Body: textValue(body), Attributes: attributes,
	}
}

// nanos is a time of OTLP; 0, which means unknown, if it is out of its range.
func nanos(t time.Time) uint64 {
	if year := t.Year(); year < 1970 || year > 2261 {
		return 0
	}
	return uint64(max(t.UnixNano(), 0))
}

type attributes []*commonpb.KeyValue

// add adds a text that is not empty.
func (a *attributes) add(key, value string) {
	if value != "" {
		a.addValue(key, textValue(value))
	}
}

func (a *attributes) addValue(key string, value *commonpb.AnyValue) {
	*a = append(*a, &commonpb.KeyValue{Key: key, Value: value})
}

// textValue is a text as protobuf permits it. SQLite stores any bytes.
func textValue(text string) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: strings.ToValidUTF8(text, "�")}}
}
