package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// Memory grows in steps with pauses, so that the process still handles signals, and the kernel kills it close to its limit.
const (
	step      = 4 << 20
	stepPause = 5 * time.Millisecond
)

// ballast is allocated memory.
type ballast [][]byte

// grow allocates a step, and reports whether the size is not reached yet.
func (b *ballast) grow(to size) bool {
	missing := int64(to) - b.size()
	part := make([]byte, min(missing, step))
	for i := 0; i < len(part); i += os.Getpagesize() {
		part[i] = 1 // a page takes memory once it is written to
	}
	*b = append(*b, part)
	return missing > step
}

func (b *ballast) size() (n int64) {
	for _, part := range *b {
		n += int64(len(part))
	}
	return n
}

// size is a number of bytes in the format of Kubernetes, such as 64Mi.
type size int64

var units = map[string]int64{"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}

func (s *size) UnmarshalText(text []byte) error {
	digits := strings.TrimRight(string(text), "KMGi")
	unit, ok := units[string(text[len(digits):])]
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n < 0 || n > math.MaxInt64/unit {
		return errors.New("want a number of bytes, or of Ki, Mi or Gi, such as 64Mi")
	}
	*s = size(n * unit)
	return nil
}

func (s size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s size) String() string {
	for _, unit := range []string{"Gi", "Mi", "Ki"} {
		if n := int64(s); n > 0 && n%units[unit] == 0 {
			return fmt.Sprintf("%d%s", n/units[unit], unit)
		}
	}
	return strconv.FormatInt(int64(s), 10)
}
