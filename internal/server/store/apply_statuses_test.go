package store

import (
	"testing"
	"time"
)

// sinceOf returns since when a workload has its status.
func sinceOf(t *testing.T, s *Store, w world) int64 {
	t.Helper()
	return count(t, s, "SELECT since FROM workloads WHERE type = ? AND id = ?", w.workload.Type, int64(w.workload.ID))
}

func TestApplyStatuses_WritesWorkloadAndV0Instance(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		apply(t, s, "one", statusOf(w.workload, "Down", 5), statusOf(w.helm, "Reconciling", 6))
		for _, one := range []struct{ got, want string }{
			{workloadRowOf(t, s, w.workload), "reported Down 5, shown Down 0, silent false, Reason: cause 5"},
			{workloadRowOf(t, s, w.helm), "reported Reconciling 6, shown Reconciling 4, silent false, Reason: cause 6"},
			{rows(t, s, workload)[0].Values[instanceStatus].(string), "Down"},
			{rows(t, s, helm)[0].Values[instanceStatus].(string), "Reconciling"},
		} {
			if one.got != one.want {
				t.Errorf("got %s, want %s", one.got, one.want)
			}
		}
	})
}

func TestApplyStatuses_StatusOfV0InBetween(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		apply(t, s, "one", statusOf(w.workload, "Down", 5))
		r := resource(t, workload)
		if _, err := s.Update(t.Context(), r, int64(w.workload.ID), []any{nil, "Healthy", nil}); err != nil {
			t.Fatal(err)
		}
		if got, want := workloadRowOf(t, s, w.workload), "reported Healthy 5, shown Healthy 5, silent false, : "; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		expect(t, apply(t, s, "one", statusOf(w.workload, "Down", 5)), "unchanged")
		expect(t, apply(t, s, "one", statusOf(w.workload, "Down", 6)), "updated")
		if got, want := workloadRowOf(t, s, w.workload), "reported Down 6, shown Down 0, silent false, Reason: cause 6"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got := rows(t, s, workload)[0].Values[instanceStatus]; got != "Down" {
			t.Errorf("v0 shows %v, want \"Down\"", got)
		}
	})
}

func TestApplyStatuses_Since(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		apply(t, s, "one", statusOf(w.workload, "Down", 1))
		first := sinceOf(t, s, w)
		if heard := count(t, s, "SELECT heardat FROM clusters"); first != heard {
			t.Errorf("a status without a time has since %d, want that of the heartbeat: %d", first, heard)
		}
		apply(t, s, "one", statusOf(w.workload, "Down", 2))
		if got := sinceOf(t, s, w); got != first {
			t.Errorf("the unchanged status has since %d, want %d", got, first)
		}
		apply(t, s, "one", statusOf(w.workload, "Healthy", 3))
		if got := sinceOf(t, s, w); got <= first {
			t.Errorf("the changed status has since %d, want more than %d", got, first)
		}
		report := statusOf(w.workload, "Healthy", 4)
		report.Status.Since = new(reportTime.Add(-time.Hour))
		apply(t, s, "one", report)
		if got := sinceOf(t, s, w); got != report.Status.Since.UnixMicro() {
			t.Errorf("the status has since %d, reported %v, want %d", got, report.Status.Since, report.Status.Since.UnixMicro())
		}
	})
}

// The same reason is the same cause, although its text changes.
func TestApplyStatuses_CauseSince(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		version := int64(0)
		start := time.Now().Add(-time.Hour).Truncate(time.Microsecond)
		report := func(status, reason, cause string) time.Time {
			t.Helper()
			version++
			start = start.Add(time.Minute)
			report := statusOf(w.workload, status, version)
			report.Status.Reason, report.Status.Cause, report.Status.Since = reason, cause, &start
			apply(t, s, "one", report)
			return causeSinceOf(t, s, w)
		}
		first := report("Down", "ImagePullBackOff", "3 pods ImagePullBackOff")
		if since := time.UnixMicro(sinceOf(t, s, w)); !first.Equal(since) {
			t.Errorf("the cause of a new status holds since %v, want the time of the status: %v", first, since)
		}
		for _, same := range []struct{ reason, status, cause string }{
			{"another count and message", "Down", "2 pods ImagePullBackOff: image a cannot be pulled"},
			{"another status", "Unhealthy", "1 pod ImagePullBackOff"},
		} {
			if got := report(same.status, "ImagePullBackOff", same.cause); !got.Equal(first) {
				t.Errorf("%s: the cause holds since %v, want %v", same.reason, got, first)
			}
		}
		second := report("Unhealthy", "CrashLoopBackOff", "1 pod CrashLoopBackOff")
		if !second.After(first) {
			t.Errorf("another reason holds since %v, want later than %v", second, first)
		}
		if got := report("Healthy", "", ""); !got.IsZero() {
			t.Errorf("no reason holds since %v, want no time", got)
		}
		if got := report("Healthy", "ScaledToZero", "no pod is wanted"); !got.Equal(start) {
			t.Errorf("the reason of a status that began again holds since %v, want the time of the status: %v", got, start)
		}
		if got := report("Unhealthy", "CrashLoopBackOff", "1 pod CrashLoopBackOff"); !got.Equal(start) {
			t.Errorf("a reason that came back holds since %v, want the time of the status: %v", got, start)
		}
		start = start.Add(-10 * time.Minute)
		if got := report("Unhealthy", "CrashLoopBackOff", "1 pod CrashLoopBackOff"); !got.Equal(start) {
			t.Errorf("the cause of a status with a corrected start holds since %v, want %v", got, start)
		}
		down := start
		report("Unknown", "Unavailable", "the API server does not answer")
		start = down.Add(-time.Minute) // report adds it again: the status resumes
		if got := report("Unhealthy", "Absent", "Deployment web does not exist"); time.Since(got) > time.Minute {
			t.Errorf("another cause of a resumed status holds since %v, want now", got)
		}
		if _, err := s.Update(t.Context(), resource(t, workload), int64(w.workload.ID), []any{nil, "Down", nil}); err != nil {
			t.Fatal(err)
		}
		if got := causeSinceOf(t, s, w); !got.IsZero() {
			t.Errorf("after a status of v0, which has no reason, the cause holds since %v, want no time", got)
		}
	})
}

