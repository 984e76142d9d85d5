// Package faults tests the promises of the agent while its environment fails: the network, both APIs, the disk, the process
// of the agent, the cluster. Each test has its own cluster, control-plane API, proxies between them, and agent. Package
// oracle observes the cluster and checks the control plane.
//
// The agent delivers report sets. Tests of the delivery run also with v0, with an API that has only the features of
// Threeport's: see protocol.
//
// After the faults the tests check that
//
//   - (A) the control plane has the last version of each object, or DELETED;
//   - (B) every Event has a row, or is counted in a row of dropped Events;
//   - (C) no Event has two rows;
//   - (D) versions arrived in order.
//
// During the whole test, (E) memory, disk, goroutines and requests stay below their limits. Tests that kill the control plane
// check right afterwards that it has retained all accepted writes: later, a restarted agent may have sent them again.
package faults
