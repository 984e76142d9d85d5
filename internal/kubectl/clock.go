package kubectl

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/health"
)

// standardInput is the source of documents from standard input.
const standardInput = "standard input"

// clock has the time of an assessment. A file is a state of the past, so it is assessed as of the newest time in it.
type clock struct {
	present time.Time
	fixed   time.Time            // by --now; zero for none
	newest  map[string]time.Time // by file
}

// read reads the times in an object of a file.
func (c *clock) read(source string, object map[string]any) {
	if source == standardInput || !c.fixed.IsZero() {
		return
	}
	at := newestTime(object, c.present)
	if at.After(c.newest[source]) {
		if c.newest == nil {
			c.newest = map[string]time.Time{}
		}
		c.newest[source] = at
	}
}

// now returns the time for the objects of a file.
func (c *clock) now(source string) time.Time {
	if !c.fixed.IsZero() {
		return c.fixed
	}
	if at, ok := c.newest[source]; ok {
		return at
	}
	return c.present
}

// note names the times of files; empty if there are none.
func (c *clock) note() string {
	switch files := slices.Sorted(maps.Keys(c.newest)); len(files) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("%s is assessed as of %s, the newest time in it: --now sets another", files[0], c.newest[files[0]].Format(time.RFC3339))
	default:
		return fmt.Sprintf("%d files are assessed as of the newest time in each: --now sets another", len(files))
	}
}

// maxTimeDepth bounds how deep in an object times are read.
const maxTimeDepth = 12

// newestTime returns the newest time in an object at which something happened, but none after until; zero if there is none. It
// reads fields whose names end with time, timestamp or at, such as lastTransitionTime, and leaves out those about the future.
func newestTime(object map[string]any, until time.Time) time.Time {
	var newest time.Time
	var read func(key string, value any, depth int)
	read = func(key string, value any, depth int) {
		switch value := value.(type) {
		case map[string]any:
			if depth < maxTimeDepth {
				for key, value := range value {
					read(key, value, depth+1)
				}
			}
		case []any:
			for _, item := range value {
				read(key, item, depth)
			}
		case string:
			if !isPastTime(key) {
				return
			}
			if at, ok := health.ParseTime(value); ok && at.After(newest) && !at.After(until) {
				newest = at
			}
		}
	}
	read("", object, 0)
	return newest
}

// isPastTime reports whether a field with a time is about the past.
func isPastTime(key string) bool {
	key = strings.ToLower(key)
	for _, future := range []string{"next", "expir", "notafter", "renewal", "until", "valid", "deadline", "scheduledat", "deletiontimestamp"} {
		if strings.Contains(key, future) {
			return false
		}
	}
	return strings.HasSuffix(key, "time") || strings.HasSuffix(key, "timestamp") || strings.HasSuffix(key, "at")
}
