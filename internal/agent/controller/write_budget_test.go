package controller

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

func TestUrgencyOf(t *testing.T) {
	current := func() v1alpha1.ThreeportWorkloadStatus {
		return v1alpha1.ThreeportWorkloadStatus{
			ObservedGeneration: 2, Health: "Healthy",
			Conditions: []metav1.Condition{deliveredCondition(2, v1alpha1.DeliveryStatus{Pending: 3}, "", removedRow{}), watchingCondition(2, "", nil, nil, target.LabelUse{})},
			Resources: []v1alpha1.ResourceStatus{
				{Kind: "A", Name: "a", State: v1alpha1.ResourcePresent, LastOperation: "MODIFIED", ReportedResourceVersion: "7"},
				{Kind: "B", Name: "b", State: v1alpha1.ResourceAbsent},
			},
			Delivery: v1alpha1.DeliveryStatus{Pending: 3, PendingSince: &metav1.Time{Time: time.Unix(100, 0)}, DelaySeconds: 30, LastError: "no route"},
		}
	}
	for _, c := range []struct {
		reason string
		change func(*v1alpha1.ThreeportWorkloadStatus)
		want   urgency
	}{
		{reason: "nothing changed", change: func(*v1alpha1.ThreeportWorkloadStatus) {}, want: unchanged},
		{
			reason: "the same time in another zone",
			change: func(s *v1alpha1.ThreeportWorkloadStatus) {
				s.Delivery.PendingSince = &metav1.Time{Time: time.Unix(100, 0).In(time.FixedZone("", 3600))}
			},
			want: unchanged,
		},
		{
			reason: "a newer version was accepted",
			change: func(s *v1alpha1.ThreeportWorkloadStatus) { s.Resources[0].ReportedResourceVersion = "8" },
			want:   routine,
		},
		{
			reason: "a first version was accepted",
			change: func(s *v1alpha1.ThreeportWorkloadStatus) { s.Resources[1].ReportedResourceVersion = "1" },
			want:   important,
		},
		{
			reason: "another operation was accepted",
			change: func(s *v1alpha1.ThreeportWorkloadStatus) { s.Resources[0].LastOperation = "DELETED" },
			want:   important,
		},
		{
			reason: "more reports are pending, with another error",
			change: func(s *v1alpha1.ThreeportWorkloadStatus) {
				s.Delivery = v1alpha1.DeliveryStatus{Pending: 9, DelaySeconds: 60, LastError: "refused"}
				s.Conditions[0] = deliveredCondition(2, s.Delivery, "", removedRow{})
			},
			want: routine,
		},
		{
			reason: "the error of the pending reports is gone",
			change: func(s *v1alpha1.ThreeportWorkloadStatus) { s.Delivery.LastError = "" },
			want:   important,
		},
		{
			reason: "no report is pending any more",
			change: func(s *v1alpha1.ThreeportWorkloadStatus) {
				s.Delivery = v1alpha1.DeliveryStatus{}
				s.Conditions[0] = deliveredCondition(2, s.Delivery, "", removedRow{})
			},
			want: important,
		},
		{
			reason: "a report was rejected",
			change: func(s *v1alpha1.ThreeportWorkloadStatus) { s.Delivery.Rejected = 1 },
			want:   important,
		},
		{reason: "the health changed", change: func(s *v1alpha1.ThreeportWorkloadStatus) { s.Health = "Down" }, want: important},
		{
			reason: "a pod became ready",
			change: func(s *v1alpha1.ThreeportWorkloadStatus) { s.PodsReady = "1/2" },
			want:   important,
		},
		{
			reason: "a cause changed",
			change: func(s *v1alpha1.ThreeportWorkloadStatus) { s.Resources[0].Message = "why" },
			want:   important,
		},
		{
			reason: "a resource appeared",
			change: func(s *v1alpha1.ThreeportWorkloadStatus) { s.Resources[1].State = v1alpha1.ResourcePresent },
			want:   immediate,
		},
		{
			reason: "a resource is omitted",
			change: func(s *v1alpha1.ThreeportWorkloadStatus) { s.Resources = s.Resources[:1] },
			want:   important,
		},
		{
			reason: "another resource is omitted",
			change: func(s *v1alpha1.ThreeportWorkloadStatus) { s.Resources = s.Resources[1:] },
			want:   important,
		},
		{
			reason: "the order of resources changed",
			change: func(s *v1alpha1.ThreeportWorkloadStatus) { slices.Reverse(s.Resources) },
			want:   important,
		},
		{
			reason: "a resource is omitted, and the other one appeared",
			change: func(s *v1alpha1.ThreeportWorkloadStatus) {
				s.Resources = s.Resources[1:]
				s.Resources[0].State = v1alpha1.ResourcePresent
			},
			want: immediate,
		},
		{
			reason: "a resource of another namespace replaces it",
			change: func(s *v1alpha1.ThreeportWorkloadStatus) {
				s.Resources[1].Namespace, s.Resources[1].State = "other", v1alpha1.ResourcePresent
			},
			want: important,
		},
		{
			reason: "the spec changed",
			change: func(s *v1alpha1.ThreeportWorkloadStatus) { s.ObservedGeneration++ },
			want:   immediate,
		},
		{
			reason: "rejected reports are sent again",
			change: func(s *v1alpha1.ThreeportWorkloadStatus) { s.Delivery.Retried = "x" },
			want:   immediate,
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			status := current()
			c.change(&status)
			before := status.DeepCopy()
			if got := urgencyOf(status, current()); got != c.want {
				t.Errorf("the urgency is %d, want %d", got, c.want)
			}
			if urgencyOf(status, *before) != unchanged {
				t.Error("urgencyOf changed the status")
			}
		})
	}
}

