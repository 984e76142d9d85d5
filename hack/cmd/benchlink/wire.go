//go:build linux

package main

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"time"
)

const (
	// onWire is the maximum number of packets on a wire; more are lost. It is the default of netem.
	onWire = 1000
	// packetBytes is more than the MTU of a TUN device.
	packetBytes = 2048
)

// wire transfers packets in one direction. It drops each packet with the same independent probability, and forwards the others
// in order after a delay. It replaces netem, which not every kernel has.
type wire struct {
	delay time.Duration
	loss  float64

	carried, lost atomic.Int64
}

// onTheWay is a packet with its arrival time.
type onTheWay struct {
	packet []byte
	due    time.Time
}

// carry forwards packets until the context ends or reading fails. Each read and each write is one packet.
func (w *wire) carry(ctx context.Context, from io.Reader, to io.Writer) error {
	way := make(chan onTheWay, onWire)
	arrived := make(chan error, 1)
	go func() { arrived <- w.arrive(ctx, way, to) }()
	err := w.depart(from, way)
	close(way)
	return errors.Join(err, <-arrived)
}

// depart reads packets until reading fails.
func (w *wire) depart(from io.Reader, way chan<- onTheWay) error {
	for {
		packet := make([]byte, packetBytes)
		n, err := from.Read(packet)
		if err != nil {
			if errors.Is(err, os.ErrClosed) || errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if rand.Float64() < w.loss { //nolint:gosec // chance, no secret
			w.lost.Add(1)
			continue
		}
		select {
		case way <- onTheWay{packet[:n], time.Now().Add(w.delay)}:
		default:
			w.lost.Add(1)
		}
	}
}

// arrive writes packets when they are due.
func (w *wire) arrive(ctx context.Context, way <-chan onTheWay, to io.Writer) error {
	for p := range way {
		timer := time.NewTimer(time.Until(p.due))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		if _, err := to.Write(p.packet); err != nil && !errors.Is(err, os.ErrClosed) {
			return err
		}
		w.carried.Add(1)
	}
	return nil
}
