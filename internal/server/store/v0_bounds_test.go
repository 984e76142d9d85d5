package store

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestCreate_LongValue_IsRefusedWithTheNameOfItsField(t *testing.T) {
	s := open(t, Config{Address: "sqlite::memory:"})
	instance := create(t, s, "WorkloadInstance", "web", nil, nil)
	text := func(n int) string { return strings.Repeat("x", n) }
	document := func(n int) string { return `"` + text(n-2) + `"` }
	for _, tc := range []struct {
		object string
		values []any
		want   string // the error
	}{
		{object: "WorkloadInstance", values: []any{text(65_536), text(65_536), nil}},
		{object: "WorkloadInstance", values: []any{text(65_537), nil, nil}, want: "Name: must be a text of at most 65536 bytes"},
		{object: "HelmWorkloadInstance", values: []any{"", text(65_537), nil}, want: "Status: must be a text of at most 65536 bytes"},
		{object: "WorkloadEvent", values: []any{"a", text(256), text(1024), text(65_536), int64(1), nil, nil, nil}},
		{object: "WorkloadEvent", values: []any{"b", text(257), "", "", int64(1), nil, nil, nil}, want: "Type: must be a text of at most 256 bytes"},
		{object: "WorkloadEvent", values: []any{"b", "", text(1025), "", int64(1), nil, nil, nil}, want: "Reason: must be a text of at most 1024 bytes"},
		{object: "WorkloadEvent", values: []any{"b", "", "", text(65_537), int64(1), nil, nil, nil}, want: "Message: must be a text of at most 65536 bytes"},
		{object: "WorkloadResourceInstance", values: []any{document(4 << 20), instance.ID, "ADDED", document(4 << 20), nil, nil}},
		{
			object: "WorkloadResourceInstance", values: []any{document(4<<20 + 1), instance.ID, nil, nil, nil, nil},
			want: "JSONDefinition: must be JSON of at most 4194304 bytes",
		},
	} {
		_, _, err := s.Create(t.Context(), resource(t, tc.object), tc.values)
		invalid, _ := errors.AsType[*FieldError](err)
		if (tc.want == "") != (err == nil) || tc.want != "" && (invalid == nil || invalid.Error() != tc.want) {
			t.Errorf("%s: %v, want %q", tc.object, err, tc.want)
		}
	}
}

// Earlier versions stored texts and documents of any size.
func TestRead_LongStoredValues_AreCut(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		instance := put(t, s, fixture{id: 1}).instance()
		put := func(id int, message string) {
			t.Helper()
			putEvent(t, s, instance, int64(id), noon, "Warning", "", "R", message)
		}
		const wide = "€" // three bytes
		put(1, strings.Repeat("x", maxMessage))
		put(2, strings.Repeat(wide, maxMessage))
		put(3, strings.Repeat(wide, maxMessage+1))
		put(4, strings.Repeat("x", maxLoadedBytes))
		put(5, strings.Repeat("x", maxLoadedBytes+1))
		want := []string{
			strings.Repeat("x", maxMessage), strings.Repeat(wide, maxMessage), strings.Repeat(wide, maxMessage),
			strings.Repeat("x", maxMessage), replacedText,
		}
		check := func(source string, got []string) {
			t.Helper()
			if !slices.Equal(got, want) {
				t.Errorf("%s: the messages have the lengths %v, want %v", source, lengths(got), lengths(want))
			}
		}
		r := resource(t, "WorkloadEvent")
		var listed, read, changed []string
		for _, row := range rows(t, s, "WorkloadEvent") {
			listed = append(listed, row.Values[3].(string))
			got, err := s.Get(t.Context(), r, row.ID)
			if err != nil {
				t.Fatal(err)
			}
			read = append(read, got.Values[3].(string))
			updated, err := s.Update(t.Context(), r, row.ID, []any{nil, "Normal", nil, nil, nil, nil, nil, nil})
			if err != nil {
				t.Fatal(err)
			}
			changed = append(changed, updated.Values[3].(string))
		}
		check("list", listed)
		check("get", read)
		check("update", changed)

		var stored int
		readRow(t, s, "SELECT MAX(octet_length(message)) FROM workload_events", nil, &stored)
		if most := len(wide) * maxMessage; stored != most {
			t.Errorf("after the update the longest message has %d bytes, want %d", stored, most)
		}
	})
}

func lengths(texts []string) (all []int) {
	for _, text := range texts {
		all = append(all, len(text))
	}
	return all
}

func TestRead_LongStoredDocument_IsReplaced(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		instance := create(t, s, "WorkloadInstance", "web", nil, nil)
		o := create(t, s, "WorkloadResourceInstance", `{}`, instance.ID, nil, nil, nil, nil)
		mustExec(t, s, "UPDATE workload_resource_instances SET jsondefinition = ? WHERE id = ?", `"`+strings.Repeat("x", maxDefinition)+`"`, o.ID)
		r := resource(t, "WorkloadResourceInstance")
		got, err := s.Get(t.Context(), r, o.ID)
		if err != nil || got.Values[0] != replacedDocument {
			t.Errorf("the definition has %d bytes, error %v, want %s", len(got.Values[0].(string)), err, replacedDocument)
		}
		found, err := s.Find(t.Context(), r, o.ID)
		if err != nil || found.Size != 0 || found.Values[1] != instance.ID {
			t.Errorf("found %+v, error %v, want 0 bytes and instance %d", found, err, instance.ID)
		}
	})
}

