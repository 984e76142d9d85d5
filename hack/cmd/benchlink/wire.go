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
	// queueLimit is the maximum number of packets on a wire; more are lost. It is the default of netem.
	queueLimit = 1000
	// packetBytes is more than the MTU of a TUN device.
	packetBytes = 2048
)

// wire transfers packets in one direction. It drops each packet with the same independent probability, and forwards the others
// in order after a delay. It replaces netem, which not every kernel has.
type wire struct {
	delay time.Duration
	loss  float64

	delivered, lost atomic.Int64
}

// queuedPacket is a packet with its arrival time.
type queuedPacket struct {
	packet []byte
	due    time.Time
}

// forward forwards packets until the context ends, reading fails, or writing fails, which closes from. Each read and each write is one
// packet.
func (w *wire) forward(ctx context.Context, from io.ReadCloser, to io.Writer) error {
	queue := make(chan queuedPacket, queueLimit)
	written := make(chan error, 1)
	go func() {
		err := w.writePackets(ctx, queue, to)
		if err != nil {
			err = errors.Join(err, from.Close()) // this ends the reads
		}
		written <- err
	}()
	err := w.readPackets(from, queue)
	close(queue)
	return errors.Join(err, <-written)
}

// readPackets reads packets until reading fails.
func (w *wire) readPackets(from io.Reader, queue chan<- queuedPacket) error {
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
		case queue <- queuedPacket{packet[:n], time.Now().Add(w.delay)}:
		default:
			w.lost.Add(1)
		}
	}
}

// writePackets writes packets when they are due.
func (w *wire) writePackets(ctx context.Context, queue <-chan queuedPacket, to io.Writer) error {
	for p := range queue {
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
		w.delivered.Add(1)
	}
	return nil
}
