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

// reportSets is the path of report sets.
const reportSets = "/v0/" + upstream.WorkloadReportSets

// IsReportSet reports whether a request contains a report set.
func (w Write) IsReportSet() bool { return w.Method == http.MethodPost && w.Path == reportSets }

// Writes returns the writes of a request in the form of v0. A request of v0 is one write; a report set has one write for
// each report. A report without an equivalent in v0 keeps the path of report sets. The body must be decoded.
func Writes(request Write) ([]Write, error) {
	if !request.IsReportSet() {
		return []Write{request}, nil
	}
	var set threeport.ReportSet
	if err := json.Unmarshal(request.Body, &set); err != nil {
		return nil, fmt.Errorf("read a report set: %w", err)
	}
	writes := make([]Write, len(set.Reports))
	for i, r := range set.Reports {
		var err error
		if writes[i], err = writeOf(r); err != nil {
			return nil, fmt.Errorf("read a report set: %w", err)
		}
	}
	return writes, nil
}

// AcceptedWrites returns the writes of a successful request that the control plane accepted according to its answer: those
// that are neither rejected nor stale.
func AcceptedWrites(request Write, writes []Write, answer []byte) ([]Write, error) {
	if !request.IsReportSet() {
		return writes, nil
	}
	var got threeport.ReportSetAnswer
	if err := json.Unmarshal(answer, &got); err != nil {
		return nil, fmt.Errorf("read the answer to a report set: %w", err)
	}
	if len(got.Items) != len(writes) {
		return nil, fmt.Errorf("the answer to a report set has %d items for %d reports", len(got.Items), len(writes))
	}
	var accepted []Write
	for i, item := range got.Items {
		switch item.Outcome {
		case threeport.OutcomeCreated, threeport.OutcomeUpdated, threeport.OutcomeUnchanged:
			accepted = append(accepted, writes[i])
		}
	}
	return accepted, nil
}

// DecodeBody decodes the body of a request with the given Content-Encoding.
func DecodeBody(body []byte, encoding string) ([]byte, error) {
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
		return nil, fmt.Errorf("decode a body: unknown encoding %q", encoding)
	}
}

// writeOf returns a report as a write of v0.
func writeOf(r threeport.Report) (Write, error) {
	write := Write{Method: http.MethodPatch}
	var body any
	switch {
	case r.Operation != nil && r.Operation.ResourceInstanceID != 0:
		write.Path = rowPath(upstream.WorkloadResourceInstances, r.Operation.ResourceInstanceID)
		body = threeport.WorkloadResourceInstance{LastOperation: &r.Operation.Operation, RuntimeDefinition: r.Operation.Definition}
	case r.Event != nil:
		write.Method, write.Path = http.MethodPost, "/v0/"+upstream.WorkloadEvents
		body = eventRow(r.Instance, *r.Event)
	case r.Status != nil && r.Instance.Type == threeport.TypeHelmWorkloadInstance:
		write.Path = rowPath(upstream.HelmWorkloadInstances, r.Instance.ID)
		body = threeport.HelmWorkloadInstance{Status: &r.Status.Status}
	case r.Status != nil:
		write.Path = rowPath(upstream.WorkloadInstances, r.Instance.ID)
		body = threeport.WorkloadInstance{Status: &r.Status.Status}
	default: // a tree, or an operation on a resource without a row
		write.Method, write.Path, body = http.MethodPost, reportSets, r
	}
	var err error
	write.Body, err = json.Marshal(body)
	return write, err
}

func rowPath(objects string, id threeport.ID) string { return fmt.Sprintf("/v0/%s/%d", objects, id) }

func eventRow(instance threeport.Instance, ev threeport.EventReport) threeport.WorkloadEvent {
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
