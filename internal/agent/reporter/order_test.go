package reporter

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// The outcome does not depend on the order in which kinds become visible. Here a kind becomes visible when the permission
// to watch it is granted, and the Event of a Pod is reported for its Deployment.
func TestReporter_AnyOrderOfArrival_SameReports(t *testing.T) {
	t.Parallel()
	orders := []string{
		"events pods replicasets deployments workload",
		"workload deployments replicasets pods events",
		"events workload pods deployments replicasets",
	}
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	for range 2 {
		order := strings.Fields(orders[0])
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		orders = append(orders, strings.Join(order, " "))
	}
	for n, order := range orders {
		t.Run(fmt.Sprintf("%d %s", n, order), func(t *testing.T) {
			t.Parallel()
			t.Logf("seed %d", seed)
			reader, name := user(t, "[]")
			w := newWorld(t, reader, quick())
			keeper := w.track("keeper", "apps/v1 Deployment none")
			w.expectState(keeper, 0, target.Forbidden, "permission missing: list deployments.apps in namespace "+w.namespace)
			d := w.create(deployment("web"))
			p := w.create(owned(pod("web"), w.create(owned(replicaSet("web"), d))))
			w.create(event("Arrived", p))

			var wl target.Workload
			granted := []string{"none"}
			for what := range strings.FieldsSeq(order) {
				if what == "workload" {
					wl = w.track("web", "apps/v1 Deployment web")
					continue
				}
				granted = append(granted, what)
				w.allow(name, fmt.Sprintf(`[{"apiGroups": ["", "apps"], "resources": ["%s"], "verbs": ["list", "watch"]}]`, strings.Join(granted, `", "`)))
				w.eventually("a watch of "+what, func() string {
					if w.proxy.watches("/"+what) == 0 {
						return "there is none"
					}
					return ""
				})
			}
			w.expectEvent("Arrived", wl.Resources[0])
			w.expectLives(target.Ref{Kind: "Pod", Namespace: w.namespace, Name: "web"}, "[1]")
			w.expectState(wl, 0, target.Present, "")
			ev := w.sink.events("Arrived")[0]
			if ev.Involved.Name != "web" || ev.InvolvedUID == "" || !ev.Derived || ev.Time.IsZero() {
				t.Errorf("the Event is %+v, want the Pod in it, and its time", ev)
			}
		})
	}
}