func TestWriteState_Wait(t *testing.T) {
	start := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	writesAt := func(seconds ...int) *workloadState {
		w := &workloadState{firstSeen: start}
		for _, s := range seconds {
			w.recordWrite(start.Add(time.Duration(s) * time.Second))
		}
		return w
	}
	for _, c := range []struct {
		reason                        string
		state                         *workloadState
		now                           int // seconds
		immediate, important, routine int // seconds to wait
	}{
		{reason: "never written", state: writesAt()},
		{reason: "just written", state: writesAt(0), important: 5, routine: 30},
		{reason: "written a while ago", state: writesAt(0), now: 4, important: 1, routine: 26},
		{reason: "written long ago", state: writesAt(0), now: 60},
		{reason: "four writes at once", state: writesAt(0, 0, 0, 0), important: 5, routine: 30},
		{reason: "the burst is used up", state: writesAt(0, 0, 0, 0, 0), immediate: 5, important: 5, routine: 30},
		{reason: "the burst is used up, 5 s later", state: writesAt(0, 0, 0, 0, 0), now: 5, routine: 25},
		{
			reason:    "each write uses the budget of the last 5 s",
			state:     writesAt(0, 0, 0, 0, 0, 5),
			now:       5,
			immediate: 5,
			important: 5,
			routine:   30,
		},
		{
			reason:    "one write each 5 s keeps the burst",
			state:     writesAt(0, 5, 10, 15, 20, 25),
			now:       25,
			important: 5,
			routine:   30,
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			now := start.Add(time.Duration(c.now) * time.Second)
			for u, want := range map[urgency]int{immediate: c.immediate, important: c.important, routine: c.routine} {
				if got := c.state.wait(now, u); got != time.Duration(want)*time.Second {
					t.Errorf("a change of urgency %d waits %s, want %d s", u, got, want)
				}
			}
		})
	}
}

// In any time T there are at most writeBurst + T/statusInterval writes.
func TestWriteState_BoundsWritesInAnyTime(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		w := &workloadState{}
		now := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
		var writes []time.Time
		for range 2000 {
			now = now.Add(time.Duration(random.IntN(1000)) * time.Millisecond)
			if random.IntN(200) == 0 {
				now = now.Add(time.Minute)
			}
			if w.wait(now, urgency(1+random.IntN(int(immediate)))) == 0 {
				w.recordWrite(now)
				writes = append(writes, now)
			}
		}
		for i := range writes {
			for j := i; j < len(writes); j++ {
				if most := writeBurst + int(writes[j].Sub(writes[i])/statusInterval); j-i+1 > most {
					t.Fatalf("seed %d: %d writes in %s, want at most %d", seed, j-i+1, writes[j].Sub(writes[i]), most)
				}
			}
		}
		if len(writes) < 100 {
			t.Errorf("seed %d: %d writes, want at least 100", seed, len(writes))
		}
	}
}
