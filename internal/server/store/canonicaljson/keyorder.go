package canonicaljson

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// keyOrder knows in which order to write the members of those objects of a document whose keys are not in order. It takes four
// bytes of memory for each member in the document, and twelve for each such object.
type keyOrder struct {
	raw []byte
	// keys are places of keys, of their quotes. First those of the objects that are being read, of the outer before the
	// inner; at the end those that are in order.
	keys         []int32
	read, sorted int // keys[:read] and keys[sorted:]
	objects      []orderedObject
}

// orderedObject is an object, by the place behind its brace, and where its keys are.
type orderedObject struct{ at, from, to int32 }

// place is one in a document, of which none is longer than what has 32 bits.
func place(at int) int32 { return int32(at) } //nolint:gosec // Marshal has seen to it

func newKeyOrder(raw []byte, members, objects int) *keyOrder {
	return &keyOrder{raw: raw, keys: make([]int32, members), sorted: members, objects: make([]orderedObject, 0, objects)}
}

// push adds a key of the innermost object.
func (o *keyOrder) push(key int) {
	o.keys[o.read] = place(key)
	o.read++
}

// add ends the innermost object, which has so many keys.
func (o *keyOrder) add(at, members int, sorted bool) {
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
	o.objects = append(o.objects, orderedObject{place(at), place(o.sorted), place(end)})
}

// lasts keeps the last of equal keys.
func (o *keyOrder) lasts(keys []int32) []int32 {
	kept := keys[:0]
	for i, key := range keys {
		if i+1 == len(keys) || compareKeys(o.raw, int(key), int(keys[i+1])) != 0 {
			kept = append(kept, key)
		}
	}
	return kept
}

// finish is to be called when all objects were added.
func (o *keyOrder) finish() {
	slices.SortFunc(o.objects, func(a, b orderedObject) int { return cmp.Compare(a.at, b.at) })
}

// of is the keys of an object in order, or nil if it is to stay as it is.
func (o *keyOrder) of(at int) []int32 {
	i, ok := slices.BinarySearchFunc(o.objects, place(at), func(one orderedObject, at int32) int { return cmp.Compare(one.at, at) })
	if !ok {
		return nil
	}
	return o.keys[o.objects[i].from:o.objects[i].to]
}

// compareKeys compares the strings whose quotes are at two places, as Go compares what they stand for.
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
