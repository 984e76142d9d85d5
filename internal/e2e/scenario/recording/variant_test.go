package recording

import (
	"bytes"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"text/template"
	"time"
)

//go:embed testdata/crash.yaml.tmpl
var crash string

// variant is one run of a workload: it makes up what differs each time.
type variant struct {
	*rand.Rand
	made      map[string]string
	namespace string
	start     time.Time
	slow      float64
	nanos     int
}

func newVariant(seed uint64) *variant {
	r := rand.New(rand.NewPCG(seed, 0))
	return &variant{
		Rand: r, made: map[string]string{}, namespace: "recording-" + fmt.Sprint(r.IntN(100)),
		slow:  1 + r.Float64()/8,
		start: time.Date(2020+r.IntN(10), 1, 1+r.IntN(300), r.IntN(24), r.IntN(60), r.IntN(60), 0, time.UTC),
	}
}

// snapshot fills a template in. Objects and Events come in no order.
func (v *variant) snapshot(t *testing.T, text string) Snapshot {
	t.Helper()
	funcs := template.FuncMap{
		"name":      func(prefix, key string) string { return prefix + v.random(key, "bcdfghjklmnpqrstvwxz2456789", 5) },
		"uid":       v.uid,
		"digest":    func(key string) string { return v.random("digest "+key, "0123456789abcdef", 64) },
		"access":    func(key string) string { return "kube-api-access-" + v.random("access "+key, "bcdfghjklmnp", 5) },
		"namespace": func() string { return v.namespace },
		"number":    func() int { return v.IntN(1 << 30) },
		"more":      func() int { return 2 + v.IntN(9) },
		"between":   func(from, to int) int { return from + v.IntN(to-from) },
		"ip": func(key string) string {
			return v.once("ip "+key, func() string { return fmt.Sprintf("10.88.%d.%d", len(v.made), v.IntN(250)) })
		},
		"time":  func(second int) string { return v.time(second).Format(`"2006-01-02T15:04:05Z"`) },
		"event": v.event,
		"shuffled": func(keys ...string) []string {
			v.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
			return keys
		},
		"minute":    func(n int) string { return fmt.Sprint("tick-", v.start.Unix()/60+int64(n)) },
		"scheduled": v.scheduled,
	}
	parsed, err := template.New("").Funcs(funcs).Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, nil); err != nil {
		t.Fatal(err)
	}
	s, err := Parse(out.Bytes())
	if err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	s.Namespace, s.Taken = v.namespace, v.time(46+v.IntN(9))
	v.Shuffle(len(s.Objects), func(i, j int) { s.Objects[i], s.Objects[j] = s.Objects[j], s.Objects[i] })
	v.Shuffle(len(s.Events), func(i, j int) { s.Events[i], s.Events[j] = s.Events[j], s.Events[i] })
	return s
}

// once makes something up for a key, and remembers it.
func (v *variant) once(key string, make func() string) string {
	if _, ok := v.made[key]; !ok {
		v.made[key] = make()
	}
	return v.made[key]
}

func (v *variant) random(key, alphabet string, n int) string {
	return v.once(key, func() string {
		var out strings.Builder
		for range n {
			out.WriteByte(alphabet[v.IntN(len(alphabet))])
		}
		return out.String()
	})
}

func (v *variant) uid(key string) string {
	hex := func(n int) string { return v.random(fmt.Sprint(key, n, len(v.made)), "0123456789abcdef", n) }
	return v.once("uid "+key, func() string {
		return strings.Join([]string{hex(8), hex(4), hex(4), hex(4), hex(12)}, "-")
	})
}

// time is a second of the run, which goes a little slower each time.
func (v *variant) time(second int) time.Time {
	return v.start.Add(time.Duration(float64(second)*v.slow) * time.Second)
}

// event is the head of an Event in the words of the legacy recorder.
func (v *variant) event(component, kind, name, uid string, second, count int) string {
	v.nanos++
	at := v.time(second).Add(time.Duration(v.nanos) * time.Microsecond)
	return fmt.Sprintf(`
apiVersion: v1
kind: Event
metadata: {name: %s.%x, namespace: %s, uid: %s, creationTimestamp: %q, resourceVersion: "%d"}
involvedObject: {kind: %s, name: %s, namespace: %s, uid: %s, resourceVersion: "%d"}
source: {component: %s}
firstTimestamp: %q
count: %d`, name, at.UnixNano(), v.namespace, v.uid(fmt.Sprint("event", v.nanos)), v.time(second).Format(time.RFC3339), v.IntN(1<<30),
		kind, name, v.namespace, v.uid(uid), v.IntN(1<<30), component, v.time(second).Format(time.RFC3339), count)
}

// scheduled is an Event of the scheduler's, or two that say the same.
func (v *variant) scheduled(name, uid string, second int) string {
	once := v.scheduledOnce(name, uid, second)
	if v.IntN(2) == 0 {
		once += "\n---" + v.scheduledOnce(name, uid, second+1)
	}
	return once
}

func (v *variant) scheduledOnce(name, uid string, second int) string {
	v.nanos++
	at := v.time(second).Add(time.Duration(v.nanos) * time.Microsecond)
	series := ""
	if v.IntN(2) == 0 {
		series = fmt.Sprintf("\nseries: {count: %d, lastObservedTime: %q}", 2+v.IntN(5), at.Format("2006-01-02T15:04:05.000000Z"))
	}
	return fmt.Sprintf(`
apiVersion: v1
kind: Event
metadata: {name: %s.%x, namespace: %s, uid: %s, creationTimestamp: %q}
involvedObject: {kind: Pod, name: %s, namespace: %s, uid: %s}
eventTime: %q
firstTimestamp: null
lastTimestamp: null
reason: Scheduled
message: Successfully assigned %s/%s to node-real
reportingComponent: default-scheduler
reportingInstance: default-scheduler-%s
source: {}
type: Normal`, name, at.UnixNano(), v.namespace, v.uid(fmt.Sprint("event", v.nanos)), v.time(second).Format(time.RFC3339),
		name, v.namespace, v.uid(uid), at.Format("2006-01-02T15:04:05.000000Z"),
		v.namespace, name, v.random("host", "abcdef", 6)) + series
}
