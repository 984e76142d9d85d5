package health

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// caseTime is the default time of a case.
var caseTime = time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)

// caseFile is a case in testdata/cases: an object with its descendants, and the verdict.
type caseFile struct {
	Name    string
	Now     time.Time        // caseTime if not given
	Object  map[string]any   // the assessed object
	Derived []map[string]any // its descendants by owner references
	Warning *Warning         // the latest Warning Event about the object
	Want    struct {
		Status Status
		Reason string
		// Message is a part of the verdict's message.
		Message string
		// Recheck is the time of the next assessment; "" for any, "never" for none.
		Recheck string
	}
}

// TestObject_Cases assesses the cases in testdata/cases, which has one file for each kind.
func TestObject_Cases(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no files of cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var cases []caseFile
			if err := yaml.UnmarshalStrict(data, &cases); err != nil {
				t.Fatal(err)
			}
			if len(cases) == 0 {
				t.Fatal("the file has no cases")
			}
			for _, c := range cases {
				t.Run(c.Name, func(t *testing.T) { c.check(t) })
			}
		})
	}
}

func (c caseFile) check(t *testing.T) {
	t.Helper()
	now := c.Now
	if now.IsZero() {
		now = caseTime
	}
	objects := []*unstructured.Unstructured{{Object: c.Object}}
	for _, o := range c.Derived {
		objects = append(objects, &unstructured.Unstructured{Object: o})
	}
	got := Forest(objects, func(o *unstructured.Unstructured) Context {
		ctx := Context{Now: now}
		if c.Warning != nil && o == objects[0] {
			ctx.Warning = *c.Warning
		}
		return ctx
	})[0].Aggregate
	if got.Status != c.Want.Status || got.Reason != c.Want.Reason || !strings.Contains(got.Message, c.Want.Message) {
		t.Errorf("got %s %s: %q, want %s %s: %q", got.Status, got.Reason, got.Message, c.Want.Status, c.Want.Reason, c.Want.Message)
	}
	if (got.Message == "") != (got.Status == Healthy && !got.idle()) {
		t.Errorf("the status is %s with the message %q, want a message exactly if not Healthy or idle", got.Status, got.Message)
	}
	recheck := "never"
	if !got.Recheck.IsZero() {
		recheck = got.Recheck.UTC().Format(time.RFC3339)
	}
	if c.Want.Recheck != "" && recheck != c.Want.Recheck {
		t.Errorf("recheck at %s, want %s", recheck, c.Want.Recheck)
	}
}
