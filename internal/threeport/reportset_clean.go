package threeport

import (
	"strings"
	"time"
)

// The limits of a report's fields in characters. They equal the tags maxLength of the fields. A longer text is cut, because
// a part of it is worth more than a dead letter.
const (
	maxWord = 256
	maxText = 65536
	maxType = 64
	// MaxClusterName bounds [Agent.ClusterName].
	MaxClusterName = 253
	// MaxTreeObjects bounds the objects of a [TreeReport], and of all trees in a [ReportSet].
	MaxTreeObjects = 20000
	// MaxTreeCause bounds the cause of a [TreeObject] in bytes. It is less than the field's maxLength: the server accepts
	// longer ones from older agents, and stores their beginning.
	MaxTreeCause = 4096
)

// Clean returns the report in a form that can be sent: with texts within the server's limits, and times in UTC with
// microseconds. An error means that the report can never be sent. Clean changes the objects that the report points to.
func (r Report) Clean() (Report, error) {
	var err error
	switch {
	case r.Event != nil:
		err = r.Event.clean()
	case r.Status != nil:
		s := r.Status
		s.Reason, s.Cause = cut(s.Reason, maxWord), cut(s.Cause, maxText)
		s.Since, err = cleanTime("Since", s.Since)
		round(s.Since)
		s.CauseSince = cleanOptionalTime(s.CauseSince)
	case r.Tree != nil:
		r.Tree.clean()
	}
	if err != nil {
		return r, &Error{Op: "send report", Unsendable: true, Err: err}
	}
	return r, nil
}

// clean cuts the tree to the server's limits. Pods beyond MaxTreeContainers have no facts.
func (t *TreeReport) clean() {
	t.Objects = t.Objects[:min(len(t.Objects), MaxTreeObjects)]
	containers := 0
	for i := range t.Objects {
		o := &t.Objects[i]
		o.Reason, o.Cause = cut(o.Reason, maxWord), CutTreeCause(o.Cause)
		o.Since = cleanOptionalTime(o.Since)
		if o.Pod == nil {
			continue
		}
		o.Pod.clean()
		if containers += len(o.Pod.Containers); containers > MaxTreeContainers {
			o.Pod = nil
		}
	}
}

// cleanOptionalTime returns a rounded time. An invalid one is left out, so that the rest of the report is sent.
func cleanOptionalTime(t *time.Time) *time.Time {
	cleaned, err := cleanTime("Time", t)
	if err != nil {
		return nil
	}
	round(cleaned)
	return cleaned
}

func (e *EventReport) clean() error {
	e.Type, e.Reason, e.Message = cut(e.Type, maxType), cut(e.Reason, maxWord), cut(e.Message, maxText)
	at, err := cleanTime("Time", &e.Time)
	if err != nil {
		return err
	}
	e.Time = *at
	round(&e.Time)
	e.FirstTime = cleanOptionalTime(e.FirstTime)
	if e.Gap != nil {
		for _, t := range []*time.Time{&e.Gap.First, &e.Gap.Last} {
			if _, err := cleanTime("Gap", t); err != nil {
				*t = e.Time
			}
			*t = t.UTC()
			round(t)
		}
	}
	return nil
}

// CutTreeCause returns the beginning of the cause of a [TreeObject].
func CutTreeCause(cause string) string { return cut(cause, MaxTreeCause) }

// round truncates a time to microseconds, the precision of databases.
func round(t *time.Time) {
	if t != nil {
		*t = t.Truncate(time.Microsecond)
	}
}

// cut returns the beginning of a text, up to a number of bytes.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const sign = "…"
	return strings.ToValidUTF8(text[:most-len(sign)], "") + sign
}
