package canonicaljson

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// keyOrder holds the sorted keys of the objects whose keys are not sorted in the document. It uses four bytes of memory
// per member of the document, and twelve per such object.
type keyOrder struct {
	raw []byte
	// keys are offsets of keys (of their quotes). The front is a stack with the keys of the objects that are being
	// scanned; the back has the sorted keys.
	keys         []int32
	read, sorted int // keys[:read] is the front, keys[sorted:] the back
	objects      []orderedObject
}

// orderedObject is an object: the offset after its brace, and the range of its keys.
type orderedObject struct{ at, from, to int32 }

// offset32 converts an offset. Canonicalize has checked that it fits.
func offset32(at int) int32 { return int32(at) } //nolint:gosec // Marshal has seen to it

func newKeyOrder(raw []byte, members, objects int) *keyOrder {
	return &keyOrder{raw: raw, keys: make([]int32, members), sorted: members, objects: make([]orderedObject, 0, objects)}
}

// push adds a key of the innermost open object.
func (o *keyOrder) push(key int) {
	o.keys[o.read] = offset32(key)
	o.read++
}

// closeObject pops the innermost object, and stores its sorted keys unless they were sorted already.
func (o *keyOrder) closeObject(at, members int, sorted bool) {
	o.read -= members
	if sorted {
		return
	}
	keys := o.keys[o.read:][:members]
	slices.SortFunc(keys, func(a, b int32) int {
		return cmp.Or(compareKeys(o.raw, int(a), int(b)), cmp.Compare(a, b))
	})
	keys = o.lasts(keys)
	end := o.sorted
	o.sorted -= len(keys)
	copy(o.keys[o.sorted:end], keys)
	o.objects = append(o.objects, orderedObject{offset32(at), offset32(o.sorted), offset32(end)})
}

// lasts keeps the last one of equal keys.
func (o *keyOrder) lasts(keys []int32) []int32 {
	kept := keys[:0]
	for i, key := range keys {
		if i+1 == len(keys) || compareKeys(o.raw, int(key), int(keys[i+1])) != 0 {
			kept = append(kept, key)
		}
	}
	return kept
}

// finish must be called after the last closeObject.
func (o *keyOrder) finish() {
	slices.SortFunc(o.objects, func(a, b orderedObject) int { return cmp.Compare(a.at, b.at) })
}

// of returns the sorted keys of the object at this offset, or nil if its keys are sorted in the document.
func (o *keyOrder) of(at int) []int32 {
	i, ok := slices.BinarySearchFunc(o.objects, offset32(at), func(one orderedObject, at int32) int { return cmp.Compare(one.at, at) })
	if !ok {
		return nil
	}
	return o.keys[o.objects[i].from:o.objects[i].to]
}

// compareKeys compares the decoded keys at two offsets.
func compareKeys(raw []byte, a, b int) int {
	for a, b = a+1, b+1; ; {
		if x := raw[a]; x == raw[b] && x != '"' && x != '\\' && x < utf8.RuneSelf {
			a++
			b++
			continue
		}
		x, more := characterAt(raw[a:])
		y, moreY := characterAt(raw[b:])
		if x != y || x < 0 {
			return cmp.Compare(x, y)
		}
		a, b = a+more, b+moreY
	}
}
