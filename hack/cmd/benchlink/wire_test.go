//go:build linux

package main

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// sender gives packets with numbers, one every interval.
type sender struct {
	left     int
	next     uint64
	interval time.Duration
}

func (s *sender) Read(b []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	time.Sleep(s.interval)
	s.left--
	s.next++
	return binary.PutUvarint(b, s.next), nil
}

// receiver notes which packets came when.
type receiver struct {
	numbers []uint64
	times   []time.Time
}

func (r *receiver) Write(b []byte) (int, error) {
	n, _ := binary.Uvarint(b)
	r.numbers, r.times = append(r.numbers, n), append(r.times, time.Now())
	return len(b), nil
}

func TestWire_DelaysPacketsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval, delay = 10 * time.Millisecond, 50 * time.Millisecond
		w, got, begin := &wire{delay: delay}, &receiver{}, time.Now()
		if err := w.carry(t.Context(), &sender{left: 100, interval: interval}, got); err != nil {
			t.Fatal(err)
		}
		if len(got.numbers) != 100 || w.lost.Load() != 0 || w.carried.Load() != 100 {
			t.Fatalf("%d of 100 packets arrived; %d were lost, it says", len(got.numbers), w.lost.Load())
		}
		for i, n := range got.numbers {
			if n != uint64(i+1) {
				t.Fatalf("packet %d came as number %d", n, i+1)
			}
			if sent := begin.Add(time.Duration(n) * interval); got.times[i].Sub(sent) != delay {
				t.Errorf("packet %d took %s", n, got.times[i].Sub(sent))
			}
		}
	})
}

func TestWire_LossRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const packets, loss = 200_000, 0.01
		w, got := &wire{delay: 50 * time.Millisecond, loss: loss}, &receiver{}
		if err := w.carry(t.Context(), &sender{left: packets, interval: time.Millisecond}, got); err != nil {
			t.Fatal(err)
		}
		lost := packets - len(got.numbers)
		// Six standard deviations: by chance once in 500 million times.
		if limit := 6 * math.Sqrt(packets*loss*(1-loss)); math.Abs(float64(lost)-packets*loss) > limit {
			t.Errorf("%d of %d packets were lost, of which 1 %% are %d", lost, packets, packets/100)
		}
		if w.lost.Load() != int64(lost) {
			t.Errorf("%d packets were lost, and it says %d", lost, w.lost.Load())
		}
	})
}

func TestWire_QueueFull_DropsPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, got := &wire{delay: time.Second}, &receiver{}
		if err := w.carry(t.Context(), &sender{left: 2 * onWire, interval: time.Microsecond}, got); err != nil {
			t.Fatal(err)
		}
		// The channel has a capacity of onWire packets, and arrive holds one more until its arrival time.
		if n := len(got.numbers); n < onWire || n > onWire+1 {
			t.Errorf("%d packets were on the wire at a time", n)
		}
	})
}

func TestWire_ContextEnds_Stops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		w, got := &wire{delay: time.Hour}, &receiver{}
		if err := w.carry(ctx, &sender{left: 10}, got); err != nil || len(got.numbers) > 0 {
			t.Errorf("%d packets arrived, %v", len(got.numbers), err)
		}
	})
}
