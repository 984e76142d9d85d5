package resync

import (
	"errors"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
)

func TestResyncer_DesiredState_OfAnInstanceThatIsNotDeclared(t *testing.T) {
	for _, tt := range []struct {
		reason       string
		declared     bool
		declarations declarations
		clusterErr   error
		complete     bool
	}{
		{"it is gone", false, declarations{}, nil, true},
		{"another workload is not tracked yet, it may be this one", false, untracked, nil, false},
		{"it is declared, and not seen yet", true, declarations{}, nil, false},
		{"the cluster cannot be read", false, declarations{}, errors.New("no answer"), false},
	} {
		c := newCluster()
		c.failing = tt.clusterErr
		if tt.declared {
			c.declared = append(c.declared, shop)
		}
		r := New(DefaultConfig(), c, tt.declarations, newHeld(), newScript(), nil, new(lines).logger())
		state, complete, err := r.desiredState(t.Context(), shop, time.Time{})
		if complete != tt.complete || !errors.Is(err, tt.clusterErr) || len(state.Operations) > 0 {
			t.Errorf("%s: got %+v, complete %t, %v; want complete %t", tt.reason, state, complete, err, tt.complete)
		}
	}
	c := newCluster()
	c.edit(shop, func(s *observe.DesiredState) { s.Status.Status = "Healthy" })
	r := New(DefaultConfig(), c, declarations{}, newHeld(), newScript(), nil, new(lines).logger())
	if state, complete, err := r.desiredState(t.Context(), shop, time.Time{}); !complete || err != nil || state.Status.Status != "Healthy" {
		t.Errorf("a declared instance: got %+v, complete %t, %v; want its state", state, complete, err)
	}
}
