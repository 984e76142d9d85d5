package store

import (
	"database/sql"
	"time"
)

// now is the current time as it is stored, in microseconds since 1970.
func now() int64 { return time.Now().UnixMicro() }

// fromMicros is a stored time.
func fromMicros(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// optionalTime is a stored time that may be NULL.
func optionalTime(micros sql.NullInt64) *time.Time {
	if !micros.Valid {
		return nil
	}
	return new(fromMicros(micros.Int64))
}

// optionalMicros is a time to be stored, or NULL.
func optionalMicros(t *time.Time) any {
	if t == nil {
		return nil
	}
	return t.UnixMicro()
}
