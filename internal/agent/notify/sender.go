package notify

import (
	"context"
	"errors"

	"github.com/threeport/threeport-agent/internal/agent/outbox"
)

// Sender delivers reports. It is safe for concurrent use.
type Sender interface {
	// MaxBatch is how many reports Send takes at the moment.
	MaxBatch() int
	// Send delivers reports with different ordering keys, and returns their results in the same order.
	Send(ctx context.Context, items []outbox.Item) []Result
}

// Result is the result of a report. The error is nil, [ErrProtocolChanged], or one that [threeport.KindOf] classifies. Any
// other error counts as retryable.
type Result struct {
	Receipt outbox.Receipt
	Err     error
}

// ErrProtocolChanged says that a report was not sent, because the control plane does not support the protocol any more or
// the protocol has no place for the report.
var ErrProtocolChanged = errors.New("the protocol of the control plane has changed")

// Single delivers one report.
type Single interface {
	Send(ctx context.Context, item outbox.Item) (outbox.Receipt, error)
}

// OneByOne returns a sender that takes one report at a time.
func OneByOne(s Single) Sender { return oneByOne{s} }

type oneByOne struct{ single Single }

func (oneByOne) MaxBatch() int { return 1 }

func (o oneByOne) Send(ctx context.Context, items []outbox.Item) []Result {
	out := make([]Result, len(items))
	for i, item := range items {
		out[i].Receipt, out[i].Err = sendTraced(ctx, o.single, item)
	}
	return out
}
