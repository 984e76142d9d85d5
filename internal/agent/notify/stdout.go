package notify

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
)

// StdoutSender writes one line per report, for looking at what would be sent:
//
//	Deployment created: web
//	Event Warning BackOff of Pod app-0/web-7887448d46-2tsj5: Back-off restarting …
//	WorkloadInstance 877588458330128385: Healthy
type StdoutSender struct {
	mu  sync.Mutex
	out io.Writer
}

// NewStdoutSender returns a sender that writes to out.
func NewStdoutSender(out io.Writer) *StdoutSender { return &StdoutSender{out: out} }

// Send writes the report's line.
func (l *StdoutSender) Send(_ context.Context, item outbox.Item) (outbox.Receipt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := fmt.Fprintln(l.out, strings.Map(printable, line(item))); err != nil {
		return outbox.Receipt{}, fmt.Errorf("write report: %w", err)
	}
	return outbox.Receipt{}, nil
}

// printable keeps a report on one line, and control sequences out of a terminal.
func printable(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

func line(item outbox.Item) string {
	switch r := item.Report.(type) {
	case observe.Operation:
		verb := "created"
		switch {
		case r.Deleted:
			verb = "deleted"
		case item.Receipt.Accepted:
			verb = "updated"
		}
		return fmt.Sprintf("%s %s: %s", r.Object.Kind, verb, r.Object.Name)
	case observe.Event:
		return fmt.Sprintf("Event %s %s of %s: %s", r.Type, r.Reason, r.Involved, r.Message)
	case observe.Status:
		return fmt.Sprintf("%s: %s", r.Workload, r.Status)
	default:
		return r.String()
	}
}
