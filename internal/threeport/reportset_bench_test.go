package threeport

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkReportSet_Encode encodes and compresses a set of 500 Events.
func BenchmarkReportSet_Encode(b *testing.B) {
	now := time.Now()
	set := ReportSet{Agent: Agent{ClusterUID: "cluster", Time: now}}
	for i := range 500 {
		set.Reports = append(set.Reports, Report{
			Instance: Instance{Type: TypeWorkloadInstance, ID: 1}, Version: ID(i + 1),
			Event: &EventReport{UID: fmt.Sprint("uid-", i), Type: "Normal", Reason: "Pulled", Message: fmt.Sprint("Pulled image ", i), Time: now},
		})
	}
	b.ReportAllocs()
	for b.Loop() {
		body, err := encode(set)
		if err != nil {
			b.Fatal(err)
		}
		if body, _ = compress(cleanJSON(body), EncodingZstd); len(body) == 0 {
			b.Fatal("the body is empty")
		}
	}
}
