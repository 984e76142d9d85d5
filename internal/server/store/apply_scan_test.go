package store

import (
	"errors"
	"testing"
)

// The end of a context closes rows between Next and Scan. The targets are empty then.
func TestApply_FailedScan_ReturnsItsError(t *testing.T) {
	closed := errors.New("the rows are closed")
	for reason, row := range map[string]func(scanner) error{
		"an Event":         answerEvents(map[string]*item{}, func(one *item, _ int64) { one.answerCreated() }),
		"a node of a tree": addNodes(map[instanceKey]map[string]*storedObject{}),
	} {
		if err := row(func(...any) error { return closed }); !errors.Is(err, closed) {
			t.Errorf("%s: the error is %v, want %v", reason, err, closed)
		}
	}
}
