// Package faults tests what the agent promises while everything around it fails: the network, both APIs, its disk, its
// process, the cluster. Each test has a cluster, a reference control-plane API, the proxies between them and an agent for
// itself; package oracle records what the cluster had and judges what the control plane was told.
//
// The agent delivers in report sets. The tests whose subject is the delivery are run as v0 has it too, with an API that is
// no better than Threeport's own: see way.
//
// What is checked, once the faults end: (A) the control plane has the last version of each object, or DELETED; (B)
// every Event is a row, or is counted in a row about dropped ones; (C) no Event has two rows; (D) versions arrive in
// order; and throughout: (E) memory, disk, goroutines and requests stay under their caps. Where the control plane is killed
// too, what it had accepted is looked for right afterwards: later an agent that was started again would have made up for it.
package faults
