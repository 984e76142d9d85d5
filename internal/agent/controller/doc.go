// Package controller follows ThreeportWorkloads: what they list goes into the registry of targets, what the
// watch and the delivery say of it goes into their status, and a finalizer keeps each until its last reports
// are delivered. It declares intent only; it neither watches nor sends.
package controller
