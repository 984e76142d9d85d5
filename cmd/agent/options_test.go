package main

import (
	"strings"
	"testing"
)

// Profiles have no authentication, so they are served to the own machine or pod only.
func TestOptions_PprofBindAddress(t *testing.T) {
	for _, tt := range []struct {
		address string
		ok      bool
	}{
		{"", true},
		{"127.0.0.1:6060", true},
		{"[::1]:6060", true},
		{"localhost:6060", true},
		{":6060", false},
		{"0.0.0.0:6060", false},
		{"10.0.0.1:6060", false},
		{"6060", false},
	} {
		err := parse(t, "--pprof-bind-address="+tt.address).validate(nil)
		if (err == nil) != tt.ok {
			t.Errorf("%q: got error %v, want none: %t", tt.address, err, tt.ok)
		}
		if err != nil && !strings.Contains(err.Error(), "--pprof-bind-address") {
			t.Errorf("%q: the error does not name the flag: %v", tt.address, err)
		}
	}
}
