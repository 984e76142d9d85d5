package health

import (
	"slices"
	"testing"
)

func TestOwnerPath_SameOwners_IsEqual(t *testing.T) {
	a, b := pathOf("CronJob backup", "Job backup-3"), pathOf("CronJob backup", "Job backup-3")
	if a != b {
		t.Error("two paths with the same owners differ")
	}
	for _, other := range []OwnerPath{{}, pathOf("CronJob backup"), pathOf("Job backup-3"), pathOf("Job backup-3", "CronJob backup")} {
		if a == other {
			t.Errorf("the different paths %q and %q are equal", a, other)
		}
	}
}

func TestOwnerPath_Append_KeepsTheShorterPath(t *testing.T) {
	short := pathOf("CronJob backup")
	long := short.Append(ObjectRef{"Job", "backup-3"})
	if got := short.String(); got != "CronJob backup" {
		t.Errorf("the shorter path is %q, want \"CronJob backup\"", got)
	}
	want := []ObjectRef{{"CronJob", "backup"}, {"Job", "backup-3"}}
	if got := long.Owners(); !slices.Equal(got, want) {
		t.Errorf("got the owners %v, want %v", got, want)
	}
	if !long.Includes("Job") || short.Includes("Job") || (OwnerPath{}).Includes("Job") {
		t.Error("Includes ignores the kinds of the owners")
	}
	// Neither a name that contains the separator nor a kind that ends in another kind's name confuses the path.
	if odd := pathOf("Thing a → Job b", "MyJob c"); odd.Includes("Job") {
		t.Errorf("the path %q includes a Job, want none", odd)
	}
}

func TestCause_String(t *testing.T) {
	tests := []struct {
		reason string
		cause  Cause
		want   string
	}{
		{
			reason: "one dependent is named",
			cause:  Cause{Effect: "0 of 1", Group: CauseGroup{Kind: "Pod", Name: "web-x", Count: 1, Reason: "NotReady", Message: "it is not ready"}},
			want:   "Pod web-x NotReady: it is not ready → 0 of 1",
		},
		{
			reason: "several dependents are counted",
			cause: Cause{
				Effect: "0 of 2", Path: pathOf("ReplicaSet web-1"), Others: 1,
				Group: CauseGroup{Kind: "Pod", Count: 2, Reason: "NotReady"},
			},
			want: "2 pods NotReady; and 1 other cause → ReplicaSet web-1 → 0 of 2",
		},
		{
			reason: "the pods that serve follow the object at fault",
			cause: Cause{
				Effect: "it timed out", Path: pathOf("ReplicaSet web-2"), Serving: "3 of 3 old pods serve, 0 of 1 new ready", Others: 2,
				Group: CauseGroup{Kind: "Pod", Name: "web-2-a", Count: 1, Reason: "NotReady"},
			},
			want: "Pod web-2-a NotReady; 3 of 3 old pods serve, 0 of 1 new ready; and 2 other causes → ReplicaSet web-2 → it timed out",
		},
		{
			reason: "without a message about the resource the chain begins with the owners",
			cause:  Cause{Path: pathOf("Job a"), Group: CauseGroup{Kind: "Pod", Name: "a-x", Count: 1, Reason: "Error"}, Others: 2},
			want:   "Pod a-x Error; and 2 other causes → Job a",
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			if got := tt.cause.String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestDependentsCombine_ReturnsATypedCause(t *testing.T) {
	var f Dependents
	for i := range 3 {
		f.Set(podDependent(i, pull))
	}
	f.Set(podDependent(3, crash))
	got := f.Combine(deploymentKind, Assessment{Verdict: Verdict{Reconciling, "ReplicasNotReady", "0 of 4"}}).Cause
	want := Cause{
		Effect: "0 of 4", Path: pathOf("ReplicaSet web-1"), Others: 1,
		Group: CauseGroup{Kind: "Pod", Count: 3, Reason: "ImagePullBackOff", Message: "image web cannot be pulled"},
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := f.Combine(deploymentKind, Assessment{Verdict: Verdict{Healthy, Completed, ""}}).Cause; got != (Cause{}) {
		t.Errorf("a resource that has completed has the cause %+v, want %+v", got, Cause{})
	}
}
