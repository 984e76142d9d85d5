package postgres

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// start starts a server and stops it at the end of the test.
func start(t *testing.T, options Options) *Server {
	t.Helper()
	server, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// The subtests share a server, since its initialization takes most of their time.
func TestServer(t *testing.T) {
	if err := Installed(); err != nil {
		t.Log("PostgreSQL is not tested:", err)
		return
	}
	server := start(t, Options{Settings: map[string]string{"work_mem": "5MB"}})
	removeStaleDirs(filepath.Dir(server.dir)) // must not remove the directory of a running server
	t.Run("databases are separate", func(t *testing.T) { databasesAreSeparate(t, server) })
	t.Run("a frozen server hangs", func(t *testing.T) { frozenServerHangs(t, server) })
	t.Run("commits survive a kill", func(t *testing.T) { commitsSurviveKill(t, server) })
}

// query runs a statement on a new connection and returns its only value.
func query(ctx context.Context, address, statement string) (text string, err error) {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx) //nolint:errcheck // the result is known
	err = conn.QueryRow(ctx, statement).Scan(&text)
	return text, err
}

func databasesAreSeparate(t *testing.T, server *Server) {
	t.Helper()
	template, err := server.CreateDatabase(t.Context(), "template", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := query(t.Context(), template, "CREATE TABLE marks (mark TEXT); INSERT INTO marks VALUES ('kept') RETURNING mark"); err == nil {
		t.Fatal("a query with two statements was accepted") // the extended protocol allows only one
	}
	for _, statement := range []string{"CREATE TABLE marks (mark TEXT)", "INSERT INTO marks VALUES ('kept')"} {
		if _, err := query(t.Context(), template, statement); err != nil && err != pgx.ErrNoRows { //nolint:errorlint // not wrapped
			t.Fatal(err)
		}
	}
	copied, err := server.CreateDatabase(t.Context(), `a "quoted" name`, "template")
	if err != nil {
		t.Fatal(err)
	}
	for statement, want := range map[string]string{
		"SELECT mark FROM marks": "kept", "SHOW fsync": "on", "SHOW work_mem": "5MB", "SHOW listen_addresses": "127.0.0.1",
		"SELECT current_database()": `a "quoted" name`,
	} {
		if got, err := query(t.Context(), copied, statement); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", statement, got, err, want)
		}
	}
	if err := server.DropDatabase(t.Context(), "template"); err != nil {
		t.Error(err)
	}
	if _, err := query(t.Context(), template, "SELECT 'there'"); err == nil {
		t.Error("a dropped database answers")
	}
	if got, err := query(t.Context(), strings.Replace(copied, server.password, "wrong", 1), "SELECT 'in'"); err == nil {
		t.Errorf("a wrong password got %q", got)
	}
}

func commitsSurviveKill(t *testing.T, server *Server) {
	t.Helper()
	address := server.Address("postgres")
	if got, err := query(t.Context(), address, "SHOW fsync"); err != nil || got != "on" {
		t.Errorf("fsync is %q, %v: by default nothing is to be lost", got, err)
	}
	if _, err := query(t.Context(), address, "CREATE TABLE marks AS SELECT 'kept' AS mark"); err != pgx.ErrNoRows { //nolint:errorlint // not wrapped
		t.Fatal(err)
	}
	others := children(server.process.pid)
	if runtime.GOOS == "linux" && len(others) == 0 {
		t.Error("a server has no child processes")
	}
	server.Kill()
	if _, err := query(t.Context(), address, "SELECT 'there'"); err == nil {
		t.Error("a killed server answers")
	}
	for _, pid := range others {
		if !hasExited(pid) {
			t.Errorf("process %d of the killed server is running", pid)
		}
	}
	for range 2 { // after a crash, and while it runs
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := query(t.Context(), address, "SELECT mark FROM marks"); err != nil || got != "kept" {
			t.Errorf("after a restart: %q, %v", got, err)
		}
	}
}

func frozenServerHangs(t *testing.T, server *Server) {
	t.Helper()
	server.Freeze()
	brief, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := query(brief, server.Address("postgres"), "SELECT 'there'"); brief.Err() == nil {
		t.Errorf("a frozen server answered: %v", err)
	}
	server.Thaw()
	if _, err := query(t.Context(), server.Address("postgres"), "SELECT 'there'"); err != nil {
		t.Error(err)
	}
}

// A server must not outlive its parent process, even if that is killed.
func TestServer_ParentKilled_Stops(t *testing.T) {
	if Installed() != nil || runtime.GOOS != "linux" {
		return
	}
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), helperEnv+"=1")
	parent.Stderr = t.Output()
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	var dir string
	var pid int
	if _, scanErr := fmt.Sscan(line, &dir, &pid); err != nil || scanErr != nil {
		t.Fatalf("the parent printed %q, %v", line, err)
	}
	all := append(children(pid), pid)
	if len(all) < 2 || hasExited(pid) {
		t.Errorf("the server's processes are %v", all)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	waitForExit(all) // up to the time limit of the tests
	removeStaleDirs(filepath.Dir(dir))
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the files of a killed server still exist: %v", err)
	}
}

func TestInstalled_PrefersNewest(t *testing.T) {
	if a, b := version("/usr/lib/postgresql/9.6/bin"), version("/usr/lib/postgresql/15/bin"); a >= b {
		t.Errorf("9.6 is %v, 15 is %v", a, b)
	}
	dir := t.TempDir()
	if hasPrograms(dir) {
		t.Error("an empty directory has all programs")
	}
	for _, name := range []string{"postgres", "initdb"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if !hasPrograms(dir) {
		t.Error("a directory with all programs is incomplete")
	}
}
