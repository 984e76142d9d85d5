package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// stat returns the fields of a process's /proc/PID/stat from its state on, which is number 3 in proc(5).
func stat(pid int) ([]string, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, fmt.Errorf("read state of process %d: %w", pid, err)
	}
	text := string(raw)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // a name may have any characters
	if len(fields) < 15 {
		return nil, fmt.Errorf("read state of process %d: %q has %d fields", pid, text, len(fields))
	}
	return fields, nil
}

// parent returns the process that started one.
func parent(pid int) (int, error) {
	fields, err := stat(pid)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(fields[1])
}

// ticks are the kernel's in a second for user space, on every architecture that Go has.
const ticks = 100

// cpuTime returns the time of cores that a process and its children, those that have ended too, have used.
func cpuTime(pid int) (time.Duration, error) {
	total, err := ownTime(pid, 4)
	if err != nil {
		return 0, err
	}
	files, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		child, err := strconv.Atoi(filepath.Base(file))
		if err != nil {
			continue
		}
		if of, err := parent(child); err != nil || of != pid {
			continue // another's, or it has ended
		}
		if own, err := ownTime(child, 2); err == nil {
			total += own
		}
	}
	return total, nil
}

// ownTime sums up the first of utime, stime, cutime and cstime.
func ownTime(pid, fields int) (time.Duration, error) {
	all, err := stat(pid)
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, field := range all[11 : 11+fields] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read state of process %d: %w", pid, err)
		}
		sum += n
	}
	return time.Duration(sum) * time.Second / ticks, nil
}

// used returns what API and database have used of the cores since they were started.
func (w *world) used() (api, db time.Duration, err error) {
	if api, err = cpuTime(w.server.PID()); err != nil || w.db.pid == 0 {
		return api, 0, err
	}
	db, err = cpuTime(w.db.pid)
	return api, db, err
}
