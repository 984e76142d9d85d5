package attacks

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/testing/databases"
)

// eventSet is a report set of a cluster with an Event.
func eventSet(cluster string, instance int64, uid, message string, version int64) string {
	return fmt.Sprintf(`{"agent":{"clusterUID":%q,"time":"2026-01-02T03:04:05Z","delaySeconds":0,"pending":0,"deadLetters":0,"dropped":0},
		"reports":[{"instance":{"type":"WorkloadInstance","id":"%d"},"version":"%d","event":{"uid":%q,"involved":{"kind":"Pod","name":"web"},
		"type":"Warning","reason":"OOMKilled","message":%q,"time":"2026-01-02T03:04:05Z"}}]}`, cluster, instance, version, uid, message)
}

// eventRow is the v0 row of an Event.
func eventRow(instance int64, uid, message string) string {
	return fmt.Sprintf(`{"RuntimeEventUID":%q,"Type":"Warning","Reason":"OOMKilled","Message":%q,"Timestamp":"2026-01-02T03:04:05Z","WorkloadInstanceID":%d}`,
		uid, message, instance)
}

// An agent writes Events of its own with the UIDs that the agent of another cluster will use. Those of synthetic Events follow from
// the UIDs of Pods, which viewers see.
func TestEventUIDs_AgentTakesThoseOfOtherCluster(t *testing.T) {
	databases.ForEach(t, func(t *testing.T, address string) {
		t.Helper()
		const sets, events = "/v0/workload-report-sets", "/v0/workload-events"
		a := newAPI(t, address)
		a.start()
		expect := func(what, bearer, method, path, body string, code int, texts ...string) string {
			t.Helper()
			got, text := a.answer(bearer, method, path, body)
			if got != code {
				t.Errorf("%s: the answer is %d %s, want %d", what, got, text, code)
			}
			for _, want := range texts {
				if !strings.Contains(text, want) {
					t.Errorf("%s: the answer is %s, want %s", what, text, want)
				}
			}
			return text
		}
		take := map[string]func(uid string){
			"set": func(uid string) {
				expect("the attack by set", a.agent, "POST", sets, eventSet(ownCluster, a.own.instance, uid, "planted", math.MaxInt64), http.StatusOK, `"created"`)
			},
			"post": func(uid string) {
				expect("the attack by POST", a.agent, "POST", events, eventRow(a.own.instance, uid, "planted"), http.StatusCreated)
			},
			"patch": func(uid string) {
				text := expect("the attack by POST of another UID", a.agent, "POST", events, eventRow(a.own.instance, "before "+uid, "planted"), http.StatusCreated)
				_, rest, _ := strings.Cut(text, `"ID":`)
				id, _, _ := strings.Cut(rest, ",")
				expect("the attack by PATCH", a.agent, "PATCH", events+"/"+id, `{"RuntimeEventUID":"`+uid+`"}`, http.StatusOK)
			},
		}
		for by, take := range take {
			ofSet, ofPost := "set-after-"+by, "post-after-"+by
			take(ofSet)
			take(ofPost)
			expect("a report set after "+by, a.honest, "POST", sets, eventSet(honestCluster, a.honestly.instance, ofSet, "honest", 1), http.StatusOK, `"created"`)
			expect("a POST after "+by, a.honest, "POST", events, eventRow(a.honestly.instance, ofPost, "honest"), http.StatusCreated)
			for _, uid := range []string{ofSet, ofPost} {
				// The other cluster's agent tries again, with a row that exists.
				expect("another attack", a.agent, "POST", sets, eventSet(ownCluster, a.own.instance, uid, "planted", math.MaxInt64), http.StatusOK)
				expect("the agent of "+uid, a.honest, "GET", events+"?runtimeeventuid="+uid, "", http.StatusOK,
					`"TotalCount":1`, `"Message":"honest"`, fmt.Sprint(a.honestly.instance))
				expect("the attacker on "+uid, a.agent, "GET", events+"?runtimeeventuid="+uid, "", http.StatusOK,
					`"TotalCount":1`, `"Message":"planted"`, fmt.Sprint(a.own.instance))
				expect("the Event of "+uid, a.viewer, "GET", fmt.Sprintf("%s?workloadinstanceid=%d&runtimeeventuid=%s", events, a.honestly.instance, uid), "",
					http.StatusOK, `"TotalCount":1`, `"Message":"honest"`)
				expect("a repeat of "+uid, a.honest, "POST", sets, eventSet(honestCluster, a.honestly.instance, uid, "honest again", 2), http.StatusOK, `"updated"`)
				expect("a second POST of "+uid, a.honest, "POST", events, eventRow(a.honestly.instance, uid, "ignored"), http.StatusOK, `"Message":"honest again"`)
			}
		}
	})
}
