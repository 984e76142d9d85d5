package figures

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/threeport/threeport-agent/internal/e2e/process"
)

// CountWatches returns the number of open WATCH requests of an API server.
func CountWatches(ctx context.Context, client kubernetes.Interface) (int, error) {
	text, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the API server's metrics: %w", err)
	}
	total := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "apiserver_longrunning_requests{") && strings.Contains(line, `verb="WATCH"`) {
			n, err := strconv.Atoi(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]))
			if err != nil {
				return 0, fmt.Errorf("read the API server's metrics: %q: %w", line, err)
			}
			total += n
		}
	}
	return total, nil
}

// MedianMemory returns the resident memory of an idle process in MB, as the median of several readings.
func MedianMemory(ctx context.Context, pid, readings int, interval time.Duration) (float64, error) {
	all := make([]float64, 0, readings)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for range readings {
		bytes, err := process.ResidentBytes(pid)
		if err != nil {
			return 0, err
		}
		all = append(all, float64(bytes)/1e6)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return Percentile(all, 50), nil
}
