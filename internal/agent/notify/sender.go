package notify

import (
	"context"
	"errors"

	"github.com/threeport/threeport-agent/internal/agent/outbox"
)

// Sender delivers reports. It may be called from many goroutines at a time.
type Sender interface {
	// MaxBatch is how many reports it takes at a time now.
	MaxBatch() int
	// Send delivers reports, of different lanes each, and returns what became of them, in their order.
	Send(ctx context.Context, items []outbox.Item) []Result
}

// Result is what became of a report. Its errors are those of package controlplane, which tells what to do about them, or
// [ErrProtocolChanged]; of any other error nothing is known against the report, and it is sent again.
type Result struct {
	Receipt outbox.Receipt
	Err     error
}

// ErrOtherWay says that a report was not sent, because the control plane at hand takes it in another way than it did, or
// not any more.
var ErrProtocolChanged = errors.New("the control plane takes reports in another way by now")

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
		out[i].Receipt, out[i].Err = o.single.Send(ctx, item)
	}
	return out
}
