// Package controller reconciles ThreeportWorkloads. It declares their resources to the registry of targets, writes the
// observed health and the progress of delivery to their status, and keeps each deleted one by a finalizer until its last
// reports are delivered. It neither watches the listed resources nor sends reports.
package controller
