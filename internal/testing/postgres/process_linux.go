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

// killWithParent makes the kernel signal the child when the thread that started it ends, for example because this
// process was killed. SIGQUIT is PostgreSQL's immediate shutdown, which includes its children.
func killWithParent(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGQUIT }

// children returns the child processes of a process that were not reaped.
func children(parent int) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the only error is a bad pattern
	var found []int
	for _, file := range files {
		raw, err := os.ReadFile(file) //nolint:gosec // a file of the kernel
		if err != nil {
			continue // it has exited
		}
		// PID (NAME) STATE PPID …; NAME can contain any characters.
		fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			found = append(found, pid)
		}
	}
	return found
}

// waitForExit waits until killed processes, which are not our children, have exited or are zombies.
func waitForExit(pids []int) {
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for _, pid := range pids {
		for !hasExited(pid) {
			<-ticker.C
		}
	}
}

func hasExited(pid int) bool {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	return len(fields) == 0 || fields[0] == "Z" || fields[0] == "X"
}
