// Package bundle tests `make bundle` for the architecture that this machine has not. The programs run under QEMU.
package bundle

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

const (
	registry = "registry.test/threeport"
	version  = "v0.0.1-test"
)

// root is the path of the module's root from this package.
var root = filepath.Join("..", "..", "..")

// other has the architecture of the bundle by that of this machine, and its emulator.
var other = map[string]struct{ arch, emulator string }{
	"amd64": {"arm64", "qemu-aarch64"},
	"arm64": {"amd64", "qemu-x86_64"},
}[runtime.GOARCH]

var clusters world.Pool

func TestMain(m *testing.M) { world.Main(m, setUp) }

func setUp(s *world.Suite) error {
	clusters.Root, clusters.Options = root, cluster.Options{Components: cluster.APIOnly()}
	s.Cleanup(clusters.Stop)
	return nil
}

// A bundle is complete, names one registry, and its programs work on their architecture.
func TestBundle(t *testing.T) {
	emulator, err := exec.LookPath(other.emulator)
	if err != nil {
		t.Fatalf("%v: `make emulator-packages` installs it", err)
	}
	dir := unpack(t)
	run(t, dir, "sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")

	programs := map[string]string{"kubectl-threeport": filepath.Join(dir, "kubectl-threeport")}
	var images []string
	for _, program := range []string{"agent", "controlplane"} {
		ref := registry + "/threeport-" + program + ":" + version
		images = append(images, ref)
		programs[program] = programOf(t, filepath.Join(dir, "images", program+".tar"), ref, program)
	}
	if got := imagesOf(t, dir); !slices.Equal(got, images) {
		t.Errorf("manifests and charts have the images %q, want those of the bundle: %q", got, images)
	}
	for program, path := range programs {
		args := []string{path, "--version"}
		if program == "kubectl-threeport" {
			args[1] = "version"
		}
		if out := run(t, dir, emulator, args...); !strings.Contains(out, version) {
			t.Errorf("%s prints the version %q, want %s", program, out, version)
		}
	}
	t.Run("a workload is reported", func(t *testing.T) { testReport(t, emulator, programs) })
}

// testReport deploys a workload, and waits for its status in the control plane. Both programs are emulated.
func testReport(t *testing.T, emulator string, programs map[string]string) {
	t.Helper()
	c := clusters.Take(t)
	w := world.New(t, c)
	api := w.StartControlPlane(emulator, programs["controlplane"], "--bind-address=127.0.0.1:0", "--auth-enabled=false",
		"--database=sqlite:"+filepath.Join(t.TempDir(), "rows.db"))
	url, err := api.URL(w.Ctx)
	w.Must(err)
	w.Upstream.API = upstream.API{URL: url}
	w.StartOracle()
	w.StartAgent(world.Command{Path: emulator, Args: []string{programs["agent"]}},
		"--kubeconfig="+c.AgentKubeconfig, "--threeport-api-server="+url, "--state-dir="+t.TempDir())
	d := w.Deploy("web", world.ConfigMap("web"))
	w.ExpectStatus(d, "Healthy")
}

// unpack makes the bundle, and returns the folder that it unpacks to.
func unpack(t *testing.T) (dir string) {
	t.Helper()
	run(t, root, "make", "bundle", "ARCH="+other.arch, "REGISTRY="+registry, "VERSION="+version)
	packed := "threeport-" + version + "-linux-" + other.arch
	archive, err := filepath.Abs(filepath.Join(root, "bin", packed+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(archive); err != nil {
			t.Error(err)
		}
	})
	dir = t.TempDir()
	run(t, dir, "tar", "-xzf", archive)
	return filepath.Join(dir, packed)
}

// programOf returns a file with the program of an image, whose architecture and name it checks.
func programOf(t *testing.T, archive, ref, program string) (path string) {
	t.Helper()
	tag, err := name.NewTag(ref)
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(archive, &tag)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != other.arch {
		t.Errorf("the image %s is for %s, want %s", ref, config.Architecture, other.arch)
	}
	content := mutate.Extract(image)
	defer content.Close() //nolint:errcheck // it is only read
	for files := tar.NewReader(content); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			t.Fatalf("the image %s has no /%s", ref, program)
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Name != program {
			continue
		}
		binary, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		path = filepath.Join(t.TempDir(), program)
		if err := os.WriteFile(path, binary, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
}

var (
	imageLine      = regexp.MustCompile(`(?m)^ +image: (\S+)$`)
	repositoryLine = regexp.MustCompile(`(?m)^ +repository: (\S+)`)
	appVersionLine = regexp.MustCompile(`(?m)^appVersion: (\S+)$`)
)

// imagesOf returns the images that the manifests and the charts of a bundle name, sorted.
func imagesOf(t *testing.T, dir string) (images []string) {
	t.Helper()
	manifests := find(t, filepath.Join(dir, "manifests", "*.yaml"))
	for _, file := range manifests {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range imageLine.FindAllStringSubmatch(string(text), -1) {
			images = append(images, match[1])
		}
	}
	charts := find(t, filepath.Join(dir, "charts", "*.tgz"))
	for _, chart := range charts {
		values := run(t, dir, "tar", "-xzOf", chart, "--wildcards", "*/values.yaml")
		about := run(t, dir, "tar", "-xzOf", chart, "--wildcards", "*/Chart.yaml")
		images = append(images, fmt.Sprintf("%s:%s", only(t, repositoryLine, values), only(t, appVersionLine, about)))
	}
	if len(manifests) != 2 || len(charts) != 2 || len(images) != 4 {
		t.Fatalf("the bundle has %d manifests and %d charts with %d images, want 2, 2 and 4", len(manifests), len(charts), len(images))
	}
	slices.Sort(images)
	return slices.Compact(images)
}

func only(t *testing.T, line *regexp.Regexp, text string) string {
	t.Helper()
	matches := line.FindAllStringSubmatch(text, -1)
	if len(matches) != 1 {
		t.Fatalf("%s matches %d times, want once:\n%s", line, len(matches), text)
	}
	return strings.Trim(matches[0][1], `"`)
}

func find(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// run runs a command in a folder, and returns its output.
func run(t *testing.T, dir, command string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", command, args, err, out)
	}
	return string(out)
}
