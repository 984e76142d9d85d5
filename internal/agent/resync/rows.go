package resync

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/notify"
	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

const (
	// pageSize is the number of rows of Events in a page.
	pageSize = 500
	// clockMargin is the largest difference between the clocks of the cluster and the control plane that is allowed for.
	clockMargin = time.Hour
)

// The limits of the kept rows of an instance's Events. An Event has shorter texts than maxRowText, so a cut text still
// differs from it.
const (
	maxRowText   = 8 << 10
	maxKeptBytes = 64 << 20 // of texts
)

// eventRows are rows of Events by the Event's UID. v0 may hold any number for one. The oldest row and that of the receipt are kept.
type eventRows map[types.UID][]threeport.WorkloadEvent

// wantedEvents says which Events' rows are kept, and the ID of the row of the receipt; 0 for none.
type wantedEvents func(types.UID) (rowID int64, wanted bool)

// add adds the rows of the wanted Events. It returns by how many bytes the kept texts grow.
func (r eventRows) add(rows []threeport.WorkloadEvent, wanted wantedEvents) (grown int) {
	for _, row := range rows {
		if row.RuntimeEventUID == nil {
			continue
		}
		uid := types.UID(*row.RuntimeEventUID)
		if rowID, ok := wanted(uid); ok {
			grown += r.keep(uid, row, rowID)
		}
	}
	return grown
}

// keep adds a row, unless the kept rows have it or it is not needed.
func (r eventRows) keep(uid types.UID, row threeport.WorkloadEvent, rowID int64) (grown int) {
	before := r[uid]
	if slices.ContainsFunc(before, func(other threeport.WorkloadEvent) bool { return *other.ID == *row.ID }) {
		return 0
	}
	grown = -textBytes(before)
	row.Type, row.Reason, row.Message = cutText(row.Type), cutText(row.Reason), cutText(row.Message)
	r[uid] = append(before, row)
	oldest, _ := r.oldest(uid)
	r[uid] = slices.DeleteFunc(r[uid], func(row threeport.WorkloadEvent) bool { return *row.ID != *oldest.ID && *row.ID != rowID })
	return grown + textBytes(r[uid])
}

// textBytes returns the size of the texts of rows.
func textBytes(rows []threeport.WorkloadEvent) (sum int) {
	for _, row := range rows {
		for _, text := range []*string{row.Type, row.Reason, row.Message} {
			if text != nil {
				sum += len(*text)
			}
		}
	}
	return sum
}

// cutText bounds a text of a row, and does not keep the memory of the rest.
func cutText(text *string) *string {
	if text == nil || len(*text) <= maxRowText {
		return text
	}
	return new(strings.Clone((*text)[:maxRowText]))
}

// oldest returns the row of an Event without a receipt: the same as [threeport.Client.FindWorkloadEvent].
func (r eventRows) oldest(uid types.UID) (threeport.WorkloadEvent, bool) {
	rows := r[uid]
	if len(rows) == 0 {
		return threeport.WorkloadEvent{}, false
	}
	return slices.MinFunc(rows, func(a, b threeport.WorkloadEvent) int { return cmp.Compare(*a.ID, *b.ID) }), true
}

// row returns the row with an ID, or the oldest row if the ID is 0.
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

// readEvents reads the rows of an instance, as far back as some Events of the cluster go.
func (r *Resyncer) readEvents(
	ctx context.Context, instance target.Instance, events []observe.Event, wanted wantedEvents,
) (eventRows, error) {
	since := time.Now()
	for _, ev := range events {
		if ev.Time.Before(since) {
			since = ev.Time
		}
	}
	since = since.Add(-clockMargin)
	for size := pageSize; ; size /= 10 {
		rows, err := r.readPages(ctx, filterOf(instance), since, size, wanted)
		if size < 10 || !errors.Is(err, threeport.ErrAnswerTooLarge) {
			return rows, err
		}
	}
}

// The limits of a list of rows. A control plane that counts wrong would be asked for ever.
const (
	maxPages      = 5000
	maxEmptyPages = 2 // in a row: rows may be deleted meanwhile
)

// readPages reads the rows that were created since a time, and some older ones.
//
// Rows are in the order of their creation, and those of v0 never expire: a workload may have 100,000. So pages are read from
// the last one backwards, until a row is too old. No row is missed although rows are created and deleted meanwhile. A new row
// is the last one and moves no other. A deleted row moves later rows to earlier pages, which are read after it. Reading
// forwards would miss those rows.
func (r *Resyncer) readPages(
	ctx context.Context, filter threeport.EventFilter, since time.Time, size int, wanted wantedEvents,
) (eventRows, error) {
	rows := eventRows{}
	// The first page has all rows of most workloads, and their total number.
	first, total, err := r.api.ListWorkloadEvents(ctx, filter, 1, size)
	if err != nil {
		return nil, err
	}
	kept := rows.add(first, wanted)
	if int64(len(first)) >= total {
		return rows, nil
	}
	if len(first) == 0 {
		return nil, fmt.Errorf("list workload events: the first page has none of %d rows", total)
	}
	size = min(size, len(first)) // the server may have a lower limit
	pages, empty := (total-1)/int64(size)+1, 0
	if pages > maxPages {
		return nil, fmt.Errorf("list workload events: %d rows in pages of %d are more than the agent reads", total, size)
	}
	for page := int(pages); page > 0; page-- {
		got, _, err := r.api.ListWorkloadEvents(ctx, filter, page, size)
		if err != nil {
			return nil, err
		}
		if kept += rows.add(got, wanted); kept > maxKeptBytes {
			return nil, fmt.Errorf("list workload events: the texts of the rows exceed %d MiB", maxKeptBytes>>20)
		}
		if len(got) > 0 {
			empty = 0
		} else if empty++; empty > maxEmptyPages {
			return nil, fmt.Errorf("list workload events: page %d of %d has none of %d rows", page, pages, total)
		}
		if len(got) > 0 && got[0].CreatedAt != nil && got[0].CreatedAt.Before(since) {
			break
		}
	}
	return rows, nil
}

