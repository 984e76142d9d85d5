package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"go.opentelemetry.io/otel/trace"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// reportSetTimeout is how long the whole body of a report set may take to arrive.
const reportSetTimeout = time.Minute

// largeSet is about the most that an agent sends in one set, in bytes of text, except for a long definition. Half of the processors
// decode larger ones.
const largeSet = 1 << 20

// reportStore applies report sets.
type reportStore interface {
	// ApplyAs answers each report of a set, and returns the workloads that the set assigned to its cluster. Its error is a
	// [store.SetError] if the set as a whole is invalid.
	ApplyAs(ctx context.Context, set threeport.ReportSet, policy store.ClaimPolicy) (threeport.ReportSetAnswer, []threeport.Instance, error)
}

// reportSets are the endpoints of report sets.
type reportSets struct {
	store   reportStore
	limits  Limits
	memory  *reportSetMemory
	turns   turns    // to decode
	large   *limiter // processors that decode large sets
	metrics *metrics
	claims  *claims
	tracer  trace.Tracer // nil without traces
}

func newReportSets(s reportStore, limits Limits, m *metrics, c *claims) *reportSets {
	return &reportSets{
		store: s, limits: limits, memory: newReportSetMemory(limits), metrics: m, claims: c,
		turns: newTurns("report sets that are decoded", reportSetWait, longWork, maxPause),
		large: newLimiter("processors for large report sets", int64(max(1, runtime.GOMAXPROCS(0)/2)), 1, reportSetWait),
	}
}

// bodyLimit bounds a report set as sent.
func (r *reportSets) bodyLimit() bodyLimit {
	return bodyLimit{bytes: r.limits.BodyBytes, timeout: reportSetTimeout}
}

// reportSetRequest is the request of a report set, whose body the handler reads itself: huma would keep the whole body and
// decode it twice.
type reportSetRequest struct {
	w   http.ResponseWriter
	req *http.Request
}

// Resolve receives the request from huma.
func (r *reportSetRequest) Resolve(ctx huma.Context) []error {
	r.req, r.w = humago.Unwrap(ctx)
	return nil
}

var reportSetVersionsOperation = huma.Operation{
	OperationID: "report-set-versions",
	Tags:        []string{tagReports}, Summary: "List the versions of report sets",
	Description: "A server that answers 404 supports v0 only.",
	Errors:      commonErrors,
}

func (r *reportSets) versions(context.Context, *struct{}) (*Body[threeport.ReportSetVersions], error) {
	return &Body[threeport.ReportSetVersions]{threeport.ReportSetVersions{
		API: "WorkloadReportSet", Versions: []string{"v0"}, Encodings: encodings,
		MaxReports: r.limits.Reports, MaxBytes: r.limits.DecodedBytes,
		Features: []string{threeport.FeaturePods, threeport.FeatureSince, threeport.FeatureCauseSince, threeport.FeatureFiltered, threeport.FeatureTraceparent},
	}}, nil
}

var applyReportSetOperation = huma.Operation{
	OperationID: "apply-report-set",
	Tags:        []string{tagReports}, Summary: "Apply a report set of a cluster",
	Description: "Applies the set and answers each report, in the order of the set. A report that is not newer than the stored " +
		"version changes nothing, so a set may be repeated in whole or in part. An invalid report is rejected alone; 4xx is for " +
		"an invalid set. After 413 split the set; after 408, 429 and 503 repeat it. An agent may report its own cluster only.",
	Errors: append([]int{
		http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity,
	}, commonErrors...),
}

// apply answers a report set. It refuses the whole set with:
//
//	400, 408, 413, 415, 503   the body cannot be read or decoded: here, reportset_encoding.go and reportset_decode.go
//	401, 403, 429             package auth, before this; 403 here if it is the set of another cluster
//	422                       a field of the set is invalid: reportset_decode.go, or [store.SetError]
//	503                       the database failed
//
// A single report is refused in its answer, by the store: see apply_item.go.
func (r *reportSets) apply(ctx context.Context, request *reportSetRequest) (*Body[threeport.ReportSetAnswer], error) {
	set, err := r.read(ctx, request)
	if err != nil {
		return nil, err
	}
	defer set.memory.release()
	principal := auth.PrincipalFrom(ctx)
	if !principal.MayReportFor(set.Agent.ClusterUID) {
		return nil, problem(http.StatusForbidden, "agent.clusterUID is another cluster: report the cluster of your credential")
	}
	if fixed := principal.ClusterName; fixed != "" {
		set.Agent.ClusterName = fixed
	}
	begin := time.Now()
	answer, claimed, err := r.store.ApplyAs(ctx, set.ReportSet, r.claims.policy(principal))
	storeSpans(r.tracer, set.ReportSet, principal.ClusterName, begin, answer, err)
	r.claims.record(principal, claimed...)
	if invalid, ok := errors.AsType[*store.SetError](err); ok {
		return nil, problem(http.StatusUnprocessableEntity, invalid.Detail)
	}
	if err != nil {
		return nil, unavailable(ctx, "the database failed: send the set again", err)
	}
	r.metrics.reportSet(set.size, answer)
	return &Body[threeport.ReportSetAnswer]{answer}, nil
}

