package health

import (
	"testing"
	"time"
)

func TestSchedule_Next(t *testing.T) {
	tests := []struct {
		name, schedule, zone string
		after                string
		want                 []string // following each other; "" for none
	}{
		{name: "every minute", schedule: "* * * * *", after: "2026-01-01T10:00:00Z", want: []string{"2026-01-01T10:01:00Z", "2026-01-01T10:02:00Z"}},
		{name: "seconds are cut off", schedule: "* * * * *", after: "2026-01-01T10:00:59.9Z", want: []string{"2026-01-01T10:01:00Z"}},
		{
			name: "a list of ranges with steps", schedule: "1-10/4,58/1 3 * * *", after: "2026-01-01T03:01:00Z",
			want: []string{"2026-01-01T03:05:00Z", "2026-01-01T03:09:00Z", "2026-01-01T03:58:00Z", "2026-01-01T03:59:00Z", "2026-01-02T03:01:00Z"},
		},
		{name: "names", schedule: "0 0 ? FEB-mar Mon", after: "2026-01-01T00:00:00Z", want: []string{"2026-02-02T00:00:00Z", "2026-02-09T00:00:00Z"}},
		{
			name: "a day of the month or of the week", schedule: "0 0 13 * 5", after: "2026-01-01T00:00:00Z",
			want: []string{"2026-01-02T00:00:00Z", "2026-01-09T00:00:00Z", "2026-01-13T00:00:00Z"},
		},
		{name: "a step over all days restricts the day", schedule: "0 0 */30 * 5", after: "2026-01-02T00:00:00Z", want: []string{"2026-01-09T00:00:00Z"}},
		{name: "a leap day", schedule: "0 12 29 2 *", after: "2026-01-01T00:00:00Z", want: []string{"2028-02-29T12:00:00Z"}},
		{name: "a day that does not exist", schedule: "0 0 31 2 *", after: "2026-01-01T00:00:00Z", want: []string{""}},
		{name: "a macro", schedule: "@weekly", after: "2026-01-01T00:00:00Z", want: []string{"2026-01-04T00:00:00Z"}},
		{name: "an interval", schedule: "@every 90m", after: "2026-01-01T00:00:30.5Z", want: []string{"2026-01-01T01:30:30Z"}},
		{name: "the shortest interval", schedule: "@every 1ms", after: "2026-01-01T00:00:00Z", want: []string{"2026-01-01T00:00:01Z"}},

		{name: "a time zone", schedule: "30 8 * * *", zone: "Asia/Kolkata", after: "2026-01-01T00:00:00Z", want: []string{"2026-01-01T03:00:00Z"}},
		{name: "a time zone in the schedule", schedule: "CRON_TZ=Asia/Kolkata 30 8 * * *", after: "2026-01-01T00:00:00Z", want: []string{"2026-01-01T03:00:00Z"}},
		{name: "the hour that the clock skips", schedule: "30 2 * * *", zone: "Europe/Berlin", after: "2026-03-28T12:00:00Z", want: []string{"2026-03-30T00:30:00Z"}},
		{
			name: "the hour that the clock repeats", schedule: "30 2 * * *", zone: "Europe/Berlin", after: "2026-10-24T12:00:00Z",
			want: []string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"},
		},
		{name: "the midnight that the clock skips", schedule: "0 6 4 11 *", zone: "America/Sao_Paulo", after: "2018-11-03T12:00:00Z", want: []string{"2018-11-04T08:00:00Z"}},
		{name: "the half hour that the clock skips", schedule: "0 5 * 10 *", zone: "Australia/Lord_Howe", after: "2026-10-03T12:00:00Z", want: []string{"2026-10-03T18:00:00Z"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, err := parseSchedule(test.schedule, test.zone)
			if err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse(time.RFC3339Nano, test.after)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range test.want {
				next := s.next(at)
				got := ""
				if !next.IsZero() {
					got = next.Format(time.RFC3339)
				}
				if got != want {
					t.Fatalf("after %s: got %q, want %q", at.Format(time.RFC3339Nano), got, want)
				}
				at = next
			}
		})
	}
}

func TestParseSchedule_Malformed(t *testing.T) {
	tests := []struct{ schedule, want string }{
		{schedule: "", want: "it has 0 fields, not 5"},
		{schedule: "TZ=", want: "it has 0 fields, not 5"},
		{schedule: "TZ=UTC", want: "it has 0 fields, not 5"},
		{schedule: "TZ=Nowhere * * * * *", want: "its time zone is unknown"},
		{schedule: "TZ=../etc * * * * *", want: "its time zone is unknown"},
		{schedule: "* * * *", want: "it has 4 fields, not 5"},
		{schedule: "* * * * * *", want: "it has 6 fields, not 5"},
		{schedule: "@reboot", want: "it has 1 fields, not 5"},
		{schedule: "@every", want: "it has 1 fields, not 5"},
		{schedule: "@every soon", want: "its interval is not a duration"},
		{schedule: "60 * * * *", want: "its minute is not a range within 0 and 59"},
		{schedule: "5-1 * * * *", want: "its minute is not a range within 0 and 59"},
		{schedule: "* 1-2-3 * * *", want: "its hour has a value that is not a number"},
		{schedule: "* -1 * * *", want: "its hour has a value that is not a number"},
		{schedule: "* * 0 * *", want: "its day of the month is not a range within 1 and 31"},
		{schedule: "* * * sun *", want: "its month has a value that is not a number"},
		{schedule: "* * * * 7", want: "its day of the week is not a range within 0 and 6"},
		{schedule: "*/0 * * * *", want: "its minute has a step that is not a number above 0"},
		{schedule: "*/99999999999 * * * *", want: "its minute has a step that is not a number above 0"},
		{schedule: "99999999999999 * * * *", want: "its minute has a value that is not a number"},
	}
	for _, test := range tests {
		if _, err := parseSchedule(test.schedule, ""); err == nil || err.Error() != test.want {
			t.Errorf("%q: got the error %v, want %s", test.schedule, err, test.want)
		}
	}
	if _, err := parseSchedule("TZ=UTC * * * * *", "UTC"); err == nil {
		t.Error("two time zones are accepted")
	}
}

// Each assessment of a CronJob reads its schedule. The search for the next time ends at the horizon.
func BenchmarkSchedule_NeverMatches(b *testing.B) {
	for b.Loop() {
		s, err := parseSchedule("59 23 31 2 *", "America/Sao_Paulo")
		if err != nil {
			b.Fatal(err)
		}
		s.next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	}
}
