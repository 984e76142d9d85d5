// Package manifest reads objects out of manifests, as people and programs write them: YAML with several documents,
// JSON, JSON lines, arrays, List objects, and mixtures of these.
//
// It reads on after what it cannot read: what is wrong with a document is told with its place, and the documents after
// it are read all the same. It reads input of any length in bounded memory, as long as no document is larger than
// [maxYAML] or [maxJSON]; a larger one is passed over.
package manifest
