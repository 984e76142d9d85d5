package canonicaljson

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestCanonicalize(t *testing.T) {
	for _, test := range []struct {
		reason, given, want string
	}{
		{
			reason: "normal",
			given:  `{"a":[1,-0.5e+7,"x\n\"\\"],"b":{},"c":[],"d":null,"e":true,"f":false}`,
			want:   `{"a":[1,-0.5e+7,"x\n\"\\"],"b":{},"c":[],"d":null,"e":true,"f":false}`,
		},
		{reason: "digits stay", given: `{"a":12345678901234567890,"b":1.50}`, want: `{"a":12345678901234567890,"b":1.50}`},
		{reason: "escaped for HTML", given: `{"a":"\u003c\\u003c\u0026x\u003e","b":"é"}`, want: `{"a":"<\\u003c&x>","b":"é"}`},
		{reason: "white space", given: " { \"a\" :\r\n[ 1 ,\t2 ] , \"b\" : { } } ", want: `{"a":[1,2],"b":{}}`},
		{reason: "keys in another order", given: `{"b":1,"a":2}`, want: `{"a":2,"b":1}`},
		{
			reason: "unsorted keys in nested objects", given: `{"b":[{"d":1,"c":{"y":0,"x":0}}],"a":{"f":{},"e":2}}`,
			want: `{"a":{"e":2,"f":{}},"b":[{"c":{"x":0,"y":0},"d":1}]}`,
		},
		{reason: "a key twice", given: `{"a":1,"a":2}`, want: `{"a":2}`},
		{reason: "a key thrice, escaped", given: `{ "b" : 0 , "a" : {"y":1,"x":1} , "\u0061" : [ ] , "a" : { } }`, want: `{"a":{},"b":0}`},
		{reason: "an escaped key", given: `{"\u003c":1}`, want: `{"<":1}`},
		{
			reason: "keys are compared after decoding of escapes", given: `{"\u0062":1,"a":2,"\ud83d\ude00":3,"ﬀ":4}`,
			want: `{"a":2,"b":1,"ﬀ":4,"😀":3}`,
		},
		{reason: "another escape", given: `{"a":"\u00e9\/\u001F\u0008"}`, want: `{"a":"é/\u001f\b"}`},
		{reason: "a line separator", given: "{\"a\":\"\u2028\"}", want: `{"a":"\u2028"}`},
		{reason: "no UTF-8", given: "{\"a\":\"\xff\"}", want: `{"a":"�"}`},
		{reason: "an unpaired surrogate", given: `{"a":"\ud83d\ud83d\ude00\ude00"}`, want: `{"a":"�😀�"}`},
		{reason: "the letters u0000", given: `{"a":"\\u0000"}`, want: `{"a":"\\u0000"}`},
		{reason: "a NUL in a dropped duplicate", given: `{"a":"\u0000","a":1}`, want: `{"a":1}`},
	} {
		t.Run(test.reason, func(t *testing.T) {
			if got, err := Canonicalize(json.RawMessage(test.given)); err != nil || got != test.want {
				t.Errorf("%s, %v; want %s", got, err, test.want)
			}
		})
	}
	for _, given := range []string{`{"a":"\u0000"}`, `{"b":"\u0000","a":0}`, `{"\u0000":0}`} {
		if _, err := Canonicalize(json.RawMessage(given)); !errors.Is(err, ErrNUL) {
			t.Errorf("%s: %v, want %v", given, err, ErrNUL)
		}
	}
}

// referenceForm is Canonicalize by means of encoding/json, which needs fifty times the memory.
func referenceForm(raw json.RawMessage) (string, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return "", err
	}
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return "", err
	}
	doc := strings.TrimSuffix(buf.String(), "\n")
	if hasNUL(doc) {
		return "", ErrNUL
	}
	return doc, nil
}

// hasNUL finds the escape of NUL in canonical JSON, and not an escaped backslash followed by u0000.
func hasNUL(doc string) bool {
	for {
		i := strings.IndexByte(doc, '\\')
		if i < 0 {
			return false
		}
		doc = doc[i:]
		if strings.HasPrefix(doc, `\u0000`) {
			return true
		}
		doc = doc[2:] // valid JSON: a backslash is never last
	}
}

// compareWithReference compares Canonicalize with encoding/json.
func compareWithReference(t *testing.T, raw []byte) {
	t.Helper()
	want, wantErr := referenceForm(raw)
	long := &canonicalizer{raw: raw} // as a document above maxSinglePass is scanned
	valid := long.value(0)
	if valid && (long.changed || long.mixed > 0) {
		long = long.again()
	}
	got, err := Canonicalize(raw)
	if got != want || (err == nil) != (wantErr == nil) || errors.Is(err, ErrNUL) != errors.Is(wantErr, ErrNUL) {
		t.Fatalf("%.200q: %.200q, %v; want %.200q, %v", raw, got, err, want, wantErr)
	}
	if wantErr == nil && (!valid || long.nul || long.text() != want) {
		t.Fatalf("%.200q as a long one: %t, %.200q; want %.200q", raw, valid, long.text(), want)
	}
	syntax, isSyntax := errors.AsType[*json.SyntaxError](err)
	if wantSyntax, is := errors.AsType[*json.SyntaxError](wantErr); is && (!isSyntax || *syntax != *wantSyntax) {
		t.Fatalf("%.200q: %v; want %v", raw, err, wantErr)
	}
}

