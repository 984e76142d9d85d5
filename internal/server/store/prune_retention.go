package store

import (
	"fmt"
	"time"
)

// The defaults of [Retention].
const (
	DefaultEventAge   = 30 * 24 * time.Hour
	DefaultEventCount = 5000
	DefaultGoneAge    = 7 * 24 * time.Hour
)

// Retention says how long what is history is kept.
type Retention struct {
	// EventAge is how long ago an Event may have happened last.
	EventAge time.Duration
	// EventCount is how many Events a workload has; of more than that, the oldest are deleted.
	EventCount int
	// GoneAge is how long what is deleted is kept: workloads with all that is theirs, objects, definitions, and rows of v0.
	// While an object's definition is kept, a late report cannot bring it back.
	GoneAge time.Duration
}

// DefaultRetention is 30 days and 5,000 Events of a workload, and 7 days of what is deleted.
func DefaultRetention() Retention {
	return Retention{EventAge: DefaultEventAge, EventCount: DefaultEventCount, GoneAge: DefaultGoneAge}
}

// Validate names the first bad field and what it accepts.
func (r Retention) Validate() error {
	switch {
	case r.EventAge < time.Minute:
		return fmt.Errorf("age of events %v: accepted is a minute or more", r.EventAge)
	case r.EventCount < 1:
		return fmt.Errorf("events of a workload %d: accepted is 1 or more", r.EventCount)
	case r.GoneAge < time.Minute:
		return fmt.Errorf("age of what is deleted %v: accepted is a minute or more", r.GoneAge)
	}
	return nil
}

// Pruned counts the rows that were deleted.
type Pruned struct {
	Events, Objects, Definitions, Workloads int64
	// Rows are those of v0 that were deleted before, but for Events.
	Rows int64
	// Elsewhere is set if another replica was at it, so that nothing was done here.
	Elsewhere bool
}
