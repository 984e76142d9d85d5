package postgres

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tieToParent makes the kernel end the child when the thread that starts it dies, so also when this process is killed:
// with the signal for PostgreSQL to end at once, and its own children with it.
func tieToParent(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGQUIT }

// children are the processes that a process has started, and that have not been reaped.
func children(parent int) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // its only error is a bad pattern
	var found []int
	for _, file := range files {
		raw, err := os.ReadFile(file) //nolint:gosec // of the kernel
		if err != nil {
			continue // it has ended
		}
		// PID (NAME) STATE PPID …, and a name may have any characters.
		fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			found = append(found, pid)
		}
	}
	return found
}

// awaitEnd waits until killed processes that are not our children are gone, or are zombies, which hold nothing.
func awaitEnd(pids []int) {
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for _, pid := range pids {
		for !ended(pid) {
			<-ticker.C
		}
	}
}

func ended(pid int) bool {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	return len(fields) == 0 || fields[0] == "Z" || fields[0] == "X"
}
