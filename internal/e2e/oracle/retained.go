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

// CheckRetained compares the rows of the control plane with the writes that it accepted: each Event has a row, and no row is
// older than its write. Unlike [Oracle.Check] it finds lost rows even after the agent has reported again. It returns a
// sentence for each lost write.
func CheckRetained(h History, accepted []Write) []string {
	events := map[types.UID]time.Time{} // the latest time
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
			err = checkRetainedEvent(events, write.Body)
		case upstream.WorkloadResourceInstances:
			err = checkRetainedOperation(h.Resources, id, write.Body)
		}
		if err != nil {
			differences = append(differences, "expected the control plane to retain an accepted write: "+err.Error())
		}
	}
	return differences
}

// checkRetainedEvent expects the row of an Event with its time or a later one. The control plane stores microseconds.
func checkRetainedEvent(held map[types.UID]time.Time, body []byte) error {
	var want threeport.WorkloadEvent
	if err := json.Unmarshal(body, &want); err != nil {
		return err
	}
	uid, when := types.UID(deref(want.RuntimeEventUID)), deref(want.Timestamp).Truncate(time.Microsecond)
	switch got, ok := held[uid]; {
	case !ok:
		return fmt.Errorf("no row for Event %s (%s)", deref(want.Reason), uid)
	case got.Before(when):
		return fmt.Errorf("the row of Event %s (%s) has the time %s, it had %s",
			deref(want.Reason), uid, got.UTC().Format(time.RFC3339Nano), when.UTC().Format(time.RFC3339Nano))
	}
	return nil
}

// checkRetainedOperation expects the row of an object with its version or a later one. A deletion has no version.
func checkRetainedOperation(held map[int64]threeport.WorkloadResourceInstance, id string, body []byte) error {
	var want operationUpdate
	if err := json.Unmarshal(body, &want); err != nil {
		return err
	}
	version := want.RuntimeDefinition.Metadata.ResourceVersion
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
