package postgres

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// serverIdentity returns the user that runs the server; ok is false if it is the current one.
func serverIdentity() (uid, gid int, ok bool) {
	if os.Geteuid() != 0 {
		return 0, 0, false
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(found.Uid)
		gid, gidErr := strconv.Atoi(found.Gid)
		if uidErr == nil && gidErr == nil {
			return uid, gid, true
		}
	}
	return 0, 0, false // the server will refuse to run as root
}

// runAsServer makes a command run as the server's user.
func runAsServer(cmd *exec.Cmd) {
	if uid, gid, ok := serverIdentity(); ok {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)} //nolint:gosec // IDs of the system
	}
}

// chownToServer makes the server's user the owner of a path.
func chownToServer(path string) error {
	if uid, gid, ok := serverIdentity(); ok {
		return os.Chown(path, uid, gid)
	}
	return nil
}
