// Package cgroup creates and removes the parent control group of a node's pods.
package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// removePoll is the interval of attempts to remove a group with ending processes.
const removePoll = 20 * time.Millisecond

// hierarchy is a mounted tree of control groups: the only one (version 2), or that of some controllers (version 1).
type hierarchy struct {
	path    string
	version int
}

// hierarchies returns what is mounted.
func hierarchies() ([]hierarchy, error) {
	mounts, err := os.Open("/proc/self/mounts")
	if err != nil {
		return nil, fmt.Errorf("list control group hierarchies: %w", err)
	}
	defer mounts.Close() //nolint:errcheck // it was only read
	var found []hierarchy
	lines := bufio.NewScanner(mounts)
	for lines.Scan() {
		fields := strings.Fields(lines.Text()) // device, mount point, type, …
		if len(fields) < 3 {
			continue
		}
		switch fields[2] {
		case "cgroup":
			found = append(found, hierarchy{fields[1], 1})
		case "cgroup2":
			found = append(found, hierarchy{fields[1], 2})
		}
	}
	return found, lines.Err()
}

// Create creates a group, given by its path from the root, in every hierarchy, with all available controllers.
func Create(group string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		if err := h.delegate(); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(h.path, group), 0o755); err != nil { //nolint:gosec // groups are readable by all
			return fmt.Errorf("create control group: %w", err)
		}
	}
	return nil
}

// needed lists the controllers that a kubelet requires with version 2.
var needed = []string{"cpu", "cpuset", "io", "memory", "pids"}

// delegate gives the controllers to the groups below the root, which version 2 does not do by itself. They stay
// enabled, as on most machines.
func (h hierarchy) delegate() error {
	if h.version == 1 {
		return nil
	}
	raw, err := os.ReadFile(filepath.Join(h.path, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("read controllers: %w", err)
	}
	for controller := range strings.FieldsSeq(string(raw)) {
		if !slices.Contains(needed, controller) {
			continue
		}
		err := os.WriteFile(filepath.Join(h.path, "cgroup.subtree_control"), []byte("+"+controller), 0)
		if err != nil {
			return fmt.Errorf("enable control group controller %s for groups below %s (with version 2 that takes a root group "+
				"without processes, as systemd leaves it): %w", controller, h.path, err)
		}
	}
	return nil
}

// Remove removes a group and its descendants from every hierarchy. It waits for a while for their processes to end. A missing group
// is no error.
func Remove(group string, limit time.Duration) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	ticker := time.NewTicker(removePoll)
	defer ticker.Stop()
	for {
		var errs []error
		for _, h := range all {
			errs = append(errs, removeTree(filepath.Join(h.path, group)))
		}
		err := errors.Join(errs...)
		if err == nil {
			return nil
		}
		select {
		case <-timeout.C:
			return err
		case <-ticker.C:
		}
	}
}

// removeTree removes a group after the groups below it. The kernel rejects the rmdir of a group with children.
func removeTree(root string) error {
	var groups []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // it went meanwhile
			return nil
		case err != nil:
			return err
		case entry.IsDir():
			groups = append(groups, path)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list control groups: %w", err)
	}
	for _, group := range slices.Backward(groups) {
		if err := os.Remove(group); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove control group: %w", err)
		}
	}
	return nil
}
