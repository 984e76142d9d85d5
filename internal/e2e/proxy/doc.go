// Package proxy records the requests of agents to the control-plane API, and injects faults into their answers.
//
// A [Proxy] has one or more control planes as backends, and one or more addresses for agents. It forwards requests for the
// same row one at a time, so that the record has the order in which the control plane applied them.
//
// A Proxy is safe for concurrent use. [Proxy.Listen] stops its server at the end of the test.
package proxy