// FuzzCanonicalize compares Canonicalize with encoding/json.
func FuzzCanonicalize(f *testing.F) {
	for _, seed := range []string{
		`{"a":"\u003c\\u003c\u0026x\u003e","b":"é"}`, `{"a":[1,-0.5e+7,"x\n\"\\"],"b":{},"c":[],"d":null,"e":true}`, `{"a":1,"a":2}`,
		`01`, `-`, `1.`, `"\u2028"`, "\"\x7f\"", `{"":{"":0}}`, `[`, `"\u0000"`, `1 2`, ` `, `tru`, `nullx`, `"\ud800\u0041"`, `"\ud83d\uDE00"`, `"\uD8"`,
		`{"b":[[],[{"d":1,"c":2,"":3}]],"a":{"y":{"z":[],"x":"\u0000"},"x":1}}`, `{ "b" : 1 , "a" : 2 , "b" : { "b" : 1 , "a" : 2 } }`,
		`{"\u0061":1,"a":2,"b":"\u0000","b":3}`, "{\"\xff\":1,\"\ufffd\":2,\"\\ud800\":3}", `{"a":1,}`, `{"b":1 "a"}`, `[1,]`, "\"\x01\"", `"\x"`, `"\u12`, `1E+`, `{"b":1,"a":`,
		"\"\u2029\u00e9\\/\"", `{"ab":1,"a":2,"":3,"a\n":4}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(compareWithReference)
}

// randomDocument appends a value with anything that has to be converted.
func randomDocument(out []byte, random *rand.Rand, depth int) []byte {
	pick := func(of ...string) { out = append(out, of[random.IntN(len(of))]...) }
	text := func() {
		out = append(out, '"')
		for range random.IntN(3) {
			pick("a", "b", "é", `\u0061`, `\"`, `\\`, `\/`, "\u2028", `\u2029`, `\ud83d`, `\uDE00`, "😀", "\xff", "<", `\u003c`, `\n`, `\u000a`, `\u001F`, "\x7f", "ﬀ", "�")
			if random.IntN(100) == 0 {
				pick(`\u0000`, "\x01", `\x`, `\u12`)
			}
		}
		out = append(out, '"')
	}
	open, end := "{", "}"
	switch kind := random.IntN(8); {
	case depth == 0 || kind < 2:
		pick("0", "-1.50e+7", "true", "false", "null", `""`)
		return out
	case kind == 2:
		text()
		return out
	case kind < 5:
		open, end = "[", "]"
	}
	out = append(out, open...)
	for i := range random.IntN(5) {
		if i > 0 {
			out = append(out, ',')
		}
		pick("", "", " ")
		if open == "{" {
			text()
			pick("", "", "\t")
			out = append(out, ':')
			pick("", "", "\r\n")
		}
		out = randomDocument(out, random, depth-1)
		pick("", "", " ")
	}
	if random.IntN(1000) == 0 {
		pick(",", "]", "")
	}
	return append(out, end...)
}

func TestCanonicalize_RandomDocuments(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 5_000 {
		compareWithReference(t, randomDocument(nil, random, 6))
	}
}

func TestCanonicalize_Depth(t *testing.T) {
	for _, depth := range []int{maxDepth - 1, maxDepth, maxDepth + 1} {
		compareWithReference(t, []byte(strings.Repeat("[", depth)+strings.Repeat("]", depth)))
		compareWithReference(t, []byte(strings.Repeat(`{"b":0,"a":`, depth)+"0"+strings.Repeat("}", depth)))
	}
}

// hostile are documents of about size bytes that need much memory or time if they are decoded, or if each object is
// copied with each one around it.
func hostile(size int) map[string]string {
	repeat := func(before, s, after string) string { return before + strings.Repeat(s, size/len(s)) + after }
	const deep = maxDepth - 1
	nested := strings.Repeat(`{"b":0,"a":`, deep) + "0" + strings.Repeat("}", deep)
	return map[string]string{
		"lists":         repeat(`{"b":[0`, ",[]", `],"a":1}`),
		"objects":       repeat("[0", `,{"b":0,"a":0}`, "]"),
		"equal keys":    repeat(`{"":0`, `,"":0`, "}"),
		"equal objects": repeat("[0", `,{"":0,"":0}`, "]"),
		"nested":        repeat("[0", ","+nested, "]"),
		"no UTF-8":      repeat(`{"b":"`, "\xff", `","a":0}`),
		"white space":   repeat(`{"b":0,`, " \n", `"a":0}`),
		"separators":    repeat(`["`, "\u2028", `"]`),
		"large inside":  strings.Repeat(`{"b":0,"a":`, deep) + repeat(`"`, "x", `"`) + strings.Repeat("}", deep),
	}
}

// TestCanonicalize_Memory limits the total allocation, including garbage.
func TestCanonicalize_Memory(t *testing.T) {
	for name, text := range hostile(maxSinglePass + maxSinglePass/8) {
		raw := []byte(text)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begin := time.Now()
		doc, err := Canonicalize(raw)
		took := time.Since(begin)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		each := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(raw))
		t.Logf("%s: %.2f bytes of memory a byte, %v for %d bytes", name, each, took, len(raw))
		if each > 3.5 || len(doc) > 3*len(raw) {
			t.Errorf("%s: %.2f bytes of memory per byte of the document", name, each)
		}
	}
}

func TestCanonicalize_HostileDocuments(t *testing.T) {
	for _, text := range hostile(200_000) {
		compareWithReference(t, []byte(text))
	}
}
