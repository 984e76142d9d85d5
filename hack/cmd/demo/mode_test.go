package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestRealNodeOr(t *testing.T) {
	for _, c := range []struct {
		reason   string
		obstacle error
		real     bool
		says     []string
	}{
		{reason: "no obstacle", real: true},
		{
			reason:   "root is missing",
			obstacle: errors.New("a real node needs root: run this with sudo"),
			says:     []string{"cannot run a real node", "run this with sudo", "3 fake nodes"},
		},
	} {
		var output strings.Builder
		got := realNodeOr(fakeNodes(), c.obstacle, func(format string, args ...any) { _, _ = fmt.Fprintf(&output, format, args...) })
		if got.options().RealNode != c.real {
			t.Errorf("%s: expected a real node: %v, got the options %+v", c.reason, c.real, got.options())
		}
		if got.options().Nodes != fakeNodeCount {
			t.Errorf("%s: expected %d fake nodes in any case, got %d", c.reason, fakeNodeCount, got.options().Nodes)
		}
		for _, want := range c.says {
			if !strings.Contains(output.String(), want) {
				t.Errorf("%s: expected the output to contain %q, got %q", c.reason, want, output.String())
			}
		}
		if len(c.says) == 0 && output.Len() > 0 {
			t.Errorf("%s: expected no output, got %q", c.reason, output.String())
		}
	}
}
