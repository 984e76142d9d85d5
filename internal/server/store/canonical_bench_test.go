package store

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/server/store/canonicaljson"
)

// reversed returns a document whose objects have all keys in reverse order.
func reversed(raw json.RawMessage) json.RawMessage {
	var parts []string
	switch raw[0] {
	case '{':
		var object map[string]json.RawMessage
		_ = json.Unmarshal(raw, &object)
		for _, key := range slices.Backward(slices.Sorted(maps.Keys(object))) {
			name, _ := json.Marshal(key)
			parts = append(parts, string(name)+":"+string(reversed(object[key])))
		}
		return json.RawMessage("{" + strings.Join(parts, ",") + "}")
	case '[':
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list)
		for _, item := range list {
			parts = append(parts, string(reversed(item)))
		}
		return json.RawMessage("[" + strings.Join(parts, ",") + "]")
	default:
		return raw
	}
}

// BenchmarkCanonicalize converts a Deployment of 3 KB in several input forms.
func BenchmarkCanonicalize(b *testing.B) {
	normal := manifest("web", 1)
	indented := new(bytes.Buffer)
	_ = json.Indent(indented, normal, "", "  ")
	for _, given := range []struct {
		name string
		raw  json.RawMessage
	}{
		{"normal", normal},
		{"escaped", bytes.ReplaceAll(normal, []byte("--verbose"), []byte(`a \u0026\u0026 b \u003e c`))},
		{"reversed", reversed(normal)},
		{"indented", indented.Bytes()},
	} {
		b.Run(given.name, func(b *testing.B) {
			b.SetBytes(int64(len(given.raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := canonicaljson.Canonicalize(given.raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
