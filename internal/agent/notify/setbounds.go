package notify

import (
	"sync"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// The bounds of a set.
const (
	firstBatch    = 64
	maxSetReports = 500
	maxSetBytes   = 1 << 20
)

// setBounds are the bounds of the next set. The number of reports halves after each failure, and doubles after each full set that
// was answered. So neither a slow connection nor one report that makes the server fail stops the others.
type setBounds struct {
	mu         sync.Mutex
	reports    int // at the moment
	maxReports int
	maxBytes   int
}

// configure sets the limits of the control plane.
func (b *setBounds) configure(v threeport.ReportSetVersions) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.maxReports, b.maxBytes = maxSetReports, maxSetBytes
	if v.MaxReports > 0 {
		b.maxReports = min(b.maxReports, v.MaxReports)
	}
	if v.MaxBytes > 0 { // the sizes of reports are estimates
		b.maxBytes = int(min(int64(b.maxBytes), v.MaxBytes/2))
	}
	b.reports = min(firstBatch, b.maxReports)
}

// reportLimit is how many reports a set may have at the moment.
func (b *setBounds) reportLimit() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(b.reports, 1)
}

// byteLimit is how many bytes a set may have at the moment, in proportion to the number of reports.
func (b *setBounds) byteLimit() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	const least = 64 << 10
	return max(b.maxBytes*b.reports/max(b.maxReports, 1), min(least, b.maxBytes))
}

// answered raises the limits after a full set.
func (b *setBounds) answered(reports int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if reports >= b.reports {
		b.reports = min(2*b.reports, b.maxReports)
	}
}

// failed lowers the limits, unless the set had one report only.
func (b *setBounds) failed(reports int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if reports > 1 {
		b.reports = max(min(b.reports, reports)/2, 1)
	}
}
