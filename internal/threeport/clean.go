package threeport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// The API stores text in a database that has no NUL and no invalid UTF-8, and
// answers 500 to either (measured). One bad character must not make a message
// undeliverable, so it becomes U+FFFD before it is sent.

const replacement = "\uFFFD"

// cleanText replaces NUL and invalid UTF-8.
func cleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, replacement), "\x00", replacement)
}

// cleanString is cleanText for an optional field, up to the length that the API accepts.
func cleanString(s *string) *string {
	if s == nil {
		return nil
	}
	return new(cut(cleanText(*s), maxText))
}

// cleanTime is t in UTC. RFC 3339 has years 0 to 9999 only, and the zero time
// is one the API accepts and shows as the year 1.
func cleanTime(name string, t *time.Time) (*time.Time, error) {
	if t == nil {
		return nil, nil
	}
	u := t.UTC()
	if u.IsZero() || u.Year() < 0 || u.Year() > 9999 {
		return nil, fmt.Errorf("the %s must not be zero, nor outside the years 0 to 9999", name)
	}
	return &u, nil
}

// cleanJSON is raw with the escapes \u0000 and those of unpaired surrogates
// replaced, and NUL and invalid UTF-8 as well. It returns raw itself when there
// is nothing to replace. raw is not parsed; marshalling it does that.
func cleanJSON(raw json.RawMessage) json.RawMessage {
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte(replacement))
	}
	if bytes.IndexByte(raw, 0) >= 0 {
		raw = bytes.ReplaceAll(raw, []byte{0}, []byte(replacement))
	}
	var out []byte
	done := 0 // raw[:done] is in out
	for i := 0; ; {
		next := bytes.IndexByte(raw[i:], '\\')
		if next < 0 {
			break
		}
		i += next
		r, ok := escapedUnit(raw[i:])
		switch {
		case !ok:
			i += 2 // an escape such as \" or \\, or the end
		case utf16.IsSurrogate(r):
			low, _ := escapedUnit(raw[min(i+6, len(raw)):])
			if utf16.DecodeRune(r, low) != utf8.RuneError {
				i += 12
				continue
			}
			fallthrough
		case r == 0:
			out = append(append(out, raw[done:i]...), `\ufffd`...)
			i += 6
			done = i
		default:
			i += 6
		}
		if i >= len(raw) {
			break
		}
	}
	if done == 0 {
		return raw
	}
	return append(out, raw[done:]...)
}

// escapedUnit is the UTF-16 code unit of a \uXXXX that b begins with.
func escapedUnit(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(n), err == nil
}

// clean is the event as it can be sent: without the server's own fields.
func (e WorkloadEvent) clean() (WorkloadEvent, error) {
	e.ID, e.CreatedAt, e.UpdatedAt = nil, nil, nil
	e.RuntimeEventUID = cleanString(e.RuntimeEventUID)
	e.Type = cleanString(e.Type)
	e.Reason = cleanString(e.Reason)
	e.Message = cleanString(e.Message)
	var err error
	e.Timestamp, err = cleanTime("Timestamp", e.Timestamp)
	return e, err
}

// complete is the event with its required strings present, if empty. There is
// no honest default for a time.
func (e WorkloadEvent) complete() (WorkloadEvent, error) {
	for _, field := range []**string{&e.RuntimeEventUID, &e.Type, &e.Reason, &e.Message} {
		if *field == nil {
			*field = new("")
		}
	}
	if e.Timestamp == nil {
		return e, errors.New("the Timestamp is missing")
	}
	return e, nil
}

// clean is the resource instance as it can be sent.
func (r WorkloadResourceInstance) clean() (WorkloadResourceInstance, error) {
	r.ID, r.CreatedAt, r.UpdatedAt = nil, nil, nil
	r.JSONDefinition = cleanJSON(r.JSONDefinition)
	r.RuntimeDefinition = cleanJSON(r.RuntimeDefinition)
	r.LastOperation = cleanString(r.LastOperation)
	var err error
	r.ScheduledForDeletion, err = cleanTime("ScheduledForDeletion", r.ScheduledForDeletion)
	return r, err
}
