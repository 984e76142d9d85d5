package server

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(Limits{BodyBytes: 10, DecodedBytes: 100})
		largest := make([]*reservation, largestDecoded)
		for i := range largest {
			var err error
			if largest[i], err = m.reserve(t.Context(), m.decoded, 100); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		if _, err := m.reserve(t.Context(), m.decoded, 1); !errors.Is(err, errNoMemory) || time.Since(begin) != memoryWait {
			t.Errorf("more than there is: %v after %v", err, time.Since(begin))
		}
		if _, err := m.reserve(t.Context(), m.received, 10); err != nil {
			t.Errorf("of another kind: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := m.reserve(ctx, m.decoded, 1); !errors.Is(err, errNoMemory) {
			t.Errorf("a client that has gone: %v", err)
		}

		got := make(chan error)
		go func() {
			_, err := m.reserve(t.Context(), m.decoded, 90)
			got <- err
		}()
		synctest.Wait()
		largest[0].shrink(20)
		synctest.Wait()
		select {
		case err := <-got:
			t.Errorf("80 bytes were free, and 90 were given: %v", err)
		default:
		}
		largest[0].shrink(10)
		if err := <-got; err != nil {
			t.Error(err)
		}
		largest[0].free()
		largest[0].free()
		if _, err := m.reserve(t.Context(), m.decoded, 10); err != nil {
			t.Errorf("what was given back: %v", err)
		}
	})
}
