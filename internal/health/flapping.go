package health

import (
	"fmt"
	"slices"
	"time"
)

// When a status flaps, and when it does not any more.
const (
	// flappingWindow is how long a change counts.
	flappingWindow = 10 * time.Minute
	// flappingLimit is how many changes within the window are too many.
	flappingLimit = 4
	// flappingCalm is for how long there may be no change before what is seen is believed again. A kubelet waits up to
	// five minutes before it restarts a container that crashes: what lasts longer is not a pause between two crashes.
	flappingCalm = 5 * time.Minute
	// flappingKept bounds how many changes are remembered.
	flappingKept = 20
)

// Flapping damps a status that comes and goes: a crash loop is well for a moment after each restart. When there were
// four changes within ten minutes, the status is Unhealthy, because it works in part, until nothing has changed for five
// minutes; or Down, if it did not work at any time. The words are those of the worst.
//
// A change counts if it is to Unhealthy or Down, or from there. That something is on its way, and arrives, is no sign of
// trouble: neither rollouts nor an autoscaler flap, however many there are. Unknown says that nothing is seen, and not
// that anything has changed: what counts is the status after it, compared with that before it.
//
// The zero value has seen nothing. It is not safe for concurrent use.
type Flapping struct {
	last     Status // the latest that is not Unknown
	changes  []change
	flapping bool
}

// change is a verdict that counts as a change, in its latest words.
type change struct {
	at time.Time
	Verdict
}

// Note tells of the verdict at a time. Times do not go back.
func (f *Flapping) Note(v Verdict, now time.Time) {
	f.flapping = f.flapping && now.Before(f.calmAt())
	switch {
	case !isKnown(v.Status):
		return
	case f.last != "" && v.Status != f.last && (isFault(v.Status) || isFault(f.last)):
		if len(f.changes) == flappingKept {
			f.changes = append(f.changes[:0], f.changes[1:]...)
		}
		f.changes = append(f.changes, change{now, v})
		f.flapping = f.flapping || len(f.recent()) >= flappingLimit
	case v.Status == f.last && len(f.changes) > 0 && f.changes[len(f.changes)-1].Status == v.Status:
		f.changes[len(f.changes)-1].Verdict = v
	}
	f.last = v.Status
}

// Damp returns what a verdict at a time is taken for, and, if that is not the verdict itself, until when it is if
// nothing changes.
func (f *Flapping) Damp(v Verdict, now time.Time) (damped Verdict, until time.Time) {
	if !f.flapping || !now.Before(f.calmAt()) || !isKnown(v.Status) {
		return v, time.Time{}
	}
	recent := f.recent()
	damped = v
	works := v.Status == Healthy || v.Status == Unhealthy
	for i := range recent { // of equals the latest
		c := recent[len(recent)-1-i].Verdict
		works = works || c.Status == Healthy || c.Status == Unhealthy
		if worse(c.Status, damped.Status) {
			damped = c
		}
	}
	if works {
		damped.Status = Unhealthy
	}
	count := fmt.Sprintf("%d changes in %d min", len(recent), int(flappingWindow.Minutes()))
	if len(recent) == flappingKept {
		count = "at least " + count
	}
	if damped.Message == "" {
		damped.Message = count
	} else {
		damped.Message += ", " + count
	}
	return damped, f.calmAt()
}

// recent returns the changes within the window that ends with the last of them.
func (f *Flapping) recent() []change {
	for i, c := range f.changes {
		if f.changes[len(f.changes)-1].at.Sub(c.at) < flappingWindow {
			return f.changes[i:]
		}
	}
	return nil
}

// calm is when the last change was long enough ago.
func (f *Flapping) calmAt() time.Time {
	if len(f.changes) == 0 {
		return time.Time{}
	}
	return f.changes[len(f.changes)-1].at.Add(flappingCalm)
}

// telling reports whether a status tells how a thing is.
func isKnown(s Status) bool { return s != Unknown && slices.Contains(statusOrder, s) }

func isFault(s Status) bool { return s == Unhealthy || s == Down }
