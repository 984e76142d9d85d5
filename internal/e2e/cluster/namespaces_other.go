//go:build unix && !linux

package cluster

import (
	"errors"
	"os/exec"
)

// Only Linux has namespaces; findMachine has refused before one of these is called.

var (
	allNamespaces    []string
	networkNamespace []string
)

func giveNamespaces(*exec.Cmd) {}

func mayMakeNamespaces() bool { return false }

func threadID() int { return 0 }

func enter(int, []string) error { return errors.ErrUnsupported }
