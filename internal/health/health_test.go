package health

import "testing"

func TestWorst_FirstOfEqual(t *testing.T) {
	healthy, unknown := Verdict{Status: Healthy}, Verdict{Status: Unknown, Reason: "NoSignal"}
	reconciling, unhealthy, down := Verdict{Status: Reconciling}, Verdict{Status: Unhealthy}, Verdict{Status: Down}
	tests := []struct {
		reason string
		in     []Verdict
		want   Verdict
	}{
		{"none", nil, healthy},
		{"all are healthy, and one has a reason", []Verdict{{Healthy, Completed, ""}, healthy}, healthy},
		{"Unknown is worse than Healthy", []Verdict{healthy, unknown, healthy}, unknown},

		{"Reconciling is worse than Unknown", []Verdict{unknown, reconciling}, reconciling},
		{"Unhealthy is worse than Reconciling", []Verdict{unhealthy, reconciling}, unhealthy},
		{"Down is the worst", []Verdict{unhealthy, down, reconciling, unknown, healthy}, down},
		{"the first of equals", []Verdict{{Down, "A", ""}, {Down, "B", ""}}, Verdict{Down, "A", ""}},
		{"an empty verdict is Unknown", []Verdict{healthy, {}}, Verdict{Unknown, "NotJudged", "there is no verdict"}},
		{"an unknown word is Unknown", []Verdict{{Status: "Great"}, reconciling}, reconciling},
	}
	for _, tt := range tests {
		if got := Worst(tt.in...); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.reason, got, tt.want)
		}
	}
}
