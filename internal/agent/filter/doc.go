// Package filter decides by the user's filters which Events of the cluster and derived objects are reported. docs/event-filters.md
// describes a file of filters.
//
// [Parse] reads files, and [Live] holds the filters of files that may change. Both are safe for concurrent use.
package filter
