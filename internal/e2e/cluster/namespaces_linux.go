package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// giveNamespaces makes the child the first process of new namespaces. The kernel does not kill it with its parent: it detects the
// end of a pipe, and cleans up.
func giveNamespaces(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid: true,
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS |
			unix.CLONE_NEWIPC,
	}
}

// The namespaces of a node, in an order in which they can be entered.
var (
	allNamespaces    = []string{"ipc", "uts", "net", "pid", "mnt"}
	networkNamespace = []string{"net"}
)

// mayMakeNamespaces reports whether this process has the capability for it.
func mayMakeNamespaces() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	err := unix.Capget(&header, &sets[0])
	return err == nil && sets[unix.CAP_SYS_ADMIN/32].Effective&(1<<(unix.CAP_SYS_ADMIN%32)) != 0
}

func threadID() int { return unix.Gettid() }

// enter moves the calling thread, and what it starts, into namespaces of a process. See onOwnThread.
func enter(pid int, namespaces []string) error {
	// A thread that shares its root and working directory with others cannot change its mounts.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare root of thread: %w", err)
	}
	files := make([]*os.File, 0, len(namespaces))
	for _, name := range namespaces { // all before the first is entered: /proc is another one then
		file, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "ns", name)) //nolint:gosec // a process of our own
		if err != nil {
			return fmt.Errorf("open namespace: %w", err)
		}
		defer file.Close() //nolint:errcheck // it was only a handle
		files = append(files, file)
	}
	for i, file := range files {
		if err := unix.Setns(int(file.Fd()), 0); err != nil {
			return fmt.Errorf("enter namespace %s of process %d: %w", namespaces[i], pid, err)
		}
	}
	return nil
}