func TestFind_ReturnsReferencesAndSize(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		instance := create(t, s, "WorkloadInstance", "web", nil, nil)
		o := create(t, s, "WorkloadResourceInstance", `{"a":1}`, instance.ID, "ADDED", `{"b":"€"}`, nil, nil)
		r := resource(t, "WorkloadResourceInstance")
		found, err := s.Find(t.Context(), r, o.ID)
		if want := int64(len(`{"a":1}`) + len("ADDED") + len(`{"b":"€"}`)); err != nil || found.Size != want {
			t.Errorf("the size is %d, error %v, want %d", found.Size, err, want)
		}
		if !slices.Equal(found.Values, []any{nil, instance.ID, nil, nil, nil, nil}) || found.ID != o.ID {
			t.Errorf("found %+v, want the instance only", found)
		}
		if _, err := s.Find(t.Context(), r, 1); !errors.Is(err, ErrNotFound) {
			t.Errorf("an unknown row: %v, want %v", err, ErrNotFound)
		}
	})
}

func TestList_ManyRows_ComeInChunks(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		r := resource(t, "WorkloadEvent")
		const many = maxChunkRows + 10
		for i := range many {
			message := "short"
			if i < 40 {
				message = strings.Repeat("x", maxTextBytes)
			}
			create(t, s, "WorkloadEvent", "", "Normal", "R", message, int64(1), nil, nil, nil)
		}
		for _, tc := range []struct {
			selection Selection
			rows      int
		}{
			{Selection{Page: 1, Size: -1}, many},
			{Selection{Page: 2, Size: 5}, 5},
			{Selection{Page: 2, Size: 500}, 500},
			{Selection{Page: 3, Size: 500}, 10},
			{Selection{Page: 1, Size: 10_000}, many},
		} {
			page, err := s.List(t.Context(), r, tc.selection)
			if err != nil || page.Total != many {
				t.Fatalf("%+v: the total is %d, error %v, want %d", tc.selection, page.Total, err, many)
			}
			var last int64
			read := 0
			for {
				chunk, err := page.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if len(chunk) == 0 {
					break
				}
				read += len(chunk)
				bytes := 0
				for _, row := range chunk {
					if row.ID <= last {
						t.Errorf("%+v: row %d after row %d, want ascending IDs", tc.selection, row.ID, last)
					}
					last = row.ID
					bytes += r.JSONBytes(row)
				}
				if len(chunk) > maxChunkRows || bytes > r.MaxChunkBytes() {
					t.Errorf("%+v: a chunk has %d rows and %d bytes", tc.selection, len(chunk), bytes)
				}
			}
			if read != tc.rows {
				t.Errorf("%+v: %d rows, want %d", tc.selection, read, tc.rows)
			}
		}
	})
}

// A reader that is slower than the writers would never come to the end.
func TestList_RowsCreatedMeanwhile_DoNotProlongThePage(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		r := resource(t, "WorkloadEvent")
		add := func() {
			t.Helper()
			create(t, s, "WorkloadEvent", "", "", "", strings.Repeat("x", maxTextBytes), int64(1), nil, nil, nil)
		}
		const before = 40
		for range before {
			add()
		}
		page, err := s.List(t.Context(), r, Selection{Page: 1, Size: -1})
		if err != nil {
			t.Fatal(err)
		}
		read := 0
		for {
			add()
			chunk, err := page.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(chunk) == 0 {
				break
			}
			read += len(chunk)
		}
		if read != before || page.Total != before {
			t.Errorf("%d rows of %d, want %d", read, page.Total, before)
		}
	})
}

// Pages of a timeline end at a number of bytes too, and their cursors lead to all Events.
func TestTimeline_LongEvents_MakeShortPages(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		instance := put(t, s, fixture{id: 1}).instance()
		const events = 40
		for i := range events {
			putEvent(t, s, instance, int64(i+1), noon, "Normal", "", "R", strings.Repeat("x", maxTextBytes))
		}
		q := TimelineQuery{Size: MaxSize}
		seen := map[threeport.ID]bool{}
		for {
			list, err := s.Timeline(t.Context(), instance, q)
			if err != nil {
				t.Fatal(err)
			}
			if list.Total != events || len(list.Items) > maxPageBytes/maxTextBytes {
				t.Errorf("a page has %d of %d Events, want at most %d of %d", len(list.Items), list.Total, maxPageBytes/maxTextBytes, events)
			}
			for _, event := range list.Items {
				seen[event.ID] = true
			}
			if q.Cursor = list.Next; q.Cursor == "" {
				break
			}
		}
		if len(seen) != events {
			t.Errorf("the pages have %d Events, want %d", len(seen), events)
		}
	})
}

func TestTimeline_StoredLongMessage_IsCutAndNotSearched(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		instance := put(t, s, fixture{id: 1}).instance()
		putEvent(t, s, instance, 1, noon, "Normal", "", "R", strings.Repeat("x", maxLoadedBytes)+"needle")
		putEvent(t, s, instance, 2, noon, "Normal", "", "R", "needle")
		for text, want := range map[string]int{"": 2, "needle": 1} {
			list, err := s.Timeline(t.Context(), instance, TimelineQuery{Text: text})
			if err != nil || len(list.Items) != want {
				t.Errorf("text %q: %d Events, error %v, want %d", text, len(list.Items), err, want)
			}
			if text == "" && list.Items[1].Message != replacedText {
				t.Errorf("the message has %d bytes, want %q", len(list.Items[1].Message), replacedText)
			}
		}
	})
}
