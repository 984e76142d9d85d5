package health

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // schedules have time zones, and some images lack their data
)

// schedule is the schedule of a CronJob: times at which a minute begins, or an interval. The controller of CronJobs uses
// github.com/robfig/cron/v3; the schedules are read here as that library reads them, including its limits.
//
// Source: https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#schedule-syntax
type schedule struct {
	minutes, hours, days, months, weekdays field
	zone                                   *time.Location
	interval                               time.Duration // of "@every"; the fields are empty then
}

// field is a set of numbers, and whether it was written as "*".
type field struct {
	set uint64
	any bool
}

func (f field) has(n int) bool { return f.set&(1<<n) != 0 }

// horizon is how many years a schedule may have no time, before it counts as one that never matches.
const horizon = 5

var (
	monthNames   = []string{"", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	weekdayNames = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
)

// macros are abbreviations of schedules.
var macros = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// parseSchedule parses a schedule. An empty zone is UTC, as that of the controller usually is. The errors quote no text of the
// schedule.
func parseSchedule(text, zone string) (s schedule, err error) {
	for _, prefix := range []string{"TZ=", "CRON_TZ="} {
		if rest, found := strings.CutPrefix(text, prefix); found && zone == "" {
			zone, text, _ = strings.Cut(rest, " ")
		}
	}
	if s.zone, err = time.LoadLocation(zone); err != nil {
		return s, errors.New("its time zone is unknown")
	}
	text = strings.TrimSpace(text)
	if interval, found := strings.CutPrefix(text, "@every "); found {
		return s, s.parseInterval(interval)
	}
	if full, found := macros[text]; found {
		text = full
	}
	parts := strings.Fields(text)
	if len(parts) != 5 {
		return s, fmt.Errorf("it has %d fields, not 5", len(parts))
	}
	for i, f := range []struct {
		field       *field
		name        string
		least, most int
		names       []string
	}{
		{&s.minutes, "minute", 0, 59, nil},
		{&s.hours, "hour", 0, 23, nil},
		{&s.days, "day of the month", 1, 31, nil},
		{&s.months, "month", 1, 12, monthNames},
		{&s.weekdays, "day of the week", 0, 6, weekdayNames},
	} {
		if *f.field, err = parseField(parts[i], f.least, f.most, f.names); err != nil {
			return s, fmt.Errorf("its %s %w", f.name, err)
		}
	}
	return s, nil
}

func (s *schedule) parseInterval(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("its interval is not a duration")
	}
	s.interval = max(d.Truncate(time.Second), time.Second)
	return nil
}

// parseField parses a list of ranges, such as "1-5,10/2,*".
func parseField(text string, least, most int, names []string) (f field, err error) {
	ranges := strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
	for _, one := range ranges {
		span, step, stepped := strings.Cut(one, "/")
		first, last, any, err := parseRange(span, least, most, stepped, names)
		if err != nil {
			return f, err
		}
		by := 1
		if stepped {
			if by, err = parseNumber(step, nil); err != nil || by == 0 {
				return f, errors.New("has a step that is not a number above 0")
			}
		}
		for n := first; n <= last; n += by {
			f.set |= 1 << n
		}
		f.any = f.any || any && by == 1
	}
	return f, nil
}

// parseRange parses a number, a range of two, or all numbers. A number with a step begins a range that has no end.
func parseRange(text string, least, most int, stepped bool, names []string) (first, last int, any bool, err error) {
	if text == "*" || text == "?" {
		return least, most, true, nil
	}
	from, to, isRange := strings.Cut(text, "-")
	if first, err = parseNumber(from, names); err != nil {
		return 0, 0, false, err
	}
	switch last = first; {
	case isRange:
		if last, err = parseNumber(to, names); err != nil {
			return 0, 0, false, err
		}
	case stepped:
		last = most
	}
	if first < least || last > most || first > last {
		return 0, 0, false, fmt.Errorf("is not a range within %d and %d", least, most)
	}
	return first, last, false, nil
}

func parseNumber(text string, names []string) (int, error) {
	for i, name := range names {
		if name != "" && strings.EqualFold(text, name) {
			return i, nil
		}
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, errors.New("has a value that is not a number")
	}
	return int(n), nil
}

// next returns the first time of the schedule after t; zero if there is none within the horizon.
func (s *schedule) next(t time.Time) time.Time {
	if s.interval > 0 {
		return t.Truncate(time.Second).Add(s.interval)
	}
	due := t.In(s.zone)
	for end := due.AddDate(horizon, 0, 0); ; {
		due = s.skip(due.Truncate(time.Minute).Add(time.Minute), end)
		if due.After(end) {
			return time.Time{}
		}
		if s.minutes.has(due.Minute()) {
			return due.In(t.Location())
		}
	}
}

// skip returns the first minute at or after t whose month, day and hour match, or a time after end.
func (s *schedule) skip(t, end time.Time) time.Time {
	for !t.After(end) {
		switch year, month, day := t.Date(); {
		case !s.months.has(int(month)):
			t = later(t, time.Date(year, month+1, 1, 0, 0, 0, 0, s.zone))
		case !s.matchesDay(t):
			t = later(t, time.Date(year, month, day+1, 0, 0, 0, 0, s.zone))
		case !s.hours.has(t.Hour()):
			t = t.Add(time.Duration(60-t.Minute()) * time.Minute)
		default:
			return t
		}
	}
	return t
}

// later returns the midnight, if it is after t. A day without midnight begins after a change of the clock: hours follow each
// other then.
func later(t, midnight time.Time) time.Time {
	if midnight.Hour() == 0 && midnight.After(t) {
		return midnight
	}
	return t.Add(time.Duration(60-t.Minute()) * time.Minute)
}

// matchesDay reports whether the day of a time matches. If both the day of the month and that of the week are given, one of
// them has to match.
func (s *schedule) matchesDay(t time.Time) bool {
	day, weekday := s.days.has(t.Day()), s.weekdays.has(int(t.Weekday()))
	if s.days.any || s.weekdays.any {
		return day && weekday
	}
	return day || weekday
}
