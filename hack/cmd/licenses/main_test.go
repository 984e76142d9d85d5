package main

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	const head, tail = `{"bomFormat":"CycloneDX","components":[`, `]}`
	const good = `{"name":"a","version":"v1","evidence":{"licenses":[{"license":{"id":"MIT"}}]}}`
	for _, test := range []struct{ name, text, want, wantErr string }{
		{name: "allowed", text: head + good + "," + good + tail, want: "2 MIT"},
		{name: "declared by the author", text: head + `{"name":"a","licenses":[{"license":{"id":"ISC"}}]}` + tail, want: "1 ISC"},
		{
			name: "not allowed", text: head + good + `,{"name":"b","version":"v2","evidence":{"licenses":[{"license":{"id":"AGPL-3.0-only"}}]}}` + tail,
			wantErr: "b v2 has the license AGPL-3.0-only",
		},
		{
			name: "one of two is not allowed", text: head + `{"name":"b","version":"v2","evidence":{"licenses":[{"license":{"id":"MIT"}},{"license":{"name":"Own"}}]}}` + tail,
			wantErr: "b v2 has the license Own",
		},
		{name: "unknown", text: head + `{"name":"c","version":"v3"}` + tail, wantErr: "c v3 has no license"},
		{name: "read by hand", text: head + `{"name":"github.com/pressly/goose/v3"}` + tail, want: "1 MIT"},
		{name: "empty", text: `{"components":[]}`, wantErr: "has no components"},
		{name: "malformed", text: `{`, wantErr: "read the bill of materials"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := check([]byte(test.text))
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("got the error %v, want %q", err, test.wantErr)
			}
		})
	}
}

func TestRun_NoFile(t *testing.T) {
	if err := run(nil, t.Output()); err == nil || !strings.Contains(err.Error(), "make sbom") {
		t.Errorf("got the error %v, want one that names `make sbom`", err)
	}
}
