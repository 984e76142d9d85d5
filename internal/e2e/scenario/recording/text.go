package recording

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Namespace is the namespace of every recording.
const Namespace = "app"

// draft is a snapshot during its normalization.
type draft struct {
	objects []*unstructured.Unstructured
	events  []*normalizedEvent // in the order in which they happened
}

// Text returns the normalized snapshot with a comment at its beginning: the listed objects, the objects created for them, and the
// Events. The snapshot is not changed.
func Text(s Snapshot, comment string) ([]byte, error) {
	d := draft{events: normalizeEvents(s.Events)}
	for _, obj := range s.Objects {
		d.objects = append(d.objects, prune(obj))
	}
	c := newClock(d.times())
	words := d.dictionary(c)
	words.tokens[s.Namespace] = Namespace
	for _, obj := range d.objects {
		obj.Object = rewriteMap(rewriteMap(obj.Object, c.rewrite), words.rewrite)
	}
	for _, e := range d.events {
		e.Object = rewriteMap(rewriteMap(e.Object, c.rewrite), words.rewrite)
		e.about.name, e.about.uid = e.text("involvedObject", "name"), e.text("involvedObject", "uid")
	}
	d.order()
	d.nameEvents()
	return d.print(comment, c.moment(s.Taken))
}

// times returns the times that form bursts. It omits times that depend on when the snapshot was taken: the last time of an
// Event, unless its count is exact, and the heartbeats of a node.
func (d draft) times() []time.Time {
	var all, ofNodes []time.Time
	for _, obj := range d.objects {
		eachText(obj.Object, func(key, text string) {
			switch t, ok := instant(text); {
			case !ok || key == "lastHeartbeatTime":
			case obj.GetKind() == nodeKind:
				ofNodes = append(ofNodes, t)
			default:
				all = append(all, t)
			}
		})
	}
	for _, e := range d.events {
		for _, field := range []string{"eventTime", "firstTimestamp", "lastTimestamp"} {
			if t, ok := instant(e.text(field)); ok && (e.exact || field != "lastTimestamp") {
				all = append(all, t)
			}
		}
	}
	if c := newClock(all); len(c) > 0 { // earlier times of nodes become longAgo
		for _, t := range ofNodes {
			if c.at(t).After(longAgo) {
				all = append(all, t)
			}
		}
	}
	return all
}

// nameEvents sets the name and the UID of each Event from its position.
func (d draft) nameEvents() {
	for i, e := range d.events {
		first := epoch
		for _, field := range []string{"eventTime", "firstTimestamp"} {
			if t, ok := instant(e.text(field)); ok {
				first = t
			}
		}
		nanos := first.Add(time.Duration(i+1) * time.Millisecond).UnixNano()
		e.SetName(e.about.name + "." + strconv.FormatInt(nanos, 16))
		e.SetUID(placeholder(eventKind, fmt.Sprintf("%03d", i+1)))
	}
}

// print writes the documents, and numbers the remaining values that differ in each run.
func (d draft) print(comment string, moment time.Time) ([]byte, error) {
	var out bytes.Buffer
	for line := range strings.Lines(strings.TrimSpace(comment)) {
		fmt.Fprintln(&out, strings.TrimSpace("# "+strings.TrimSpace(line)))
	}
	fmt.Fprintln(&out, takenLine+moment.Format(time.RFC3339))
	separator := ""
	write := func(obj *unstructured.Unstructured) error {
		text, err := yaml.Marshal(obj.Object)
		if err != nil {
			return fmt.Errorf("write %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		out.WriteString(separator)
		out.Write(text)
		separator = "---\n"
		return nil
	}
	for _, obj := range d.objects {
		if err := write(obj); err != nil {
			return nil, err
		}
	}
	for _, e := range d.events {
		if err := write(e.Unstructured); err != nil {
			return nil, err
		}
	}
	text := digest.ReplaceAllString(out.String(), theDigest)
	text = number(text, identifier, "container-%d")
	return []byte(number(text, uuid, "uid-unknown-%d")), nil
}
