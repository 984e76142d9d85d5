package server

import (
	"context"
	"strconv"
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// workloadStore reads workloads, their objects and their Events.
type workloadStore interface {
	auth.InstanceClusters
	Workloads(ctx context.Context, q store.WorkloadQuery) (threeport.List[threeport.Workload], error)
	Workload(ctx context.Context, instance threeport.Instance) (*store.Tree, error)
	Timeline(ctx context.Context, instance threeport.Instance, q store.TimelineQuery) (threeport.List[threeport.TimelineEvent], error)
	EventsKeptAfter(ctx context.Context, instance threeport.Instance, keep store.Retention) (time.Time, error)
}

// workloads are the endpoints that read workloads.
type workloads struct {
	store     workloadStore
	answers   answerMemory
	searches  *limiter
	retention store.Retention
	claims    *claims
}

// WorkloadFilter is the parameters that select workloads. It is exported because huma reads exported fields only.
type WorkloadFilter struct {
	Status  []string `query:"status" enum:"Down,Error,Unhealthy,Unknown,Reconciling,Healthy" maxItems:"6" doc:"Statuses to include, separated by commas. Default: all."`
	Type    []string `query:"type" enum:"WorkloadInstance,HelmWorkloadInstance" maxItems:"2" doc:"Types to include, separated by commas. Default: both."`
	Cluster string   `query:"cluster" maxLength:"256" doc:"The UID of the cluster. Default: all clusters."`
	Text    string   `query:"text" maxLength:"64" doc:"A text in the first 4,096 characters of name, reason and cause of the workload, or in the name of its cluster. ASCII letters match in either case."`
}

func (f WorkloadFilter) query() store.WorkloadQuery {
	return store.WorkloadQuery{Statuses: f.Status, Types: f.Type, Cluster: f.Cluster, Text: f.Text}
}

// Pagination is the parameters that select a page of a list.
type Pagination struct {
	Cursor string `query:"cursor" maxLength:"8192" doc:"The field next of the previous page, with the same filters and order. Default: the first page."`
	Size   int    `query:"size" minimum:"1" maximum:"1000" default:"100" doc:"The maximum number of items on a page."`
}

// InstancePath is the workload that a path names by its instance.
type InstancePath struct {
	Type string `path:"type" enum:"WorkloadInstance,HelmWorkloadInstance" doc:"The type of the workload's row."`
	ID   string `path:"id" pattern:"^[0-9]{1,19}$" patternDescription:"a decimal of 64 bits" doc:"The ID of the workload's row."`
}

func (p InstancePath) instance() (threeport.Instance, error) {
	id, err := parseID("path.id", p.ID)
	return threeport.Instance{Type: p.Type, ID: id}, err
}

// parseID parses the ID in a parameter.
func parseID(location, text string) (threeport.ID, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, parameterProblem(location, "a decimal of 64 bits")
	}
	return threeport.ID(id), nil
}

// Body is an answer without headers of its own.
type Body[T any] struct {
	Body T
}

var (
	listWorkloadsOperation = readOperation("list-workloads", tagWorkloads, "List workloads",
		"Every workload with its status and its cause. The order is worst (the worst status first, then its latest change), "+
			"name, cluster (by its name) or since (the latest change first).")
	getWorkloadOperation = itemOperation("get-workload", tagWorkloads, "Read a workload with its objects",
		"The workload as in the list, with the tree of its listed and derived objects.")
	listWorkloadEventsOperation = itemOperation("list-workload-events", tagWorkloads, "List a workload's Events",
		"The newest first, with gaps where the agent dropped Events.")
	getEventRetentionOperation = itemOperation("get-event-retention", tagReports, "Read the retention of a workload's Events",
		"An Event without a row that last happened at this time or earlier was pruned or would be pruned: do not send it again. "+
			"An agent may ask for workloads of its own cluster. With --require-assignment=false it may also ask for workloads without a cluster.")
)

func (w *workloads) list(ctx context.Context, request *struct {
	WorkloadFilter
	Sort string `query:"sort" enum:"worst,name,cluster,since" default:"worst" doc:"The order."`
	Pagination
},
) (*Body[threeport.List[threeport.Workload]], error) {
	release, err := w.acquirePage(ctx, request.Text)
	if err != nil {
		return nil, err
	}
	defer release()
	q := request.query()
	q.Sort, q.Cursor, q.Size = request.Sort, request.Cursor, request.Size
	list, err := w.store.Workloads(ctx, q)
	return listAnswer(ctx, list, err)
}

// acquirePage reserves a slot for a search, which release frees, and then the memory of a page: a request that holds memory
// waits for no such slot.
func (w *workloads) acquirePage(ctx context.Context, search string) (release func(), err error) {
	release = func() {}
	if search != "" {
		slot, err := w.searches.acquire(ctx, answerOf(ctx).sender, 1)
		if err != nil {
			return nil, unavailable(ctx, "too many searches at once: ask again", err)
		}
		release = slot.release
	}
	if err := w.answers.forPage(ctx); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

func (w *workloads) listEvents(ctx context.Context, request *struct {
	InstancePath
	Level string    `query:"level" enum:"Normal,Warning" doc:"The type of the Events. Default: both."`
	Kind  string    `query:"kind" maxLength:"256" doc:"The kind of the involved object."`
	Text  string    `query:"text" maxLength:"64" doc:"A text in the first 4,096 characters of the reason, the message or the name of the involved object. ASCII letters match in either case."`
	From  time.Time `query:"from" doc:"The earliest time of an Event."`
	To    time.Time `query:"to" doc:"The time before which the Events happened."`
	Pagination
},
) (*Body[threeport.List[threeport.TimelineEvent]], error) {
	instance, err := request.instance()
	if err != nil {
		return nil, err
	}
	release, err := w.acquirePage(ctx, request.Text)
	if err != nil {
		return nil, err
	}
	defer release()
	list, err := w.store.Timeline(ctx, instance, store.TimelineQuery{
		Level: request.Level, Kind: request.Kind, Text: request.Text,
		From: optionalTime(request.From), To: optionalTime(request.To),
		Cursor: request.Cursor, Size: request.Size,
	})
	return listAnswer(ctx, list, err)
}

// getEventRetention reports which Events an agent need not send again although they have no row.
func (w *workloads) getEventRetention(ctx context.Context, request *struct{ InstancePath }) (*Body[threeport.EventRetention], error) {
	instance, err := request.instance()
	if err != nil {
		return nil, err
	}
	if err := auth.PrincipalFrom(ctx).Authorize(ctx, w.store, auth.RowAccess{Instances: []threeport.Instance{instance}, AllowUnassigned: !w.claims.required}); err != nil {
		return nil, err
	}
	after, err := w.store.EventsKeptAfter(ctx, instance, w.retention)
	if err != nil {
		return nil, storeProblem(ctx, err)
	}
	return &Body[threeport.EventRetention]{threeport.EventRetention{KeptAfter: after}}, nil
}

// listAnswer answers with a list, whose items are never null.
func listAnswer[T any](ctx context.Context, list threeport.List[T], err error) (*Body[threeport.List[T]], error) {
	if err != nil {
		return nil, storeProblem(ctx, err)
	}
	list.Items = notNil(list.Items)
	return &Body[threeport.List[T]]{list}, nil
}

// notNil turns a nil list into an empty one: JSON distinguishes them.
func notNil[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// optionalTime is nil for the zero time.
func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
