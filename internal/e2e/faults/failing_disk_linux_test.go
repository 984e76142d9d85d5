package faults

import (
	"bytes"
	"encoding/binary"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// failingDisk is a folder on a file system whose operations can be made to fail. It uses the protocol of /dev/fuse (see
// include/uapi/linux/fuse.h), so a program gets errors as from a real disk: from a system call, or as a fault in a mapped
// file.
//
// The test's process serves the file system, so it must not open files there: it would wait for itself.
type failingDisk struct {
	device int
	served chan struct{} // closed once it is unmounted and no longer in use

	mu    sync.Mutex
	fault syscall.Errno // 0 if it works
	names map[string]uint64
	files map[uint64][]byte // by node; without the folder itself
	last  uint64
}

const rootNode = 1

// mountFailing mounts a failing disk for the state of the agent. It works until fail is called. It needs root.
func (w *faultWorld) mountFailing() *failingDisk {
	w.Helper()
	w.Must(os.MkdirAll(w.state, 0o700))
	device, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		w.Fatalf("make a disk that fails, which needs root and FUSE: %v", err)
	}
	d := &failingDisk{
		device: device, served: make(chan struct{}), names: map[string]uint64{}, files: map[uint64][]byte{}, last: rootNode,
	}
	w.Cleanup(func() { w.Must(unix.Close(device)) })
	options := "rootmode=40700,user_id=0,group_id=0,fd=" + strconv.Itoa(device)
	if err := unix.Mount("failing-disk", w.state, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		w.Fatalf("mount a disk that fails, which needs root and FUSE: %v", err)
	}
	go d.serve(w.Errorf)
	w.Cleanup(func() {
		w.Must(unix.Unmount(w.state, unix.MNT_DETACH))
		<-d.served
	})
	return d
}

// fail makes the disk fail. With EIO, reads and writes fail, even of cached data. With EROFS, writes fail, as after a remount
// of a failing disk. With 0 the disk works again.
func (d *failingDisk) fail(fault syscall.Errno) {
	d.mu.Lock()
	d.fault = fault
	nodes := slices.Collect(maps.Keys(d.files))
	d.mu.Unlock()
	for _, node := range nodes {
		d.forget(node)
	}
}

// forget drops the kernel's cache of a file.
func (d *failingDisk) forget(node uint64) {
	const invalidateInode = 2
	all := struct {
		Node           uint64
		Offset, Length int64
	}{Node: node}
	d.send(0, invalidateInode, encode(all)) // fails if the kernel does not know the file
}

// The numbers of the requests of the kernel.
const (
	opLookup      = 1
	opForget      = 2
	opGetattr     = 3
	opSetattr     = 4
	opUnlink      = 10
	opRename      = 12
	opOpen        = 14
	opRead        = 15
	opWrite       = 16
	opRelease     = 18
	opFsync       = 20
	opFlush       = 25
	opInit        = 26
	opOpendir     = 27
	opReaddir     = 28
	opReleasedir  = 29
	opFsyncdir    = 30
	opCreate      = 35
	opBatchForget = 42
)

// The structures of the protocol; the order of fields matters.
type (
	fuseRequest struct {
		Length, Op    uint32
		Unique, Node  uint64
		UID, GID, PID uint32
		_             uint32
	}
	fuseInit struct {
		Major, Minor, MaxReadahead, Flags uint32
		Background, Congestion            uint16
		MaxWrite, TimeGranularity         uint32
		_                                 [9]uint32
	}
	fuseAttributes struct {
		Node, Size, Blocks, Accessed, Modified, Changed uint64
		_                                               [3]uint32
		Mode, Links, UID, GID, Device, BlockSize, Flags uint32
	}
	fuseEntry struct {
		Node, Generation, Valid, AttributesValid uint64
		_                                        [2]uint32
		Attributes                               fuseAttributes
	}
	fuseOpened struct {
		Handle uint64
		Flags  uint32
		_      uint32
	}
	fuseTransfer struct {
		Handle, Offset uint64
		Size           uint32
		_              [5]uint32
	}
)

func encode(v any) []byte {
	out, err := binary.Append(nil, binary.NativeEndian, v)
	if err != nil {
		panic(err) // the type has no fixed size
	}
	return out
}

// decode reads a structure from the beginning of a request, and returns it and the rest.
func decode[T any](in []byte) (v T, rest []byte) {
	n, err := binary.Decode(in, binary.NativeEndian, &v)
	if err != nil {
		panic(err) // the kernel sends whole structures
	}
	return v, in[n:]
}

const maxWrite = 128 << 10

// serve answers requests until the disk is unmounted.
func (d *failingDisk) serve(complain func(format string, args ...any)) {
	defer close(d.served)
	for buffer := make([]byte, maxWrite+4096); ; {
		n, err := unix.Read(d.device, buffer)
		switch err {
		case nil:
		case unix.EINTR, unix.EAGAIN, unix.ENOENT: // the last if a request was withdrawn
			continue
		case unix.ENODEV:
			return
		default:
			complain("read what the kernel wants of the failing disk: %v", err)
			return
		}
		request, body := decode[fuseRequest](buffer[:n])
		if request.Op == opForget || request.Op == opBatchForget {
			continue // these have no answer
		}
		answer, fault := d.do(request, body)
		d.send(request.Unique, -int32(fault), answer)
	}
}

