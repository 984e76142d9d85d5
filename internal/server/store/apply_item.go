package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store/canonicaljson"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// instanceKey identifies a workload.
type instanceKey struct {
	kind string // threeport.TypeWorkloadInstance or threeport.TypeHelmWorkloadInstance
	id   int64
}

func scanInstanceKey(scan scanner) (key instanceKey, err error) {
	err = scan(&key.kind, &key.id)
	return key, err
}

func compareInstances(a, b instanceKey) int {
	return cmp.Or(-cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id)) // reversed: WorkloadInstance first, as in v0's list
}

// item is a valid report with its answer.
type item struct {
	*threeport.Report
	instance instanceKey
	version  int64
	// definition is canonical JSON; empty for none.
	definition string
	// specDigest is the digest of the definition; empty for none.
	specDigest string
	created    *int64     // when the cluster created the object, in microseconds since 1970; nil if the definition does not say so
	rest       *treeWrite // the unwritten part of the tree; nil before the first transaction
	result     *threeport.ReportAnswer
}

// maxVersionLead limits how far the version of a status or tree, which is a time, may be ahead of this clock. It is
// generous so that an agent with a wrong clock can report. As the limit moves with time, each stored version can be
// superseded until the year 2200.
const maxVersionLead = 100 * 365 * 24 * time.Hour

// validItems returns an item for each valid report, and rejects the others.
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

// validate checks the report and sets the canonical definition.
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
	i.definition, i.specDigest, i.created = doc, specDigest(doc), creationTime(doc)
	return nil
}

// validateVersion checks a version that is a time.
func (i *item) validateVersion(at time.Time) error {
	if (i.Status != nil || i.Tree != nil) && i.version > at.Add(maxVersionLead).UnixMicro() {
		return &FieldError{"version", "a time in microseconds since 1970, at most 100 years from now"}
	}
	return nil
}

// key identifies what a report is about: only the newest report of a key counts.
type key struct {
	body     rune // o, e, s or t: operation, event, status or tree
	instance instanceKey
	uid      string
	resource int64
}

func (i *item) key() key {
	switch {
	case i.Operation != nil:
		// Several workloads may list the same object.
		return key{'o', i.instance, i.Operation.Object.UID, int64(i.Operation.ResourceInstanceID)}
	case i.Event != nil:
		return key{body: 'e', uid: i.Event.UID}
	case i.Status != nil:
		return key{body: 's', instance: i.instance}
	default:
		return key{body: 't', instance: i.instance}
	}
}

// isDeletion reports whether the item deletes its object. A deletion is newer than all other operations on it.
func (i *item) isDeletion() bool {
	return i.Operation != nil && i.Operation.Operation == threeport.OperationDeleted
}

// supersession is an item that is superseded by another one of the same set.
type supersession struct{ old, by *item }

// newestByKey keeps the newest item of each key; of equal versions, the first.
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

// answerOld answers the superseded item according to the answer of the newer one.
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

// answerNotNewer answers an item whose version is not above the stored one.
func (i *item) answerNotNewer(stored int64) {
	if i.version == stored {
		*i.result = threeport.ReportAnswer{Outcome: threeport.OutcomeUnchanged}
		return
	}
	i.answerStale(stored)
}

// reject rejects the item. detail must not quote a value.
//
//	invalid          validItems, by apply_validate.go; apply_resources.go, for a resource of another workload;
//	                 apply.go, if the database rejects it
//	not_found        apply_workloads.go, apply_resources.go: there is no such workload or resource
//	forbidden        apply_workloads.go: the workload belongs to another cluster
//	quota_exceeded   apply_quota.go: the cluster has used up its space
func (i *item) reject(code, detail string) {
	*i.result = threeport.ReportAnswer{
		Outcome: threeport.OutcomeRejected,
		Problem: &threeport.ReportProblem{Code: code, Detail: detail},
	}
}

// isAnswered reports whether the item has its answer.
func (i *item) isAnswered() bool { return i.result.Outcome != "" }

// isRejected reports whether the item was rejected.
func (i *item) isRejected() bool { return i.result.Outcome == threeport.OutcomeRejected }

// resourceInstance returns the WorkloadResourceInstance that the report names, and the field that names it; 0 for none.
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

// sortedItems returns the items that have a key and are not rejected, sorted by key: the order in which rows are
// locked.
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
