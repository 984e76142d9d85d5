package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// machine has the programs of this machine that a real node needs.
type machine struct {
	containerd, ctr, runc string // programs
	cniDir                string // folder of network plugins
}

// adminDirs are searched in addition to the PATH, which contains them only for some users.
var adminDirs = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/sbin"}

// cniDirs are the folders of network plugins in distributions.
var (
	cniDirs    = []string{"/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni"}
	cniPlugins = []string{"bridge", "host-local", "loopback"}
)

// CanRunRealNode returns nil if this machine can run a real node. Otherwise the error lists the missing parts with a hint for each.
func CanRunRealNode() error {
	_, err := findMachine()
	return err
}

func findMachine() (machine, error) {
	if runtime.GOOS != "linux" {
		return machine{}, fmt.Errorf("a real node needs Linux, this is %s", runtime.GOOS)
	}
	var m machine
	var missing []string
	for name, path := range map[string]*string{
		"containerd": &m.containerd, "ctr": &m.ctr, "runc": &m.runc, "containerd-shim-runc-v2": new(string), "mount": new(string),
	} {
		if *path = findProgram(name); *path == "" {
			missing = append(missing, "the program "+name)
		}
	}
	slices.Sort(missing)
	i := slices.IndexFunc(cniDirs, hasPlugins)
	if i >= 0 {
		m.cniDir = cniDirs[i]
	} else {
		missing = append(missing, fmt.Sprintf("the network plugins %s in %s",
			strings.Join(cniPlugins, ", "), strings.Join(cniDirs, " or ")))
	}
	var errs []error
	if os.Geteuid() != 0 {
		errs = append(errs, errors.New("a real node needs root: run this as root, such as by sudo env \"PATH=$PATH\" make …"))
	}
	if os.Geteuid() == 0 && !mayMakeNamespaces() {
		errs = append(errs, errors.New("a real node needs the capability SYS_ADMIN, to make namespaces: "+
			"in a container, start it with docker run --privileged"))
	}
	if len(missing) > 0 {
		errs = append(errs, fmt.Errorf("a real node needs %s\nOn Debian and Ubuntu: make node-packages, "+
			"or install containerd, runc and containernetworking-plugins by other means", strings.Join(missing, ", ")))
	}
	return m, errors.Join(errs...)
}

func hasPlugins(dir string) bool {
	return !slices.ContainsFunc(cniPlugins, func(name string) bool { return !executable(filepath.Join(dir, name)) })
}

func findProgram(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range adminDirs {
		if path := filepath.Join(dir, name); executable(path) {
			return path
		}
	}
	return ""
}

// searchPath is the PATH of the components.
func searchPath() string {
	return strings.Join(append([]string{os.Getenv("PATH")}, adminDirs...), string(os.PathListSeparator))
}
