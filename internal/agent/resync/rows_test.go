package resync

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

func everyEvent(types.UID) (int64, bool) { return 0, true }

// manyRows are rows of a few Events with long messages.
func manyRows(rows, events, message int) *script {
	now, text := time.Now(), strings.Repeat("m", message)
	s := newScript()
	s.events = func(_ threeport.EventFilter, page, size int) ([]threeport.WorkloadEvent, int64, error) {
		var out []threeport.WorkloadEvent
		for i := (page - 1) * size; i < min(page*size, rows); i++ {
			uid := "uid-" + string(rune('a'+i%events))
			out = append(out, threeport.WorkloadEvent{ID: new(int64(i + 1)), RuntimeEventUID: &uid, Message: new(strings.Clone(text)), CreatedAt: &now})
		}
		return out, int64(rows), nil
	}
	return s
}

// A control plane may answer with any number of long rows of a few Events.
func TestResyncer_ReadEvents_ManyRowsOfAnEvent_KeepsTwo(t *testing.T) {
	const events, receipt = 5, 1501 // of the first Event
	a := New(DefaultConfig(), newCluster(), untracked, nil, manyRows(3000, events, 16<<10), nil, new(lines).logger())
	rows, err := a.readEvents(t.Context(), target.Instance{}, nil, func(types.UID) (int64, bool) { return receipt, true })
	if err != nil || len(rows) != events {
		t.Fatalf("rows of %d Events are read, want %d: %v", len(rows), events, err)
	}
	kept, text := 0, 0
	for _, of := range rows {
		kept, text = kept+len(of), text+textBytes(of)
	}
	if kept != events+1 || text > kept*maxRowText {
		t.Errorf("%d rows with %d bytes are kept, want %d with %d bytes each", kept, text, events+1, maxRowText)
	}
	oldest, _ := rows.oldest("uid-a")
	if row, found := rows.row("uid-a", receipt); *oldest.ID != 1 || !found || *row.ID != receipt {
		t.Errorf("the oldest row is %d, that of the receipt is found: %t; want 1 and true", *oldest.ID, found)
	}
}

// Events of a workload are many, too.
func TestResyncer_ReadEvents_LongTexts_AreBounded(t *testing.T) {
	now, text := time.Now(), strings.Repeat("m", 2*maxRowText)
	all := fakeRows(20_000, func(int) time.Time { return now })
	s := newScript()
	s.events = func(f threeport.EventFilter, page, size int) ([]threeport.WorkloadEvent, int64, error) {
		rows, total, err := all.events(f, page, size)
		for i := range rows {
			rows[i].Message = new(strings.Clone(text))
		}
		return rows, total, err
	}
	a := New(DefaultConfig(), newCluster(), untracked, nil, s, nil, new(lines).logger())
	if _, err := a.readEvents(t.Context(), target.Instance{}, nil, everyEvent); err == nil || !strings.Contains(err.Error(), "exceed 64 MiB") {
		t.Errorf("got the error %v, want that the texts exceed 64 MiB", err)
	}
}

// A UID is kept in the report of a missed deletion, so one of megabytes counts as none.
func TestResyncer_ReadResource_LongUID_IsNone(t *testing.T) {
	for length, want := range map[int]int{36: 36, maxRowUID: maxRowUID, maxRowUID + 1: 0, 4 << 20: 0} {
		s := newScript()
		s.resource = func(id int64) (threeport.WorkloadResourceInstance, error) {
			body := []byte(`{"metadata":{"uid":"` + strings.Repeat("u", length) + `"}}`)
			return threeport.WorkloadResourceInstance{ID: &id, LastOperation: new(threeport.OperationAdded), RuntimeDefinition: body}, nil
		}
		a := New(DefaultConfig(), newCluster(), untracked, nil, s, nil, new(lines).logger())
		row, found, err := a.readResource(t.Context(), 1)
		if err != nil || !found || !row.exists || len(row.uid) != want {
			t.Errorf("a UID of %d bytes is read as %d, want %d: found %t, exists %t, %v", length, len(row.uid), want, found, row.exists, err)
		}
	}
}
