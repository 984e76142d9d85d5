// Package manifest reads objects from manifests: YAML with several documents, JSON, JSON lines, arrays, List objects, and
// mixtures of these.
//
// An invalid document yields an error with its position, and the documents after it are read. The memory is bounded for
// input of any length: a document larger than [maxYAML] or [maxJSON] is skipped.
package manifest
