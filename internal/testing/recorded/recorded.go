// Package recorded reads the recordings of a real cluster, which the program hack/cmd/record writes. A recording has the objects and
// Events of a workload at one time, and the status that a user would give it.
package recorded

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// State is a recording: the objects of a workload at one time.
type State struct {
	// User is the status that a user would give the workload.
	User string
	// Parts are the statuses that a user would give the custom resources, by kind and name: "Certificate web".
	Parts    map[string]string
	At       time.Time
	Objects  []*unstructured.Unstructured
	Warnings map[types.UID]Warning // the latest about each object
}

// Warning is a Warning Event. It has the fields of package health's, which this package does not import: its tests use this one.
type Warning struct {
	Reason  string
	Message string
	Time    time.Time
}

var (
	userCalls = regexp.MustCompile(`(?m)^# A user would call it (\w+)\.`)
	partCalls = regexp.MustCompile(`(?m)^# A user would call (\S+ \S+) (\w+)\.$`)
	momentAt  = regexp.MustCompile(`(?m)^# The time of the moment: (\S+)$`)
)

// Read reads a recording.
func Read(file string) (State, error) {
	data, err := os.ReadFile(file) //nolint:gosec // test data
	if err != nil {
		return State{}, err
	}
	user, at := userCalls.FindSubmatch(data), momentAt.FindSubmatch(data)
	if user == nil || at == nil {
		return State{}, fmt.Errorf("%s has no comment with its user and its moment", file)
	}
	s := State{User: string(user[1]), Parts: map[string]string{}, Warnings: map[types.UID]Warning{}}
	for _, part := range partCalls.FindAllSubmatch(data, -1) {
		s.Parts[string(part[1])] = string(part[2])
	}
	if s.At, err = time.Parse(time.RFC3339, string(at[1])); err != nil {
		return State{}, fmt.Errorf("%s: %w", file, err)
	}
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(string(data)), 4096); ; {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(o)
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return State{}, fmt.Errorf("%s: %w", file, err)
		}
		if o.GetKind() == "Event" {
			s.addEvent(o)
		} else {
			s.Objects = append(s.Objects, o)
		}
	}
}

// addEvent adds an Event if it is the latest Warning about its object.
func (s *State) addEvent(event *unstructured.Unstructured) {
	text := func(path ...string) string {
		found, _, _ := unstructured.NestedString(event.Object, path...)
		return found
	}
	uid := types.UID(text("involvedObject", "uid"))
	if text("type") != "Warning" || uid == "" {
		return
	}
	w := Warning{Reason: text("reason"), Message: text("message")}
	w.Time, _ = time.Parse(time.RFC3339, cmp.Or(text("lastTimestamp"), text("eventTime")))
	if old, ok := s.Warnings[uid]; !ok || !w.Time.Before(old.Time) {
		s.Warnings[uid] = w
	}
}
