package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"syscall"
)

// bbolt trusts what it reads. A number that is wrong makes it fault, panic, go round in circles until the memory is
// used up, or write over what is still needed. So a file is checked before bbolt gets it, and by reads, which return
// an error where a memory map faults.
//
// A file is pages of one size. The first two are metas; the one with the higher transaction counts. Numbers are in the byte
// order of the machine.
//
//	page            id u64, type u16, count u16, further pages u32; count elements; what these point to
//	branch element  position u32 (from the element's start), key size u32, page u64
//	leaf element    flags u32 (1: the value is a bucket), position u32, key size u32, value size u32
//	bucket          root page u64 (0: a leaf page follows in the value), sequence u64
//	free list page  page u64, count times; if count is 0xFFFF, the first of them is the count
//	meta page       id to further pages as above; magic u32, version u32, page size u32, flags u32, root bucket as
//	                above, free list page u64, number of pages u64, transaction u64, FNV-1a of all since magic u64
const (
	headerSize  = 16
	elementSize = 16
	metaSize    = 64

	branchType   = 0x01
	leafType     = 0x02
	freeListType = 0x10

	bucketFlag = 1

	metaMagic   = 0xED0CDAED
	metaVersion = 2

	minPageSize = 1 << 10
	maxPageSize = 1 << 24
)

var order = binary.NativeEndian

// checker is a file that is checked.
type checker struct {
	file     io.ReaderAt
	pageSize uint64
	pages    uint64
	used     map[uint64]struct{} // the pages that were come across
}

// checkFile checks a file, and returns the size of its pages: 0 if there is none, or an empty one.
func checkFile(path string) (pageSize uint64, err error) {
	file, err := os.Open(path) //nolint:gosec // the user names the folder
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	if n, err := file.ReadAt(make([]byte, 1), 0); n == 0 && errors.Is(err, io.EOF) {
		return 0, nil
	}
	return check(file)
}

// check returns the size of a file's pages. An error is errDamaged, or of the system.
func check(file io.ReaderAt) (pageSize uint64, err error) {
	c := &checker{file: file, used: map[uint64]struct{}{}}
	m, err := c.meta()
	if err != nil {
		return 0, err
	}
	c.pageSize, c.pages = m.pageSize, m.pages
	if c.pages < 2 || c.pages > 1<<48/c.pageSize {
		return 0, damaged("it has %d pages", c.pages)
	}
	if _, err := c.read(c.pages*c.pageSize-1, 1); err != nil {
		return 0, err
	}
	if err := c.tree(m.root, nil, nil); err != nil {
		return 0, err
	}
	return c.pageSize, c.freeList(m.freeList)
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errDamaged}, args...)...)
}

// read returns a part of the file. That it ends before is a damage.
func (c *checker) read(at, size uint64) ([]byte, error) {
	raw := make([]byte, size)
	n, err := c.file.ReadAt(raw, int64(at)) //nolint:gosec // no more than 1<<48
	if n == len(raw) {
		return raw, nil
	}
	if _, system := errors.AsType[syscall.Errno](err); system {
		return nil, err
	}
	return nil, damaged("it ends at %d", at+uint64(n)) //nolint:gosec // not negative
}

// meta is what a meta page says.
type meta struct{ pageSize, root, freeList, pages, transaction uint64 }

// meta returns the one that counts, of the last commit. Both have to be valid: a broken one may be that of the last commit,
// whose end the disk confirmed before more was done; what the other has is older.
func (c *checker) meta() (meta, error) {
	first, err := c.metaAt(0)
	if err != nil {
		return meta{}, err
	}
	if first.pageSize < minPageSize || first.pageSize > maxPageSize || first.pageSize&(first.pageSize-1) != 0 {
		return meta{}, damaged("it has pages of %d bytes", first.pageSize)
	}
	second, err := c.metaAt(first.pageSize)
	if err != nil {
		return meta{}, err
	}
	if second.pageSize != first.pageSize {
		return meta{}, damaged("it has pages of %d and of %d bytes", first.pageSize, second.pageSize)
	}
	if second.transaction > first.transaction {
		return second, nil
	}
	return first, nil
}

// metaAt returns what the meta page at a place says.
func (c *checker) metaAt(at uint64) (meta, error) {
	raw, err := c.read(at, headerSize+metaSize)
	if err != nil {
		return meta{}, err
	}
	raw = raw[headerSize:]
	sum := fnv.New64a()
	_, _ = sum.Write(raw[:metaSize-8])
	if order.Uint32(raw) != metaMagic || order.Uint32(raw[4:]) != metaVersion || order.Uint64(raw[metaSize-8:]) != sum.Sum64() {
		return meta{}, damaged("it is no bbolt file, or its meta page at %d is broken", at)
	}
	return meta{
		pageSize:    uint64(order.Uint32(raw[8:])),
		root:        order.Uint64(raw[16:]),
		freeList:    order.Uint64(raw[32:]),
		pages:       order.Uint64(raw[40:]),
		transaction: order.Uint64(raw[48:]),
	}, nil
}

