package postgres

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// serverIdentity is the user that the server is run as; ok is false if that is us.
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
	return 0, 0, false // the server will say that it is not to be root
}

// runAsServer makes a command run as the server's user.
func runAsServer(cmd *exec.Cmd) {
	if uid, gid, ok := serverIdentity(); ok {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)} //nolint:gosec // IDs of the system
	}
}

// giveToServer makes the server's user the owner of a path.
func giveToServer(path string) error {
	if uid, gid, ok := serverIdentity(); ok {
		return os.Chown(path, uid, gid)
	}
	return nil
}
