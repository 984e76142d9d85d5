package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// reportSets is where report sets are sent to.
const reportSets = "/v0/" + upstream.WorkloadReportSets

// IsReportSet reports whether a request has a report set.
func (w Write) IsReportSet() bool { return w.Method == http.MethodPost && w.Path == reportSets }

// Told returns what a request tells, in v0's words: a request of v0 is itself, a report set is a write for each of its
// reports. What v0 has no place for keeps the path of report sets. The body is the one without its encoding.
func Told(request Write) ([]Write, error) {
	if !request.IsReportSet() {
		return []Write{request}, nil
	}
	var set threeport.ReportSet
	if err := json.Unmarshal(request.Body, &set); err != nil {
		return nil, fmt.Errorf("read a report set: %w", err)
	}
	told := make([]Write, len(set.Reports))
	for i, r := range set.Reports {
		var err error
		if told[i], err = inV0(r); err != nil {
			return nil, fmt.Errorf("read a report set: %w", err)
		}
	}
	return told, nil
}

// Taken returns those of the writes that a request told which the control plane has, by its answer of success: none that
// it rejected, or called stale.
func Taken(request Write, told []Write, answer []byte) ([]Write, error) {
	if !request.IsReportSet() {
		return told, nil
	}
	var got threeport.ReportSetAnswer
	if err := json.Unmarshal(answer, &got); err != nil {
		return nil, fmt.Errorf("read the answer to a report set: %w", err)
	}
	if len(got.Items) != len(told) {
		return nil, fmt.Errorf("the answer to a report set has %d items for %d reports", len(got.Items), len(told))
	}
	var taken []Write
	for i, item := range got.Items {
		switch item.Outcome {
		case threeport.OutcomeCreated, threeport.OutcomeUpdated, threeport.OutcomeUnchanged:
			taken = append(taken, told[i])
		}
	}
	return taken, nil
}

// Decoded returns a request's body without its encoding, which is the request's Content-Encoding.
func Decoded(body []byte, encoding string) ([]byte, error) {
	switch encoding {
	case "":
		return body, nil
	case "gzip":
		r, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	case "zstd":
		r, err := zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return io.ReadAll(r)
	default:
		return nil, fmt.Errorf("read a body: the encoding is %q", encoding)
	}
}

// inV0 is a report as v0 has it.
func inV0(r threeport.Report) (Write, error) {
	write := Write{Method: http.MethodPatch}
	var body any
	switch {
	case r.Operation != nil && r.Operation.ResourceInstanceID != 0:
		write.Path = rowOf(upstream.WorkloadResourceInstances, r.Operation.ResourceInstanceID)
		body = threeport.WorkloadResourceInstance{LastOperation: &r.Operation.Operation, RuntimeDefinition: r.Operation.Definition}
	case r.Event != nil:
		write.Method, write.Path = http.MethodPost, "/v0/"+upstream.WorkloadEvents
		body = eventInV0(r.Instance, *r.Event)
	case r.Status != nil && r.Instance.Type == threeport.TypeHelmWorkloadInstance:
		write.Path = rowOf(upstream.HelmWorkloadInstances, r.Instance.ID)
		body = threeport.HelmWorkloadInstance{Status: &r.Status.Status}
	case r.Status != nil:
		write.Path = rowOf(upstream.WorkloadInstances, r.Instance.ID)
		body = threeport.WorkloadInstance{Status: &r.Status.Status}
	default: // a tree, or an operation of a resource that has no row
		write.Method, write.Path, body = http.MethodPost, reportSets, r
	}
	var err error
	write.Body, err = json.Marshal(body)
	return write, err
}

func rowOf(objects string, id threeport.ID) string { return fmt.Sprintf("/v0/%s/%d", objects, id) }

func eventInV0(instance threeport.Instance, ev threeport.EventReport) threeport.WorkloadEvent {
	row := threeport.WorkloadEvent{
		RuntimeEventUID: &ev.UID, Type: &ev.Type, Reason: &ev.Reason, Message: &ev.Message, Timestamp: &ev.Time,
	}
	if ev.Derived {
		row.Message = new(fmt.Sprintf("%s %s: %s", ev.Involved.Kind, ev.Involved.Name, ev.Message))
	}
	if ev.ResourceInstanceID != 0 {
		row.WorkloadResourceInstanceID = new(int64(ev.ResourceInstanceID))
	}
	if instance.Type == threeport.TypeHelmWorkloadInstance {
		row.HelmWorkloadInstanceID = new(int64(instance.ID))
	} else {
		row.WorkloadInstanceID = new(int64(instance.ID))
	}
	return row
}
