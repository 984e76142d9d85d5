package worker

import (
	"slices"
	"testing"
)

func TestFairQueue_GroupsTakeTurns(t *testing.T) {
	queue := NewFairQueue("", func(key string) string { return key[:1] })
	for _, key := range []string{"a1", "a2", "a3", "a4", "b1", "a1", "b2", "c1"} {
		queue.Add(key)
	}
	var got []string
	for queue.Len() > 0 {
		next, _ := queue.keys.Get()
		queue.keys.Done(next)
		key := next.Value()
		if got = append(got, key); key == "b1" {
			queue.Add("c2")
		}
	}
	if want := []string{"a1", "b1", "c1", "a2", "b2", "c2", "a3", "a4"}; !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
	queue.ShutDown()
	if _, shutdown := queue.keys.Get(); !shutdown {
		t.Error("the queue is not shut down")
	}
}
