package threeport

import (
	"encoding/json"
	"fmt"
)

// maxRows bounds the rows of an answer. No request asks for as many.
const maxRows = 10_000

// Rows are the rows of an answer. A small text can have millions of them, so they are counted before they are decoded.
type Rows[T any] []T

// UnmarshalJSON fails for more than maxRows.
func (r *Rows[T]) UnmarshalJSON(text []byte) error {
	if n := countItems(text); n > maxRows {
		return fmt.Errorf("the answer has %d rows, want at most %d", n, maxRows)
	}
	return json.Unmarshal(text, (*[]T)(r))
}

// countItems returns the number of items of a valid JSON list, or one for an empty one.
func countItems(list []byte) int {
	items, depth := 1, 0
	for c := range outsideTexts(list) {
		switch {
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		case c == ',' && depth == 1:
			items++
		}
	}
	return items
}
