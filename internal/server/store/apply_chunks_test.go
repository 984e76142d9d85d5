package store

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// A transaction has few large reports, or many small ones.
func TestChunksOf(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		nodes := make([]threeport.TreeObject, bytesPerTx/nodeBytes*3/4)
		for i := range nodes {
			nodes[i] = nodeOf("p", fmt.Sprint(i), "Healthy")
		}
		large := strings.Repeat("x", bytesPerTx/4)
		stored := operationOf(w.workload, 0, "large", threeport.OperationAdded, 1)
		stored.Operation.Definition = fmt.Appendf(nil, `{"a":%q}`, large)
		apply(t, s, "one", treeOf(w.workload, 1, nodes...), stored)

		event := eventOf(w.workload, "e", 1)
		small := operationOf(w.workload, 0, "small", threeport.OperationAdded, 1)
		change := operationOf(w.workload, 0, "large", threeport.OperationModified, 2)
		empty, other := treeOf(w.workload, 2), treeOf(w.helm, 1, nodes[:len(nodes)/2]...)
		for _, c := range []struct {
			reason  string
			reports []threeport.Report
			want    []int
		}{
			{"none: the heartbeat needs a transaction", nil, []int{0}},
			{"small reports", []threeport.Report{event, small, event}, []int{3}},
			{"an empty tree replaces a large one, and another is sent", []threeport.Report{empty, event, other, event}, []int{2, 2}},
			{"operations on a large definition", []threeport.Report{change, change, small, change, change, change}, []int{4, 2}},
		} {
			reports, answers := c.reports, make([]threeport.ReportAnswer, len(c.reports))
			chunks, err := s.chunksOf(t.Context(), "one", validItems(reports, answers, time.Now()))
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			for _, c := range chunks {
				got = append(got, len(c.items))
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s: the transactions have %v reports, want %v", c.reason, got, c.want)
			}
		}
	})
}
