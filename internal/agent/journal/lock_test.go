package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// content returns the modes and names of the files in a directory.
func content(t *testing.T, dir string) string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %s", info.Mode(), f.Name()))
	}
	return strings.Join(all, ", ")
}

func TestHold_SecondAgent_IsInUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lib", "agent")
	held, err := hold(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory is %v, %v, want mode 0700", info, err)
	}
	if got, want := content(t, dir), "-rw------- lock"; got != want {
		t.Errorf("the directory has %s, want %s", got, want)
	}
	_, err = hold(dir)
	if !errors.Is(err, ErrInUse) {
		t.Fatalf("a second agent gets %v, want ErrInUse", err)
	}
	for _, want := range []string{fmt.Sprintf("process %d on ", os.Getpid()), "stop that agent, or give each agent its own directory"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	if err := held.release(); err != nil {
		t.Fatal(err)
	}
	held, err = hold(dir)
	if err != nil {
		t.Fatalf("the next agent gets %v", err)
	}
	if err := held.release(); err != nil {
		t.Error(err)
	}
}

func TestHold_LockOfAKilledAgent_IsTaken(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "lock"), []byte("process 7 on a machine that is no more, with a long name"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil { // as in an emptyDir
		t.Fatal(err)
	}
	held, err := hold(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.release() //nolint:errcheck // other tests check it
	if text, err := os.ReadFile(filepath.Join(dir, "lock")); err != nil || !strings.HasPrefix(string(text), fmt.Sprintf("process %d on ", os.Getpid())) || strings.Contains(string(text), "no more") {
		t.Errorf("the lock says %q, %v", text, err)
	}
	if got, want := content(t, dir), "-rw------- lock"; got != want {
		t.Errorf("the directory has %s, want %s", got, want)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("the directory is %v, %v, want its mode unchanged", info, err)
	}
}

// Others may write to the directory. A link must not lead to another file, and a FIFO must not block.
func TestHold_LinkOrFIFO_IsNotFollowed(t *testing.T) {
	target := filepath.Join(t.TempDir(), "target")
	if err := os.WriteFile(target, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	linked, piped := t.TempDir(), t.TempDir()
	if err := os.Symlink(target, filepath.Join(linked, "lock")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"lock", "write-check"} {
		if err := syscall.Mkfifo(filepath.Join(piped, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if held, err := hold(linked); err == nil {
		t.Error("hold follows a link, want an error")
		_ = held.release()
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "kept" {
		t.Errorf("the target of the link has %q, %v, want it unchanged", text, err)
	}
	if held, err := hold(piped); err == nil {
		_ = held.release()
	}
}

func TestHold_UnusableDirectory_Fails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	taken := t.TempDir()
	if err := os.Mkdir(filepath.Join(taken, "lock"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ reason, dir, want string }{
		{"a file", file, "name a directory"},
		{"below a file", filepath.Join(file, "state"), "name a directory"},
		{"read-only even for root", "/proc", ""}, // the hint depends on the system
		{"the lock is a directory", taken, "lock: is a directory"},
	} {
		held, err := hold(tc.dir)
		if err == nil {
			t.Errorf("%s: hold returns no error", tc.reason)
			_ = held.release()
			continue
		}
		if !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
		}
	}
}

func TestHint_Errors_SayWhatToDo(t *testing.T) {
	for _, tc := range []struct {
		reason string
		err    error
		want   string
	}{
		{"no permission", syscall.EACCES, "set fsGroup"},
		{"not permitted", syscall.EPERM, "set fsGroup"},
		{"read-only", syscall.EROFS, "such as an emptyDir"},
		{"full", syscall.ENOSPC, "free some space"},
		{"no quota", syscall.EDQUOT, "free some space"},
		{"anything else", syscall.EIO, "name a directory in which the agent can create files"},
	} {
		got := hint(&fs.PathError{Op: "open", Path: "/state/lock", Err: tc.err})
		if !strings.Contains(got, tc.want) {
			t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
		}
	}
}
