package reporter

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/filter"
	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

func TestFilterTree_DroppedObjects_AreCountedAndReplacedAsOwners(t *testing.T) {
	object := func(kind, name, owner string) observe.TreeObject {
		id := target.Identity{Ref: target.Ref{Kind: kind, Name: name}, UID: types.UID(name)}
		return observe.TreeObject{Object: id, Owner: types.UID(owner), Health: "Healthy", Cause: "a long cause of the object"}
	}
	listed := object("Job", "listed", "")
	listed.Listed = true
	tree := observe.Tree{Revision: 7, Objects: []observe.TreeObject{
		listed, object("Job", "job", "listed"), object("Job", "lower", "job"), object("Pod", "pod", "lower"), object("Pod", "long", ""),
	}}
	got := filterTree(tree, func(o filter.Object) filter.Decision {
		switch {
		case o.Kind == "Job":
			return filter.Decision{Action: filter.Drop}
		case o.Name == "long" && o.Health == "Healthy":
			return filter.Decision{Action: filter.Shorten, Bytes: 16}
		}
		return filter.Decision{Action: filter.Report}
	})
	if want := "Job listed Healthy , listed > Pod pod Healthy, Pod long Healthy"; branches(got.Objects) != want || got.Filtered != 2 || got.Revision != 7 {
		t.Errorf("the tree is %q with %d filtered objects, want %q with 2", branches(got.Objects), got.Filtered, want)
	}
	if cause := got.Objects[2].Cause; cause != "a long cause …" {
		t.Errorf("the shortened cause is %q", cause)
	}
	if tree.Objects[3].Owner != "lower" || tree.Objects[4].Cause != "a long cause of the object" {
		t.Errorf("the tree was changed in place: %+v", tree.Objects)
	}
}
