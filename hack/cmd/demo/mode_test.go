package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestMode_RealNodeIfPossible(t *testing.T) {
	for _, c := range []struct {
		reason   string
		obstacle error
		real     bool
		says     []string
	}{
		{reason: "nothing is in its way", real: true},
		{
			reason:   "root is missing",
			obstacle: errors.New("a real node needs root: run this with sudo"),
			says:     []string{"cannot run a real node", "run this with sudo", "3 fake nodes"},
		},
	} {
		var said strings.Builder
		got := realNodeOr(fakeNodes(), c.obstacle, func(format string, args ...any) { _, _ = fmt.Fprintf(&said, format, args...) })
		if got.options().RealNode != c.real {
			t.Errorf("%s: expected a real node: %v, got the options %+v", c.reason, c.real, got.options())
		}
		if got.options().Nodes != fakes {
			t.Errorf("%s: expected %d fake nodes in any case, got %d", c.reason, fakes, got.options().Nodes)
		}
		for _, want := range c.says {
			if !strings.Contains(said.String(), want) {
				t.Errorf("%s: expected the output to contain %q, got %q", c.reason, want, said.String())
			}
		}
		if len(c.says) == 0 && said.Len() > 0 {
			t.Errorf("%s: expected nothing to be said, got %q", c.reason, said.String())
		}
	}
}