// decodedSet is a report set and the memory reserved for it, which the caller releases.
type decodedSet struct {
	threeport.ReportSet
	size   int64 // of its text
	memory *reservation
}

// read reads the set of a request. While it is decoded, the set holds memory twice: for its body as sent and for its text.
func (r *reportSets) read(ctx context.Context, request *reportSetRequest) (*decodedSet, error) {
	header := request.req.Header
	if err := checkContentType(header); err != nil {
		return nil, err
	}
	encoding, err := contentEncoding(header)
	if err != nil {
		return nil, err
	}
	from := senderOf(request.req)
	first, err := r.memory.small.acquire(ctx, from, firstRead)
	if err != nil {
		return nil, tooManySets(ctx, err)
	}
	received := &bodyMemory{reservation: first, from: from, large: r.memory.received}
	defer func() { received.release() }()
	body, err := r.receive(ctx, request, received)
	if err != nil {
		return nil, err
	}
	received.shrink(int64(len(body)))
	return r.decode(ctx, body, encoding, from)
}

// receive reads a body as sent, in reserved memory.
func (r *reportSets) receive(ctx context.Context, request *reportSetRequest, received *bodyMemory) ([]byte, error) {
	limit := r.bodyLimit()
	body, err := limit.read(request.w, request.req, received.held, received.grow)
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case err == nil:
		return body, nil
	case tooLarge:
		return nil, problem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is too large: at most %d bytes as sent", limit.bytes))
	case errors.Is(err, errLimitReached):
		return nil, tooManySets(ctx, err)
	default:
		return nil, bodyTimeout(ctx, err)
	}
}

func tooManySets(ctx context.Context, cause error) error {
	return unavailable(ctx, "too many report sets at once: send it again", cause)
}

// bodyTimeout is the answer to a body that did not arrive. Mostly its client has gone.
func bodyTimeout(ctx context.Context, cause error) error {
	setCause(ctx, fmt.Errorf("read body: %w", cause))
	return problem(http.StatusRequestTimeout, "the body did not arrive")
}

// decode makes a set of a body, in memory that it reserves.
func (r *reportSets) decode(ctx context.Context, body []byte, encoding string, from sender) (*decodedSet, error) {
	turn, err := r.turns.begin(ctx, from, 1)
	if err != nil {
		return nil, tooManySets(ctx, err)
	}
	defer turn.end()
	size, err := r.decodedSize(ctx, turn, body, encoding, from)
	if err != nil {
		return nil, err
	}
	memory, err := r.memory.decoded.acquire(ctx, from, decompressorMemory(body, encoding)+decodingMemory(size))
	if err != nil {
		return nil, tooManySets(ctx, err)
	}
	if size > largeSet {
		processor, err := r.large.acquire(ctx, from, 1)
		if err != nil {
			memory.release()
			return nil, tooManySets(ctx, err)
		}
		defer processor.release()
	}
	var set threeport.ReportSet
	err = turn.work(func() error {
		return withDecoded(ctx, body, encoding, size, func(plain io.Reader) (err error) {
			set, err = decodeReportSet(plain, r.limits.Reports)
			return err
		})
	})
	if err != nil {
		memory.release()
		return nil, err
	}
	memory.shrink(setMemory(set, size))
	return &decodedSet{set, size, memory}, nil
}

// decodedSize decompresses a body to find its size. So a small body need not wait for the memory of the largest, and no body
// acquires more memory while it is decoded.
func (r *reportSets) decodedSize(ctx context.Context, turn *turn, body []byte, encoding string, from sender) (size int64, err error) {
	if encoding == "" {
		return int64(len(body)), nil
	}
	memory, err := r.memory.decoded.acquire(ctx, from, decompressorMemory(body, encoding))
	if err != nil {
		return 0, tooManySets(ctx, err)
	}
	defer memory.release()
	err = turn.work(func() error {
		return withDecoded(ctx, body, encoding, r.limits.DecodedBytes, func(plain io.Reader) (err error) {
			size, err = io.Copy(io.Discard, plain)
			return err
		})
	})
	return size, err
}

// withDecoded calls read with the decompressed body, which ends with its client. The error is a problem.
func withDecoded(ctx context.Context, body []byte, encoding string, limit int64, read func(plain io.Reader) error) error {
	plain, err := decoded(body, encoding, limit)
	if err != nil {
		return err
	}
	defer func() { _ = plain.Close() }() // it reads from memory
	err = read(contextReader{plain, ctx.Err})
	switch gone := ctx.Err(); {
	case errors.Is(err, errDecodedTooLarge):
		return problem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is too large: at most %d bytes before compression", limit))
	case gone != nil && errors.Is(err, gone):
		return bodyTimeout(ctx, err)
	}
	return err
}

// contextReader fails with the error of a context, such as that of a client that has gone. Between two reads, other requests get the
// processor.
type contextReader struct {
	r   io.Reader
	err func() error // the context's
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.err(); err != nil {
		return 0, err
	}
	runtime.Gosched()
	return c.r.Read(p)
}
