package observe

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/redact"
	"github.com/threeport/threeport-agent/internal/reload"
)

var (
	shop   = target.Instance{Type: target.WorkloadInstance, ID: 1}
	chart  = target.Instance{Type: target.HelmWorkloadInstance, ID: 1}
	webRef = target.Ref{Group: "apps", Kind: "Deployment", Namespace: "app", Name: "web"}
)

// operation returns an operation of the listed Deployment with resource ID 7.
func operation(instance target.Instance, uid types.UID, version string) Operation {
	return Operation{
		Attribution:     target.Attribution{Instance: instance, Listed: true, Resource: target.Resource{Ref: webRef, ID: 7}},
		Object:          target.Identity{Ref: webRef, UID: uid},
		ResourceVersion: version,
	}
}

func TestOperation_Keys(t *testing.T) {
	base := operation(shop, "a", "1")
	newer, deleted := base, base
	newer.ResourceVersion = "2"
	deleted.Deleted = true
	otherResource, otherName := base, base
	otherResource.Attribution.Resource.ID = 8
	otherName.Object.Name = "api"
	tests := []struct {
		reason                    string
		other                     Operation
		key, orderingKey, version bool // equal
	}{
		{"the same", base, true, true, true},
		{"a newer version", newer, true, true, false},
		{"its deletion", deleted, true, true, false},
		{"another incarnation", operation(shop, "b", "1"), false, true, true},
		{"another workload", operation(chart, "a", "1"), false, false, true},
		{"another resource of the workload", otherResource, false, false, true},
		{"another object", otherName, false, false, true},
	}
	for _, tt := range tests {
		if got := base.Key() == tt.other.Key(); got != tt.key {
			t.Errorf("%s: the keys are equal: %v", tt.reason, got)
		}
		if got := base.OrderingKey() == tt.other.OrderingKey(); got != tt.orderingKey {
			t.Errorf("%s: the ordering keys are equal: %v", tt.reason, got)
		}
		if got := base.Version() == tt.other.Version(); got != tt.version {
			t.Errorf("%s: the versions are equal: %v", tt.reason, got)
		}
	}
	if base.Instance() != shop || base.String() != "operation of Deployment app/web" {
		t.Errorf("%s of %s", base, base.Instance())
	}
}

func TestOperation_Definition_IsATrimmedCopy(t *testing.T) {
	text := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"hush"},"managedFields":[{"manager":"hush"}],"name":"web"}}`
	op := operation(shop, "a", "1")
	body := object(t, text)
	op.Body = body
	got, err := op.Definition()
	if want := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
	if encoded(t, body.Object) != text {
		t.Errorf("the shared object is changed: %s", encoded(t, body.Object))
	}
}

// rulesOf are redaction rules that a test replaces.
type rulesOf struct{ rules *redact.Rules }

func (r *rulesOf) Current() *redact.Rules { return r.rules }

func (r *rulesOf) set(t *testing.T, text string) {
	t.Helper()
	var err error
	if r.rules, err = redact.Parse(reload.File{Name: "rules.yaml", Data: []byte(text)}); err != nil {
		t.Fatal(err)
	}
}

func TestOperation_Definition_FollowsCurrentRules(t *testing.T) {
	const text = `{"apiVersion":"example.com/v1","kind":"A","metadata":{"labels":{"a":"b"},"name":"x","uid":"u"},"spec":{"hint":"hush"}}`
	rules := &rulesOf{}
	op := operation(shop, "a", "1")
	op.Body, op.Redaction = object(t, text), rules
	for _, tt := range []struct{ reason, rules, want string }{
		{"no rule", `rules: []`, text},
		{
			"a rule for a field",
			`rules: [{group: example.com, kinds: [A], path: spec.hint, action: drop}]`,
			strings.Replace(text, "hush", "[redacted]", 1),
		},
		{
			"status only",
			`rules: [{group: example.com, kinds: [A], statusOnly: true}]`,
			`{"apiVersion":"example.com/v1","kind":"A","metadata":{"labels":"[redacted]","name":"x","uid":"u"},"spec":"[redacted]"}`,
		},
	} {
		rules.set(t, tt.rules)
		if got, err := op.Definition(); err != nil || string(got) != tt.want {
			t.Errorf("%s: got  %s, %v\nwant %s", tt.reason, got, err, tt.want)
		}
	}
	rules.set(t, `rules: [{group: "", kinds: [Secret], statusOnly: true}]`)
	op.Body = &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "u", Labels: map[string]string{"a": "hush"}, Annotations: map[string]string{"helm.sh/chart": "hush"}},
	}
	if got, err := op.Definition(); err != nil || string(got) != `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x","uid":"u"}}` {
		t.Errorf("a status-only Secret: got %s, %v", got, err)
	}
}

