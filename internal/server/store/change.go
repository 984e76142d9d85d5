package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// Change is a version of a workload's row. All subscriptions share it, so it must not be modified. Its methods are safe for concurrent
// use.
type Change struct {
	threeport.Workload

	textBytes int // of its texts as JSON, or more

	encode sync.Once
	json   []byte
	err    error
}

// NewChange returns a version of a row.
func NewChange(w threeport.Workload) *Change {
	return &Change{Workload: w, textBytes: jsonBytes(w.Name, w.Said, w.Reason, w.Cause)}
}

// JSON returns the row as one line of JSON, without its end. The first call encodes it for all subscriptions.
func (c *Change) JSON() ([]byte, error) {
	c.encode.Do(func() {
		var line bytes.Buffer
		encoder := json.NewEncoder(&line)
		encoder.SetEscapeHTML(false) // it would make the text up to six times as long
		if err := encoder.Encode(&c.Workload); err != nil {
			c.err = fmt.Errorf("encode a workload's row: %w", err)
			return
		}
		c.json = bytes.Clone(bytes.TrimSuffix(line.Bytes(), []byte("\n"))) // the buffer may have twice the size
	})
	return c.json, c.err
}

// changedRow is a row as the feed reads it. Only one goroutine may use it.
type changedRow struct {
	*Change
	deleted bool
	gone    *Change // nil until a subscription needs it
}

// changedRows returns the rows without their sort keys.
func changedRows(rows ...*workloadRow) []*changedRow {
	changed := make([]*changedRow, len(rows))
	for i, row := range rows {
		changed[i] = &changedRow{Change: NewChange(row.Workload), deleted: row.deleted}
	}
	return changed
}

// asGone is the row with Gone set, the same for all subscriptions.
func (r *changedRow) asGone() *Change {
	if r.gone == nil {
		gone := r.Workload
		gone.Gone = true
		r.gone = NewChange(gone)
	}
	return r.gone
}
