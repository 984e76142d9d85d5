package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Neither the total nor an empty page reveals rows that the agent may not read.
func TestV0_AgentLists_OwnRowsOnly(t *testing.T) {
	n := newTwoClusters(t)
	owned, free := n.createRows("owned"), n.createRows("free")
	n.assign(owned, "c")
	ofOwned, ofFree := fmt.Sprintf("workloadinstanceid=%d", owned.instance), fmt.Sprintf("workloadinstanceid=%d", free.instance)
	for _, tc := range []struct {
		query      string
		own, other int
	}{
		{own: 403, other: 403},
		{query: "page=9", own: 403, other: 403},
		{query: "type=Normal&page=9", own: 403, other: 403},
		{query: "runtimeeventuid=", own: 403, other: 403},
		{query: ofOwned, own: 200, other: 403},
		{query: ofOwned + "&page=9", own: 200, other: 403},
		{query: ofOwned + "&message=m&page=9", own: 200, other: 403},
		{query: ofOwned + "&runtimeeventuid=none", own: 200, other: 403},
		{query: ofFree, own: 403, other: 403},
		{query: fmt.Sprintf("workloadresourceinstanceid=%d&page=9", owned.resource), own: 200, other: 403},
		{query: "helmworkloadinstanceid=1", own: 404, other: 404},
		{query: "workloadresourceinstanceid=1", own: 404, other: 404},
		{query: "runtimeeventuid=owned", own: 200, other: 200},
		{query: "runtimeeventuid=owned&page=9", own: 200, other: 200},
		{query: "runtimeeventuid=owned&message=other", own: 200, other: 200},
		{query: "runtimeeventuid=free", own: 200, other: 200},
		{query: "runtimeeventuid=none", own: 200, other: 200},
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

// The limits of Events are those of an instance, so an agent's Event has one.
func TestV0_AgentCreatesEventOfResource_HasItsInstance(t *testing.T) {
	n := newTwoClusters(t)
	rows := n.createRows("owned")
	n.assign(rows, "c")
	body := fmt.Sprintf(`{"RuntimeEventUID":"of-resource","Type":"Normal","Reason":"r","Message":"m","Timestamp":"9999-01-02T03:04:05Z",
		"WorkloadResourceInstanceID":%d}`, rows.resource)
	if code, _ := n.request(n.own, http.MethodPost, "workload-events", body); code != http.StatusCreated {
		t.Fatalf("create an Event of a resource: %d, want 201", code)
	}
	got := send(t, n.client, http.MethodGet, n.url+fmt.Sprintf("/v0/workload-events?workloadinstanceid=%d", rows.instance), asJSON("Authorization", n.own), nil)
	if !strings.Contains(got.body, `"RuntimeEventUID":"of-resource"`) {
		t.Errorf("the Events of the instance are %s, want that of the resource", got.body)
	}
}

// The answers for a foreign and for an unknown UID are the same, so that an agent cannot find out which Events exist.
func TestV0_AgentListsForeignEvent_LooksUnknown(t *testing.T) {
	n := newTwoClusters(t)
	n.assign(n.createRows("owned"), "c")
	list := func(bearer, query string) string {
		got := send(t, n.client, http.MethodGet, n.url+"/v0/workload-events?"+query, asJSON("Authorization", bearer), nil)
		return fmt.Sprint(got.code, " ", got.body)
	}
	for _, more := range []string{"", "&page=9", "&size=-1", "&message=m"} {
		foreign, unknown := list(n.other, "runtimeeventuid=owned"+more), list(n.other, "runtimeeventuid=none"+more)
		if foreign != unknown {
			t.Errorf("with %q, a foreign UID is answered %s, an unknown one %s", more, foreign, unknown)
		}
	}
	if got := list(n.own, "runtimeeventuid=owned"); !strings.Contains(got, `"RuntimeEventUID":"owned"`) {
		t.Errorf("the agent of the cluster reads %s, want its Event", got)
	}
}

// Several clusters have Events with one UID. Each agent finds its own, wherever the instances were before.
func TestV0_AgentListsByUID_OwnRowsOnly(t *testing.T) {
	for reason, required := range map[string]bool{"assignment required": true, "not required": false} {
		t.Run(reason, func(t *testing.T) {
			n := newTwoClusters(t, func(c *Config) { c.RequireAssignment = required })
			rows := make(map[string]v0Rows)
			for _, name := range []string{"own", "other", "free", "moved", "mixed"} {
				rows[name] = n.createRows(name)
			}
			post := func(fields string) (id int64) {
				t.Helper()
				code, id := n.request(n.admin, http.MethodPost, "workload-events", `{"RuntimeEventUID":"u","Type":"Normal","Reason":"r","Message":"m",
					"Timestamp":"2026-01-02T03:04:05Z"`+fields+`}`)
				if code != http.StatusCreated {
					t.Fatalf("create an Event with %s: %d", fields, code)
				}
				return id
			}
			of := make(map[string]int64)
			for _, name := range []string{"own", "other", "free", "moved"} {
				of[name] = post(fmt.Sprintf(`,"WorkloadInstanceID":%d`, rows[name].instance))
			}
			of["resource"] = post(fmt.Sprintf(`,"WorkloadResourceInstanceID":%d`, rows["own"].resource))
			of["mixed"] = post(fmt.Sprintf(`,"WorkloadInstanceID":%d,"WorkloadResourceInstanceID":%d`, rows["mixed"].instance, rows["other"].resource))
			of["nothing"] = post("")
			for name, cluster := range map[string]string{"own": "c", "other": "other", "moved": "other", "mixed": "c"} {
				n.assign(rows[name], cluster)
			}
			n.assign(rows["moved"], "c")
			expect := func(bearer string, names ...string) {
				t.Helper()
				got := send(t, n.client, http.MethodGet, n.url+"/v0/workload-events?runtimeeventuid=u", asJSON("Authorization", bearer), nil)
				if want := fmt.Sprintf(`"TotalCount":%d}`, len(names)); got.code != http.StatusOK || !strings.Contains(got.body, want) {
					t.Errorf("the answer is %d %s, want %s", got.code, got.body, want)
				}
				for _, name := range names {
					if !strings.Contains(got.body, fmt.Sprintf(`"ID":%d,`, of[name])) {
						t.Errorf("the answer is %s, want the row of %s", got.body, name)
					}
				}
			}
			own, other := []string{"own", "moved", "resource"}, []string{"other"}
			if !required {
				own, other = append(own, "free"), append(other, "free")
			}
			expect(n.own, own...)
			expect(n.other, other...)
			expect(n.admin, "own", "other", "free", "moved", "resource", "mixed", "nothing")
		})
	}
}
