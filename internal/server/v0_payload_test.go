package server

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
)

// TestReadValues_HostileBodies_TakeLittleMemory limits the total allocation, including garbage.
func TestReadValues_HostileBodies_TakeLittleMemory(t *testing.T) {
	const size = 16 << 20
	repeat := func(before, s, after string) string {
		return before + strings.Repeat(s, (size-len(before)-len(after))/len(s)) + after
	}
	for reason, text := range map[string]string{
		"tiny members":           repeat(`{"a":0`, `,"b":0`, `}`),
		"one name":               repeat(`{"`, "n", `":0}`),
		"an escaped name":        repeat(`{"`, `\u006e`, `":0}`),
		"empty objects":          repeat(`[{"Type":""}`, `,{"Type":""}`, `]`),
		"numbers in a text":      repeat(`{"Message":[0`, ",0", `]}`),
		"a long text":            repeat(`{"Message":"`, "x", `"}`),
		"a long number":          repeat(`{"WorkloadInstanceID":1`, "0", `}`),
		"a long time":            repeat(`{"Timestamp":"`, "0", `"}`),
		"the same field":         repeat(`{"Type":""`, `,"Type":""`, `}`),
		"a list of lists":        repeat(`[`, `[],`, `[]]`),
		"invalid at the end":     repeat(`{"a":0`, `,"b":0`, `,}`),
		"white space":            repeat(`{`, " ", `"Type":""}`),
		"a number and no object": repeat(`1`, "0", ``),
	} {
		body := []byte(text)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := readValues(eventResource(), body, "application/json", onUpdate)
		runtime.ReadMemStats(&after)
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 2<<20 {
			t.Errorf("%s: %d bytes were allocated, want at most 2 MiB", reason, allocated)
		}
		if err != nil && len(err.Error()) > 4<<10 {
			t.Errorf("%s: the error has %d bytes", reason, len(err.Error()))
		}
	}
}

func TestNameList_ManyNames_AreCut(t *testing.T) {
	var body strings.Builder
	body.WriteString(`{"Type":""`)
	for c := range 26 {
		body.WriteString(`,"` + string(rune('z'-c)) + `":0,"` + string(rune('z'-c)) + `":1`)
	}
	_, err := readValues(eventResource(), []byte(body.String()+"}"), "application/json", onUpdate)
	const want = "Unsupported fields are not allowed : g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,…"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	_, err = readValues(eventResource(), []byte(`{"`+strings.Repeat("n", maxNameBytes+1)+`":0}`), "application/json", onUpdate)
	if want := "Unsupported fields are not allowed : (a name of more than 128 bytes)"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// FuzzMembers compares members and elements with encoding/json.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` { } `, `{"a":1}`, `{"a" : "}" , "b\"":[{"c":"]"},2] ,"":null}`, `{"a":{"b":{}},"a":-1.5e+7}`, `[]`, `[ ]`, `[1,"a,b",[2,3],{"c":4} , null]`,
		`{"\\":"\\\"","b":true}`, "{\"a\"\n:\t[ ]\r}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			return
		}
		text = skip(text, 0)
		switch text[0] {
		case '{':
			var want map[string]json.RawMessage
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			got := map[string]json.RawMessage{}
			for quoted, value := range members(text) {
				var name string
				if err := json.Unmarshal(quoted, &name); err != nil {
					t.Fatalf("%q: the name %q: %v", text, quoted, err)
				}
				got[name] = value
			}
			if len(got) != len(want) {
				t.Fatalf("%q: %d members, want %d", text, len(got), len(want))
			}
			for name := range want {
				if !bytes.Equal(got[name], want[name]) {
					t.Errorf("%q: member %q is %q, want %q", text, name, got[name], want[name])
				}
			}
		case '[':
			var want []json.RawMessage
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			i := 0
			for value := range elements(text) {
				if i >= len(want) || !bytes.Equal(value, want[i]) {
					t.Fatalf("%q: element %d is %q", text, i, value)
				}
				i++
			}
			if i != len(want) {
				t.Errorf("%q: %d elements, want %d", text, i, len(want))
			}
		}
	})
}
