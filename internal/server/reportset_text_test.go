package server

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

// countingReader counts reads and bytes.
type countingReader struct {
	r            io.Reader
	reads, bytes int
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.reads++
	c.bytes += n
	return n, err
}

// TestSetText_WhiteSpace_IsShortened has white space arrive in pieces: the JSON decoder scans all that it has with each of them.
func TestSetText_WhiteSpace_IsShortened(t *testing.T) {
	blanks := strings.Repeat(" \n\t\r", 1<<16)
	for reason, body := range map[string]string{
		"leading":  blanks + `{` + someAgent + `,"reports":[]}`,
		"between":  `{` + someAgent + `,` + blanks + `"reports":[` + blanks + `]}`,
		"within":   `{` + strings.Replace(someAgent, ":", ":"+blanks, 1) + `,"reports":[]}`,
		"trailing": `{` + someAgent + `,"reports":[]}` + blanks,
	} {
		text := newSetText(iotest.OneByteReader(strings.NewReader(body)))
		counted := &countingReader{r: text}
		text.json = json.NewDecoder(counted)
		d := setDecoder{text: text, maxReports: 1, maxTree: 1, maxObjects: 1}
		if set, err := d.decode(); err != nil || set.Agent.ClusterUID != "c" {
			t.Errorf("%s: %v", reason, err)
		}
		if counted.reads > 20 || counted.bytes > 4*maxSpace {
			t.Errorf("%s: the decoder read %d bytes in %d reads, want at most %d in 20", reason, counted.bytes, counted.reads, 4*maxSpace)
		}
	}
}

func TestSetText_OtherText_IsUnchanged(t *testing.T) {
	few, many := strings.Repeat(" ", maxSpace), strings.Repeat("\n", 3*maxSpace)
	for text, want := range map[string]string{
		`{"a": [1,	"b"]}`:                     `{"a": [1,	"b"]}`,
		few + `1` + few:                       few + `1` + few,
		many + `1` + many + `2`:               many[:maxSpace] + `1` + many[:maxSpace] + `2`,
		`"` + many + few + `"`:                `"` + many + few + `"`,
		`"\"` + many + `"` + many:             `"\"` + many + `"` + many[:maxSpace],
		`"\\"` + many + `"` + few + `\u0022"`: `"\\"` + many[:maxSpace] + `"` + few + `\u0022"`,
	} {
		for _, r := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
			got, err := io.ReadAll(newSetText(r))
			if err != nil || string(got) != want {
				t.Errorf("%.20q: got %d bytes, want %d; %v", text, len(got), len(want), err)
			}
		}
	}
}

// TestDecodeReportSet_Memory_IsLimited counts all that is allocated, so that it does not depend on when there is garbage.
func TestDecodeReportSet_Memory_IsLimited(t *testing.T) {
	const size = 1 << 20
	report := func(fields string) string { return `{` + someAgent + `,"reports":[{` + fields + `}]}` }
	var unknown strings.Builder
	for i := 0; unknown.Len() < size; i++ {
		unknown.WriteString(`"` + strconv.FormatInt(int64(i), 36) + `":0,`)
	}
	for _, tc := range []struct {
		reason, body string
		most         int // times the body, in hundredths
	}{
		{reason: "white space", body: strings.Repeat(" ", size) + `{` + someAgent + `,"reports":[]}`, most: 10},
		{reason: "white space within a value", body: report(`"event":{` + strings.Repeat(" ", size) + `}`), most: 10},
		{reason: "a string", body: report(`"event":{"message":"` + strings.Repeat("x", size) + `"}`), most: 800},
		{reason: "unknown fields", body: report(`"event":{` + unknown.String() + `"y":0}`), most: 1200},
		{reason: "unknown fields, and what does not fit", body: report(`"event":{"count":"x",` + unknown.String() + `"y":0}`), most: 1200},
		{reason: "objects that are wrong", body: report(`"tree":{"objects":[` + strings.Repeat(`{},`, maxTree-1) + `{}]}`), most: 500},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := decodeReportSet(strings.NewReader(tc.body), 1)
		runtime.ReadMemStats(&after)
		if got := int(after.TotalAlloc - before.TotalAlloc); got > len(tc.body)*tc.most/100+1<<17 {
			t.Errorf("%s: decoding %d bytes allocated %d; error %v", tc.reason, len(tc.body), got, err)
		}
	}
}

func TestDecodeReportSet_ValueSize_IsLimited(t *testing.T) {
	const most = 1 << 16
	decode := func(r io.Reader) error {
		d := setDecoder{text: newSetText(r), maxReports: 1, maxTree: maxTree, maxObjects: maxObjects}
		d.text.maxValue = most
		_, err := d.decode()
		return err
	}
	definition := func(size int) io.Reader {
		return strings.NewReader(reportOf(`,"operation":{"object":{"kind":"ConfigMap","name":"a"},"operation":"ADDED","definition":"` +
			strings.Repeat("x", size) + `"}`))
	}
	if err := decode(definition(most - 200)); err != nil {
		t.Errorf("a definition below the limit: %v", err)
	}
	wantProblem(t, decode(definition(most)), http.StatusRequestEntityTooLarge, "")
	for _, begin := range []string{`{"agent":"`, `{"`, `{"x":["`} {
		read := &countingReader{r: io.MultiReader(strings.NewReader(begin), endlessString{})}
		wantProblem(t, decode(read), http.StatusRequestEntityTooLarge, "")
		if read.bytes > most+len(begin) {
			t.Errorf("%s…: the decoder read %d bytes, want it to stop at the limit %d", begin, read.bytes, most)
		}
	}
	if err := decode(strings.NewReader(reportOf(`,"tree":{"objects":[` + strings.Repeat(someTree+`,`, maxTree-1) + someTree + `]}`))); err != nil {
		t.Errorf("a tree with the maximum number of objects: %v", err)
	}
}

// endlessString is a string without an end.
type endlessString struct{}

func (endlessString) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestReportSets_ClientGone_StopsDecoding(t *testing.T) {
	for _, coding := range []string{"", "gzip", "zstd"} {
		ctx, cancel := context.WithCancel(t.Context())
		body := encoded(t, coding, strings.Repeat(" ", 1<<20)+`{`+someAgent+`,"reports":[]}`)
		var read int
		err := withDecoded(ctx, body, coding, 1<<21, func(plain io.Reader) error {
			counted := &countingReader{r: readerFunc(func(p []byte) (int, error) {
				defer cancel()
				return plain.Read(p[:min(len(p), 1000)])
			})}
			_, err := decodeReportSet(counted, 1)
			read = counted.bytes
			return err
		})
		wantProblem(t, err, http.StatusRequestTimeout, "")
		if read > 1000 {
			t.Errorf("coding %q: the decoder read %d bytes after the client had gone, want at most 1000", coding, read)
		}
		_, err = newReportSets(nil, DefaultLimits(), nil, nil).decode(ctx, body, coding, sender{name: "one"})
		if err == nil {
			t.Errorf("coding %q: decoding succeeded for a client that has gone", coding)
		}
	}
}
