//go:build linux

// Command nodeinit is the first process of a local node, which is a set of namespaces: processes, mounts, network,
// host name, IPC. Package internal/e2e/cluster starts it in new ones, and then containerd and the kubelet beside it.
//
// It makes the namespaces a machine: own /proc, /run, /var/lib and /var/log, the loopback interface, and the
// addresses that the node and the cluster's services have. Then it prints "ready" and reaps what is orphaned.
//
// When its standard input ends, which it does with the process that started it, or on SIGTERM, it kills
// everything in the node, removes the node's control groups and exits. All else that the node consists of,
// mounts, containers, interfaces, network namespaces, goes with the namespaces; so too if this process is
// killed itself.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/threeport/threeport-agent/internal/e2e/cluster/cgroup"
)

// exitLimit limits the wait for the end of the node's last processes.
const exitLimit = 5 * time.Second

// sysctls are the kernel's settings that a kubelet demands, and sets if they are different. They are the
// machine's, not the node's: the node is shown these values, and the machine keeps its own.
//
// Source: k8s.io/kubernetes/pkg/kubelet/cm, setupKernelTunables.
var sysctls = map[string]int{
	"vm/overcommit_memory":      1,
	"vm/panic_on_oom":           0,
	"kernel/panic":              10,
	"kernel/panic_on_oops":      1,
	"kernel/keys/root_maxkeys":  1000000,
	"kernel/keys/root_maxbytes": 25000000,
}

// config is the command line.
type config struct {
	hostname string
	address  string // of the node
	services string // addresses of services: all of them lead to this node
	group    string // control group
	keep     string // folder that stays visible wherever it is
}

func main() {
	if err := run(parse()); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "nodeinit:", err)
		os.Exit(1)
	}
}

func parse() config {
	var cfg config
	flag.StringVar(&cfg.hostname, "hostname", "", "the node's name")
	flag.StringVar(&cfg.address, "address", "", "the node's address, as CIDR")
	flag.StringVar(&cfg.services, "services", "", "addresses of services, as CIDR")
	flag.StringVar(&cfg.group, "cgroup", "", "control group of the node")
	flag.StringVar(&cfg.keep, "keep", "", "folder that stays visible, wherever it is")
	flag.Parse()
	return cfg
}

func run(cfg config) error {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGCHLD)
	orphaned := make(chan struct{})
	go func() {
		defer close(orphaned)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	for _, step := range []func(config) error{mount, maskSysctls, network, group} {
		if err := step(cfg); err != nil {
			return errors.Join(err, end(cfg))
		}
	}
	if err := unix.Sethostname([]byte(cfg.hostname)); err != nil {
		return errors.Join(fmt.Errorf("set host name: %w", err), end(cfg))
	}
	fmt.Println("ready")
	for {
		select {
		case <-orphaned:
			return end(cfg)
		case s := <-signals:
			if s != unix.SIGCHLD {
				return end(cfg)
			}
			for reap(unix.WNOHANG) {
			}
		}
	}
}

// private are the folders that the node has for itself, in memory: what the kubelet, containerd and its plugins
// write goes there, and goes with the node.
var private = []string{"/run", "/var/lib", "/var/log"}

// mount gives the node its own /proc and its private folders.
func mount(cfg config) error {
	keep, err := os.Open(cfg.keep)
	if err != nil {
		return fmt.Errorf("open folder to keep: %w", err)
	}
	defer keep.Close() //nolint:errcheck // it was only a handle
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	for _, dir := range private {
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
			return fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	// It may have been below one of these.
	if err := os.MkdirAll(cfg.keep, 0o700); err != nil {
		return fmt.Errorf("keep folder: %w", err)
	}
	if err := unix.Mount("/proc/self/fd/"+strconv.Itoa(int(keep.Fd())), cfg.keep, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("keep %s: %w", cfg.keep, err)
	}
	return nil
}

// maskSysctls puts a file with the wanted value over each of sysctls.
func maskSysctls(config) error {
	for name, value := range sysctls {
		mask := filepath.Join("/run/sysctl", strings.ReplaceAll(name, "/", "."))
		if err := os.MkdirAll(filepath.Dir(mask), 0o700); err != nil {
			return fmt.Errorf("mask sysctl: %w", err)
		}
		if err := os.WriteFile(mask, []byte(strconv.Itoa(value)+"\n"), 0o400); err != nil {
			return fmt.Errorf("mask sysctl: %w", err)
		}
		if err := unix.Mount(mask, filepath.Join("/proc/sys", name), "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mask sysctl %s: %w", name, err)
		}
	}
	return nil
}

// network brings the loopback interface up with the node's address, and makes the address of every service local. A
// listener on such an address in this network namespace serves the node and its pods.
func network(cfg config) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find loopback interface: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("bring loopback interface up: %w", err)
	}
	address, err := netlink.ParseAddr(cfg.address)
	if err != nil {
		return fmt.Errorf("--address: %w", err)
	}
	if err := netlink.AddrAdd(lo, address); err != nil {
		return fmt.Errorf("add address %s: %w", address, err)
	}
	services, err := netlink.ParseIPNet(cfg.services)
	if err != nil {
		return fmt.Errorf("--services: %w", err)
	}
	err = netlink.RouteAdd(&netlink.Route{
		LinkIndex: lo.Attrs().Index, Dst: services, Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: unix.RT_SCOPE_HOST,
	})
	if err != nil {
		return fmt.Errorf("add route to %s: %w", services, err)
	}
	return nil
}

func group(cfg config) error { return cgroup.Create(cfg.group) }

// end kills what runs in the node, this process excepted, and removes the control groups.
func end(cfg config) error {
	if err := unix.Kill(-1, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill the node's processes: %w", err)
	}
	reaped := make(chan struct{})
	go func() {
		defer close(reaped)
		for reap(0) { // until there is none
		}
	}()
	timeout := time.NewTimer(exitLimit)
	defer timeout.Stop()
	select {
	case <-reaped:
	case <-timeout.C: // a process in an uninterruptible system call ends after that call
	}
	return cgroup.Remove(cfg.group, exitLimit)
}

// reap waits for one process, and reports whether there may be more.
func reap(options int) bool {
	pid, err := unix.Wait4(-1, nil, options, nil)
	return pid > 0 || errors.Is(err, unix.EINTR)
}
