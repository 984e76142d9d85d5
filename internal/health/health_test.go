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
		{reason: "no verdicts", want: healthy},
		{reason: "all are healthy, and the first is idle", in: []Verdict{{Healthy, ScaledToZero, "idle"}, healthy}, want: Verdict{Healthy, ScaledToZero, "idle"}},
		{reason: "Unknown is worse than Healthy", in: []Verdict{healthy, unknown, healthy}, want: unknown},

		{reason: "Reconciling is worse than Unknown", in: []Verdict{unknown, reconciling}, want: reconciling},
		{reason: "Unhealthy is worse than Reconciling", in: []Verdict{unhealthy, reconciling}, want: unhealthy},
		{reason: "Down is the worst", in: []Verdict{unhealthy, down, reconciling, unknown, healthy}, want: down},
		{reason: "the first of equals", in: []Verdict{{Down, "A", ""}, {Down, "B", ""}}, want: Verdict{Down, "A", ""}},
		{reason: "an empty verdict is Unknown", in: []Verdict{healthy, {}}, want: Verdict{Unknown, "NotJudged", "there is no verdict"}},
		{reason: "an unknown word is Unknown", in: []Verdict{{Status: "Great"}, reconciling}, want: reconciling},
	}
	for _, tt := range tests {
		if got := Worst(tt.in...); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.reason, got, tt.want)
		}
	}
}

func TestWorkload(t *testing.T) {
	healthy, down := Verdict{Status: Healthy}, Verdict{Down, "Crash", "it crashes"}
	zero, nowhere := Verdict{Healthy, ScaledToZero, "web is scaled to 0"}, Verdict{Healthy, NoNodeSelected, "agent selects no node"}
	reconciling, unchecked := Verdict{Reconciling, "Starting", "it starts"}, Verdict{Unknown, NotChecked, "it may not be read"}
	for _, tt := range []struct {
		reason    string
		resources []Verdict
		unchecked []Verdict
		want      Verdict
	}{
		{reason: "nothing is listed", want: NothingListed},
		{reason: "all are healthy", resources: []Verdict{healthy, healthy}, want: healthy},
		{reason: "nothing runs of one", resources: []Verdict{healthy, zero}, want: zero},
		{
			reason: "nothing runs of two", resources: []Verdict{nowhere, zero},
			want: Verdict{Healthy, NoNodeSelected, "agent selects no node; 1 other resource without pods"},
		},
		{reason: "nothing runs of one, and one is not healthy", resources: []Verdict{zero, down}, want: down},
		{reason: "one is not healthy", resources: []Verdict{healthy, down}, want: down},
		{
			reason: "two are not healthy", resources: []Verdict{reconciling, down},
			want: Verdict{Down, "Crash", "it crashes; 1 other resource is not Healthy"},
		},
		{
			reason: "three are not healthy", resources: []Verdict{down, reconciling, down},
			want: Verdict{Down, "Crash", "it crashes; 2 other resources are not Healthy"},
		},
		{
			reason: "one is not checked", resources: []Verdict{healthy}, unchecked: []Verdict{unchecked},
			want: Verdict{Status: Healthy, Message: "1 resource is not checked"},
		},
		{
			reason: "two are not checked", resources: []Verdict{down, reconciling}, unchecked: []Verdict{unchecked, unchecked},
			want: Verdict{Down, "Crash", "it crashes; 1 other resource is not Healthy; 2 resources are not checked"},
		},
		{reason: "the only one is not checked", unchecked: []Verdict{unchecked}, want: unchecked},
	} {
		if got := Workload(tt.resources, tt.unchecked...); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.reason, got, tt.want)
		}
	}
}
