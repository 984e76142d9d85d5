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
	resource := func(kind, name string, v Verdict) ResourceVerdict { return ResourceVerdict{ObjectRef{kind, name}, v} }
	down, zeroVerdict := Verdict{Down, "Crash", "it crashes"}, Verdict{Healthy, ScaledToZero, "web is scaled to 0"}
	healthy, web := resource("ConfigMap", "conf", Verdict{Status: Healthy}), resource("Deployment", "web", down)
	zero, nowhere := resource("Deployment", "web", zeroVerdict), resource("DaemonSet", "agent", Verdict{Healthy, NoNodeSelected, "agent selects no node"})
	job, api := resource("Job", "init", Verdict{Reconciling, "Starting", "it starts"}), resource("Deployment", "api", Verdict{Unhealthy, "Slow", "it is slow"})
	unchecked := resource("Secret", "key", Verdict{Unknown, NotChecked, "it may not be read"})
	unserved := resource("Service", "web", Verdict{Down, noReadyEndpoints, "no ready endpoints"})
	labelled := resource("", "", Verdict{Reconciling, "Starting", "it starts"})
	for _, tt := range []struct {
		reason    string
		resources []ResourceVerdict
		unchecked []ResourceVerdict
		want      Verdict
	}{
		{reason: "nothing is listed", want: NothingListed},
		{reason: "all are healthy", resources: []ResourceVerdict{healthy, healthy}, want: healthy.Verdict},
		{reason: "nothing runs of one", resources: []ResourceVerdict{healthy, zero}, want: zeroVerdict},
		{
			reason: "nothing runs of two", resources: []ResourceVerdict{nowhere, zero},
			want: Verdict{Healthy, NoNodeSelected, "agent selects no node; 1 other idle resource"},
		},
		{reason: "nothing runs of one, and one is not healthy", resources: []ResourceVerdict{zero, web}, want: down},
		{reason: "one is not healthy", resources: []ResourceVerdict{healthy, web}, want: down},
		{
			reason: "two are not healthy", resources: []ResourceVerdict{job, web},
			want: Verdict{Down, "Crash", "it crashes; Job init is not Healthy"},
		},
		{
			reason: "three are not healthy: the worst of the others is named", resources: []ResourceVerdict{job, web, api},
			want: Verdict{Down, "Crash", "it crashes; Deployment api and 1 other are not Healthy"},
		},
		{
			reason: "four are not healthy", resources: []ResourceVerdict{web, web, job, healthy, api},
			want: Verdict{Down, "Crash", "it crashes; Deployment web and 2 others are not Healthy"},
		},
		{
			reason: "a Service without endpoints follows from another fault", resources: []ResourceVerdict{unserved, web},
			want: Verdict{Down, down.Reason, down.Message + "; Service web is not Healthy"},
		},
		{reason: "a Service without endpoints is the only fault", resources: []ResourceVerdict{healthy, unserved}, want: unserved.Verdict},
		{
			reason: "one is known by its label only", resources: []ResourceVerdict{web, labelled},
			want: Verdict{Down, "Crash", "it crashes; an object with the label of the workload is not Healthy"},
		},
		{
			reason: "the worst has no message", resources: []ResourceVerdict{resource("Widget", "w", Verdict{Down, "Gone", ""}), job},
			want: Verdict{Down, "Gone", "Widget w is Down; Job init is not Healthy"},
		},
		{
			reason: "one has no verdict", resources: []ResourceVerdict{resource("Widget", "w", Verdict{}), healthy},
			want: Verdict{Unknown, "NotJudged", "there is no verdict"},
		},
		{
			reason: "one is not checked", resources: []ResourceVerdict{healthy}, unchecked: []ResourceVerdict{unchecked},
			want: Verdict{Status: Healthy, Message: "1 resource is not checked"},
		},
		{
			reason: "two are not checked", resources: []ResourceVerdict{web, job}, unchecked: []ResourceVerdict{unchecked, unchecked},
			want: Verdict{Down, "Crash", "it crashes; Job init is not Healthy; 2 resources are not checked"},
		},
		{reason: "the only one is not checked", unchecked: []ResourceVerdict{unchecked}, want: unchecked.Verdict},
	} {
		if got := Workload(tt.resources, tt.unchecked...); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.reason, got, tt.want)
		}
	}
}
