package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// reportStore takes what agents tell.
type reportStore interface {
	// Apply answers each report of a set. Its error is a [store.SetError] if the set is wrong as a whole.
	Apply(ctx context.Context, set threeport.ReportSet) (threeport.ReportSetAnswer, error)
}

// reports are the endpoints of report sets.
type reports struct {
	store   reportStore
	limits  Limits
	memory  *memory
	metrics *metrics
}

type versionsAnswer struct {
	Body threeport.ReportSetVersions
}

// setRequest is the request of a report set as it is on the wire: huma would keep the body whole, and decode it twice.
type setRequest struct {
	w   http.ResponseWriter
	req *http.Request
}

// Resolve is huma's call with the request.
func (r *setRequest) Resolve(ctx huma.Context) []error {
	r.req, r.w = humago.Unwrap(ctx)
	return nil
}

type setAnswer struct {
	Body threeport.ReportSetAnswer
}

func (r *reports) register(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "report-set-versions", Method: http.MethodGet, Path: "/workload-report-sets/versions",
		Tags: []string{tagReports}, Summary: "Find out what report sets this server takes",
		Description: "A server that answers 404 knows v0 only.",
		Errors:      commonErrors,
	}, r.versions)
	post := huma.Operation{
		OperationID: "apply-report-set", Method: http.MethodPost, Path: "/v0/workload-report-sets",
		Tags: []string{tagReports}, Summary: "Report what a cluster has to tell",
		Description: "Takes a set as a whole, and answers each report in its order. A report that is not newer than what " +
			"is there changes nothing, so that a set may be sent again in whole or in part. A report that is wrong is " +
			"rejected for itself; 4xx is for a set that is. After 413 send it in parts, after 408, 429 and 503 send it again. " +
			"An agent may report of its own cluster only.",
		Errors: append([]int{
			http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge,
			http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity,
		}, commonErrors...),
	}
	huma.Register(api, post, r.apply)
	documentReportSet(api, post.Path, r.limits)
}

func (r *reports) versions(context.Context, *struct{}) (*versionsAnswer, error) {
	return &versionsAnswer{threeport.ReportSetVersions{
		API: "WorkloadReportSet", Versions: []string{"v0"}, Encodings: encodings,
		MaxReports: r.limits.Reports, MaxBytes: r.limits.DecodedBytes,
	}}, nil
}

func (r *reports) apply(ctx context.Context, request *setRequest) (*setAnswer, error) {
	share, leave := r.memory.shares.shareOf(senderOf(request.req))
	defer leave()
	set, err := r.read(ctx, request, share)
	if err != nil {
		return nil, err
	}
	defer set.room.free()
	if !auth.PrincipalFrom(ctx).MayReportFor(set.Agent.ClusterUID) {
		return nil, problem(http.StatusForbidden, "agent.clusterUID is not the cluster that you may report of")
	}
	answer, err := r.store.Apply(ctx, set.ReportSet)
	if wrong, ok := errors.AsType[*store.SetError](err); ok {
		return nil, problem(http.StatusUnprocessableEntity, wrong.Detail)
	}
	if err != nil {
		return nil, unavailable(ctx, "the database failed: send the set again", err)
	}
	r.metrics.set(set.size, answer)
	return &setAnswer{answer}, nil
}

// decodedSet is a set in the memory that is reserved for it. Free that.
type decodedSet struct {
	threeport.ReportSet
	size int64 // of its text
	room *reservation
}

// read reads the set of a request, in its sender's share of the memory.
func (r *reports) read(ctx context.Context, request *setRequest, share *share) (*decodedSet, error) {
	header := request.req.Header
	if err := checkMedia(header); err != nil {
		return nil, err
	}
	coding, err := contentCoding(header)
	if err != nil {
		return nil, err
	}
	received, err := r.memory.reserve(ctx, leastRoom, share.received, r.memory.received)
	if err != nil {
		return nil, tooManySets(ctx, err)
	}
	defer received.free()
	body, err := receive(ctx, request.w, request.req, r.limits.BodyBytes, received)
	if err != nil {
		return nil, err
	}
	received.shrink(int64(len(body)))
	return r.decode(ctx, body, coding, share)
}

func tooManySets(ctx context.Context, cause error) error {
	return unavailable(ctx, "too many report sets at once: send it again", cause)
}

// decode makes a set of a body, in memory that it reserves.
func (r *reports) decode(ctx context.Context, body []byte, coding string, share *share) (*decodedSet, error) {
	size, err := r.measure(ctx, body, coding, share)
	if err != nil {
		return nil, err
	}
	room, err := r.memory.reserve(ctx, codingRoom(body, coding)+decodingRoom(size), share.decoded, r.memory.decoded)
	if err != nil {
		return nil, tooManySets(ctx, err)
	}
	set, err := decodeBody(ctx, body, coding, size, r.limits.Reports)
	if err != nil {
		room.free()
		return nil, err
	}
	room.shrink(keptRoom(set, size))
	return &decodedSet{set, size, room}, nil
}

// measure finds how large a body is without its coding. So a small one need not wait for the room of the largest, and no
// one has to find more room on the way.
func (r *reports) measure(ctx context.Context, body []byte, coding string, share *share) (int64, error) {
	if coding == "" {
		return int64(len(body)), nil
	}
	room, err := r.memory.reserve(ctx, codingRoom(body, coding), share.decoded, r.memory.decoded)
	if err != nil {
		return 0, tooManySets(ctx, err)
	}
	defer room.free()
	var size int64
	err = withDecoded(ctx, body, coding, r.limits.DecodedBytes, func(plain io.Reader) (err error) {
		size, err = io.Copy(io.Discard, plain)
		return err
	})
	return size, err
}

// decodeBody makes a set of a body that has so many bytes without its coding.
func decodeBody(ctx context.Context, body []byte, coding string, size int64, maxReports int) (set threeport.ReportSet, err error) {
	err = withDecoded(ctx, body, coding, size, func(plain io.Reader) (err error) {
		set, err = decodeReportSet(plain, maxReports)
		return err
	})
	return set, err
}

// withDecoded has a body read without its coding, until its client has gone. The error is a problem.
func withDecoded(ctx context.Context, body []byte, coding string, limit int64, read func(plain io.Reader) error) error {
	plain, err := decoded(body, coding, limit)
	if err != nil {
		return err
	}
	defer func() { _ = plain.Close() }() // it reads from memory
	err = read(untilGone{plain, ctx.Err})
	switch gone := ctx.Err(); {
	case errors.Is(err, errDecodedTooLarge):
		return problem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is too large: accepted are %d bytes before compression", limit))
	case gone != nil && errors.Is(err, gone):
		return unread(ctx, err)
	}
	return err
}
