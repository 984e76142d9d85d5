package reporter

import (
	"testing"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// A Pod may descend from a listed resource through an owner of an unlisted kind.
func TestInformers_OwnerOfUnwatchedKind_IsLookedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	w.define("NS.example.com", "Middle")
	w.create(configMap("top"))
	wl := w.track("wl", "v1 ConfigMap top")
	w.expectLives(wl.Resources[0].Ref, "[1]")
	top := w.create(configMap("top2"))
	wl2 := w.track("wl2", "v1 ConfigMap top2")
	middle := w.create(owned("{apiVersion: NS.example.com/v1, kind: Middle, metadata: {name: m, namespace: NS}}", top))
	p := w.create(owned(pod("bottom"), middle))
	w.create(event("Bottom", p))
	w.expectEvent("Bottom", wl2.Resources[0])
	asked := len(w.proxy.sent("/middles")) // more than one if the API server was not ready
	w.create(owned(pod("bottom-2"), middle))
	w.create(event("Between", middle))
	w.expectEvent("Between", wl2.Resources[0])
	w.expectLives(target.Ref{Kind: "Pod", Namespace: w.namespace, Name: "bottom"}, "[1]")
	if n := w.proxy.watches("/middles"); n != 0 {
		t.Errorf("%d watches of an unlisted kind, want none", n)
	}
	if n := len(w.proxy.sent("/middles")); asked == 0 || n != asked {
		t.Errorf("%d requests for the owner of an unlisted kind, and then %d more; want some, and no more", asked, n-asked)
	}
}

func TestInformers_UnreadableOwner_IsLookedUpOnce(t *testing.T) {
	t.Parallel()
	reader, _ := user(t, `[{apiGroups: ["", apps, batch], resources: [pods, events, configmaps, replicasets, jobs], verbs: [list, watch]}]`)
	w := newWorld(t, reader, quick())
	w.define("NS.example.com", "Vault")
	vault := w.create("{apiVersion: NS.example.com/v1, kind: Vault, metadata: {name: v, namespace: NS}}")
	ghost := w.create(configMap("ghost"))
	ghost.SetKind("Ghost")
	ghost.SetAPIVersion(w.namespace + ".ghost.example.com/v1")
	gone := w.create(configMap("gone"))
	w.remove(gone)
	wl := w.track("wl", "apps/v1 Deployment none")
	w.expectState(wl, 0, target.Forbidden, "permission missing")
	for name, path := range map[string]string{"forbidden": "/vaults", "not-installed": "/apis/" + w.namespace + ".ghost.example.com", "not-there": "/namespaces/" + w.namespace + "/configmaps"} {
		t.Run(name, func(t *testing.T) {
			inner := *w
			inner.T = t
			owner := vault
			switch name {
			case "not-installed":
				owner = ghost
			case "not-there":
				owner = gone
			}
			p := inner.create(owned(pod(name), owner))
			inner.create(event("Orphan", p))
			inner.eventually("the owner is looked up", func() string {
				if len(w.proxy.sent(path)) == 0 {
					return "it is not"
				}
				return ""
			})
			inner.eventually("the answer is recorded", func() string {
				if _, known := w.targets.Object(owner.GetUID()); !known {
					return "it is not"
				}
				return ""
			})
			asked := len(w.proxy.sent(path))
			for range 20 {
				inner.patch(p, `{"metadata": {"annotations": {"touched": "`+name+`"}}}`)
			}
			another := inner.create(owned(pod(name+"-2"), owner))
			inner.eventually("another Pod of the owner is known", func() string {
				if _, known := w.targets.Object(another.GetUID()); !known {
					return "it is not"
				}
				return ""
			})
			if got := len(w.proxy.sent(path)); got != asked {
				t.Errorf("%d more requests for an unreadable owner, want none", got-asked)
			}
		})
	}
	if got := w.sink.events("Orphan"); len(got) > 0 {
		t.Errorf("Events of Pods of no workload are offered: %v", got)
	}
}

func TestInformers_OwnerInAnotherVersion_IsLookedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	definition := w.define("NS.example.com", "Mover")
	wl := w.track("wl", "v1 ConfigMap top")
	top := w.create(configMap("top"))
	first := w.create(owned("{apiVersion: NS.example.com/v1, kind: Mover, metadata: {name: a, namespace: NS}}", top))
	w.create(event("First", w.create(owned(pod("a"), first))))
	w.expectEvent("First", wl.Resources[0])

	w.patch(definition, `{"spec": {"versions": [
		{"name": "v2", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}},
		{"name": "v1", "served": false, "storage": false, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}`)
	const manifest = "{apiVersion: NS.example.com/v2, kind: Mover, metadata: {name: b, namespace: NS}}"
	w.awaitServed(w.parse(manifest))
	w.awaitNotServed("/apis/" + w.namespace + ".example.com/v1")
	second := w.create(owned(manifest, top))
	w.create(event("Second", w.create(owned(pod("b"), second))))
	w.expectEvent("Second", wl.Resources[0])
}
