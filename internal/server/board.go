package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// workloadReader reads the board and what is below it.
type workloadReader interface {
	Workloads(ctx context.Context, q store.WorkloadQuery) (threeport.List[threeport.Workload], error)
	Workload(ctx context.Context, instance threeport.Instance) (threeport.WorkloadDetail, error)
	Timeline(ctx context.Context, instance threeport.Instance, q store.TimelineQuery) (threeport.List[threeport.TimelineEvent], error)
}

// clusterReader reads what is known of clusters.
type clusterReader interface {
	Clusters(ctx context.Context) ([]threeport.Cluster, error)
	Definition(ctx context.Context, clusterUID, uid string) (threeport.Definition, error)
}

// board is the endpoints that people read.
type board struct {
	workloads workloadReader
	clusters  clusterReader
}

// BoardFilter is the parameters that select workloads. (It is exported because huma looks only into what is.)
type BoardFilter struct {
	Status  []string `query:"status" enum:"Down,Error,Unhealthy,Unknown,Reconciling,Healthy" maxItems:"6" doc:"Statuses to show, separated by commas. All if it is left out."`
	Type    []string `query:"type" enum:"WorkloadInstance,HelmWorkloadInstance" maxItems:"2" doc:"Types to show, separated by commas. Both if it is left out."`
	Cluster string   `query:"cluster" maxLength:"256" doc:"The UID of the cluster to show. All if it is left out."`
	Text    string   `query:"text" maxLength:"256" doc:"What is to be in the workload's name, reason or cause, or in its cluster's name. ASCII letters match in either case."`
}

func (f BoardFilter) query() store.WorkloadQuery {
	return store.WorkloadQuery{Statuses: f.Status, Types: f.Type, Cluster: f.Cluster, Text: f.Text}
}

// PageOf is the parameters that choose a page of a list.
type PageOf struct {
	Cursor string `query:"cursor" maxLength:"8192" doc:"What the page before gave as next, for the same list with the same sort. The first page if it is left out."`
	Size   int    `query:"size" minimum:"1" maximum:"1000" default:"100" doc:"How many a page has at most."`
}

// InstancePath is the workload that a path names.
type InstancePath struct {
	Type string `path:"type" enum:"WorkloadInstance,HelmWorkloadInstance" doc:"The type of the workload's row."`
	ID   string `path:"id" pattern:"^[0-9]{1,19}$" patternDescription:"a decimal of 64 bits" doc:"The ID of the workload's row."`
}

func (p InstancePath) instance() (threeport.Instance, error) {
	id, err := parseID("path.id", p.ID)
	return threeport.Instance{Type: p.Type, ID: id}, err
}

// parseID reads the ID in a parameter.
func parseID(location, given string) (threeport.ID, error) {
	id, err := strconv.ParseInt(given, 10, 64)
	if err != nil {
		return 0, parameterProblem(location, "a decimal of 64 bits")
	}
	return threeport.ID(id), nil
}

// Body is an answer with nothing but a body.
type Body[T any] struct {
	Body T
}

func (b *board) register(api huma.API) {
	huma.Register(api, readOperation("list-workloads", "/v0/workloads", tagBoard, "List workloads",
		"The board: every workload with its status and its cause. The order is worst (the worst status first, of these the "+
			"longest broken), name, cluster (by its name) or since (the latest change first)."), b.listWorkloads)
	huma.Register(api, readOperation("get-workload", "/v0/workloads/{type}/{id}", tagBoard, "Read a workload with its objects",
		"The workload's row of the board, and the tree of its objects, listed and derived."), b.getWorkload)
	huma.Register(api, readOperation("list-workload-events", "/v0/workloads/{type}/{id}/events", tagBoard, "List a workload's Events",
		"The timeline: the newest first, with gaps where Events were lost."), b.listEvents)
	huma.Register(api, readOperation("list-clusters", "/v0/clusters", tagBoard, "List clusters",
		"Those whose agent has been heard, and how far behind it is."), b.listClusters)
	huma.Register(api, readOperation("get-object", "/v0/clusters/{uid}/objects/{objectUID}", tagBoard, "Read an object's definition",
		"A listed object as its cluster has it, and as it was before its latest change."), b.getObject)
}

