package threeport

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestRows_TooMany_AreNotDecoded(t *testing.T) {
	var rows Rows[struct{ A string }]
	if err := json.Unmarshal([]byte("["+strings.Repeat("{},", maxRows)+"{}]"), &rows); err == nil || rows != nil {
		t.Errorf("%d rows are decoded with %v, want an error", len(rows), err)
	}
	if err := json.Unmarshal([]byte("["+strings.Repeat("{},", maxRows-1)+"{}]"), &rows); err != nil || len(rows) != maxRows {
		t.Errorf("%d rows are decoded with %v, want %d", len(rows), err, maxRows)
	}
}

func TestCountItems(t *testing.T) {
	for list, want := range map[string]int{
		`[]`: 1, `null`: 1, `[1]`: 1, `[1,2]`: 2, `[{"a":1,"b":[1,2]},[3,4]]`: 2, `["a,b","\\\\",",","[{",5]`: 5, `[ "\\" , 2 ]`: 2,
	} {
		if got := countItems([]byte(list)); got != want {
			t.Errorf("%s has %d items, want %d", list, got, want)
		}
	}
}

// A control plane must not fill the agent's memory: 16 MiB of small items take hundreds of MiB.
func TestSendReportSet_TooManyItems_AreNotDecoded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"items":[` + strings.Repeat("{},", 1_000_000) + `{}]}`))
	}))
	defer server.Close()
	client, err := New(Config{Server: server.URL, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	set := ReportSet{Agent: Agent{ClusterUID: "c", Time: time.Now()}, Reports: make([]Report, 3)}
	allocated := testing.Benchmark(func(b *testing.B) {
		b.Helper()
		b.ReportAllocs()
		for range b.N {
			if _, err := client.SendReportSet(b.Context(), set, ""); err == nil {
				b.Fatal("the answer is accepted")
			}
		}
	}).AllocedBytesPerOp()
	if allocated > 20<<20 { // the text takes 3 MB, and twice that while it is read
		t.Errorf("an answer of 3 MB allocates %d bytes", allocated)
	}
}
