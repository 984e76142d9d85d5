package main

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/threeport/threeport-agent/internal/e2e/process"
)

// usage is what a process has used since its start.
type usage struct {
	cpu       time.Duration
	gc        time.Duration // of cpu: of the garbage collector, with its assists
	collected int           // number of collections
	read      int64         // bytes
}

// usageOf reads what a process has used. gc needs the process to run with GODEBUG=gctrace=1.
func usageOf(p *process.Process) (usage, error) {
	cpu, err := process.CPUTime(p.PID())
	if err != nil {
		return usage{}, err
	}
	read, err := process.ReadBytes(p.PID())
	if err != nil {
		return usage{}, err
	}
	traces, err := parseTraces(p.Output())
	out := usage{cpu: cpu, read: read, collected: len(traces)}
	for _, t := range traces {
		out.gc += t.cpu
	}
	return out, err
}

func (u usage) since(before usage) usage {
	return usage{u.cpu - before.cpu, u.gc - before.gc, u.collected - before.collected, u.read - before.read}
}

// collection is a garbage collection.
type collection struct {
	cpu  time.Duration // without idle time
	live int           // the heap after it, in MB
}

// A line that GODEBUG=gctrace=1 prints; the documentation of package runtime has its form:
//
//	gc # @#s #%: #+#+# ms clock, #+#/#/#+# ms cpu, #->#-># MB, …
var trace = regexp.MustCompile(`(?m)^gc \d+ @\S+ \d+%: \S+ ms clock, ([\d.]+)\+([\d.]+)/([\d.]+)/[\d.]+\+([\d.]+) ms cpu, \d+->\d+->(\d+) MB`)

// parseTraces reads the collections in the output of a process. Those that a line of the log interrupts are missing.
func parseTraces(output string) ([]collection, error) {
	var out []collection
	for _, fields := range trace.FindAllStringSubmatch(output, -1) {
		var one collection
		for _, phase := range fields[1:5] { // without the time when nothing else ran
			milliseconds, err := strconv.ParseFloat(phase, 64)
			if err != nil {
				return nil, fmt.Errorf("read the trace %q: %w", fields[0], err)
			}
			one.cpu += time.Duration(milliseconds * float64(time.Millisecond))
		}
		var err error
		if one.live, err = strconv.Atoi(fields[5]); err != nil {
			return nil, fmt.Errorf("read the trace %q: %w", fields[0], err)
		}
		out = append(out, one)
	}
	return out, nil
}

// liveHeap returns the heap after the last collection, in MB; 0 if there was none.
func liveHeap(p *process.Process) (float64, error) {
	traces, err := parseTraces(p.Output())
	if err != nil || len(traces) == 0 {
		return 0, err
	}
	return float64(traces[len(traces)-1].live), nil
}
