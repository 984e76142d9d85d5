// Package recording reads what an API server holds of a workload, and writes it down in a normal form: when the
// same workload is run again, on another day and another machine, the file is the same to the byte.
//
//	s, err := recording.Take(ctx, client, namespace)    // what is stored: objects and Events
//	text, err := recording.Text(s, "A web server …")    // its normal form, YAML
//	s, err = recording.Parse(text)                      // and back
//
// What a repeat cannot reproduce is replaced, consistently wherever it stands; what tells how the workload fares
// stays. The rules are in internal/health/testdata/recorded/README.md, beside the files. All of it but [Take] is
// pure.
package recording
