package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Limits for flapping.
const (
	// flappingWindow is the window in which changes are counted.
	flappingWindow = 10 * time.Minute
	// flappingLimit is the number of changes within the window that make a status flap.
	flappingLimit = 4
	// flappingCalm is the time without a change after which a status no longer flaps. A kubelet waits up to five
	// minutes before it restarts a crashed container, so a longer state is no pause between two crashes.
	flappingCalm = 5 * time.Minute
	// flappingKept bounds the number of kept changes.
	flappingKept = 20
)

// ReasonFlapping is the reason of a status that changes back and forth and is no fault at present.
const ReasonFlapping = "Flapping"

// Flapping damps a status that comes and goes, such as that of a crash loop after each restart. Four changes within ten
// minutes make the status Unhealthy, or Down if the object did not work at any time, until nothing has changed for five
// minutes. While the worst verdict is over, the message begins with the present and names the worst verdict as the one before. The
// reason is then that of the present fault, or [ReasonFlapping] without one. A crash loop keeps its reason, because its pauses are
// part of it.
//
// A change counts if it is to or from Unhealthy or Down. Changes between Healthy and Reconciling do not count, so
// rollouts and autoscalers do not flap. Unknown is skipped: the status after it is compared with that before it.
//
// The zero value is ready for use. It is not safe for concurrent use.
type Flapping struct {
	last     Status    // the latest, except Unknown
	at       time.Time // of the latest Note
	changes  []change
	flapping bool
}

// change is a counted change with the latest verdict of its status.
type change struct {
	at time.Time
	Verdict
}

// Note records the verdict at a time. It ignores a verdict of a time before that of the call before.
func (f *Flapping) Note(v Verdict, now time.Time) {
	if now.Before(f.at) {
		return
	}
	f.at = now
	f.flapping = f.flapping && now.Before(f.calmAt())
	switch {
	case !isKnown(v.Status):
		return
	case f.last != "" && v.Status != f.last && (v.Status.IsFault() || f.last.IsFault()):
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

// Damp returns the damped verdict at a time, and until when it holds without a further change. The time is zero if the
// verdict is not damped.
func (f *Flapping) Damp(v Verdict, now time.Time) (damped Verdict, until time.Time) {
	if !f.flapping || !now.Before(f.calmAt()) || !isKnown(v.Status) {
		return v, time.Time{}
	}
	recent := f.recent()
	worst, works := v, v.Status == Healthy || v.Status == Unhealthy
	for _, c := range slices.Backward(recent) { // the latest of equals wins
		works = works || c.Status == Healthy || c.Status == Unhealthy
		if worse(c.Status, worst.Status) {
			worst = c.Verdict
		}
	}
	damped = worst
	if works {
		damped.Status = Unhealthy
	}
	count := fmt.Sprintf("%d changes in %d min", len(recent), int(flappingWindow.Minutes()))
	if len(recent) == flappingKept {
		count = "at least " + count
	}
	if !slices.Contains(crashLoop, worst.Reason) {
		damped.Reason = ReasonFlapping
	}
	switch {
	case worst.Status == v.Status:
		damped.Reason = v.Reason
		damped.Message = strings.Join(nonEmpty(v.Message, count), ", ")
		if v.Status != damped.Status {
			damped.Message = string(v.Status) + " now" + colon(v.Message) + ", but it works at times: " + count
		}
		return damped, f.calmAt()
	case v.Status == damped.Status:
		damped.Reason, damped.Message = v.Reason, v.Message
	default:
		damped.Message = string(v.Status) + " now" + colon(v.Message)
		count += fmt.Sprintf(": %s until %d min pass without one", damped.Status, int(flappingCalm.Minutes()))
	}
	damped.Message += fmt.Sprintf(", but %s; before: %s", count, cmp.Or(worst.Message, worst.Reason))
	return damped, f.calmAt()
}

// recent returns the changes within the window before the latest change.
func (f *Flapping) recent() []change {
	for i, c := range f.changes {
		if f.changes[len(f.changes)-1].at.Sub(c.at) < flappingWindow {
			return f.changes[i:]
		}
	}
	return nil
}

// calmAt returns when the status stops flapping without a further change.
func (f *Flapping) calmAt() time.Time {
	if len(f.changes) == 0 {
		return time.Time{}
	}
	return f.changes[len(f.changes)-1].at.Add(flappingCalm)
}

// isKnown reports whether a status is one of the known ones other than Unknown.
func isKnown(s Status) bool { return s != Unknown && slices.Contains(statusOrder, s) }
