// Package redact removes confidential values from Kubernetes objects. The agent redacts objects before it keeps them, and the
// control-plane API redacts definitions for everybody who is not an administrator. docs/redaction.md describes the rules.
//
// A redacted value is replaced, so its place stays visible: see [threeport.IsRedacted]. A value that is redacted already is
// not written to, so redacting an object twice is safe even if the second time it is shared.
//
// [Rules] do not change and are safe for concurrent use. [Live] holds the rules of a file and its Run is the only goroutine.
package redact
