package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store/canonicaljson"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// instanceKey names a workload.
type instanceKey struct {
	kind string // controlplane.TypeWorkloadInstance or controlplane.TypeHelmWorkloadInstance
	id   int64
}

func scanInstanceKey(scan scanner) (key instanceKey, err error) {
	err = scan(&key.kind, &key.id)
	return key, err
}

func compareInstances(a, b instanceKey) int {
	return cmp.Or(-cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id)) // WorkloadInstance comes first, as in v0's list
}

// item is a report that may be taken, and its answer.
type item struct {
	*threeport.Report
	instance instanceKey
	version  int64
	// definition is normalised; empty for none.
	definition string
	result     *threeport.ReportAnswer
}

// maxAhead is how far ahead of this clock the version of a status or a tree may be, which is a time: 100 years, so that an
// agent with a wrong clock is heard. The bound moves on, so that whatever was taken can be replaced by a newer one: an agent
// with the right clock goes beyond what it finds, up to the year 2200.
const maxVersionLead = 100 * 365 * 24 * time.Hour

// admit makes items of the reports that are valid at a time, and answers the others.
func validItems(reports []threeport.Report, answers []threeport.ReportAnswer, at time.Time) []*item {
	items := make([]*item, 0, len(reports))
	for i := range reports {
		r := &reports[i]
		one := &item{
			Report:   r,
			instance: instanceKey{r.Instance.Type, int64(r.Instance.ID)},
			version:  int64(r.Version),
			result:   &answers[i],
		}
		if err := cmp.Or(one.validate(), one.validateVersion(at)); err != nil {
			one.reject(threeport.ProblemInvalid, err.Error())
			continue
		}
		items = append(items, one)
	}
	return items
}

// read validates the report, and brings its definition into the form that is kept.
func (i *item) validate() error {
	if err := validateReport(i.Report); err != nil {
		return err
	}
	if i.Operation == nil || !hasDocument(i.Operation.Definition) {
		return nil
	}
	doc, err := canonicaljson.Canonicalize(i.Operation.Definition)
	if err != nil || doc[0] != '{' {
		return &FieldError{"operation.definition", "a JSON object whose strings have no NUL"}
	}
	i.definition = doc
	return nil
}

// dated validates the version, if that is a time, by what time it is.
func (i *item) validateVersion(at time.Time) error {
	if (i.Status != nil || i.Tree != nil) && i.version > at.Add(maxVersionLead).UnixMicro() {
		return &FieldError{"version", "a time in microseconds since 1970, at most 100 years from now"}
	}
	return nil
}

// key is what two reports have in common if only the newest of them counts.
type key struct {
	body     rune // o, e, s, t
	instance instanceKey
	uid      string
	resource int64
}

func (i *item) key() key {
	switch {
	case i.Operation != nil:
		// One object may be listed by several workloads.
		return key{'o', i.instance, i.Operation.Object.UID, int64(i.Operation.ResourceInstanceID)}
	case i.Event != nil:
		return key{body: 'e', uid: i.Event.UID}
	case i.Status != nil:
		return key{body: 's', instance: i.instance}
	default:
		return key{body: 't', instance: i.instance}
	}
}

// deletes tells that it is the end of an object, which is newer than whatever else is said of it.
func (i *item) isDeletion() bool {
	return i.Operation != nil && i.Operation.Operation == threeport.OperationDeleted
}

// supersession is an item that does not count because the same set has a newer one of its key.
type supersession struct{ old, by *item }

// newest keeps the newest item of each key: of two of the same version the first.
func newestByKey(items []*item) (kept []*item, superseded []supersession) {
	at := make(map[key]int, len(items))
	for _, one := range items {
		place, known := at[one.key()]
		switch {
		case !known:
			at[one.key()] = len(kept)
			kept = append(kept, one)
		case isNewer(one, kept[place]):
			superseded = append(superseded, supersession{old: kept[place]})
			kept[place] = one
		default:
			superseded = append(superseded, supersession{old: one})
		}
	}
	for i := range superseded {
		superseded[i].by = kept[at[superseded[i].old.key()]]
	}
	return kept, superseded
}

func isNewer(a, b *item) bool {
	if a.isDeletion() != b.isDeletion() {
		return a.isDeletion()
	}
	return a.version > b.version
}

// answer says what became of the newer one.
func (s supersession) answerOld() {
	switch by := s.by.result; by.Outcome {
	case threeport.OutcomeRejected:
		*s.old.result = *by
	case threeport.OutcomeStale:
		s.old.answerNotNewer(int64(by.Version))
	default:
		s.old.answerNotNewer(s.by.version)
	}
}

func (i *item) answerCreated() {
	*i.result = threeport.ReportAnswer{Outcome: threeport.OutcomeCreated}
}

func (i *item) answerUpdated() {
	*i.result = threeport.ReportAnswer{Outcome: threeport.OutcomeUpdated}
}

func (i *item) answerStale(stored int64) {
	*i.result = threeport.ReportAnswer{Outcome: threeport.OutcomeStale, Version: threeport.ID(stored)}
}

// compare answers an item that changes nothing, since the version that is there is not older.
func (i *item) answerNotNewer(stored int64) {
	if i.version == stored {
		*i.result = threeport.ReportAnswer{Outcome: threeport.OutcomeUnchanged}
		return
	}
	i.answerStale(stored)
}

// reject refuses the item; detail quotes no value.
func (i *item) reject(code, detail string) {
	*i.result = threeport.ReportAnswer{
		Outcome: threeport.OutcomeRejected,
		Problem: &threeport.ReportProblem{Code: code, Detail: detail},
	}
}

// rejected tells that the item is not to be taken.
func (i *item) isRejected() bool { return i.result.Outcome == threeport.OutcomeRejected }

// resource is the ID of the resource's row that the report names, in a field; 0 for none.
func (i *item) resourceInstance() (field string, id int64) {
	switch {
	case i.Operation != nil:
		return "operation.resourceInstanceID", int64(i.Operation.ResourceInstanceID)
	case i.Event != nil:
		return "event.resourceInstanceID", int64(i.Event.ResourceInstanceID)
	default:
		return "", 0
	}
}

// sortedBy is those of the items that have a key, in the order of their keys, in which rows are locked.
func sortedItems[K any](items []*item, of func(*item) (K, bool), compare func(K, K) int) []*item {
	var chosen []*item
	for _, one := range items {
		if _, ok := of(one); ok && !one.isRejected() {
			chosen = append(chosen, one)
		}
	}
	slices.SortStableFunc(chosen, func(a, b *item) int {
		x, _ := of(a)
		y, _ := of(b)
		return compare(x, y)
	})
	return chosen
}