// readEvent adds the rows of one Event, of all instances and of any age. RowID is that of the receipt.
func (r *Resyncer) readEvent(ctx context.Context, uid types.UID, rowID int64, rows eventRows) error {
	got, _, err := r.api.ListWorkloadEvents(ctx, threeport.EventFilter{RuntimeEventUID: string(uid)}, 1, 50)
	if err != nil {
		return err
	}
	rows.add(got, func(types.UID) (int64, bool) { return rowID, true })
	return nil
}

// resourceRow is the row of a listed resource.
type resourceRow struct {
	threeport.WorkloadResourceInstance
	// exists is true if the row has an object that was not deleted.
	exists bool
	// uid is that of the object in the row; empty if the row has none, or one longer than maxRowUID.
	uid types.UID
}

// maxRowUID is the length of the longest UID of a row. It is kept in the reports of missed deletions. Those of Kubernetes have 36 bytes.
const maxRowUID = 256

// rowVisitor receives the rows of an instance's listed resources.
type rowVisitor interface {
	// read reads a row; found is false if it is to be skipped.
	read(ctx context.Context, id int64) (row resourceRow, found bool, err error)
	// existing receives the row of an object that exists.
	existing(ctx context.Context, op observe.Operation, row resourceRow) error
	// absent receives the row of an object that does not exist.
	absent(attribution target.Attribution, row resourceRow)
}

// visitRows reads the rows of the listed resources one after the other, because each may have a large definition. It ends
// with the first error.
func visitRows(ctx context.Context, desired observe.DesiredState, v rowVisitor) error {
	for _, op := range desired.Operations {
		row, found, err := v.read(ctx, op.Attribution.Resource.ID)
		if err == nil && found {
			err = v.existing(ctx, op, row)
		}
		if err != nil {
			return err
		}
	}
	for _, attribution := range desired.Absent {
		row, found, err := v.read(ctx, attribution.Resource.ID)
		if err != nil {
			return err
		}
		if found {
			v.absent(attribution, row)
		}
	}
	return nil
}

// readResource reads a row; found is false if there is none. The resources of a Helm chart have none, and the ID 0.
func (r *Resyncer) readResource(ctx context.Context, id int64) (row resourceRow, found bool, err error) {
	if id <= 0 {
		return resourceRow{}, false, nil
	}
	got, err := r.api.GetWorkloadResourceInstance(ctx, id)
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
	if json.Unmarshal(got.RuntimeDefinition, &definition) == nil && len(definition.Metadata.UID) <= maxRowUID {
		row.uid = definition.Metadata.UID
	}
	return row, true, nil
}

// receipt returns the receipt for an object: accepted if it is the object in the row.
func (r resourceRow) receipt(id target.Identity) outbox.Receipt {
	return outbox.Receipt{Accepted: r.exists && r.uid == id.UID}
}

// modified reports whether the row has a later report than the first of the object.
func (r resourceRow) modified() bool {
	return r.LastOperation != nil && *r.LastOperation == threeport.OperationModified
}

// changes returns the fields of the row that an operation would change. ADDED and MODIFIED count as equal.
func (r resourceRow) changes(ctx context.Context, op observe.Operation) ([]string, error) {
	op, err := op.Load(ctx)
	if err != nil {
		return nil, err
	}
	patch, err := notify.OperationRow(op, r.modified())
	if err != nil {
		return nil, err
	}
	return patch.Changes(r.WorkloadResourceInstance), nil
}

// deletion returns the report that the object in the row was deleted. If the row has no UID, the report
// has an empty one. Its key is then its own, with the resource's ordering key, so it precedes the reports about the object
// that has the name now.
func (r resourceRow) deletion(attribution target.Attribution, ref target.Ref) observe.Operation {
	return observe.Operation{Attribution: attribution, Object: target.Identity{Ref: ref, UID: r.uid}, Deleted: true}
}

// compareStatus reports whether the control plane has an instance, and whether it has another status of it than the verdict.
func (r *Resyncer) compareStatus(ctx context.Context, instance target.Instance, verdict observe.Status) (exists, differs bool, err error) {
	status, err := r.readStatus(ctx, instance)
	if threeport.KindOf(err) == threeport.KindNotFound {
		return false, false, nil
	}
	return err == nil, err == nil && (status == nil || *status != verdict.Status), err
}

func (r *Resyncer) readStatus(ctx context.Context, instance target.Instance) (*string, error) {
	if instance.Type == target.HelmWorkloadInstance {
		row, err := r.api.GetHelmWorkloadInstance(ctx, instance.ID)
		return row.Status, err
	}
	row, err := r.api.GetWorkloadInstance(ctx, instance.ID)
	return row.Status, err
}
