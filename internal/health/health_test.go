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
