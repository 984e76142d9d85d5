// Package recording reads the objects and Events of a workload from an API server and normalizes them. Another run of the same
// workload at another time on another machine results in the same file, byte by byte.
//
//	s, err := recording.Take(ctx, client, scope)        // what is stored: objects and Events
//	text, err := recording.Text(s, "A web server …")    // its normal form, YAML
//	s, err = recording.Parse(text)                      // and back
//
// Values that differ in each run are replaced, consistently in all places. The state of the workload is kept. The rules are in
// internal/health/testdata/recorded/README.md. All functions except [Take] are pure.
package recording
