// Package controller reconciles ThreeportWorkloads. It declares their resources to the registry of targets, and writes the
// observed health and the progress of delivery to their status. A finalizer keeps each deleted workload until its last
// reports are delivered. Other packages watch the listed resources and send the reports.
package controller
