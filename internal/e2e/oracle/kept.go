package oracle

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// CheckKept compares what the control plane holds with what it had accepted before: each Event has a row, and neither that
// nor the row of a resource is older. It tells of what the control plane lost also where an agent will make up for it, which
// [Oracle.Check] does not. It returns a sentence for each write that is lost.
func CheckKept(h History, accepted []Write) []string {
	events := map[types.UID]time.Time{} // the newest
	for _, row := range h.Events {
		uid, when := types.UID(deref(row.RuntimeEventUID)), deref(row.Timestamp)
		if known, ok := events[uid]; !ok || known.Before(when) {
			events[uid] = when
		}
	}
	var differences []string
	for _, write := range accepted {
		var err error
		objects, id, _ := strings.Cut(strings.TrimPrefix(write.Path, "/v0/"), "/")
		switch objects {
		case upstream.WorkloadEvents:
			err = keptEvent(events, write.Body)
		case upstream.WorkloadResourceInstances:
			err = keptOperation(h.Resources, id, write.Body)
		}
		if err != nil {
			differences = append(differences, "expected the control plane to keep what it accepted: "+err.Error())
		}
	}
	return differences
}

// keptEvent looks for an Event, or a later one of its repeats. The control plane keeps times in microseconds.
func keptEvent(held map[types.UID]time.Time, body []byte) error {
	var told threeport.WorkloadEvent
	if err := json.Unmarshal(body, &told); err != nil {
		return err
	}
	uid, when := types.UID(deref(told.RuntimeEventUID)), deref(told.Timestamp).Truncate(time.Microsecond)
	switch got, ok := held[uid]; {
	case !ok:
		return fmt.Errorf("there is no row of Event %s (%s)", deref(told.Reason), uid)
	case got.Before(when):
		return fmt.Errorf("the row of Event %s (%s) is of %s, it was of %s",
			deref(told.Reason), uid, got.UTC().Format(time.RFC3339Nano), when.UTC().Format(time.RFC3339Nano))
	}
	return nil
}

// keptOperation looks for a version of an object, or a later one. A deletion has none of its own.
func keptOperation(held map[int64]threeport.WorkloadResourceInstance, id string, body []byte) error {
	var told operationTold
	if err := json.Unmarshal(body, &told); err != nil {
		return err
	}
	version := told.RuntimeDefinition.Metadata.ResourceVersion
	if version == "" {
		return nil
	}
	row, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return err
	}
	var got definition
	if err := json.Unmarshal(held[row].RuntimeDefinition, &got); err != nil {
		return fmt.Errorf("row %d has no object: %w", row, err)
	}
	if older(got.Metadata.ResourceVersion, version) {
		return fmt.Errorf("row %d has version %s, it had %s", row, got.Metadata.ResourceVersion, version)
	}
	return nil
}
