package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
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

// parseTraces reads the lines that GODEBUG=gctrace=1 prints; the documentation of package runtime has their form:
//
//	gc # @#s #%: #+#+# ms clock, #+#/#/#+# ms cpu, #->#-># MB, …
func parseTraces(output string) ([]collection, error) {
	var out []collection
	for line := range strings.Lines(output) {
		if !strings.HasPrefix(line, "gc ") || !strings.Contains(line, " ms cpu, ") {
			continue
		}
		one, err := parseTrace(line)
		if err != nil {
			return nil, fmt.Errorf("read the trace %q: %w", line, err)
		}
		out = append(out, one)
	}
	return out, nil
}

func parseTrace(line string) (collection, error) {
	fields := strings.Split(line, ", ")
	if len(fields) < 3 {
		return collection{}, errors.New("it has too few fields")
	}
	var out collection
	phases := strings.FieldsFunc(strings.TrimSuffix(fields[1], " ms cpu"), func(r rune) bool { return r == '+' || r == '/' })
	if len(phases) != 5 {
		return collection{}, errors.New("it has not five phases")
	}
	for i, phase := range phases {
		milliseconds, err := strconv.ParseFloat(phase, 64)
		if err != nil {
			return collection{}, err
		}
		if i != 3 { // idle time, which nothing else needs
			out.cpu += time.Duration(milliseconds * float64(time.Millisecond))
		}
	}
	heaps := strings.Split(strings.TrimSuffix(fields[2], " MB"), "->")
	var err error
	out.live, err = strconv.Atoi(heaps[len(heaps)-1])
	return out, err
}

// liveHeap returns the heap after the last collection, in MB; 0 if there was none.
func liveHeap(p *process.Process) (float64, error) {
	traces, err := parseTraces(p.Output())
	if err != nil || len(traces) == 0 {
		return 0, err
	}
	return float64(traces[len(traces)-1].live), nil
}
