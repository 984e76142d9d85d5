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
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// superuser is the name of the servers' superuser.
const superuser = "threeport"

// portAttempts limits the attempts to find a free port.
const portAttempts = 5

// Options configure a server.
type Options struct {
	// NoSync disables fsync: faster, for tests that need no durability.
	NoSync bool
	// Settings are additional parameters of postgresql.conf.
	Settings map[string]string
}

// Server is a running PostgreSQL. Its methods must not be called concurrently, except CreateDatabase, DropDatabase and
// Address.
type Server struct {
	programs string // directory
	dir      string // directory of all its files
	lock     *os.File
	port     int
	password string
	options  Options
	process  *process

	mu    sync.Mutex
	admin *pgx.Conn // for exec; nil before the first call
}

// Start initializes a new server and waits until it answers. The server outlives ctx; stop it with [Server.Stop].
func Start(ctx context.Context, options Options) (_ *Server, err error) {
	programs, err := findPrograms()
	if err != nil {
		return nil, err
	}
	dir, lock, err := newDir(parentOf(options))
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

// initialize creates the files of a new server.
func (s *Server) initialize(ctx context.Context) error {
	passwordFile := filepath.Join(s.dir, "password")
	if err := os.WriteFile(passwordFile, []byte(s.password), 0o600); err != nil {
		return fmt.Errorf("write password of PostgreSQL: %w", err)
	}
	for _, path := range []string{s.dir, passwordFile} {
		if err := chownToServer(path); err != nil {
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

// launch starts the server and waits until it answers.
func (s *Server) launch(ctx context.Context) error {
	settings := map[string]string{
		"listen_addresses":           "127.0.0.1",
		"port":                       strconv.Itoa(s.port),
		"unix_socket_directories":    "",
		"max_connections":            "200",
		"dynamic_shared_memory_type": "mmap", // files in its own directory, removed by Stop
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
	if err := s.waitUntilReady(ctx, started); err != nil {
		started.stop()
		return err
	}
	s.process = started
	return nil
}

// waitUntilReady waits until the server accepts connections.
func (s *Server) waitUntilReady(ctx context.Context, started *process) error {
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
			return started.exitError()
		case <-ctx.Done():
			return fmt.Errorf("wait for PostgreSQL to answer: %w; the end of its log:\n%s", err, tail(s.logFile()))
		case <-ticker.C:
		}
	}
}

// Address returns the URI of a database.
func (s *Server) Address(database string) string {
	uri := url.URL{
		Scheme: "postgres", User: url.UserPassword(superuser, s.password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return uri.String()
}

// Stop stops the server and removes its files.
func (s *Server) Stop() error {
	if s.admin != nil {
		_ = s.admin.PgConn().Conn().Close() // the server may have been killed
	}
	if s.process != nil {
		s.process.stop()
	}
	return s.remove()
}

// remove removes the files.
func (s *Server) remove() error { return errors.Join(os.RemoveAll(s.dir), s.lock.Close()) }

// Kill kills all processes of the server with SIGKILL, and waits until they have exited. Acknowledged commits are on
// disk, and others may be.
func (s *Server) Kill() {
	s.process.kill()
	s.process = nil
}

// Restart starts the server again with the same files and addresses, after [Server.Kill] or while it runs.
func (s *Server) Restart(ctx context.Context) error {
	if s.process != nil {
		s.process.stop()
		s.process = nil
	}
	return s.launch(ctx)
}

// Freeze stops the server and its connections from running, until [Server.Thaw].
func (s *Server) Freeze() { s.process.signalAll(syscall.SIGSTOP) }

// Thaw continues a frozen server.
func (s *Server) Thaw() { s.process.signalAll(syscall.SIGCONT) }

func freePort(ctx context.Context) (int, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, listener.Close()
}

// CreateDatabase creates a database and returns its address. It copies the template, which must have no connections; an
// empty template creates an empty database.
func (s *Server) CreateDatabase(ctx context.Context, name, template string) (address string, err error) {
	statement := "CREATE DATABASE " + pgx.Identifier{name}.Sanitize()
	if template != "" {
		statement += " TEMPLATE " + pgx.Identifier{template}.Sanitize()
	}
	if err := s.exec(ctx, statement); err != nil {
		return "", fmt.Errorf("create database %s: %w", name, err)
	}
	return s.Address(name), nil
}

// DropDatabase drops a database and closes its connections.
func (s *Server) DropDatabase(ctx context.Context, name string) error {
	if err := s.exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

// exec runs a statement. All calls share a connection, because a new one costs the server about 40 ms of CPU.
func (s *Server) exec(ctx context.Context, statement string) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.admin == nil || s.admin.IsClosed() {
		if s.admin, err = pgx.Connect(ctx, s.Address("postgres")); err != nil {
			return err
		}
	}
	_, err = s.admin.Exec(ctx, statement)
	return err
}
