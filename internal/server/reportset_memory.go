package server

import (
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// reportSetWait is how long a report set waits for memory before the server asks its sender to repeat it.
const reportSetWait = 10 * time.Second

// The memory limits, in units of the largest report set: of received and of decoded bodies, in total and per sender.
const (
	largestReceived          = 8
	largestReceivedPerSender = 1
	largestDecoded           = 2
	largestDecodedPerSender  = 1
)

// A body of up to smallBody has memory of its own, in total and per sender. So heartbeats and small sets are received while large
// sets take all of theirs.
const (
	smallBody            = 64 << 10
	smallBodies          = 128
	smallBodiesPerSender = 8
)

// reportSetMemory bounds the memory of report sets. A body as sent holds memory of small or of received until it is decoded. A
// decoded set holds memory of decoded until it is applied. Only agents send report sets, and administrators in their place, so
// roles have no limits.
type reportSetMemory struct{ small, received, decoded *limiter }

func newReportSetMemory(limits Limits) *reportSetMemory {
	return &reportSetMemory{
		small:    newLimiter("memory of small report sets", smallBodies*smallBody, smallBodiesPerSender*smallBody, reportSetWait),
		received: newLimiter("memory of large report sets", largestReceived*limits.BodyBytes, largestReceivedPerSender*limits.BodyBytes, reportSetWait),
		decoded:  newLimiter("memory of decoded report sets", largestDecoded*largestSetMemory(limits), largestDecodedPerSender*largestSetMemory(limits), reportSetWait),
	}
}

// bodyMemory is the memory of a body as sent. A body that grows beyond smallBody moves to the memory of large bodies.
type bodyMemory struct {
	*reservation
	from  sender
	large *limiter // nil once the body is large
}

// grow is the reservation's, with the move.
func (b *bodyMemory) grow(n int64) error {
	if b.large == nil || n <= smallBody {
		return b.reservation.grow(n)
	}
	moved, err := b.large.tryAcquire(b.from, n)
	if err != nil {
		return err
	}
	b.release()
	b.reservation, b.large = moved, nil
	return nil
}

// valueCopies is the number of copies of its largest value that a set takes while it is decoded. They are the JSON decoder's
// buffer, half of it again before the buffer grew, the value itself, its fields if one is missing, and garbage. A tree of
// the smallest objects has no large value, but takes about as much in all. Since maxValue bounds a value, the largest set
// takes less than twice its text by default, and a set of 16 MiB four times.
const valueCopies = 6

// largestSetMemory is the memory to decode a set of the largest size.
func largestSetMemory(limits Limits) int64 {
	return decompressorBytes + maxWindow + decodingMemory(limits.DecodedBytes)
}

// decompressorBytes is at least what a decompressor of gzip or zstd takes besides its window. It also bounds the number of
// bodies that are decompressed at once.
const decompressorBytes = 1 << 20

// decompressorMemory is the memory to decompress a body.
func decompressorMemory(body []byte, encoding string) int64 {
	switch encoding {
	case "":
		return 0
	case "zstd":
		return decompressorBytes + int64(windowOf(body)) //nolint:gosec // at most maxWindow
	default:
		return decompressorBytes
	}
}

// decodingMemory is the memory to decode a set of size bytes of text.
func decodingMemory(size int64) int64 { return firstRead + size + valueCopies*min(size, maxValue) }

// objectSize is more than one object of a tree takes besides its text, and containerSize more than one container of a Pod.
const (
	objectSize    = 256
	containerSize = 256
)

// setMemory is the memory of a decoded set until it is applied: the set, and what the store makes of it.
func setMemory(set threeport.ReportSet, size int64) int64 {
	memory := firstRead + 2*size
	for _, report := range set.Reports {
		if report.Tree != nil {
			memory += int64(cap(report.Tree.Objects)) * objectSize
			for i := range report.Tree.Objects {
				if pod := report.Tree.Objects[i].Pod; pod != nil {
					memory += objectSize + int64(cap(pod.Containers))*containerSize
				}
			}
		}
	}
	return memory
}
