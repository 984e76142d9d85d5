package main

import (
	"errors"
	"flag"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/threeport/threeport-agent/internal/agent/journal"
)

func TestOpenState_Default(t *testing.T) {
	state, err := openState(newOptions(flag.NewFlagSet("agent", flag.ContinueOnError)).stateDir)
	if err != nil || state != nil {
		t.Errorf("got %v, %v, want none", state, err)
	}
}

func TestRun_LocksTheStateFirst(t *testing.T) {
	dir := t.TempDir()
	held, err := journal.Open(dir, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close() //nolint:errcheck // other tests are about that
	o := newOptions(flag.NewFlagSet("agent", flag.ContinueOnError))
	o.stateDir = dir
	err = run(t.Context(), o)
	if !errors.Is(err, journal.ErrInUse) {
		t.Fatalf("got %v, want that the folder is in use, before the cluster is looked for", err)
	}
	if !strings.HasPrefix(err.Error(), "--state-dir="+dir+": ") {
		t.Errorf("the error does not name the flag: %v", err)
	}
}
