package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// API is a client of the control plane: plain JSON over HTTP, as its users have it.
type API struct {
	// URL is the URL of the server, without a trailing slash.
	URL  string
	HTTP *http.Client
}

// Collections of the control-plane API, as in its paths.
const (
	WorkloadInstances         = "workload-instances"
	HelmWorkloadInstances     = "helm-workload-instances"
	WorkloadResourceInstances = "workload-resource-instances"
	WorkloadEvents            = "workload-events"
	WorkloadReportSets        = "workload-report-sets"
)

// Create creates an object and returns its ID.
func (a API) Create(ctx context.Context, objects string, body any) (int64, error) {
	rows, err := call[struct{ ID int64 }](ctx, a, http.MethodPost, "/v0/"+objects, body)
	if err != nil {
		return 0, err
	}
	if len(rows) != 1 {
		return 0, fmt.Errorf("create %s: the answer has %d rows, expected 1", objects, len(rows))
	}
	return rows[0].ID, nil
}

// Status returns the status of an instance; empty before the first one.
func (a API) Status(ctx context.Context, objects string, id int64) (string, error) {
	rows, err := call[struct{ Status string }](ctx, a, http.MethodGet, "/v0/"+objects+"/"+strconv.FormatInt(id, 10), nil)
	if err != nil {
		return "", err
	}
	return rows[0].Status, nil
}

// Events returns the rows of workload events that match a filter; all for an empty filter.
func (a API) Events(ctx context.Context, filter url.Values) ([]threeport.WorkloadEvent, error) {
	return list[threeport.WorkloadEvent](ctx, a, WorkloadEvents, filter)
}

// Resources returns the rows of resource instances that match a filter; all for an empty filter.
func (a API) Resources(ctx context.Context, filter url.Values) ([]threeport.WorkloadResourceInstance, error) {
	return list[threeport.WorkloadResourceInstance](ctx, a, WorkloadResourceInstances, filter)
}

// Count returns the number of objects of a collection.
func (a API) Count(ctx context.Context, objects string) (int, error) {
	answer, err := request[struct{}](ctx, a, http.MethodGet, "/v0/"+objects+"?size=1", nil)
	return int(answer.Meta.TotalCount), err
}

// Statuses returns the statuses of all objects of a collection.
func (a API) Statuses(ctx context.Context, objects string) ([]string, error) {
	rows, err := list[struct{ Status string }](ctx, a, objects, nil)
	out := make([]string, 0, len(rows))
	for _, row := range rows {
		out = append(out, row.Status)
	}
	return out, err
}

func list[T any](ctx context.Context, a API, objects string, filter url.Values) ([]T, error) {
	query := url.Values{"size": {"-1"}}
	maps.Copy(query, filter)
	return call[T](ctx, a, http.MethodGet, "/v0/"+objects+"?"+query.Encode(), nil)
}

// call makes a request, and returns the rows of the answer.
func call[T any](ctx context.Context, a API, method, path string, body any) ([]T, error) {
	answer, err := request[T](ctx, a, method, path, body)
	return answer.Data, err
}

// response is threeport.Response without its bound of rows: tests read all rows at once, and an agent never does.
type response[T any] struct {
	Meta   threeport.Meta
	Data   []T
	Status threeport.Status
}

func request[T any](ctx context.Context, a API, method, path string, body any) (envelope response[T], err error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return envelope, fmt.Errorf("%s %s: %w", method, path, err)
		}
		content = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.URL+path, content)
	if err != nil {
		return envelope, fmt.Errorf("%s %s: %w", method, path, err)
	}
	req.Header.Set("Content-Type", "application/json")
	client := a.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	answer, err := client.Do(req)
	if err != nil {
		return envelope, err
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	if err := json.NewDecoder(answer.Body).Decode(&envelope); err != nil {
		return envelope, fmt.Errorf("%s %s: HTTP %d: %w", method, path, answer.StatusCode, err)
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		return envelope, fmt.Errorf("%s %s: HTTP %d: %s", method, path, answer.StatusCode, envelope.Status.Error)
	}
	return envelope, nil
}
