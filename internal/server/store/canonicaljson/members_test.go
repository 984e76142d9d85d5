package canonicaljson

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestMembers(t *testing.T) {
	for _, test := range []struct {
		reason, object string
		want           []string
	}{
		{"values of all types", `{"a":1,"b":"x","c":null,"d":[1,{"e":2}],"f":{"g":[]}}`, []string{`"a" 1`, `"b" "x"`, `"c" null`, `"d" [1,{"e":2}]`, `"f" {"g":[]}`}},
		{"separators in strings", `{"a,}:{":"]},\"\\","b":["}",{"]":","}]}`, []string{`"a,}:{" "]},\"\\"`, `"b" ["}",{"]":","}]`}},
		{"an empty object", `{}`, nil},
		{"an empty key", `{"":{}}`, []string{`"" {}`}},
		{"a list", `[{"a":1}]`, nil},
		{"a string", `"{"`, nil},
		{"nothing", ``, nil},
	} {
		var got []string
		for key, value := range Members(test.object) {
			got = append(got, key+" "+value)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: the members of %s are %q, want %q", test.reason, test.object, got, test.want)
		}
	}
	for range Members(`{"a":1,"b":2}`) {
		break // must not panic
	}
}

// The members of an object are those that encoding/json decodes.
func TestMembers_RandomDocuments(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	objects := 0
	for range 5_000 {
		object, err := Canonicalize(randomDocument(nil, random, 6))
		if err != nil {
			continue
		}
		var want map[string]json.RawMessage
		if json.Unmarshal([]byte(object), &want) != nil || want == nil {
			want = map[string]json.RawMessage{} // not an object
		}
		got := map[string]json.RawMessage{}
		for key, value := range Members(object) {
			var name string
			if err := json.Unmarshal([]byte(key), &name); err != nil {
				t.Fatalf("%s: the key %s: %v", object, key, err)
			}
			got[name] = json.RawMessage(value)
		}
		if fmt.Sprintf("%s", got) != fmt.Sprintf("%s", want) {
			t.Fatalf("the members of %s are %s, want %s", object, got, want)
		}
		objects += min(1, len(want))
	}
	if objects < 100 {
		t.Errorf("%d objects with members were compared, want 100 or more", objects)
	}
}
