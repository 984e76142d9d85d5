package server

import (
	"fmt"
	"net/http"
	"testing"
)

// Neither the total nor an empty page reveals rows that the agent may not read.
func TestV0_AgentLists_OwnRowsOnly(t *testing.T) {
	n := newTwoClusters(t)
	owned, free := n.createRows("owned"), n.createRows("free")
	n.claim(owned)
	ofOwned, ofFree := fmt.Sprintf("workloadinstanceid=%d", owned.instance), fmt.Sprintf("workloadinstanceid=%d", free.instance)
	for _, tc := range []struct {
		query      string
		own, other int
	}{
		{"", 403, 403},
		{"page=9", 403, 403},
		{"type=Normal&page=9", 403, 403},
		{"runtimeeventuid=", 403, 403},
		{ofOwned, 200, 403},
		{ofOwned + "&page=9", 200, 403},
		{ofOwned + "&message=m&page=9", 200, 403},
		{ofOwned + "&runtimeeventuid=none", 200, 403},
		{ofFree, 200, 200},
		{fmt.Sprintf("workloadresourceinstanceid=%d&page=9", owned.resource), 200, 403},
		{"helmworkloadinstanceid=1", 404, 404},
		{"workloadresourceinstanceid=1", 404, 404},
		{"runtimeeventuid=owned", 200, 403},
		{"runtimeeventuid=owned&page=9", 200, 403},
		{"runtimeeventuid=owned&message=other", 200, 403},
		{"runtimeeventuid=free", 200, 200},
		{"runtimeeventuid=none", 200, 200},
	} {
		for reason, asked := range map[string]struct {
			bearer string
			want   int
		}{"its own cluster's agent": {n.own, tc.own}, "another's": {n.other, tc.other}, "an administrator": {n.admin, http.StatusOK}} {
			if code, _ := n.request(asked.bearer, http.MethodGet, "workload-events?"+tc.query, ""); code != asked.want {
				t.Errorf("%q by %s: %d, want %d", tc.query, reason, code, asked.want)
			}
		}
	}
}
