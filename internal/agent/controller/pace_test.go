package controller

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

func TestWeigh(t *testing.T) {
	stands := func() v1alpha1.ThreeportWorkloadStatus {
		return v1alpha1.ThreeportWorkloadStatus{
			ObservedGeneration: 2, Health: "Healthy",
			Conditions: []metav1.Condition{delivered(2, v1alpha1.DeliveryStatus{Pending: 3}), watching(2, nil, nil)},
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
		want   weight
	}{
		{"nothing changed", func(*v1alpha1.ThreeportWorkloadStatus) {}, none},
		{"the same time elsewhere", func(s *v1alpha1.ThreeportWorkloadStatus) {
			s.Delivery.PendingSince = &metav1.Time{Time: time.Unix(100, 0).In(time.FixedZone("", 3600))}
		}, none},
		{"a newer version was accepted", func(s *v1alpha1.ThreeportWorkloadStatus) { s.Resources[0].ReportedResourceVersion = "8" }, routine},
		{"the first version was", func(s *v1alpha1.ThreeportWorkloadStatus) { s.Resources[1].ReportedResourceVersion = "1" }, news},
		{"another operation was", func(s *v1alpha1.ThreeportWorkloadStatus) { s.Resources[0].LastOperation = "DELETED" }, news},
		{"more is pending, and fails otherwise", func(s *v1alpha1.ThreeportWorkloadStatus) {
			s.Delivery = v1alpha1.DeliveryStatus{Pending: 9, DelaySeconds: 60, LastError: "refused"}
			s.Conditions[0] = delivered(2, s.Delivery)
		}, routine},
		{"what is pending fails no more", func(s *v1alpha1.ThreeportWorkloadStatus) { s.Delivery.LastError = "" }, news},
		{"nothing is pending any more", func(s *v1alpha1.ThreeportWorkloadStatus) {
			s.Delivery = v1alpha1.DeliveryStatus{}
			s.Conditions[0] = delivered(2, s.Delivery)
		}, news},
		{"something was refused", func(s *v1alpha1.ThreeportWorkloadStatus) { s.Delivery.Rejected = 1 }, news},
		{"health", func(s *v1alpha1.ThreeportWorkloadStatus) { s.Health = "Down" }, news},
		{"a pod", func(s *v1alpha1.ThreeportWorkloadStatus) { s.PodsReady = "1/2" }, news},
		{"a cause", func(s *v1alpha1.ThreeportWorkloadStatus) { s.Resources[0].Message = "why" }, news},
		{"a resource appeared", func(s *v1alpha1.ThreeportWorkloadStatus) { s.Resources[1].State = v1alpha1.ResourcePresent }, urgent},
		{"one is listed less", func(s *v1alpha1.ThreeportWorkloadStatus) { s.Resources = s.Resources[:1] }, news},
		{"another one is left out", func(s *v1alpha1.ThreeportWorkloadStatus) { s.Resources = s.Resources[1:] }, news},
		{"the order", func(s *v1alpha1.ThreeportWorkloadStatus) { slices.Reverse(s.Resources) }, news},
		{"one is listed less, and the other one appeared", func(s *v1alpha1.ThreeportWorkloadStatus) {
			s.Resources = s.Resources[1:]
			s.Resources[0].State = v1alpha1.ResourcePresent
		}, urgent},
		{"another namespace's one in its place", func(s *v1alpha1.ThreeportWorkloadStatus) {
			s.Resources[1].Namespace, s.Resources[1].State = "other", v1alpha1.ResourcePresent
		}, news},
		{"another spec", func(s *v1alpha1.ThreeportWorkloadStatus) { s.ObservedGeneration++ }, urgent},
		{"what was refused is sent again", func(s *v1alpha1.ThreeportWorkloadStatus) { s.Delivery.Retried = "x" }, urgent},
	} {
		t.Run(c.reason, func(t *testing.T) {
			status := stands()
			c.change(&status)
			before := status.DeepCopy()
			if got := weigh(status, stands()); got != c.want {
				t.Errorf("it weighs %d, expected %d", got, c.want)
			}
			if weigh(status, *before) != none {
				t.Error("weighing changed the status")
			}
		})
	}
}

func TestWaitBeforeAWrite(t *testing.T) {
	start := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	wrote := func(seconds ...int) *written {
		w := &written{begun: start}
		for _, s := range seconds {
			w.wrote(start.Add(time.Duration(s) * time.Second))
		}
		return w
	}
	for _, c := range []struct {
		reason                string
		written               *written
		at                    int // seconds
		urgent, news, routine int // seconds to wait
	}{
		{"never written", wrote(), 0, 0, 0, 0},
		{"just written", wrote(0), 0, 0, 5, 30},
		{"written a while ago", wrote(0), 4, 0, 1, 26},
		{"written long ago", wrote(0), 60, 0, 0, 0},
		{"some times at once", wrote(0, 0, 0, 0), 0, 0, 5, 30},
		{"the burst is used up", wrote(0, 0, 0, 0, 0), 0, 5, 5, 30},
		{"and comes back", wrote(0, 0, 0, 0, 0), 5, 0, 0, 25},
		{"one at a time", wrote(0, 0, 0, 0, 0, 5), 5, 5, 5, 30},
		{"a busy time does not use it up", wrote(0, 5, 10, 15, 20, 25), 25, 0, 5, 30},
	} {
		t.Run(c.reason, func(t *testing.T) {
			now := start.Add(time.Duration(c.at) * time.Second)
			for weighs, want := range map[weight]int{urgent: c.urgent, news: c.news, routine: c.routine} {
				if got := c.written.wait(now, weighs); got != time.Duration(want)*time.Second {
					t.Errorf("what weighs %d waits %s, expected %d s", weighs, got, want)
				}
			}
		})
	}
}

// Whatever happens, in any time there are as many writes as statusInterval fits into it, and the burst.
func TestWritesAreBoundedInAnyTime(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		w := &written{}
		now := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
		var writes []time.Time
		for range 2000 {
			now = now.Add(time.Duration(random.IntN(1000)) * time.Millisecond)
			if random.IntN(200) == 0 {
				now = now.Add(time.Minute)
			}
			if w.wait(now, weight(1+random.IntN(int(urgent)))) == 0 {
				w.wrote(now)
				writes = append(writes, now)
			}
		}
		for i := range writes {
			for j := i; j < len(writes); j++ {
				if most := writeBurst + int(writes[j].Sub(writes[i])/statusInterval); j-i+1 > most {
					t.Fatalf("seed %d: %d writes in %s, expected %d at most", seed, j-i+1, writes[j].Sub(writes[i]), most)
				}
			}
		}
		if len(writes) < 100 {
			t.Errorf("seed %d: only %d writes", seed, len(writes))
		}
	}
}
