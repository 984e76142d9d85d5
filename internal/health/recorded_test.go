package health

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/threeport/threeport-agent/internal/testing/recorded"
)

// deviations has the recordings whose verdict differs from the one of a user, with the reason.
var deviations = map[string]struct {
	got Status
	why string
}{}

// recordedReasons has the expected reasons of recordings.
var recordedReasons = map[string]string{
	"bad-command":                "RunContainerError",
	"config-map-key":             "CreateContainerConfigError",
	"config-map-volume":          "FailedMount",
	"crash-at-once":              "CrashLoopBackOff",
	"crash-at-once-backing-off":  "CrashLoopBackOff",
	"crash-later-backing-off":    "CrashLoopBackOff",
	"crash-later-running":        "Restarting",
	"cronjob-failing":            "LastRunFailed",
	"image-name":                 "InvalidImageName",
	"image-pull-backing-off":     "ImagePullBackOff",
	"image-pull-failing":         "ImagePullBackOff",
	"init-endless-deadline":      "ProgressDeadlineExceeded",
	"init-failing":               "CrashLoopBackOff",
	"job-backoff-limit":          "BackoffLimitExceeded",
	"job-backoff-limit-retrying": "Retrying",
	"job-deadline":               "DeadlineExceeded",
	"job-failed":                 "PodFailurePolicy",
	"liveness":                   "CrashLoopBackOff",
	"node-gone-evicted":          "Unschedulable",
	"node-gone-unreachable":      "NodeNotReady",
	"oom-recovers-running":       "OOMKilled",
	"paused":                     "Paused",
	"readiness-deadline":         "ProgressDeadlineExceeded",
	"readiness-lost":             "NotReady",
	"rollout-surging":            "RollingOut",
	"sidecar-failing":            "CrashLoopBackOff",
	"startup":                    "CrashLoopBackOff",
	"statefulset-stuck":          "CrashLoopBackOff",
	"terminating-beyond-grace":   "TerminatingTooLong",
	"terminating-in-grace":       "Terminating",
	"unschedulable":              "Unschedulable",
}

// TestRecorded assesses recordings of a real cluster and compares the status with the one that a user would give.
func TestRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/recorded/*.yaml")
	if err != nil || len(files) < 40 {
		t.Fatalf("there are %d recordings, error %v; want 40 or more", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			r := readRecording(t, file)
			got, all := r.judge()
			want := cmp.Or(deviations[name].got, Status(r.User))
			if _, odd := deviations[name]; odd && want == Status(r.User) {
				t.Error("deviations lists it, but the status is the expected one")
			}
			if got.Status != want || recordedReasons[name] != "" && got.Reason != recordedReasons[name] {
				t.Errorf("got %s %s: %s; want %s %s", got.Status, got.Reason, got.Message, want, recordedReasons[name])
			}
			if testing.Verbose() {
				for _, v := range all {
					t.Logf("%s %s: %s", v.Status, v.Reason, v.Message)
				}
			}
		})
	}
	for name := range deviations {
		if _, err := os.Stat("testdata/recorded/" + name + ".yaml"); err != nil {
			t.Errorf("deviations lists %s, which has no recording", name)
		}
	}
	for name := range recordedReasons {
		if _, err := os.Stat("testdata/recorded/" + name + ".yaml"); err != nil {
			t.Errorf("recordedReasons lists %s, which has no recording", name)
		}
	}
}

// TestRecorded_PodVerdicts_HaveNoNames checks that no verdict on a pod has its name, so that equal causes are equal.
func TestRecorded_PodVerdicts_HaveNoNames(t *testing.T) {
	files, _ := filepath.Glob("testdata/recorded/*.yaml")
	for _, file := range files {
		r := readRecording(t, file)
		for _, o := range r.Objects {
			if o.GetKind() != "Pod" {
				continue
			}
			got := Object(kindOf(o), o, r.ctx(o))
			if name := o.GetName(); len(name) > 3 && strings.Contains(got.Message, name) ||
				strings.Contains(got.Message, string(o.GetUID())) || strings.Contains(got.Message, "198.51.100.") {
				t.Errorf("%s: the verdict has a name or an address: %s %s: %s", file, got.Status, got.Reason, got.Message)
			}
		}
	}
}

// recordedState is a recording: the objects of a workload at one time.
type recordedState struct{ recorded.State }

func readRecording(t *testing.T, file string) recordedState {
	t.Helper()
	state, err := recorded.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return recordedState{state}
}

func (r *recordedState) ctx(o *unstructured.Unstructured) Context {
	return Context{Now: r.At, Warning: Warning(r.Warnings[o.GetUID()])}
}

// assess returns the worst verdict on the resources of the workload, and all verdicts.
func (r *recordedState) judge() (Verdict, []Verdict) {
	var all []Verdict
	for _, root := range Forest(r.Objects, r.ctx) {
		if root.Object.GetKind() != "Node" { // it belongs to no workload
			all = append(all, root.Aggregate.Verdict)
		}
	}
	return Worst(all...), all
}