// readOperation is an operation of GET.
func readOperation(id, path, tag, summary, description string) huma.Operation {
	fails := commonErrors
	if strings.Contains(path, "{") {
		fails = append([]int{http.StatusNotFound}, fails...)
	}
	return huma.Operation{
		OperationID: id, Method: http.MethodGet, Path: path, Tags: []string{tag}, Summary: summary, Description: description,
		Errors: append([]int{http.StatusBadRequest, http.StatusUnprocessableEntity}, fails...),
	}
}

func (b *board) listWorkloads(ctx context.Context, request *struct {
	BoardFilter
	Sort string `query:"sort" enum:"worst,name,cluster,since" default:"worst" doc:"The order."`
	PageOf
},
) (*Body[threeport.List[threeport.Workload]], error) {
	q := request.query()
	q.Sort, q.Cursor, q.Size = request.Sort, request.Cursor, request.Size
	list, err := b.workloads.Workloads(ctx, q)
	return answerList(ctx, list, err)
}

func (b *board) getWorkload(ctx context.Context, request *struct{ InstancePath }) (*Body[threeport.WorkloadDetail], error) {
	instance, err := request.instance()
	if err != nil {
		return nil, err
	}
	detail, err := b.workloads.Workload(ctx, instance)
	if err != nil {
		return nil, readProblem(ctx, err)
	}
	detail.Objects = notNil(detail.Objects)
	return &Body[threeport.WorkloadDetail]{detail}, nil
}

func (b *board) listEvents(ctx context.Context, request *struct {
	InstancePath
	Level string    `query:"level" enum:"Normal,Warning" doc:"The Events' type. Both if it is left out."`
	Kind  string    `query:"kind" maxLength:"256" doc:"The kind of the object that the Events are about."`
	Text  string    `query:"text" maxLength:"256" doc:"What is to be in the reason, the message or the object's name."`
	From  time.Time `query:"from" doc:"The earliest time that an Event may have."`
	To    time.Time `query:"to" doc:"The time before which an Event has to be."`
	PageOf
},
) (*Body[threeport.List[threeport.TimelineEvent]], error) {
	instance, err := request.instance()
	if err != nil {
		return nil, err
	}
	list, err := b.workloads.Timeline(ctx, instance, store.TimelineQuery{
		Level: request.Level, Kind: request.Kind, Text: request.Text,
		From: given(request.From), To: given(request.To),
		Cursor: request.Cursor, Size: request.Size,
	})
	return answerList(ctx, list, err)
}

func (b *board) listClusters(ctx context.Context, _ *struct{}) (*Body[threeport.List[threeport.Cluster]], error) {
	clusters, err := b.clusters.Clusters(ctx)
	list := threeport.List[threeport.Cluster]{Items: clusters, Total: int64(len(clusters))}
	return answerList(ctx, list, err)
}

func (b *board) getObject(ctx context.Context, request *struct {
	ClusterUID string `path:"uid" minLength:"1" maxLength:"128" doc:"The cluster's UID."`
	ObjectUID  string `path:"objectUID" minLength:"1" maxLength:"128" doc:"The object's UID."`
},
) (*Body[threeport.Definition], error) {
	definition, err := b.clusters.Definition(ctx, request.ClusterUID, request.ObjectUID)
	if err != nil {
		return nil, readProblem(ctx, err)
	}
	return &Body[threeport.Definition]{definition}, nil
}

// answerList answers with a list, whose items are never null.
func answerList[T any](ctx context.Context, list threeport.List[T], err error) (*Body[threeport.List[T]], error) {
	if err != nil {
		return nil, readProblem(ctx, err)
	}
	list.Items = notNil(list.Items)
	return &Body[threeport.List[T]]{list}, nil
}

// notNil makes an empty list of none, which JSON tells apart.
func notNil[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// given is nil for a time that was not.
func given(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// readProblem says what became of a question to the store.
func readProblem(ctx context.Context, err error) error {
	if wrong, ok := errors.AsType[*store.FieldError](err); ok {
		return parameterProblem("query."+wrong.Field, wrong.Accepted)
	}
	if errors.Is(err, store.ErrNotFound) {
		return problem(http.StatusNotFound, "record not found")
	}
	return unavailable(ctx, "the database failed: ask again", err)
}
