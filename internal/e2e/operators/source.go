package operators

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/cgi" //nolint:gosec // Go is newer than that fault
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/e2e/process"
)

// sourceAddress is the address of the source in manifests and recordings, and storageAddress that of Flux's artifacts.
const (
	sourceAddress  = "127.0.0.1:8080"
	storageAddress = "127.0.0.1:9090"
)

// written dates all files of the source, so that their digests are the same in every run.
var written = time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)

// source serves what Flux reads: a Git repository, a repository of Helm charts, and a registry of OCI artifacts.
type source struct {
	address string
	server  *http.Server
	done    chan struct{}
}

// files are the files of the Git repository and the OCI artifact.
func files() map[string]string {
	settings := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {color: blue}\n"
	deployment := func(annotation string) string {
		return `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {` + annotation + `}}
    spec: {containers: [{name: web, image: "localhost/behave:1"}]}
`
	}
	return map[string]string{
		"settings/settings.yaml": settings,
		"web/web.yaml":           deployment(""),
		"crashing/web.yaml":      deployment("kwok.threeport.io/behaviour: crash-loop"),
		"unready/web.yaml":       deployment("kwok.threeport.io/behaviour: not-ready"),
		"invalid/settings.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n",
		"broken/settings.yaml":   "kind: [\n",
	}
}

// startSource starts the server. Its files are in a folder.
func startSource(ctx context.Context, dir string) (*source, error) {
	if err := commit(ctx, filepath.Join(dir, "app.git")); err != nil {
		return nil, err
	}
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("find git: %w", err)
	}
	address, err := process.FreeAddress()
	if err != nil {
		return nil, err
	}
	chart, err := archive(map[string]string{
		"web/Chart.yaml":              "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"web/templates/settings.yaml": files()["settings/settings.yaml"],
	})
	if err != nil {
		return nil, err
	}
	oci, err := registry()
	if err != nil {
		return nil, err
	}
	index := "apiVersion: v1\nentries:\n  web:\n  - {apiVersion: v2, name: web, version: 1.0.0, created: '2026-01-01T10:00:00Z', urls: [web-1.0.0.tgz]}\n"
	mux := http.NewServeMux()
	mux.Handle("/git/", &cgi.Handler{
		Path: git, Args: []string{"http-backend"}, Root: "/git",
		Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"},
	})
	mux.HandleFunc("/charts/index.yaml", serve(index))
	mux.HandleFunc("/charts/web-1.0.0.tgz", serve(string(chart)))
	mux.HandleFunc("/no-charts/index.yaml", serve("this is no index of charts\n"))
	mux.Handle("/v2/", oci)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	s := &source{address: address, done: make(chan struct{}), server: &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}}
	go func() {
		defer close(s.done)
		_ = s.server.Serve(listener) // its clients report a server that does not answer
	}()
	return s, nil
}

func serve(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
}

func (s *source) stop() {
	_ = s.server.Close()
	<-s.done
}

// commit makes a bare Git repository with the files in the branch main.
func commit(ctx context.Context, dir string) error {
	work := dir + ".work"
	for file, text := range files() {
		to := filepath.Join(work, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, []byte(text), 0o600)); err != nil {
			return err
		}
	}
	at := written.Format(time.RFC3339)
	for _, args := range [][]string{
		{"init", "-q", "-b", "main", work},
		{"-C", work, "add", "."},
		{"-C", work, "commit", "-q", "-m", "Add the app"},
		{"clone", "-q", "--bare", work, dir},
	} {
		cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // fixed commands
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + work, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_DATE=" + at, "GIT_COMMITTER_DATE=" + at,
			"GIT_AUTHOR_NAME=app", "GIT_AUTHOR_EMAIL=app@example.org", "GIT_COMMITTER_NAME=app", "GIT_COMMITTER_EMAIL=app@example.org",
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

// registry serves an OCI artifact with the files as app:1.0.0. A client can pull it, and nothing else.
func registry() (http.Handler, error) {
	layer, err := archive(files())
	if err != nil {
		return nil, err
	}
	config := []byte("{}")
	blob := func(mediaType string, content []byte) map[string]any {
		return map[string]any{"mediaType": mediaType, "digest": digestOf(content), "size": len(content)}
	}
	const manifestType = "application/vnd.oci.image.manifest.v1+json"
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": blob("application/vnd.cncf.flux.config.v1+json", config),
		"layers": []any{blob("application/vnd.cncf.flux.content.v1.tar+gzip", layer)},
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/{$}", serve("{}"))
	for reference, content := range map[string][]byte{
		"manifests/1.0.0": manifest, "manifests/" + digestOf(manifest): manifest,
		"blobs/" + digestOf(config): config, "blobs/" + digestOf(layer): layer,
	} {
		mux.HandleFunc("GET /v2/app/"+reference, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Docker-Content-Digest", digestOf(content))
			w.Header().Set("Content-Length", strconv.Itoa(len(content)))
			if strings.HasPrefix(reference, "manifests/") {
				w.Header().Set("Content-Type", manifestType)
			}
			_, _ = w.Write(content)
		})
	}
	return mux, nil
}

func digestOf(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

// archive returns files as a compressed archive, byte for byte the same in every run.
func archive(content map[string]string) ([]byte, error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	w := tar.NewWriter(compressed)
	for _, file := range slices.Sorted(maps.Keys(content)) {
		text := content[file]
		header := &tar.Header{Name: path.Clean(file), Mode: 0o644, Size: int64(len(text)), ModTime: written}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write([]byte(text)); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(w.Close(), compressed.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
