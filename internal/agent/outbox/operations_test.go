package outbox

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// conf is the resource of operation.
var conf = target.Resource{Ref: target.Ref{Kind: "ConfigMap", Namespace: "ns", Name: "conf"}, ID: 7}

func expectOperations(t *testing.T, o *Outbox, why string, want map[target.Resource]target.LastOperation) {
	t.Helper()
	if got := o.Progress(shop).Operations; !maps.Equal(got, want) {
		t.Errorf("%s: the operations are %v, want %v", why, got, want)
	}
}

func only(op target.LastOperation) map[target.Resource]target.LastOperation {
	return map[target.Resource]target.LastOperation{conf: op}
}

func deliver(t *testing.T, o *Outbox, reports ...observe.Report) {
	t.Helper()
	for _, r := range reports {
		o.Offer(r)
		o.Ack(take(t, o), Receipt{})
	}
}

func TestOutbox_Progress_OperationsAreTheLatestAccepted(t *testing.T) {
	o := New(Config{}, nil)
	o.Declare(shop)
	o.Offer(operation("x", "1"))
	expectOperations(t, o, "nothing is accepted", nil)
	o.Ack(take(t, o), Receipt{})
	expectOperations(t, o, "the first", only(target.LastOperation{ResourceVersion: "1"}))
	deliver(t, o, operation("x", "2"))
	expectOperations(t, o, "the second", only(target.LastOperation{ResourceVersion: "2", Modified: true}))
	o.Offer(operation("x", "3"))
	item := take(t, o)
	o.Offer(operation("x", "4"))
	expectOperations(t, o, "out is not accepted", only(target.LastOperation{ResourceVersion: "2", Modified: true}))
	o.Ack(item, Receipt{})
	expectOperations(t, o, "a newer one waits", only(target.LastOperation{ResourceVersion: "3", Modified: true}))
	o.Reject(take(t, o), errSend)
	expectOperations(t, o, "a refused one is not accepted", only(target.LastOperation{ResourceVersion: "3", Modified: true}))
	o.Offer(operation("x", "4"))
	expectOperations(t, o, "nor when it is offered again", only(target.LastOperation{ResourceVersion: "3", Modified: true}))
	o.Offer(operation("x", ""))
	o.Forget(operation("x", "").Key())
	o.Ack(take(t, o), Receipt{})
	expectOperations(t, o, "a deletion stays", only(target.LastOperation{Deleted: true}))
	deliver(t, o, operation("y", "9"))
	expectOperations(t, o, "the next incarnation", only(target.LastOperation{ResourceVersion: "9"}))
	o.Cancel(operation("y", "").Key())
	o.Forget(operation("y", "").Key())
	expectOperations(t, o, "it is no longer listed", nil)
}

func TestOutbox_Reopen_NextOffersAreSent(t *testing.T) {
	o := New(Config{}, nil)
	o.Declare(shop)
	status := observe.Status{Workload: shop, Status: "Healthy"}
	offerAll := func() {
		for _, r := range []observe.Report{operation("x", "1"), status, event("a", "1")} {
			o.Offer(r)
		}
	}
	deliver(t, o, operation("x", "1"), status, event("a", "1"))
	offerAll()
	expectNothing(t, o)
	o.Reopen(other)
	offerAll()
	expectNothing(t, o)
	o.Reopen(shop)
	expectNothing(t, o)
	offerAll()
	sent := []string{fmt.Sprint(take(t, o).Report), fmt.Sprint(take(t, o).Report)}
	slices.Sort(sent)
	if want := []string{operation("x", "1").String(), status.String()}; !slices.Equal(sent, want) {
		t.Errorf("sent are %v, want %v", sent, want)
	}
	expectNothing(t, o) // Events are compared by the resync only
}

func TestOutbox_Reopen_RejectedReportStays(t *testing.T) {
	o := New(Config{}, nil)
	o.Declare(shop)
	deliver(t, o, operation("x", "1"))
	o.Offer(operation("x", "2"))
	o.Reject(take(t, o), errSend)
	o.Reopen(shop)
	o.Offer(operation("x", "2"))
	expectNothing(t, o)
	expectRefused(t, o, 1)
}

func TestOutbox_Progress_OperationsAreOfListedResources(t *testing.T) {
	o := New(Config{}, nil)
	o.Declare(shop)
	derived := operation("x", "1")
	derived.Attribution.Listed = false
	deliver(t, o, derived, event("a", "1"), observe.Status{Workload: shop, Status: "Healthy"})
	expectOperations(t, o, "none is of a listed resource", nil)
	o.Offer(operation("y", "1"))
	o.ForgetInstance(shop)
	o.Ack(take(t, o), Receipt{})
	if len(o.accounts) > 0 {
		t.Error("the account of a workload that is gone is there")
	}
}

func TestOutbox_AckRemoved_RemovesTheOperation(t *testing.T) {
	o := New(Config{}, nil)
	o.Declare(shop)
	deliver(t, o, operation("x", "1"))
	o.Offer(operation("x", "2"))
	item := take(t, o)
	o.AckRemoved(item, o.MissingRow(item))
	expectOperations(t, o, "the row is gone", nil)
}