func TestOperation_Definition_IsExact(t *testing.T) {
	tests := []struct {
		reason string
		body   runtime.Object
		want   string
	}{
		{"none", nil, ""},
		{
			"numbers beyond 2^53",
			object(t, `{"apiVersion":"v1","kind":"X","max":9223372036854775807,"min":-9223372036854775808,"id":877588458330128385,"half":0.5}`),
			`{"apiVersion":"v1","half":0.5,"id":877588458330128385,"kind":"X","max":9223372036854775807,"min":-9223372036854775808}`,
		},
		{
			"a Secret has no data",
			object(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"},"data":{"k":"aHVzaA=="}}`),
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			op := operation(shop, "a", "1")
			op.Body = tt.body
			got, err := op.Definition()
			if err != nil || string(got) != tt.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
}

func TestStatus_KeysAndVersions(t *testing.T) {
	a, b := Status{Workload: shop, Status: "Healthy"}, Status{Workload: shop, Status: "Down"}
	if a.Key() != b.Key() || a.OrderingKey() != b.OrderingKey() || a.Version() == b.Version() {
		t.Error("a change of the status is a new version of one key")
	}
	if a.Key() == (Status{Workload: chart, Status: "Healthy"}).Key() {
		t.Error("instances of two types share a key")
	}
	if a.Instance() != shop || a.String() != "status of WorkloadInstance 1" {
		t.Errorf("%s of %s", a, a.Instance())
	}
}

func TestStatus_VersionChangesWithEachField(t *testing.T) {
	whole := Status{Workload: shop, Status: "Down", Reason: "Absent"}
	word := Status{Workload: shop, Status: "Down"}
	if word.Version() != "Down" {
		t.Errorf("version of a status without details: got %s, want Down", word.Version())
	}
	seen := map[string]string{"Down": "without details"}
	for reason, change := range map[string]func(*Status){
		"as it is":       func(*Status) {},
		"another word":   func(s *Status) { s.Status = "Unhealthy" },
		"another reason": func(s *Status) { s.Reason = "Crash" },
		"another cause":  func(s *Status) { s.Cause = "x" },
		"another time":   func(s *Status) { s.Since = time.Unix(9, 0) },
	} {
		s := whole
		change(&s)
		if other, ok := seen[s.Version()]; ok {
			t.Errorf("%s is the same version as %s", reason, other)
		}
		seen[s.Version()] = reason
	}
}

func TestTree_VersionIsTheRevision(t *testing.T) {
	a, b := Tree{Workload: shop, Revision: 1}, Tree{Workload: shop, Revision: 2}
	if a.Key() != b.Key() || a.OrderingKey() != b.OrderingKey() || a.Version() == b.Version() || a.Key() == (Tree{Workload: chart}).Key() {
		t.Errorf("keys %s, %s", a.Key(), b.Key())
	}
	if a.Instance() != shop || a.String() != "tree of WorkloadInstance 1" {
		t.Errorf("%s of %s", a, a.Instance())
	}
}
