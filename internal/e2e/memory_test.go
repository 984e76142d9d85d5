package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// searchMemory searches all writable memory of a process for a text (Linux).
func searchMemory(pid int, text string) (where string, found bool, err error) {
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return "", false, err
	}
	defer maps.Close() //nolint:errcheck // only read
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return "", false, err
	}
	defer memory.Close() //nolint:errcheck // only read
	chunk := make([]byte, 1<<20)
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to int64
		var permissions string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &permissions); err != nil || !strings.HasPrefix(permissions, "rw") {
			continue
		}
		for at := from; at < to; at += int64(len(chunk) - len(text)) {
			n, err := memory.ReadAt(chunk[:min(int64(len(chunk)), to-at)], at)
			if err != nil && err != io.EOF {
				break // a guard page
			}
			if i := bytes.Index(chunk[:n], []byte(text)); i >= 0 {
				return fmt.Sprintf("at %x in %s: %q", at+int64(i), lines.Text(), chunk[max(0, i-80):min(n, i+80)]), true, nil
			}
		}
	}
	return "", false, nil
}

// startAgentIn starts the agent with a folder as its home and temporary folder. It has no race detector, whose shadow memory is
// terabytes.
func (w *agentWorld) startAgentIn(dir string) {
	w.Helper()
	w.command = world.Command{Path: shared.plainAgent, Env: []string{"HOME=" + dir, "TMPDIR=" + dir}}
	w.startAgent()
}

// addFiles adds the contents of the files below a folder.
func addFiles(dir string, places map[string]string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		places["file "+path] = string(text)
		return err
	})
}

func expectWithout(t *testing.T, place string, text []byte, secrets ...string) {
	t.Helper()
	for _, secret := range secrets {
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("%s contains the Secret's value", place)
		}
	}
}