// The progress names the rows that the control plane removed, until it accepts a report about them again.
func TestOutbox_AckRemoved_ProgressNamesRow(t *testing.T) {
	o := New(Config{}, nil)
	o.Declare(shop)
	status := func(word string) observe.Status { return observe.Status{Workload: shop, Status: word} }
	removed := func(reports ...observe.Report) (first []bool) {
		for _, r := range reports {
			o.Offer(r)
			item := take(t, o)
			first = append(first, o.AckRemoved(item, o.MissingRow(item)))
		}
		return first
	}
	expect := func(when string, want ...int64) {
		t.Helper()
		if got := o.Progress(shop).Removed; !slices.Equal(got, want) {
			t.Errorf("%s, the removed rows are %v, want %v", when, got, want)
		}
	}
	deliver(t, o, operation("x", "1"), status("Healthy"))
	expect("at first")
	resource := operation("x", "1").Attribution.Resource.ID
	if got := removed(operation("x", "2"), operation("x", "3"), status("Down")); !slices.Equal(got, []bool{true, false, true}) {
		t.Errorf("the first discarded reports are %v, want the first and the last", got)
	}
	expect("after the removals", 0, resource)
	deliver(t, o, operation("x", "4"), status("Healthy"))
	expect("with new rows")
}

func TestOutbox_Progress_OperationsOfAnEarlierProcess(t *testing.T) {
	tests := []struct {
		reason  string
		before  []observe.Report // accepted by the earlier process
		kept    bool
		known   Known // result of the initial sync; without a key if there is none
		deleted bool
		offer   observe.Report
		want    map[target.Resource]target.LastOperation
	}{
		{"added before", []observe.Report{operation("x", "1")}, true, Known{}, false, operation("x", "1"), only(target.LastOperation{ResourceVersion: "1"})},
		{
			"modified before",
			[]observe.Report{operation("x", "1"), operation("x", "2")},
			true,
			Known{},
			false,
			operation("x", "2"), only(target.LastOperation{ResourceVersion: "2", Modified: true}),
		},
		{
			"the disk is lost, the control plane knows", nil, false,
			Known{Key: operation("x", "").Key(), Receipt: Receipt{Accepted: true}, Version: "2", Modified: true},
			false,
			operation("x", "2"), only(target.LastOperation{ResourceVersion: "2", Modified: true}),
		},
		{
			"the control plane knows better",
			[]observe.Report{operation("x", "1")},
			true,
			Known{Key: operation("x", "").Key(), Receipt: Receipt{Accepted: true}, Version: "1", Modified: true},
			false,
			operation("x", "1"), only(target.LastOperation{ResourceVersion: "1", Modified: true}),
		},
		{"deleted before, the control plane knows", nil, true, Known{}, true, nil, only(target.LastOperation{Deleted: true})},
		{"nothing was accepted", nil, true, Known{}, false, nil, nil},
	}
	for _, tt := range tests {
		for _, offerFirst := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, offered before the initial sync: %t", tt.reason, offerFirst), func(t *testing.T) {
				kept := records{}
				deliver(t, New(Config{}, kept), tt.before...)
				if !tt.kept {
					kept = records{}
				}
				o := New(Config{InitialSync: true}, kept)
				o.Declare(shop)
				var known []Known
				if tt.known.Key != "" {
					known = append(known, tt.known)
				}
				if tt.deleted {
					op := operation("x", "")
					known = append(known, Known{Deletion: &op})
				}
				if tt.offer != nil && offerFirst {
					o.Offer(tt.offer)
				}
				seed(t, o, known, nil)
				if tt.offer != nil && !offerFirst {
					o.Offer(tt.offer)
				}
				expectNothing(t, o)
				expectOperations(t, o, tt.reason, tt.want)
			})
		}
	}
}

func TestOperations_AddDeletion_KeepsLaterOperations(t *testing.T) {
	o := New(Config{}, nil)
	o.Declare(shop)
	deliver(t, o, operation("y", "1"))
	op := operation("x", "")
	o.Seed(shop, []Known{{Deletion: &op}}, nil, nil)
	expectOperations(t, o, "it is there again", only(target.LastOperation{ResourceVersion: "1"}))
}

func TestOperations_AreBounded(t *testing.T) {
	o := New(Config{}, nil)
	o.Declare(shop)
	named := func(n int, version string) observe.Operation {
		op := operation("x", version)
		op.Object.Name = fmt.Sprint(n)
		return op
	}
	for n := range maxOperations + 100 { // deployed and deleted repeatedly, under ever new names
		deliver(t, o, named(n, "1"))
		o.Offer(named(n, ""))
		o.Forget(named(n, "").Key())
		o.Ack(take(t, o), Receipt{})
	}
	deliver(t, o, named(-1, "1"))
	got := o.Progress(shop).Operations
	if len(got) > maxOperations || len(got) < 50 {
		t.Errorf("%d operations", len(got))
	}
	latest := target.Resource{Ref: target.Ref{Kind: "ConfigMap", Namespace: "ns", Name: "-1"}, ID: 7}
	if got[latest] != (target.LastOperation{ResourceVersion: "1"}) {
		t.Errorf("the latest operation is %+v", got[latest])
	}
	expectAccount(t, o, 1)
}

// expectAccount checks the number of entries.
func expectAccount(t *testing.T, o *Outbox, entries int) {
	t.Helper()
	if len(o.entries) != entries {
		t.Errorf("%d entries, want %d", len(o.entries), entries)
	}
}
