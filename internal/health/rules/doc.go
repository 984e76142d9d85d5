// Package rules assesses objects by rules that are not built in: those of a user, and those of the embedded catalogue.
// Rules are written in YAML with expressions in CEL, or are health scripts of Argo CD. docs/health-rules.md describes them.
//
// [Load] and [Parse] check rules completely and return all errors at once. They return a [Set], which does not change and
// is safe for concurrent use. A [Live] holds the set of a file or a directory and reloads it after a change. Its Run is
// the only goroutine of the package and ends with its context. [Layers] combines rules by precedence.
//
// An expression that fails or costs too much makes the object Unknown, with the name of the rule in the message. An error
// in a rule never makes an object look better.
package rules
