package health

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A state that a limit makes worse begins at the limit, and not with the state before.
func TestLimits_WorseStateBeginsAtLimit(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(caseTime)}}
	for _, c := range []struct {
		name   string
		assess func(Context) Assessment
		limit  time.Duration
	}{
		{"work under way", func(ctx Context) Assessment {
			return pending(ctx, caseTime, binding, Down, "Pending", "it waits")
		}, binding},
		{"a pod that starts", func(ctx Context) Assessment { return podStarting(pod, ctx) }, startup},
	} {
		end := caseTime.Add(c.limit)
		before, after := c.assess(Context{Now: end.Add(-time.Second)}), c.assess(Context{Now: end.Add(time.Hour)})
		if before.Status != Reconciling || !before.Since.Equal(caseTime) || !before.Recheck.Equal(end) {
			t.Errorf("%s: before the limit it is %s since %s, with a check at %s; want Reconciling since %s, and a check at %s",
				c.name, before.Status, before.Since, before.Recheck, caseTime, end)
		}
		if after.Status == Reconciling || !after.Since.Equal(end) {
			t.Errorf("%s: after the limit it is %s since %s, want it worse since %s", c.name, after.Status, after.Since, end)
		}
	}
}
