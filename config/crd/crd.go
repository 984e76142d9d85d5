// Package crd has the CustomResourceDefinition of ThreeportWorkload.
package crd

import _ "embed"

// Manifest is the CustomResourceDefinition as YAML.
//
//go:embed bases/control-plane.threeport.io_threeportworkloads.yaml
var Manifest []byte
