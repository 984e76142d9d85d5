//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// device is the name of the TUN device of a host.
const device = "wire"

// host is a network namespace with a loopback device and one end of the wire.
type host struct {
	address   string // without a port
	namespace *os.File
	tun       *os.File
}

// newHost creates a namespace whose device has an address of 192.0.2.0/24, the network for examples (RFC 5737).
func newHost(address, congestion string) (*host, error) {
	s := &host{address: address}
	if err := inNewNamespace(func() error { return s.createDevices(congestion) }); err != nil {
		return nil, errors.Join(fmt.Errorf("make a network namespace (it needs root): %w", err), s.close())
	}
	return s, nil
}

// inNewNamespace calls f on a thread in a new network namespace.
func inNewNamespace(f func() error) error {
	runtime.LockOSThread()
	original, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer original.Close() //nolint:errcheck // it was only a handle
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	err = f()
	if resetErr := unix.Setns(int(original.Fd()), unix.CLONE_NEWNET); resetErr != nil {
		return errors.Join(err, resetErr) // the thread stays locked, and ends with its goroutine
	}
	runtime.UnlockOSThread()
	return err
}

// createDevices keeps the thread's namespace open, and creates its devices.
func (s *host) createDevices(congestion string) (err error) {
	if s.namespace, err = os.Open("/proc/thread-self/ns/net"); err != nil {
		return err
	}
	if s.tun, err = openTUN(); err != nil {
		return err
	}
	network := &net.IPNet{IP: net.ParseIP(s.address), Mask: net.CIDRMask(24, 32)}
	for name, address := range map[string]*netlink.Addr{"lo": nil, device: {IPNet: network}} {
		found, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if address != nil {
			if err := netlink.AddrAdd(found, address); err != nil {
				return err
			}
		}
		if err := netlink.LinkSetUp(found); err != nil {
			return err
		}
	}
	return os.WriteFile("/proc/sys/net/ipv4/tcp_congestion_control", []byte(congestion), 0)
}

// openTUN creates a TUN device: reads return packets that the kernel sends, writes are packets that it receives.
func openTUN() (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(device)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make TUN device: %w", err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), device), nil
}

// command returns the command that starts another program on this host.
func (s *host) command(binary string, args ...string) (string, []string) {
	namespace := fmt.Sprintf("--net=/proc/%d/fd/%d", os.Getpid(), s.namespace.Fd())
	return "nsenter", append([]string{namespace, binary}, args...)
}

// run runs a program on this host, and returns its output.
func (s *host) run(ctx context.Context, binary string, args ...string) ([]byte, error) {
	name, args := s.command(binary, args...)
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // this program
	cmd.Env = append(os.Environ(), "NO_PROXY=*", "no_proxy=*")
	cmd.Stderr = os.Stderr
	return cmd.Output()
}

// close releases the host; the kernel removes its namespace after the last process.
func (s *host) close() error {
	var errs []error
	for _, file := range []*os.File{s.tun, s.namespace} {
		if file != nil {
			errs = append(errs, file.Close())
		}
	}
	return errors.Join(errs...)
}