// claim notes that a page is used, which it may be once.
func (c *checker) claim(id uint64) error {
	if id < 2 || id >= c.pages {
		return damaged("there is no page %d", id)
	}
	if _, twice := c.used[id]; twice {
		return damaged("page %d is used twice", id)
	}
	c.used[id] = struct{}{}
	return nil
}

// page is a page with those that continue it.
type page []byte

func (p page) kind() uint16 { return order.Uint16(p[8:]) }
func (p page) count() int   { return int(order.Uint16(p[10:])) }

// page reads one.
func (c *checker) page(id uint64) (page, error) {
	if err := c.claim(id); err != nil {
		return nil, err
	}
	head, err := c.read(id*c.pageSize, headerSize)
	if err != nil {
		return nil, err
	}
	if found := order.Uint64(head); found != id {
		return nil, damaged("page %d says that it is page %d", id, found)
	}
	further := uint64(order.Uint32(head[12:]))
	for next := id + 1; next <= id+further; next++ {
		if err := c.claim(next); err != nil {
			return nil, err
		}
	}
	return c.read(id*c.pageSize, (1+further)*c.pageSize)
}

// tree checks a page and what is below it. All keys are at or above low and, unless it is nil, below high.
func (c *checker) tree(id uint64, low, high []byte) error {
	p, err := c.page(id)
	if err != nil {
		return err
	}
	switch p.kind() {
	case leafType:
		return c.leaf(p, low, high)
	case branchType:
		return c.branch(p, low, high)
	}
	return damaged("page %d has the type %#x", id, p.kind())
}

func (c *checker) branch(p page, low, high []byte) error {
	if p.count() == 0 {
		return damaged("a branch page is empty")
	}
	keys := make([][]byte, p.count(), p.count()+1)
	for i := range keys {
		element, err := p.element(i)
		if err != nil {
			return err
		}
		if keys[i], err = p.part(i, order.Uint32(element), 0, order.Uint32(element[4:])); err != nil {
			return err
		}
	}
	if err := inOrder(keys, low, high); err != nil {
		return err
	}
	keys = append(keys, high)
	for i := range p.count() {
		element, err := p.element(i)
		if err != nil {
			return err
		}
		if err := c.tree(order.Uint64(element[8:]), keys[i], keys[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) leaf(p page, low, high []byte) error {
	keys := make([][]byte, p.count())
	for i := range keys {
		element, err := p.element(i)
		if err != nil {
			return err
		}
		position, keySize, valueSize := order.Uint32(element[4:]), order.Uint32(element[8:]), order.Uint32(element[12:])
		if keys[i], err = p.part(i, position, 0, keySize); err != nil {
			return err
		}
		value, err := p.part(i, position, keySize, valueSize)
		if err != nil {
			return err
		}
		if order.Uint32(element)&bucketFlag != 0 {
			err = c.bucket(value)
		}
		if err != nil {
			return err
		}
	}
	return inOrder(keys, low, high)
}

// bucket checks a bucket of which value is the record.
func (c *checker) bucket(value []byte) error {
	if len(value) < 16 {
		return damaged("a bucket has %d bytes", len(value))
	}
	root, inline := order.Uint64(value), page(value[16:])
	if root != 0 {
		return c.tree(root, nil, nil)
	}
	if len(inline) < headerSize || inline.kind() != leafType {
		return damaged("a bucket has no page")
	}
	return c.leaf(inline, nil, nil)
}

// freeList checks the list of free pages: nothing uses one of them.
func (c *checker) freeList(id uint64) error {
	p, err := c.page(id)
	if err != nil {
		return err
	}
	if p.kind() != freeListType {
		return damaged("page %d has the type %#x", id, p.kind())
	}
	ids, count := p[headerSize:], uint64(p.count()) //nolint:gosec // not negative
	if count == 0xFFFF {
		count, ids = order.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids)/8) {
		return damaged("the free list has %d pages", count)
	}
	for i := range count {
		if err := c.claim(order.Uint64(ids[8*i:])); err != nil {
			return err
		}
	}
	return nil
}

// element returns an element of a page.
func (p page) element(i int) ([]byte, error) {
	at := headerSize + i*elementSize
	if at+elementSize > len(p) {
		return nil, damaged("a page has %d elements", p.count())
	}
	return p[at : at+elementSize], nil
}

// part returns size bytes of what an element points to, after skip bytes of it.
func (p page) part(i int, position, skip, size uint32) ([]byte, error) {
	begin := headerSize + i*elementSize + int(position) + int(skip)
	if begin+int(size) > len(p) {
		return nil, damaged("a record is beyond its page")
	}
	return p[begin : begin+int(size)], nil
}

// inOrder checks that keys ascend, from low on and, unless it is nil, below high.
func inOrder(keys [][]byte, low, high []byte) error {
	for i, key := range keys {
		switch {
		case len(key) == 0:
			return damaged("a key is empty")
		case i > 0 && bytes.Compare(keys[i-1], key) >= 0, bytes.Compare(key, low) < 0,
			high != nil && bytes.Compare(key, high) >= 0:
			return damaged("keys are not in order")
		}
	}
	return nil
}
