package process

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

// ParentOf returns the parent of a process.
func ParentOf(pid int) (int, error) {
	fields, err := readStat(pid)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(fields[1])
}

// ticksPerSecond is the number of clock ticks a second (USER_HZ), the same on all architectures of Go.
const ticksPerSecond = 100

// CPUTime returns the CPU time of a process and its children, including ended ones.
func CPUTime(pid int) (time.Duration, error) {
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
		if parent, err := ParentOf(child); err != nil || parent != pid {
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

// ReadBytes returns how many bytes a process has read, from files and connections (rchar of /proc/PID/io).
func ReadBytes(pid int) (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return 0, fmt.Errorf("read the I/O of process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(raw)) {
		if count, ok := strings.CutPrefix(line, "rchar: "); ok {
			return strconv.ParseInt(strings.TrimSpace(count), 10, 64)
		}
	}
	return 0, fmt.Errorf("read the I/O of process %d: no field rchar", pid)
}

// ResetPeak makes [PeakResidentBytes] count from now on.
func ResetPeak(pid int) error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return fmt.Errorf("reset the peak of process %d: %w", pid, err)
	}
	return nil
}