// send sends an answer or a notification. An error means that the caller no longer waits.
func (d *failingDisk) send(unique uint64, code int32, body []byte) {
	header := struct {
		Length uint32
		Code   int32
		Unique uint64
	}{
		Length: uint32(16 + len(body)),
		Code:   code,
		Unique: unique,
	}
	_, _ = unix.Write(d.device, append(encode(header), body...))
}

// do executes a request.
func (d *failingDisk) do(r fuseRequest, body []byte) (answer []byte, fault syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch r.Op {
	case opInit:
		in, _ := decode[struct{ Major, Minor, MaxReadahead uint32 }](body)
		return encode(fuseInit{Major: 7, Minor: 31, MaxReadahead: in.MaxReadahead, MaxWrite: maxWrite}), 0
	case opOpendir:
		return encode(fuseOpened{}), 0
	case opRelease, opReleasedir, opFlush:
		return nil, 0
	case opLookup:
		return d.lookup(text(body))
	case opGetattr:
		return append(make([]byte, 16), encode(d.attributes(r.Node))...), 0
	case opReaddir:
		return d.list(body), 0
	case opRead:
		return d.read(r.Node, body)
	}
	if r.Op == opOpen {
		flags, _ := decode[uint32](body)
		if d.fault != syscall.EROFS || flags&unix.O_ACCMODE == unix.O_RDONLY {
			return encode(fuseOpened{}), 0
		}
	}
	if d.fault != 0 {
		return nil, d.fault
	}
	return d.change(r, body)
}

// change executes a writing request.
func (d *failingDisk) change(r fuseRequest, body []byte) (answer []byte, fault syscall.Errno) {
	switch r.Op {
	case opFsync, opFsyncdir:
		return nil, 0
	case opCreate:
		name := text(body[16:])
		d.last++
		d.names[name], d.files[d.last] = d.last, nil
		entry, _ := d.lookup(name)
		return append(entry, encode(fuseOpened{})...), 0
	case opSetattr:
		const size = 1 << 3
		in, _ := decode[struct {
			Valid, _, _, _ uint32
			Size           uint64
		}](body)
		if in.Valid&size != 0 {
			d.resize(r.Node, int(in.Size))
		}
		return append(make([]byte, 16), encode(d.attributes(r.Node))...), 0
	case opWrite:
		in, data := decode[fuseTransfer](body)
		end := int(in.Offset) + len(data)
		d.resize(r.Node, max(end, len(d.files[r.Node])))
		copy(d.files[r.Node][in.Offset:], data)
		return encode([]uint32{uint32(len(data)), 0}), 0
	case opUnlink:
		if _, ok := d.names[text(body)]; !ok {
			return nil, syscall.ENOENT
		}
		delete(d.names, text(body)) // those who have it open keep it
		return nil, 0
	case opRename:
		from, to, _ := bytes.Cut(body[8:], []byte{0})
		d.names[text(to)] = d.names[string(from)]
		delete(d.names, string(from))
		return nil, 0
	}
	return nil, syscall.ENOSYS
}

// text returns a zero-terminated name.
func text(in []byte) string {
	name, _, _ := bytes.Cut(in, []byte{0})
	return string(name)
}

func (d *failingDisk) lookup(name string) ([]byte, syscall.Errno) {
	node, ok := d.names[name]
	if !ok {
		return nil, syscall.ENOENT
	}
	return encode(fuseEntry{Node: node, Attributes: d.attributes(node)}), 0
}

func (d *failingDisk) attributes(node uint64) fuseAttributes {
	size := uint64(len(d.files[node]))
	out := fuseAttributes{Node: node, Size: size, Blocks: (size + 511) / 512, Mode: unix.S_IFREG | 0o600, Links: 1, BlockSize: 4096}
	if node == rootNode {
		out.Mode, out.Links = unix.S_IFDIR|0o700, 2
	}
	return out
}

// resize extends a file with zeros, or truncates it.
func (d *failingDisk) resize(node uint64, size int) {
	old := d.files[node]
	if size <= len(old) {
		clear(old[size:])
		d.files[node] = old[:size]
		return
	}
	d.files[node] = slices.Grow(old, size-len(old))[:size]
	clear(d.files[node][len(old):])
}

func (d *failingDisk) read(node uint64, body []byte) ([]byte, syscall.Errno) {
	if d.fault == syscall.EIO {
		return nil, syscall.EIO
	}
	in, _ := decode[fuseTransfer](body)
	data := d.files[node]
	from := min(int(in.Offset), len(data))
	return slices.Clone(data[from:min(from+int(in.Size), len(data))]), 0
}

// list returns names in the folder from an offset on, as many as fit.
func (d *failingDisk) list(body []byte) []byte {
	in, _ := decode[fuseTransfer](body)
	var out []byte
	for i, name := range slices.Sorted(maps.Keys(d.names)) {
		if uint64(i) < in.Offset {
			continue
		}
		entry := encode(struct {
			Node, Next   uint64
			Length, Type uint32
		}{
			Node:   d.names[name],
			Next:   uint64(i) + 1,
			Length: uint32(len(name)),
			Type:   unix.DT_REG,
		})
		entry = append(entry, name...)
		entry = append(entry, make([]byte, -len(entry)&7)...)
		if len(out)+len(entry) > int(in.Size) {
			break
		}
		out = append(out, entry...)
	}
	return out
}
