// Package apiserver starts a real Kubernetes API server for the tests of a package.
//
// The server runs in a process of its own, which Go builds from the module internal/e2e: so what tests need is not
// among the requirements of the programs. The process ends with the test process, also if that is killed.
package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// program is the package of the process, in the folder of the module internal/e2e.
const (
	folder  = "internal/e2e"
	program = "./cluster/apiserver"
)

// Requests a second of the clients. The API server limits tests, and not a client's default of 5 a second.
const (
	clientQPS   = 1000
	clientBurst = 2000
)

// Server is a running API server. It is safe for concurrent use.
type Server struct {
	cmd   *exec.Cmd
	stdin io.Closer
	admin *rest.Config

	mu      sync.Mutex // one request at a time
	encoder *json.Encoder
	decoder *json.Decoder
}

type request struct {
	Operation string
	User      string   `json:",omitempty"`
	Groups    []string `json:",omitempty"`
}

type answer struct{ Kubeconfig, Error string }

// Start returns when the API server is ready. The first start on a machine builds etcd and Kubernetes, which takes minutes.
func Start() (*Server, error) {
	root, err := sourceTree()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "-C", filepath.Join(root, folder), "run", program) //nolint:gosec,noctx // the project's own; Stop ends it
	// make builds programs without cgo, so both share the build cache.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start API server: %w", err)
	}
	s := &Server{cmd: cmd, stdin: stdin, encoder: json.NewEncoder(stdin), decoder: json.NewDecoder(stdout)}
	var ready answer
	err = s.decoder.Decode(&ready)
	if err == nil {
		_, s.admin, err = load(ready)
	}
	if err != nil {
		return nil, fmt.Errorf("start API server: %w", errors.Join(err, s.Stop()))
	}
	return s, nil
}

// Config is the administrator's configuration.
func (s *Server) Config() *rest.Config { return rest.CopyConfig(s.admin) }

// User makes a user with a client certificate, who may do what RBAC grants to the name and the groups. It returns the
// path of a kubeconfig, and the same as a configuration.
func (s *Server) User(name string, groups ...string) (kubeconfig string, config *rest.Config, err error) {
	a, err := s.do(request{Operation: "user", User: name, Groups: groups})
	if err != nil {
		return "", nil, err
	}
	return load(a)
}

// Kill ends the API server with SIGKILL. Restart starts it again.
func (s *Server) Kill() error {
	_, err := s.do(request{Operation: "kill"})
	return err
}

// Restart ends the API server if it runs, starts it again on the same port and with the same storage, and returns when it
// is ready.
func (s *Server) Restart() error {
	_, err := s.do(request{Operation: "restart"})
	return err
}

// Stop ends the API server and its etcd, and removes their files.
func (s *Server) Stop() error {
	if err := errors.Join(s.stdin.Close(), s.cmd.Wait()); err != nil {
		return fmt.Errorf("stop API server: %w", err)
	}
	return nil
}

func (s *Server) do(r request) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var a answer
	if err := s.encoder.Encode(r); err != nil {
		return a, fmt.Errorf("API server: %s: %w", r.Operation, err)
	}
	if err := s.decoder.Decode(&a); err != nil {
		return a, fmt.Errorf("API server: %s: %w", r.Operation, err)
	}
	if a.Error != "" {
		return a, fmt.Errorf("API server: %s: %s", r.Operation, a.Error)
	}
	return a, nil
}

// load reads the kubeconfig of an answer.
func load(a answer) (kubeconfig string, config *rest.Config, err error) {
	if a.Error != "" {
		return "", nil, errors.New(a.Error)
	}
	config, err = clientcmd.BuildConfigFromFlags("", a.Kubeconfig)
	if err != nil {
		return "", nil, err
	}
	config.QPS, config.Burst = clientQPS, clientBurst
	return a.Kubeconfig, config, nil
}

// sourceTree returns the folder of the module threeport-agent. It asks the go command, because Go does not reuse the result of
// a test in another checkout if the test itself reads the working directory.
func sourceTree() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/threeport/threeport-agent").Output() //nolint:noctx // immediate
	if err != nil {
		return "", fmt.Errorf("find the source tree of threeport-agent: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
