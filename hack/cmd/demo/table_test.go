package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestTable(t *testing.T) {
	workloads, found := asExpected()
	found.Events[1].Type = new("Warning")
	delete(found.statuses, "chart")
	found.statuses["web"] = "Down"
	found.workloads[webRow] = threeport.Workload{Instance: webRow, Status: "Down", Reason: "CrashLoopBackOff", Cause: "CrashLoopBackOff: container\nweb"}
	want := `WORKLOAD  TYPE          STATUS  RESOURCES       EVENTS  CAUSE
web       Workload      Down    1/1 MODIFIED 1  1/1     CrashLoopBackOff: container web
chart     HelmWorkload  -       -               1/0
`
	if got := table(workloads, found, 160); got != want {
		t.Errorf("expected\n%s\ngot\n%s", want, got)
	}
}

func TestTable_BeforeReports(t *testing.T) {
	workloads, _ := asExpected()
	found := content{}
	if got := table(workloads, found, 160); !strings.Contains(got, "web       Workload      -       0/1        0/0\n") {
		t.Errorf("expected no reported resources of web, got\n%s", got)
	}
}

func TestTable_FitsTerminal(t *testing.T) {
	workloads, found := asExpected()
	found.workloads[webRow] = threeport.Workload{Instance: webRow, Cause: strings.Repeat("é", 200)}
	for line := range strings.Lines(table(workloads, found, 80)) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("expected at most 80 columns, got %d: %s", n, line)
		}
	}
}

func TestTable_LongCause_IsBelowItsRow(t *testing.T) {
	workloads, found := asExpected()
	const long = "2 pods ImagePullBackOff: image 127.0.0.1:1/absent:1 cannot be pulled: it does not exist → ReplicaSet web-78 → Deployment web has 0 of 2 replicas ready"
	found.workloads[webRow] = threeport.Workload{Instance: webRow, Status: "Down", Cause: long}
	for _, width := range []int{80, 120, 160} {
		got := table(workloads, found, width)
		if text := strings.Join(strings.Fields(got), " "); !strings.Contains(text, long) {
			t.Errorf("width %d: the cause is cut in\n%s", width, got)
		}
		for line := range strings.Lines(got) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("a line has %d characters of %d: %s", n, width, line)
			}
		}
	}
	if got, want := changedLines("a  1\n  cause\nb  1\n", "a  2\n  cause\nb  1\n"), "a  2\n  cause\n"; got != want {
		t.Errorf("the changed row is printed as %q, want %q with its cause", got, want)
	}
}

func TestScreen_PrintsChangesThenAll(t *testing.T) {
	var plain bytes.Buffer
	s := newScreen(&plain)
	for _, text := range []string{"x  a\ny  b\n", "x  a\ny  b\n", "x    a\ny    long\n"} {
		s.show(text)
	}
	s.finish()
	if got, want := plain.String(), "x  a\ny  b\ny    long\n\nx    a\ny    long\n"; got != want {
		t.Errorf("without a terminal: expected %q, got %q", want, got)
	}
	var inPlace bytes.Buffer
	s = &screen{out: &inPlace, terminal: 1}
	for _, text := range []string{"a\nb\n", "a\nb\n", "c\n"} {
		s.show(text)
	}
	s.finish()
	if got, want := inPlace.String(), "a\nb\n\x1b[2A\x1b[Jc\n"; got != want {
		t.Errorf("on a terminal: expected %q, got %q", want, got)
	}
}
