// Package rules judges objects by rules that are not built in: a user's own, and those of the catalogue that the agent
// brings along. They are written in YAML, with expressions in CEL; docs/health-rules.md describes them.
//
// [Load] and [Parse] check everything that can be checked before there is an object, and return all errors at once. A
// [Set] is what they return: it does not change, and is safe for concurrent use. A [Live] holds the set of a file or a
// directory, and takes another one when that changes; its Run is the only goroutine here, and ends with its context.
// [Layers] asks several of them in turn.
//
// A rule never makes an object look better than it is: an expression that cannot be evaluated, or that costs too much,
// makes it Unknown, with the rule's name in the message.
package rules
