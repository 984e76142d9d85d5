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

// Write is a request of v0 to change something, or what stands for it in a report set: see [Told].
type Write struct {
	Method, Path string
	Body         []byte
}

// CheckOrder compares what the control plane was told, in the order in which it accepted it, with what was seen in
// the cluster: versions of an object, and times of an Event, are those that the cluster had, and never go back; of
// a name, an incarnation begins with ADDED, ends with DELETED, and does not come again. It returns a sentence for
// each difference.
func (o *Oracle) CheckOrder(writes []Write, workloads []Expected) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	order := order{Oracle: o, rows: map[int64]*rowOrder{}, events: map[types.UID]time.Time{}}
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
			order.operation(id, write.Body)
		case upstream.WorkloadEvents:
			order.event(write.Body)
		}
	}
	return order.differences
}

// order is how far a check of writes is.
type order struct {
	*Oracle
	rows        map[int64]*rowOrder
	events      map[types.UID]time.Time // the newest that was told
	differences []string
}

// rowOrder is what was told of one name.
type rowOrder struct {
	workload *Expected
	resource v1alpha1.WorkloadResourceInstance
	uid      types.UID // of the latest incarnation
	version  string
	deleted  bool
	earlier  []types.UID
}

func (o *order) differ(r *rowOrder, format string, args ...any) {
	subject := fmt.Sprintf("%s: expected the agent to report %s %s ", r.workload.Name, r.resource.Kind, r.resource.Name)
	o.differences = append(o.differences, subject+fmt.Sprintf(format, args...))
}

// operationTold is what the checks read of an update of a resource's row.
type operationTold struct {
	LastOperation     string
	RuntimeDefinition definition
}

// operation checks an update of a resource's row.
func (o *order) operation(id string, body []byte) {
	n, _ := strconv.ParseInt(id, 10, 64)
	r := o.rows[n]
	if r == nil {
		o.differences = append(o.differences, fmt.Sprintf("expected the agent to report resources of workloads only, it wrote to row %s", id))
		return
	}
	var told operationTold
	if err := json.Unmarshal(body, &told); err != nil {
		o.differ(r, "as JSON, it wrote %v", err)
		return
	}
	uid, version := told.RuntimeDefinition.Metadata.UID, told.RuntimeDefinition.Metadata.ResourceVersion
	if told.LastOperation == threeport.OperationDeleted {
		if r.uid != "" && !o.objects[r.uid].deleted {
			o.differ(r, "as DELETED when it is, but %s is there", r.uid)
		}
		r.deleted = true
		return
	}
	seen := o.objects[uid].versions
	if len(seen) == 0 || !o.missed && !slices.Contains(seen, version) {
		o.differ(r, "in versions that the cluster had, it told %s of version %s of %q", told.LastOperation, version, uid)
	}
	switch {
	case uid != r.uid:
		o.incarnation(r, uid, told.LastOperation)
	case r.deleted:
		o.differ(r, "as DELETED at last, it told %s of %s afterwards", told.LastOperation, uid)
	case older(version, r.version):
		o.differ(r, "in order, it told version %s of %s after %s", version, uid, r.version)
	}
	r.uid, r.version, r.deleted = uid, version, r.deleted && uid == r.uid
}

// incarnation checks the first report of an incarnation.
func (o *order) incarnation(r *rowOrder, uid types.UID, operation string) {
	if slices.Contains(r.earlier, uid) {
		o.differ(r, "in order, it told %s of %s again after %s", operation, uid, r.uid)
	}
	if r.uid != "" && !r.deleted {
		o.differ(r, "as DELETED before it is created again, it told of %s right after %s", uid, r.uid)
	}
	if operation != threeport.OperationAdded {
		o.differ(r, "as ADDED at first, it told %s of %s", operation, uid)
	}
	r.earlier = append(r.earlier, uid)
}

// event checks a new row of an Event, or an update of one.
func (o *order) event(body []byte) {
	var told threeport.WorkloadEvent
	if err := json.Unmarshal(body, &told); err != nil {
		o.differences = append(o.differences, fmt.Sprintf("expected the agent to report Events as JSON, it wrote %v", err))
		return
	}
	uid, when := types.UID(deref(told.RuntimeEventUID)), deref(told.Timestamp)
	if o.events[uid].After(when) {
		o.differences = append(o.differences, fmt.Sprintf("expected the agent to report Event %s (%s) in order, it told %s after %s",
			deref(told.Reason), uid, when.UTC().Format(time.RFC3339Nano), o.events[uid].UTC().Format(time.RFC3339Nano)))
	}
	o.events[uid] = when
	if seen := o.times[uid]; len(seen) > 0 && !o.missed && !slices.ContainsFunc(seen, when.Equal) {
		o.differences = append(o.differences, fmt.Sprintf("expected the agent to report Event %s (%s) with times that it had, it told %s",
			deref(told.Reason), uid, when.UTC().Format(time.RFC3339Nano)))
	}
}

// older reports whether a resource version is before another of the same object. They are decimal numbers without
// leading zeros.
func older(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }
