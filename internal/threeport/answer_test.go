package threeport

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/synctest"
)

func answerOf(size int) io.ReadCloser { return io.NopCloser(bytes.NewReader(make([]byte, size))) }

// One large answer is in memory at a time, with or without a Content-Length. Small ones are read meanwhile.
func TestClient_ReadAnswer_LargeOnesTakeTurns(t *testing.T) {
	for _, length := range []int64{-1, 2 * largeAnswer} {
		synctest.Test(t, func(t *testing.T) {
			c := &Client{large: make(chan struct{}, 1)}
			first, release, err := c.readAnswer(t.Context(), answerOf(2*largeAnswer), length, maxAnswer)
			if err != nil || len(first) != 2*largeAnswer {
				t.Fatalf("the first has %d bytes: %v, want %d", len(first), err, 2*largeAnswer)
			}
			read := make(chan int, 1)
			go func() {
				second, release, err := c.readAnswer(t.Context(), answerOf(2*largeAnswer), length, maxAnswer)
				if err != nil {
					t.Error(err)
				}
				read <- len(second)
				release()
			}()
			small, releaseSmall, err := c.readAnswer(t.Context(), answerOf(100), -1, maxAnswer)
			if err != nil || len(small) != 100 {
				t.Errorf("the small answer has %d bytes: %v, want 100", len(small), err)
			}
			releaseSmall()
			synctest.Wait()
			if len(read) > 0 {
				t.Error("two large answers are in memory")
			}
			release()
			if got := <-read; got != 2*largeAnswer {
				t.Errorf("the second has %d bytes, want %d", got, 2*largeAnswer)
			}
		})
	}
}

func TestClient_ReadAnswer_TooLarge_IsReleased(t *testing.T) {
	c := &Client{large: make(chan struct{}, 1)}
	for range 2 {
		if _, _, err := c.readAnswer(t.Context(), answerOf(3*largeAnswer), -1, 2*largeAnswer); !errors.Is(err, ErrAnswerTooLarge) {
			t.Errorf("the error is %v, want %v", err, ErrAnswerTooLarge)
		}
	}
}
