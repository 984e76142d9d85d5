package server

import "github.com/threeport/threeport-agent/internal/threeport"

// textCopies is how many times the text of one value may be in memory while it is read, besides what becomes of it: in the
// JSON decoder's buffer, in the half of that which it grew out of, by itself, once more in parts where something is missing,
// and what is not collected yet. A tree of the smallest objects has no such values, but takes about as much in all. Since
// maxValue bounds a value, the largest set takes less than twice its text by default, and one of 16 MiB four times.
const textCopies = 6

// largestRoom is what a set of the largest size may take while it is decoded.
func largestRoom(limits Limits) int64 {
	return codingMemory + maxWindow + decodingRoom(limits.DecodedBytes)
}

// codingMemory is what a decoder of gzip or zstd takes besides its window, or more: it also bounds how many bodies are
// decompressed at once.
const codingMemory = 1 << 20

// codingRoom is what it may take to decompress a body.
func codingRoom(body []byte, coding string) int64 {
	switch coding {
	case "":
		return 0
	case "zstd":
		return codingMemory + int64(windowOf(body)) //nolint:gosec // at most maxWindow
	default:
		return codingMemory
	}
}

// decodingRoom is what it may take to make a set of so many bytes of text.
func decodingRoom(size int64) int64 { return leastRoom + size + textCopies*min(size, maxValue) }

// objectSize is more than one object of a tree takes besides its text.
const objectSize = 256

// keptRoom is what a set takes until it is applied: itself, and what the store makes of it.
func keptRoom(set threeport.ReportSet, size int64) int64 {
	room := leastRoom + 2*size
	for _, report := range set.Reports {
		if report.Tree != nil {
			room += int64(cap(report.Tree.Objects)) * objectSize
		}
	}
	return room
}
