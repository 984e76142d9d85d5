package redact

import (
	"fmt"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// nested returns n copies of the opening text of a value, an inner value, and the ends of all copies.
func nested(n int, opening, inner, end string) string {
	return strings.Repeat(opening, n) + inner + strings.Repeat(end, n)
}

// The cost of a walk is the number of its visits. A rule about a kind hit a value once for each object of that kind around it. Each
// list visited its items twice.
func TestVisit_NestedObjects_ValueIsHitOnce(t *testing.T) {
	const n = 50
	rules := rulesOf(t, `rules:
- {group: example.com, kinds: [A], path: "**.hint", action: drop}
- {group: "*", kinds: ["*"], path: "**.note", action: drop}
- {group: "*", kinds: [Incomplete], path: spec.a, action: drop}
- {group: example.com, kinds: [A], annotation: "*", action: drop}`).user.redact
	inLists := func(items string) string {
		return `{"kind":"List","apiVersion":"v1","items":` + nested(n, `[{"kind":"List","items":`, items, `}]`) + `}`
	}
	const object = `{"apiVersion":"example.com/v1","kind":"A","a":`
	const annotated = `{"apiVersion":"example.com/v1","kind":"A","metadata":{"annotations":{"a":"x"}},"a":`
	for _, tt := range []struct {
		reason, in string
		hits       int
	}{
		{"nested objects", nested(n, object, `{"hint":"x"}`, `}`), 1},
		{"annotations of nested objects", nested(n, annotated, `{}`, `}`), n},
		{"nested lists", inLists(`[{"note":"x"}]`), 1},
		{"a kind in nested lists", inLists(`[{"kind":"Incomplete","spec":{"a":"x"}}]`), 1},
		{"metadata of an item", `{"kind":"AList","apiVersion":"example.com/v1","items":[{"metadata":{"note":"x","annotations":{"a":"x"}}}]}`, 2},
	} {
		hits := map[string]int{}
		total := 0
		visit(objectOf(t, tt.in), rules, func(_ *rule, place []string, _ any, _ func(any)) {
			hits[strings.Join(place, ".")]++
			total++
		})
		if total != tt.hits || len(hits) != tt.hits {
			t.Errorf("%s: %d hits of %d values, want %d of each", tt.reason, total, len(hits), tt.hits)
		}
	}
}

// The hash of each value in a value with a hash would be wasted.
func TestVisit_ReplacedValue_IsNotEntered(t *testing.T) {
	rules := rulesOf(t, `rules: [{group: "*", kinds: ["*"], path: "**.hint", action: hash}]`).user.redact
	hits := 0
	visit(objectOf(t, nested(50, `{"hint":`, `"x"`, `}`)), rules, func(_ *rule, _ []string, _ any, set func(any)) {
		hits++
		set(threeport.Redacted)
	})
	if hits != 1 {
		t.Errorf("%d values were replaced, want the outermost", hits)
	}
}

func TestKept_Covers_PlacesBelow(t *testing.T) {
	var k kept
	k.add([]string{"a", "b"})
	k.add([]string{"a", "c", "d"})
	for place, want := range map[string]bool{"a": false, "a.b": true, "a.b.c": true, "a.c": false, "a.c.d": true, "b": false} {
		if got := k.covers(strings.Split(place, ".")); got != want {
			t.Errorf("%s: got %t, want %t", place, got, want)
		}
	}
}

func TestRules_Document_DeepValues_AreReplaced(t *testing.T) {
	for _, tt := range []struct{ reason, opening, end string }{
		{"maps", `{"a":`, `}`},
		{"lists", `[`, `]`},
	} {
		document := func(depth int, inner string) string {
			return `{"a":` + nested(depth-1, tt.opening, inner, tt.end) + `}`
		}
		if fits := document(maxDepth, `{"b":"x"}`); (*Rules)(nil).Document(fits) != fits {
			t.Errorf("%s: a value at the maximum depth was replaced", tt.reason)
		}
		want := document(maxDepth+1, r)
		if got := (*Rules)(nil).Document(document(maxDepth+1, `{"b":"x"}`)); got != want {
			t.Errorf("%s: got %s, want %s", tt.reason, got, want)
		}
		object := objectOf(t, document(9000, `{"b":"x"}`))
		(*Rules)(nil).Apply(object)
		if got := encoded(t, object); got != want {
			t.Errorf("%s: the agent leaves %.300s, want %s", tt.reason, got, want)
		}
	}
}

// hostileDocuments are definitions of nearly maxDocument bytes, which have as many visits, hits or kept places as possible.
func hostileDocuments() map[string]string {
	fields := func(size int, field string) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, field, i)
		}
		return b.String()
	}
	const most = maxDocument - 64<<10
	inSecrets := func(n int) string {
		secret := `{"kind":"Secret","apiVersion":"v1","metadata":{"annotations":{"a":"b"}},"a":`
		return nested(n, secret, "{"+fields(most-n*len(secret), `"h%d":{"metadata":{"annotations":{"x":"y"}}}`)+"}", "}")
	}
	return map[string]string{
		"9,990 Secrets in each other": inSecrets(9990),
		"many Secrets in each other":  inSecrets(maxDepth - 3),
		"lists in each other": `{"kind":"AList","apiVersion":"v1","items":` +
			nested(maxDepth/2-2, `[{"kind":"AList","items":`, "["+fields(most, `"h%d"`)+"]", "}]") + "}",
		"values in each other with a hash": `{"hint":` + nested(maxDepth-2, `{"hint":`, "["+fields(most, `"h%d"`)+"]", "}") + "}",
		"deep kept values":                 `{"a":` + nested(maxDepth-3, `{"a":`, "{"+fields(most, `"p%dpassword":{"password":"x"}`)+"}", "}") + "}",
		"credentials":                      "{" + fields(most, `"p%dpassword":"x"`) + "}",
	}
}

// BenchmarkRules_Hostile redacts hostile definitions as the API does, and as the agent does after decoding.
func BenchmarkRules_Hostile(b *testing.B) {
	rules := rulesOf(b, `rules:
- {group: "*", kinds: ["*"], path: "**.hint", action: hash}
- {group: "*", kinds: ["*"], path: "**.p*.password", action: keep}`)
	for name, text := range hostileDocuments() {
		b.Run("API/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rules.Document(text)
			}
		})
		b.Run("agent/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				object := objectOf(b, text)
				b.StartTimer()
				rules.Apply(object)
			}
		})
	}
}
