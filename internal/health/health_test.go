package health

import "testing"

func TestWorst(t *testing.T) {
	healthy, unknown := Verdict{Status: Healthy}, Verdict{Status: Unknown, Reason: "NoSignal"}
	reconciling, unhealthy, down := Verdict{Status: Reconciling}, Verdict{Status: Unhealthy}, Verdict{Status: Down}
	tests := []struct {
		reason string
		in     []Verdict
		want   Verdict
	}{
		{"none", nil, healthy},
		{"all are healthy, and one has a reason", []Verdict{{Healthy, Completed, ""}, healthy}, healthy},
		{"what is not known is not healthy", []Verdict{healthy, unknown, healthy}, unknown},
		{"on its way is worse than not known", []Verdict{unknown, reconciling}, reconciling},
		{"in part is worse than on its way", []Verdict{unhealthy, reconciling}, unhealthy},
		{"down is the worst", []Verdict{unhealthy, down, reconciling, unknown, healthy}, down},
		{"the first of equals", []Verdict{{Down, "A", ""}, {Down, "B", ""}}, Verdict{Down, "A", ""}},
		{"no verdict at all is not healthy", []Verdict{healthy, {}}, Verdict{Unknown, "NotJudged", "there is no verdict"}},
		{"nor is a word that is not known", []Verdict{{Status: "Great"}, reconciling}, reconciling},
	}
	for _, tt := range tests {
		if got := Worst(tt.in...); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.reason, got, tt.want)
		}
	}
}

func TestCombine(t *testing.T) {
	crash := Verdict{Down, "CrashLoopBackOff", "container web crashes"}
	pull := Verdict{Down, "ImagePullBackOff", "image web cannot be pulled"}
	onItsWay := Verdict{Reconciling, "ReplicasNotReady", "0 of 2"}
	healthy := Verdict{Status: Healthy}
	tests := []struct {
		reason  string
		own     Verdict
		derived Derived
		want    Verdict
	}{
		{"nothing descends from it", onItsWay, Derived{}, onItsWay},
		{"nothing fails", healthy, Derived{Healthy: 2}, healthy},
		{
			"all pods fail: it is not on its way", onItsWay,
			Derived{Failing: map[Verdict]int{crash: 2}},
			Verdict{Down, "CrashLoopBackOff", "0 of 2 ← 2 × container web crashes"},
		},
		{
			"some pods fail", onItsWay,
			Derived{Healthy: 1, Failing: map[Verdict]int{crash: 1}},
			Verdict{Unhealthy, "CrashLoopBackOff", "0 of 2 ← 1 × container web crashes"},
		},
		{
			"its deadline is over and nothing works",
			Verdict{Unhealthy, "ProgressDeadlineExceeded", "it timed out"},
			Derived{Failing: map[Verdict]int{crash: 1}},
			Verdict{Down, "CrashLoopBackOff", "it timed out ← 1 × container web crashes"},
		},
		{
			"its status lags behind a pod that fails", healthy,
			Derived{Healthy: 1, Failing: map[Verdict]int{crash: 1}},
			Verdict{Unhealthy, "CrashLoopBackOff", "1 × container web crashes"},
		},
		{
			"what cannot be judged by itself is by its pods",
			Verdict{Unknown, "NoSignal", "no status"},
			Derived{Failing: map[Verdict]int{crash: 1}},
			Verdict{Unhealthy, "CrashLoopBackOff", "no status ← 1 × container web crashes"},
		},
		{"pods do not make the unknown healthy", Verdict{Status: Unknown}, Derived{Healthy: 3}, Verdict{Status: Unknown}},
		{"it is down anyway", Verdict{Down, "BackoffLimitExceeded", "failed"}, Derived{Failing: map[Verdict]int{crash: 1}}, Verdict{Down, "BackoffLimitExceeded", "failed"}},
		{"a Job that completed after a failed try", Verdict{Healthy, Completed, ""}, Derived{Healthy: 1, Failing: map[Verdict]int{crash: 1}}, Verdict{Healthy, Completed, ""}},
		{
			"the most frequent cause is named", onItsWay,
			Derived{Failing: map[Verdict]int{crash: 1, pull: 2}},
			Verdict{Down, "ImagePullBackOff", "0 of 2 ← 2 × image web cannot be pulled"},
		},
		{
			"of equals the same one each time", onItsWay,
			Derived{Failing: map[Verdict]int{crash: 2, pull: 2}},
			Verdict{Down, "CrashLoopBackOff", "0 of 2 ← 2 × container web crashes"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			for range 10 { // maps have no order
				if got := Combine(tt.own, tt.derived); got != tt.want {
					t.Fatalf("got  %+v\nwant %+v", got, tt.want)
				}
			}
		})
	}
}
