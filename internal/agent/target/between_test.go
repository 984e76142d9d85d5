package target

import (
	"strings"
	"testing"
)

func TestBetween(t *testing.T) {
	var (
		cron     = ident(deploymentKind, "cron", "uid-cron")
		job      = ident(replicaSetKind, "cron-1", "uid-cron-1")
		clusterP = clusterWide(ident(nodeKind, "parent", "uid-parent"))
	)
	for _, c := range []struct {
		reason  string
		objects []Object
		top     Ref
		want    string
	}{
		{"its own child is its only link", []Object{owned(web), owned(webPod, web)}, web.Ref, ""},
		{"one link", []Object{owned(web), owned(webRS, web), owned(webPod, webRS)}, web.Ref, "web-1"},
		{"the top known by the reference to it only", []Object{owned(webRS, web), owned(webPod, webRS)}, web.Ref, "web-1"},
		{"the top is cluster-scoped, and its reference does not say so", []Object{owned(webRS, ident(nodeKind, "parent", "uid-parent")), owned(webPod, webRS)}, clusterP.Ref, "web-1"},
		{"several links, the child of the top first", []Object{owned(job, cron), owned(webRS, job), owned(webPod, webRS)}, cron.Ref, "cron-1 web-1"},
		{"the shortest of two chains", []Object{owned(webPod, webRS, job), owned(webRS, cron), owned(cron, web), owned(job, web)}, web.Ref, "cron-1"},
		{"no chain", []Object{owned(webPod, webRS)}, cron.Ref, ""},
		{"a circle", []Object{owned(webPod, webRS), owned(webRS, webPod)}, cron.Ref, ""},
		{"an object that is not known", nil, web.Ref, ""},
		{"by label: the whole chain of controllers", []Object{owned(web), owned(webRS, web), owned(webPod, webRS, job)}, Ref{}, "web web-1"},
		{"by label, without owners", []Object{owned(webPod)}, Ref{}, ""},
		{"by label, in a circle", []Object{owned(webPod, webRS), owned(webRS, webPod)}, Ref{}, "web-1"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			r := NewRegistry()
			for _, o := range c.objects {
				r.Upsert(o)
			}
			var names []string
			for _, id := range r.OwnerPath(webPod.UID, c.top) {
				names = append(names, id.Name)
			}
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("between are %q, want %q", got, c.want)
			}
		})
	}
}
