package recording

import (
	"maps"
	"slices"
)

// eachText calls a function for each text in a JSON value with its key, in a fixed order.
func eachText(value any, see func(key, text string)) {
	var walk func(key string, value any)
	walk = func(key string, value any) {
		switch v := value.(type) {
		case string:
			see(key, v)
		case []any:
			for _, item := range v {
				walk(key, item)
			}
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				walk(k, v[k])
			}
		}
	}
	walk("", value)
}

// rewriteTexts returns a copy of a JSON value with all texts replaced, except for keys.
func rewriteTexts(value any, rewrite func(string) string) any {
	switch v := value.(type) {
	case string:
		return rewrite(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = rewriteTexts(item, rewrite)
		}
		return out
	case map[string]any:
		return rewriteMap(v, rewrite)
	}
	return value
}

func rewriteMap(object map[string]any, rewrite func(string) string) map[string]any {
	out := make(map[string]any, len(object))
	for k, item := range object {
		out[k] = rewriteTexts(item, rewrite)
	}
	return out
}
