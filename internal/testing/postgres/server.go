package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// superuser is the superuser of the servers started here.
const superuser = "threeport"

// portAttempts is how often a port is chosen that another process may take first.
const portAttempts = 5

// Options say how a server is run.
type Options struct {
	// NoSync leaves out to wait for the disk: quicker, for tests that do not ask what survives a loss of power.
	NoSync bool
	// Settings are more of postgresql.conf, by name.
	Settings map[string]string
}

// Server is a running PostgreSQL. Its methods are not for use at once, but those of its databases.
type Server struct {
	programs string // folder
	dir      string // all that it writes
	lock     *os.File
	port     int
	password string
	options  Options
	process  *process
}

// Start makes a new, empty server, and waits until it answers. It outlives ctx; end it with [Server.Stop].
func Start(ctx context.Context, options Options) (_ *Server, err error) {
	programs, err := find()
	if err != nil {
		return nil, err
	}
	dir, lock, err := newDir()
	if err != nil {
		return nil, err
	}
	s := &Server{programs: programs, dir: dir, lock: lock, password: rand.Text(), options: options}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.remove())
		}
	}()
	if err := s.initialize(ctx); err != nil {
		return nil, err
	}
	for range portAttempts {
		if s.port, err = freePort(ctx); err != nil {
			return nil, err
		}
		if err = s.launch(ctx); !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// initialize makes the files of a new server.
func (s *Server) initialize(ctx context.Context) error {
	passwordFile := filepath.Join(s.dir, "password")
	if err := os.WriteFile(passwordFile, []byte(s.password), 0o600); err != nil {
		return fmt.Errorf("write password of PostgreSQL: %w", err)
	}
	for _, path := range []string{s.dir, passwordFile} {
		if err := giveToServer(path); err != nil {
			return fmt.Errorf("give files to the user of PostgreSQL: %w", err)
		}
	}
	cmd := command(ctx, s.dir, filepath.Join(s.programs, "initdb"), "--pgdata", s.data(), "--username", superuser,
		"--pwfile", passwordFile, "--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, strings.TrimSpace(string(output)))
	}
	return nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) logFile() string { return filepath.Join(s.dir, "log") }

// launch starts the program on the files that there are, and waits until it answers.
func (s *Server) launch(ctx context.Context) error {
	settings := map[string]string{
		"listen_addresses":           "127.0.0.1",
		"port":                       strconv.Itoa(s.port),
		"unix_socket_directories":    "",
		"max_connections":            "200",
		"dynamic_shared_memory_type": "mmap", // files of its own directory, which nothing outlives
		"timezone":                   "UTC",
	}
	if s.options.NoSync {
		settings["fsync"], settings["full_page_writes"], settings["synchronous_commit"] = "off", "off", "off"
	}
	args := []string{"-D", s.data()}
	for _, more := range []map[string]string{settings, s.options.Settings} {
		for name, value := range more {
			args = append(args, "-c", name+"="+value)
		}
	}
	started, err := startProcess(ctx, s.dir, s.logFile(), filepath.Join(s.programs, "postgres"), args...)
	if err != nil {
		return err
	}
	if err := s.awaitAnswer(ctx, started); err != nil {
		started.stop()
		return err
	}
	s.process = started
	return nil
}

// awaitAnswer waits until the server takes connections.
func (s *Server) awaitAnswer(ctx context.Context, started *process) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.Address("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-started.exited:
			return started.deathError()
		case <-ctx.Done():
			return fmt.Errorf("wait for PostgreSQL to answer: %w; the end of its log:\n%s", err, tail(s.logFile()))
		case <-ticker.C:
		}
	}
}

// Address is the URI of a database.
func (s *Server) Address(database string) string {
	uri := url.URL{
		Scheme: "postgres", User: url.UserPassword(superuser, s.password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return uri.String()
}

// Stop ends the server and removes its files.
func (s *Server) Stop() error {
	if s.process != nil {
		s.process.stop()
	}
	return s.remove()
}

// remove deletes the files.
func (s *Server) remove() error { return errors.Join(os.RemoveAll(s.dir), s.lock.Close()) }

// Kill ends all processes of the server at once, with SIGKILL, and waits until they are gone. What it had acknowledged
// is on its disk, and what it had not may be.
func (s *Server) Kill() {
	s.process.kill()
	s.process = nil
}

// Restart starts the server again on its files, after [Server.Kill] or while it runs; its addresses stay the same.
func (s *Server) Restart(ctx context.Context) error {
	if s.process != nil {
		s.process.stop()
		s.process = nil
	}
	return s.launch(ctx)
}

// Freeze makes the server hang, its connections with it, until [Server.Thaw].
func (s *Server) Freeze() { s.process.signalAll(syscall.SIGSTOP) }

// Thaw lets it go on.
func (s *Server) Thaw() { s.process.signalAll(syscall.SIGCONT) }

func freePort(ctx context.Context) (int, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, listener.Close()
}
