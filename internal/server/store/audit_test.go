package store

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestAuditRecords_Pages(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		if page, err := s.AuditRecords(t.Context(), "", 0); err != nil || page.Items == nil || len(page.Items) != 0 || page.Next != "" || page.Total != 0 {
			t.Errorf("the empty audit log is %+v, error %v", page, err)
		}
		at := fromMicros(moment)
		object := AuditObject{Type: "Token", ID: "7", Name: "bob", Role: "viewer"}
		for i := range 5 {
			record := AuditRecord{At: at, Principal: "ann", Role: "admin", Method: "POST", Path: fmt.Sprint("/v0/tokens/", i), Code: 201, Object: object}
			if err := s.AppendAudit(t.Context(), record); err != nil {
				t.Fatal(err)
			}
		}
		var paths string
		cursor, pages := "", 0
		for {
			page, err := s.AuditRecords(t.Context(), cursor, 2)
			if err != nil || page.Total != 5 {
				t.Fatalf("the page is %+v, error %v; want 5 records in all", page, err)
			}
			for _, r := range page.Items {
				paths += r.Path + " "
				if r.ID == 0 || !r.At.Equal(at) || r.Principal != "ann" || r.Role != "admin" || r.Method != "POST" || r.Code != 201 || r.Object != object {
					t.Errorf("the record is %+v", r)
				}
			}
			pages++
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		if want := "/v0/tokens/4 /v0/tokens/3 /v0/tokens/2 /v0/tokens/1 /v0/tokens/0 "; paths != want || pages != 3 {
			t.Errorf("%d pages have %s, want %s", pages, paths, want)
		}
		if err := s.AppendAudit(t.Context(), AuditRecord{}); err != nil {
			t.Fatal(err)
		}
		if page, err := s.AuditRecords(t.Context(), "", 1); err != nil || time.Since(page.Items[0].At) > time.Minute {
			t.Errorf("a record without a time is stored as %+v, error %v; want the current time", page, err)
		}
		for _, bad := range []struct {
			cursor string
			size   int
		}{{"x", 1}, {"%00", 1}, {"", -1}, {"", MaxSize + 1}} {
			var parameter *FieldError
			if _, err := s.AuditRecords(t.Context(), bad.cursor, bad.size); !errors.As(err, &parameter) {
				t.Errorf("parameters %+v returned %v, want an error for the parameter", bad, err)
			}
		}
	})
}

func TestPrune_AuditRecords(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		for _, age := range []time.Duration{3 * time.Hour, 90 * time.Minute, 30 * time.Minute, 0} {
			if err := s.AppendAudit(t.Context(), AuditRecord{At: time.Now().Add(-age), Principal: "ann"}); err != nil {
				t.Fatal(err)
			}
		}
		keep := keepTen
		prune(t, s, keep, Pruned{})
		keep.AuditAge = time.Hour
		prune(t, s, keep, Pruned{AuditRecords: 2})
		if page, err := s.AuditRecords(t.Context(), "", 10); err != nil || page.Total != 2 {
			t.Errorf("the audit log is %+v, error %v; want the 2 newest records", page, err)
		}
	})
}
