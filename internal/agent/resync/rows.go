package resync

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/notify"
	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

const (
	// pageSize is how many rows of Events are asked for at a time.
	pageSize = 500
	// clockMargin is by how much the clocks of the cluster and of the control plane may differ.
	clockMargin = time.Hour
)

// eventRows are rows of Events by the Event's UID. v0 may hold several for one.
type eventRows map[types.UID][]threeport.WorkloadEvent

// add keeps the rows of the Events that are wanted.
func (r eventRows) add(rows []threeport.WorkloadEvent, wanted func(types.UID) bool) {
	for _, row := range rows {
		if row.RuntimeEventUID == nil {
			continue
		}
		uid := types.UID(*row.RuntimeEventUID)
		read := slices.ContainsFunc(r[uid], func(other threeport.WorkloadEvent) bool { return *other.ID == *row.ID })
		if !read && wanted(uid) {
			r[uid] = append(r[uid], row)
		}
	}
}

// oldest returns the row that counts if nothing is known of an Event's rows: the same as for
// [threeport.Client.FindWorkloadEvent].
func (r eventRows) oldest(uid types.UID) (threeport.WorkloadEvent, bool) {
	rows := r[uid]
	if len(rows) == 0 {
		return threeport.WorkloadEvent{}, false
	}
	return slices.MinFunc(rows, func(a, b threeport.WorkloadEvent) int { return cmp.Compare(*a.ID, *b.ID) }), true
}

// row returns the row with an ID, or the oldest if that is 0.
func (r eventRows) row(uid types.UID, id int64) (threeport.WorkloadEvent, bool) {
	if id == 0 {
		return r.oldest(uid)
	}
	for _, row := range r[uid] {
		if *row.ID == id {
			return row, true
		}
	}
	return threeport.WorkloadEvent{}, false
}

// filterOf selects the rows of an instance's Events.
func filterOf(instance target.Instance) threeport.EventFilter {
	if instance.Type == target.HelmWorkloadInstance {
		return threeport.EventFilter{HelmWorkloadInstanceID: instance.ID}
	}
	return threeport.EventFilter{WorkloadInstanceID: instance.ID}
}

// readEvents reads the rows of an instance's Events that may be among some Events of the cluster.
func (a *Resyncer) readEvents(
	ctx context.Context, instance target.Instance, events []observe.Event, wanted func(types.UID) bool,
) (eventRows, error) {
	since := time.Now()
	for _, ev := range events {
		if ev.Time.Before(since) {
			since = ev.Time
		}
	}
	since = since.Add(-clockMargin)
	for size := pageSize; ; size /= 10 {
		rows, err := a.readPages(ctx, filterOf(instance), since, size, wanted)
		if size < 10 || !errors.Is(err, threeport.ErrAnswerTooLarge) {
			return rows, err
		}
	}
}

// readPages reads the rows that were made since a time, and older ones.
//
// Rows are in the order in which they were made, and v0's never expire: a workload may have 100,000 of Events that are long
// gone from the cluster. So pages are read from the last one backwards, until a row is too old. That misses no row
// though others come and go meanwhile: a new one comes at the end, which moves none, and one that is removed moves those
// after it to lower places, from where they are read again, if they were read already. The other way round a row that
// moves from a page that is still to be read to one that was read would be missed.
func (a *Resyncer) readPages(
	ctx context.Context, filter threeport.EventFilter, since time.Time, size int, wanted func(types.UID) bool,
) (eventRows, error) {
	rows := eventRows{}
	// The first page has all rows of most workloads, and tells how many there are.
	first, total, err := a.plane.ListWorkloadEvents(ctx, filter, 1, size)
	if err != nil {
		return nil, err
	}
	rows.add(first, wanted)
	if int64(len(first)) >= total {
		return rows, nil
	}
	if len(first) == 0 {
		return nil, fmt.Errorf("list workload events: the first page has none of %d rows", total)
	}
	size = min(size, len(first)) // the server may have a bound of its own
	for page := int((total-1)/int64(size)) + 1; page > 0; page-- {
		got, _, err := a.plane.ListWorkloadEvents(ctx, filter, page, size)
		if err != nil {
			return nil, err
		}
		rows.add(got, wanted)
		if len(got) > 0 && got[0].CreatedAt != nil && got[0].CreatedAt.Before(since) {
			break
		}
	}
	return rows, nil
}

// readEvent adds the rows of one Event, whichever instances they belong to and however old they are.
func (a *Resyncer) readEvent(ctx context.Context, uid types.UID, rows eventRows) error {
	got, _, err := a.plane.ListWorkloadEvents(ctx, threeport.EventFilter{RuntimeEventUID: string(uid)}, 1, 50)
	if err != nil {
		return err
	}
	rows.add(got, func(types.UID) bool { return true })
	return nil
}

// resourceRow is the row of a listed resource.
type resourceRow struct {
	threeport.WorkloadResourceInstance
	// exists is true if the row says that the object is there: it was reported, and not as deleted.
	exists bool
	// uid is that of the reported object; empty if the row does not tell.
	uid types.UID
}

// readResource reads a row; found is false if there is none.
func (a *Resyncer) readResource(ctx context.Context, id int64) (row resourceRow, found bool, err error) {
	got, err := a.plane.GetWorkloadResourceInstance(ctx, id)
	switch {
	case threeport.KindOf(err) == threeport.KindNotFound:
		return resourceRow{}, false, nil
	case err != nil:
		return resourceRow{}, false, err
	}
	row = resourceRow{WorkloadResourceInstance: got}
	switch operation := got.LastOperation; {
	case operation == nil:
	case *operation == threeport.OperationAdded, *operation == threeport.OperationModified:
		row.exists = true
	}
	var definition struct {
		Metadata struct {
			UID types.UID `json:"uid"`
		} `json:"metadata"`
	}
	if json.Unmarshal(got.RuntimeDefinition, &definition) == nil {
		row.uid = definition.Metadata.UID
	}
	return row, true, nil
}

// modified reports whether a later report than the object's first is in the row.
func (r resourceRow) modified() bool {
	return r.LastOperation != nil && *r.LastOperation == threeport.OperationModified
}

// changes returns which fields of the row an operation's report would change. Whether an object that exists was added
// or modified last is one.
func (r resourceRow) changes(op observe.Operation) ([]string, error) {
	patch, err := notify.OperationRow(op, r.modified())
	if err != nil {
		return nil, err
	}
	return patch.Changes(r.WorkloadResourceInstance), nil
}

// deletion returns the report that an incarnation is gone. If the row does not tell which it was, its UID is empty,
// which no object has: the report has a key of its own, in the lane of the resource, and so comes before what bears the
// name now. The row then says DELETED, and is not taken for one that exists again.
func (r resourceRow) deletion(claim target.Attribution, ref target.Ref) observe.Operation {
	return observe.Operation{Attribution: claim, Object: target.Identity{Ref: ref, UID: r.uid}, Deleted: true}
}
