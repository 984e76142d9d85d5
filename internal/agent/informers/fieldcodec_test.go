package informers

import (
	"math"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFieldCodec_RoundTrip(t *testing.T) {
	texts := []string{"", strings.Repeat("x", 200), "", "a\x00\xff"}
	numbers := []int32{0, -1, math.MinInt32, math.MaxInt32}
	times := []time.Time{
		{}, time.Unix(0, 0), time.Unix(-1, 0), time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	}
	microTimes := []time.Time{{}}
	for _, at := range times[1:] {
		microTimes = append(microTimes, at.Add(-time.Microsecond))
	}
	var encoder fieldCodec
	for _, text := range texts {
		if encoder.text(&text); text != "" {
			t.Errorf("the text is %q after it was encoded, want none", text)
		}
	}
	for _, number := range numbers {
		if encoder.number(&number); number != 0 {
			t.Errorf("the number is %d after it was encoded, want 0", number)
		}
	}
	for i, at := range times {
		second, micro := metav1.NewTime(at), metav1.NewMicroTime(microTimes[i])
		encoder.time(&second)
		encoder.microTime(&micro)
		if !second.IsZero() || !micro.IsZero() {
			t.Errorf("the times are %v and %v after they were encoded, want zero", second, micro)
		}
	}
	for _, exists := range []bool{true, false} {
		if encoder.present(exists) != exists {
			t.Errorf("a part that exists: %t is encoded as another", exists)
		}
	}

	decoder := decoderOf(encoder.encoded)
	for _, want := range texts {
		var got string
		if decoder.text(&got); got != want {
			t.Errorf("the text is %q, want %q", got, want)
		}
	}
	for _, want := range numbers {
		var got int32
		if decoder.number(&got); got != want {
			t.Errorf("the number is %d, want %d", got, want)
		}
	}
	for i, want := range times {
		var second metav1.Time
		var micro metav1.MicroTime
		decoder.time(&second)
		decoder.microTime(&micro)
		if !second.Time.Equal(want) || !micro.Time.Equal(microTimes[i]) {
			t.Errorf("the times are %v and %v, want %v and %v", second, micro, want, microTimes[i])
		}
	}
	for _, want := range []bool{true, false} {
		if got := decoder.present(false); got != want {
			t.Errorf("a part exists: %t, want %t", got, want)
		}
	}
	if len(decoder.encoded) > 0 {
		t.Errorf("%d bytes are left, want none", len(decoder.encoded))
	}
}
