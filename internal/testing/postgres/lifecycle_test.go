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

// start starts a server that ends with the test.
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

// The tests of a server share one, since making it is most of their time.
func TestServer(t *testing.T) {
	if err := Find(); err != nil {
		t.Log("Not tested:", err)
		return
	}
	server := start(t, Options{Settings: map[string]string{"work_mem": "5MB"}})
	removeDead(filepath.Dir(server.dir)) // which it is not
	t.Run("each database is its own", func(t *testing.T) { eachDatabaseIsItsOwn(t, server) })
	t.Run("a frozen server hangs", func(t *testing.T) { frozenServerHangs(t, server) })
	t.Run("what was committed survives kill", func(t *testing.T) { committedSurvivesKill(t, server) })
}

// query runs a statement on a connection of its own, and returns the text that it gives.
func query(ctx context.Context, address, statement string) (text string, err error) {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx) //nolint:errcheck // what it gave is known
	err = conn.QueryRow(ctx, statement).Scan(&text)
	return text, err
}

func eachDatabaseIsItsOwn(t *testing.T, server *Server) {
	t.Helper()
	template, err := server.CreateDatabase(t.Context(), "template", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := query(t.Context(), template, "CREATE TABLE marks (mark TEXT); INSERT INTO marks VALUES ('kept') RETURNING mark"); err == nil {
		t.Fatal("two statements in one were taken") // the extended protocol has one
	}
	for _, statement := range []string{"CREATE TABLE marks (mark TEXT)", "INSERT INTO marks VALUES ('kept')"} {
		if _, err := query(t.Context(), template, statement); err != nil && err != pgx.ErrNoRows { //nolint:errorlint // returned as it is
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

func committedSurvivesKill(t *testing.T, server *Server) {
	t.Helper()
	address := server.Address("postgres")
	if got, err := query(t.Context(), address, "SHOW fsync"); err != nil || got != "on" {
		t.Errorf("fsync is %q, %v: by default nothing is to be lost", got, err)
	}
	if _, err := query(t.Context(), address, "CREATE TABLE marks AS SELECT 'kept' AS mark"); err != pgx.ErrNoRows { //nolint:errorlint // returned as it is
		t.Fatal(err)
	}
	others := children(server.process.pid)
	if runtime.GOOS == "linux" && len(others) == 0 {
		t.Error("a server has processes of its own, and none was found")
	}
	server.Kill()
	if _, err := query(t.Context(), address, "SELECT 'there'"); err == nil {
		t.Error("a killed server answers")
	}
	for _, pid := range others {
		if !ended(pid) {
			t.Errorf("process %d of the killed server lives", pid)
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

// A server must not outlive the process that started it, even if that is killed.
func TestServerEndsWithItsParent(t *testing.T) {
	if Find() != nil || runtime.GOOS != "linux" {
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
		t.Fatalf("the parent said %q, %v", line, err)
	}
	all := append(children(pid), pid)
	if len(all) < 2 || ended(pid) {
		t.Errorf("the server has the processes %v", all)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	awaitEnd(all) // or the test's own time limit
	removeDead(filepath.Dir(dir))
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the files of a dead server stay: %v", err)
	}
}

func TestFindPrefersTheNewest(t *testing.T) {
	if a, b := version("/usr/lib/postgresql/9.6/bin"), version("/usr/lib/postgresql/15/bin"); a >= b {
		t.Errorf("9.6 is %v, 15 is %v", a, b)
	}
	dir := t.TempDir()
	if complete(dir) {
		t.Error("an empty folder has all programs")
	}
	for _, name := range []string{"postgres", "initdb"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if !complete(dir) {
		t.Error("a folder with all programs is not complete")
	}
}
