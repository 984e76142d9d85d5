package main

import (
	"errors"
	"flag"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/threeport/threeport-agent/internal/agent/journal"
)

func TestOpenState_NoFlag_IsNil(t *testing.T) {
	state, err := openState(newOptions(flag.NewFlagSet("agent", flag.ContinueOnError)).stateDir)
	if err != nil || state != nil {
		t.Errorf("got %v, %v, want nil", state, err)
	}
}

func TestRun_StateDirInUse_FailsFirst(t *testing.T) {
	dir := t.TempDir()
	held, err := journal.Open(dir, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close() //nolint:errcheck // other tests check it
	o := newOptions(flag.NewFlagSet("agent", flag.ContinueOnError))
	o.stateDir = dir
	err = run(t.Context(), o, nil)
	if !errors.Is(err, journal.ErrInUse) {
		t.Fatalf("got %v, want ErrInUse, before the agent connects to the cluster", err)
	}
	if !strings.HasPrefix(err.Error(), "--state-dir="+dir+": ") {
		t.Errorf("the error does not begin with the flag: %v", err)
	}
}
