package store

import (
	"errors"
	"fmt"
	"strconv"
)

// What a write of v0 is refused for.
var (
	ErrReference = errors.New("a row that it refers to does not exist")
	ErrRefused   = errors.New("the database cannot keep this row")
)

// ValueError is a value of a row that is not accepted. It quotes none.
type ValueError struct{ Field, Accepted string }

func (e *ValueError) Error() string { return "field " + e.Field + ": accepted is " + e.Accepted }

// check says which value cannot be kept: its error is a [ValueError].
func (r *Resource) check(values []any) error {
	for i, f := range r.Fields {
		text, _ := values[i].(string)
		switch {
		case !storable(text):
			return &ValueError{f.Name, "UTF-8 without NUL"}
		case f.Longest > 0 && len(text) > f.Longest:
			return &ValueError{f.Name, "a text of at most " + strconv.Itoa(f.Longest) + " bytes"}
		}
	}
	return nil
}

// refusal says what a write was refused for, if it was.
func refusal(err error) error {
	switch {
	case isUniqueViolation(err):
		return ErrConflict
	case isForeignKey(err):
		return fmt.Errorf("%w: %w", ErrReference, err)
	case isRefusal(err):
		return fmt.Errorf("%w: %w", ErrRefused, err)
	default:
		return err
	}
}
