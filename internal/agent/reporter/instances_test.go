package reporter

import (
	"slices"
	"testing"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Of more than the limit, the instances that the control plane knows have reports, in the order of their declaration. The recorder
// knows those with an even ID.
func TestOnePerInstance_PrefersConfirmed(t *testing.T) {
	attributionsOf := func(ids ...int64) (out []target.Attribution) {
		for _, id := range ids {
			instance := target.Instance{Type: target.WorkloadInstance, ID: id}
			out = append(out, target.Attribution{Instance: instance, Workload: "a"}, target.Attribution{Instance: instance, Workload: "b"})
		}
		return out
	}
	var unknown, known []int64
	for i := range int64(target.MaxEventInstances) {
		unknown, known = append(unknown, 101+2*i), append(known, 2+2*i)
	}
	for _, tc := range []struct {
		reason    string
		ids, want []int64
	}{
		{reason: "none", ids: nil, want: nil},
		{reason: "up to the limit", ids: unknown, want: unknown},
		{
			reason: "a known one after unknown ones", ids: append(slices.Clone(unknown), 2),
			want: append(slices.Clone(unknown[:len(unknown)-1]), 2),
		},
		{reason: "unknown ones before and after known ones", ids: slices.Concat(unknown, known, unknown), want: known},
		{reason: "too many known ones", ids: append(slices.Clone(known), 1000), want: known},
	} {
		var got []int64
		for _, attribution := range onePerInstance(&recorder{}, attributionsOf(tc.ids...)) {
			if attribution.Workload != "a" {
				t.Errorf("%s: the attribution is that of %s, want the first one", tc.reason, attribution.Workload)
			}
			got = append(got, attribution.Instance.ID)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: the instances are %v, want %v", tc.reason, got, tc.want)
		}
	}
}
