//go:build linux

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// sender returns numbered packets, one every interval.
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

func (s *sender) Close() error { return nil }

// receiver records the numbers of packets and their arrival times.
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
		if err := w.forward(t.Context(), &sender{left: 100, interval: interval}, got); err != nil {
			t.Fatal(err)
		}
		if len(got.numbers) != 100 || w.lost.Load() != 0 || w.delivered.Load() != 100 {
			t.Fatalf("%d of 100 packets arrived, want all; the wire counted %d lost packets", len(got.numbers), w.lost.Load())
		}
		for i, n := range got.numbers {
			if n != uint64(i+1) {
				t.Fatalf("packet %d arrived at position %d", n, i+1)
			}
			if sent := begin.Add(time.Duration(n) * interval); got.times[i].Sub(sent) != delay {
				t.Errorf("packet %d took %s, want %s", n, got.times[i].Sub(sent), delay)
			}
		}
	})
}

func TestWire_LossRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const packets, loss = 200_000, 0.01
		w, got := &wire{delay: 50 * time.Millisecond, loss: loss}, &receiver{}
		if err := w.forward(t.Context(), &sender{left: packets, interval: time.Millisecond}, got); err != nil {
			t.Fatal(err)
		}
		lost := packets - len(got.numbers)
		// Six standard deviations: by chance once in 500 million times.
		if limit := 6 * math.Sqrt(packets*loss*(1-loss)); math.Abs(float64(lost)-packets*loss) > limit {
			t.Errorf("%d of %d packets were lost, want about %d", lost, packets, packets/100)
		}
		if w.lost.Load() != int64(lost) {
			t.Errorf("the wire counted %d lost packets, want %d", w.lost.Load(), lost)
		}
	})
}

func TestWire_QueueFull_DropsPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, got := &wire{delay: time.Second}, &receiver{}
		if err := w.forward(t.Context(), &sender{left: 2 * queueLimit, interval: time.Microsecond}, got); err != nil {
			t.Fatal(err)
		}
		// The channel has a capacity of queueLimit packets, and writePackets holds one more until its arrival time.
		if n := len(got.numbers); n < queueLimit || n > queueLimit+1 {
			t.Errorf("%d packets were on the wire at a time, want %d or %d", n, queueLimit, queueLimit+1)
		}
	})
}

func TestWire_ContextEnds_Stops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		w, got := &wire{delay: time.Hour}, &receiver{}
		if err := w.forward(ctx, &sender{left: 10}, got); err != nil || len(got.numbers) > 0 {
			t.Errorf("%d packets arrived, error %v; want none and no error", len(got.numbers), err)
		}
	})
}

func TestWire_WriteFails_EndsReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failure := errors.New("the device is gone")
		from, sent := io.Pipe()
		received, to := io.Pipe()
		_ = received.CloseWithError(failure)
		go func() { _, _ = sent.Write([]byte("packet")) }() // the next read waits
		if err := (&wire{}).forward(t.Context(), from, to); !errors.Is(err, failure) {
			t.Errorf("forward returned %v, want the error of the write", err)
		}
	})
}
