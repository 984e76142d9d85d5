package informers

import (
	"math"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

	decoder := decoderOf(string(encoder.encoded))
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
	if decoder.left != "" {
		t.Errorf("%d bytes are left, want none", len(decoder.left))
	}
}

// Texts with a short form are decoded as they were, and so are those that only look like one.
func TestFieldCodec_TextsWithShortForms_RoundTrip(t *testing.T) {
	codecs := map[string]func(*fieldCodec, *string){
		"hex":     (*fieldCodec).hexText,
		"decimal": (*fieldCodec).decimal,
		"UID":     func(c *fieldCodec, value *string) { c.uid((*types.UID)(value)) },
	}
	for codec, visit := range codecs {
		for text, short := range map[string]string{
			"": "hex", "18a3f5c0b1d2e3f4": "hex", "18A3F5C0": "", "18a": "", "zz": "",
			"0": "decimal", "12": "hex decimal", "18446744073709551615": "hex decimal", "18446744073709551616": "hex",
			"007": "", "+7": "", "-1": "",
			"5c4d3e2f-4e5f-6a7b-8c9d-000000000001": "UID", "5C4D3E2F-4E5F-6A7B-8C9D-000000000001": "", "5c4d3e2f4e5f6a7b8c9d000000000001": "hex",
			"{5c4d3e2f-4e5f-6a7b-8c9d-000000000001}": "", "node-1": "",
		} {
			value := text
			var encoder fieldCodec
			if visit(&encoder, &value); value != "" {
				t.Errorf("%s: the text is %q after it was encoded, want none", codec, value)
			}
			if isShort := encoder.encoded[0] == 1; isShort != strings.Contains(short, codec) {
				t.Errorf("%s: %q has a short form: %t, want %t", codec, text, isShort, !isShort)
			}
			decoder := decoderOf(string(encoder.encoded))
			if visit(decoder, &value); value != text || decoder.left != "" {
				t.Errorf("%s: the text is %q, want %q, and %d bytes are left", codec, value, text, len(decoder.left))
			}
		}
	}
}

// A time exactly 2^63 seconds from the last one is lost, and the others are decoded as they were.
func TestFieldCodec_TimesFarApart_OthersAreKept(t *testing.T) {
	times := []int64{-1 << 62, 1 << 62, 1_700_000_000, 1<<63 - 1, -1 << 63}
	var encoder fieldCodec
	for _, seconds := range times {
		at := metav1.Unix(seconds, 0)
		encoder.time(&at)
	}
	decoder := decoderOf(string(encoder.encoded))
	for i, want := range times {
		var at metav1.Time
		if decoder.time(&at); at.Unix() != want && (i != 1 || !at.IsZero()) {
			t.Errorf("time %d is %d s after 1970, want %d", i, at.Unix(), want)
		}
	}
}
