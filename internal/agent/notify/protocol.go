package notify

import (
	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
)

// The protocols of an outbox, one for each sender.
var (
	// ProtocolV0 is that of [V0Sender].
	ProtocolV0 outbox.Protocol = v0Protocol{}
	// ProtocolReportSets is report sets, which [NegotiatingSender] uses where the control plane takes them.
	ProtocolReportSets outbox.Protocol = setProtocol{}
	// ProtocolStdout is that of [StdoutSender].
	ProtocolStdout outbox.Protocol = stdoutProtocol{}
)

// v0Protocol supports the operations of listed resources with an ID, which are those of a WorkloadInstance, and one row for each
// Event. It sends the status word only, and no trees.
type v0Protocol struct{}

// Version returns the version of a report in v0.
func (v0Protocol) Version(r observe.Report) (string, bool) {
	switch r := r.(type) {
	case observe.Operation:
		return r.Version(), r.Attribution.Listed && r.Attribution.Resource.ID > 0
	case observe.Status:
		return r.Status, true
	case observe.Event:
		return r.Version(), r.Source == ""
	case observe.Tree:
		return "", false
	}
	return r.Version(), true
}

// setProtocol does not support the operations of derived objects, because the tree has those objects.
type setProtocol struct{}

// Version returns the version of a report in a report set.
func (setProtocol) Version(r observe.Report) (string, bool) {
	op, isOperation := r.(observe.Operation)
	return r.Version(), !isOperation || op.Attribution.Listed
}

// stdoutProtocol prints no trees, and of a status the word.
type stdoutProtocol struct{}

// Version returns the version of a report as a line of text.
func (stdoutProtocol) Version(r observe.Report) (string, bool) {
	switch r := r.(type) {
	case observe.Status:
		return r.Status, true
	case observe.Tree:
		return "", false
	}
	return r.Version(), true
}
