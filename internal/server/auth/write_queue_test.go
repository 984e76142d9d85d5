package auth

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestWriteQueue_HangingWrite_CloseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newWriteQueue()
		cut := 0
		for range 10 {
			b.add(func(ctx context.Context) {
				<-ctx.Done()
				cut++
			})
		}
		begun := time.Now()
		b.close()
		if took := time.Since(begun); took != drainTimeout || cut != 10 {
			t.Errorf("%d writes were cancelled in %v, want all in %v", cut, took, drainTimeout)
		}
	})
}

func TestWriteQueue_SlowWrite_TimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newWriteQueue()
		defer b.close()
		begun, ended := time.Now(), make(chan struct{})
		b.add(func(ctx context.Context) { <-ctx.Done() })
		b.add(func(context.Context) { close(ended) })
		<-ended
		if took := time.Since(begun); took != writeTimeout {
			t.Errorf("took %v, want %v", took, writeTimeout)
		}
	})
}
