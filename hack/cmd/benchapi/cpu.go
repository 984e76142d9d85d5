package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// readStat returns the fields of /proc/PID/stat from field 3 of proc(5) on, the state.
func readStat(pid int) ([]string, error) {
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

// parentOf returns the parent of a process.
func parentOf(pid int) (int, error) {
	fields, err := readStat(pid)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(fields[1])
}

// ticksPerSecond is the number of clock ticks a second (USER_HZ), the same on all architectures of Go.
const ticksPerSecond = 100

// cpuTime returns the CPU time of a process and its children, including ended ones.
func cpuTime(pid int) (time.Duration, error) {
	total, err := sumTimes(pid, 4)
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
		if parent, err := parentOf(child); err != nil || parent != pid {
			continue // the child of another process, or it has ended
		}
		if own, err := sumTimes(child, 2); err == nil {
			total += own
		}
	}
	return total, nil
}

// sumTimes returns the sum of the first fields of utime, stime, cutime and cstime.
func sumTimes(pid, fields int) (time.Duration, error) {
	all, err := readStat(pid)
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
	return time.Duration(sum) * time.Second / ticksPerSecond, nil
}

// cpuTimes returns the CPU time of the API and the database since their start.
func (w *benchmark) cpuTimes() (api, db time.Duration, err error) {
	if api, err = cpuTime(w.server.PID()); err != nil || w.db.pid == 0 {
		return api, 0, err
	}
	db, err = cpuTime(w.db.pid)
	return api, db, err
}