// A cause that begins within seconds of its status begins with it.
func TestApplyStatuses_CauseSince_IsThatOfStatusWithinSeconds(t *testing.T) {
	for _, test := range []struct {
		reason         string
		status, before string // the first report
		ago            time.Duration
		one            bool
	}{
		{"another reason of a new status", "Down", "ContainersNotReady", 2 * time.Second, true},
		{"another reason of a status that lasts", "Down", "ContainersNotReady", time.Minute, false},
		{"another status with the same reason", "Unhealthy", "CrashLoopBackOff", time.Minute, true},
	} {
		t.Run(test.reason, func(t *testing.T) {
			forEachDatabase(t, func(t *testing.T, s *Store) {
				t.Helper()
				w := newWorld(t, s)
				report := func(status, reason string, version int64, since time.Time) {
					t.Helper()
					report := statusOf(w.workload, status, version)
					report.Status.Reason, report.Status.Since = reason, &since
					apply(t, s, "one", report)
				}
				since := time.Now().Add(-test.ago)
				report(test.status, test.before, 1, since.Add(-time.Second))
				report("Down", "CrashLoopBackOff", 2, since)
				got, status := causeSinceOf(t, s, w), time.UnixMicro(sinceOf(t, s, w))
				if got.Equal(status) != test.one {
					t.Errorf("the cause holds since %s and the status since %s, want one time: %t", got, status, test.one)
				}
			})
		})
	}
}

// The agent knows the start of a cause, however late its report is.
func TestApplyStatuses_CauseSince_IsTheReportedOne(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		since := time.Now().Add(-time.Hour).Truncate(time.Microsecond)
		version := int64(0)
		report := func(reason string, causeSince *time.Time) time.Time {
			t.Helper()
			version++
			report := statusOf(w.workload, "Down", version)
			report.Status.Reason, report.Status.Since, report.Status.CauseSince = reason, &since, causeSince
			apply(t, s, "one", report)
			return causeSinceOf(t, s, w)
		}
		report("ImagePullBackOff", nil)
		changed := since.Add(20 * time.Minute)
		for _, tt := range []struct {
			name, reason string
			reported     *time.Time
			want         time.Time
		}{
			{"another reason", "Absent", &changed, changed},
			{"the same reason without a start", "Absent", nil, changed},
			{"a start that was corrected", "Absent", new(changed.Add(-time.Minute)), changed.Add(-time.Minute)},
			{"a start within seconds of the status", "Absent", new(since.Add(3 * time.Second)), since},
			{"a start without a reason", "", &changed, time.Time{}},
		} {
			if got := report(tt.reason, tt.reported); !got.Equal(tt.want) {
				t.Errorf("%s: the cause holds since %v, want %v", tt.name, got, tt.want)
			}
		}
	})
}

// causeSinceOf returns since when a workload has its reason; the zero time if that is unknown.
func causeSinceOf(t *testing.T, s *Store, w world) time.Time {
	t.Helper()
	detail := readDetail(t, s, w.workload)
	if detail.Workload.CauseSince == nil {
		return time.Time{}
	}
	return *detail.Workload.CauseSince
}

func TestApplyStatuses_ClockSetBack_ChangedAtGrows(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		apply(t, s, "one", statusOf(w.workload, "Down", 1))
		future := time.Now().Add(time.Hour).UnixMicro()
		mustExec(t, s, "UPDATE workloads SET changedat = ? WHERE type = ?", future, workload)
		apply(t, s, "one", statusOf(w.workload, "Down", 2), treeOf(w.workload, 2, nodeOf("a", "a", "Healthy")))
		if got := count(t, s, "SELECT changedat FROM workloads WHERE type = ?", workload); got != future+2 {
			t.Errorf("changed at %d, want two after %d", got, future)
		}
	})
}
