package oracle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// Write is a writing request of v0, or its equivalent in a report set: see [Writes].
type Write struct {
	Method, Path string
	Body         []byte
}

// CheckOrder checks the accepted writes in their order. Versions of an object and times of an Event existed in the cluster
// and never decrease. Each incarnation of a name begins with ADDED, ends with DELETED and never returns. It returns a
// sentence for each difference.
func (o *Oracle) CheckOrder(writes []Write, workloads []Expected) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	order := orderCheck{Oracle: o, rows: map[int64]*rowOrder{}, events: map[types.UID]time.Time{}}
	for i := range workloads {
		w := &workloads[i]
		for _, res := range w.Resources {
			if !w.helm() {
				order.rows[res.ThreeportID] = &rowOrder{workload: w, resource: res}
			}
		}
	}
	for _, write := range writes {
		objects, id, _ := strings.Cut(strings.TrimPrefix(write.Path, "/v0/"), "/")
		switch objects {
		case upstream.WorkloadResourceInstances:
			order.checkOperation(id, write.Body)
		case upstream.WorkloadEvents:
			order.checkEvent(write.Body)
		}
	}
	return order.differences
}

// orderCheck is the state of a check of writes.
type orderCheck struct {
	*Oracle
	rows        map[int64]*rowOrder
	events      map[types.UID]time.Time // the latest reported time
	differences []string
}

// rowOrder is the state of one row.
type rowOrder struct {
	workload *Expected
	resource v1alpha1.WorkloadResourceInstance
	uid      types.UID // of the latest incarnation
	version  string
	deleted  bool
	earlier  []types.UID
}

func (o *orderCheck) addDifference(r *rowOrder, format string, args ...any) {
	subject := fmt.Sprintf("%s: expected the agent to report %s %s ", r.workload.Name, r.resource.Kind, r.resource.Name)
	o.differences = append(o.differences, subject+fmt.Sprintf(format, args...))
}

// operationUpdate is the part of an update of a resource's row that the checks read.
type operationUpdate struct {
	LastOperation     string
	RuntimeDefinition definition
}

// checkOperation checks an update of a resource's row.
func (o *orderCheck) checkOperation(id string, body []byte) {
	n, _ := strconv.ParseInt(id, 10, 64)
	r := o.rows[n]
	if r == nil {
		o.differences = append(o.differences, fmt.Sprintf("expected the agent to report only resources of workloads, it wrote to row %s", id))
		return
	}
	var update operationUpdate
	if err := json.Unmarshal(body, &update); err != nil {
		o.addDifference(r, "as JSON, it wrote %v", err)
		return
	}
	uid, version := update.RuntimeDefinition.Metadata.UID, update.RuntimeDefinition.Metadata.ResourceVersion
	if update.LastOperation == threeport.OperationDeleted {
		if r.uid != "" && !o.objects[r.uid].deleted {
			o.addDifference(r, "as DELETED only after its deletion, but %s exists", r.uid)
		}
		r.deleted = true
		return
	}
	observed := o.objects[uid].versions
	if len(observed) == 0 || !o.mayHaveMissed && !slices.Contains(observed, version) {
		o.addDifference(r, "in versions that the cluster had, it reported %s of version %s of %q", update.LastOperation, version, uid)
	}
	switch {
	case uid != r.uid:
		o.checkIncarnation(r, uid, update.LastOperation)
	case r.deleted:
		o.addDifference(r, "as DELETED last, it reported %s of %s afterwards", update.LastOperation, uid)
	case older(version, r.version):
		o.addDifference(r, "in order, it reported version %s of %s after %s", version, uid, r.version)
	}
	r.uid, r.version, r.deleted = uid, version, r.deleted && uid == r.uid
}

// checkIncarnation checks the first report of an incarnation.
func (o *orderCheck) checkIncarnation(r *rowOrder, uid types.UID, operation string) {
	if slices.Contains(r.earlier, uid) {
		o.addDifference(r, "in order, it reported %s of %s again after %s", operation, uid, r.uid)
	}
	if r.uid != "" && !r.deleted {
		o.addDifference(r, "as DELETED before it is created again, it reported %s right after %s", uid, r.uid)
	}
	if operation != threeport.OperationAdded {
		o.addDifference(r, "as ADDED first, it reported %s of %s", operation, uid)
	}
	r.earlier = append(r.earlier, uid)
}

// checkEvent checks a new row of an Event, or an update of one.
func (o *orderCheck) checkEvent(body []byte) {
	var update threeport.WorkloadEvent
	if err := json.Unmarshal(body, &update); err != nil {
		o.differences = append(o.differences, fmt.Sprintf("expected the agent to report Events as JSON, it wrote %v", err))
		return
	}
	uid, when := types.UID(deref(update.RuntimeEventUID)), deref(update.Timestamp)
	if o.events[uid].After(when) {
		o.differences = append(o.differences, fmt.Sprintf("expected the agent to report Event %s (%s) in order, it reported %s after %s",
			deref(update.Reason), uid, when.UTC().Format(time.RFC3339Nano), o.events[uid].UTC().Format(time.RFC3339Nano)))
	}
	o.events[uid] = when
	if observed := o.times[uid]; len(observed) > 0 && !o.mayHaveMissed && !slices.ContainsFunc(observed, when.Equal) {
		o.differences = append(o.differences, fmt.Sprintf("expected the agent to report Event %s (%s) with times that it had, it reported %s",
			deref(update.Reason), uid, when.UTC().Format(time.RFC3339Nano)))
	}
}

// older reports whether a resource version is before another of the same object. They are decimal numbers without
// leading zeros.
func older(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }
