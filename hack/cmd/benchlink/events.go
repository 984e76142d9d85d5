//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// makeEvents returns Events like those of a kubelet about the pods of a Deployment.
func makeEvents(instance int64, n int) []observe.Event {
	reasons := [...]struct{ kind, reason, message string }{
		{"Normal", "Scheduled", "Successfully assigned shop/web-%[1]s to node-%[2]d"},
		{"Normal", "Pulled", "Container image \"registry.example.com/shop/web:1.%[2]d\" already present on machine"},
		{"Normal", "Created", "Created container: web-%[2]d"},
		{"Warning", "BackOff", "Back-off restarting failed container web in pod web-%[1]s_shop(%[2]d)"},
		{"Warning", "Unhealthy", "Readiness probe failed: Get \"http://10.244.%[2]d.17:8080/ready\": context deadline exceeded"},
	}
	begin := time.Now().UTC().Truncate(time.Second)
	out := make([]observe.Event, n)
	for i := range out {
		sample := reasons[i%len(reasons)]
		pod := fmt.Sprintf("%08x-%05x", rand.Uint32(), rand.Uint32N(1<<20)) //nolint:gosec // test data, no secret
		out[i] = observe.Event{
			Workload: target.Instance{Type: target.WorkloadInstance, ID: instance},
			UID:      uuid.NewUUID(), ResourceVersion: strconv.Itoa(1000 + i),
			Involved:    target.Ref{Kind: "Pod", Namespace: "shop", Name: "web-" + pod},
			InvolvedUID: uuid.NewUUID(), InvolvedVersion: "v1", Derived: true,
			Type: sample.kind, Reason: sample.reason, Message: fmt.Sprintf(sample.message, pod, rand.IntN(250)), //nolint:gosec // the same
			Time: begin, FirstTime: begin, Count: 1,
		}
	}
	return out
}

// createInstance creates the row of a workload, as an upstream controller does.
func createInstance(ctx context.Context, url, name string) (int64, error) {
	body, err := json.Marshal(map[string]string{"Name": name})
	if err != nil {
		return 0, err
	}
	var answer threeport.Response[struct{ ID int64 }]
	if err := exchange(ctx, http.MethodPost, url+"/v0/workload-instances", body, &answer); err != nil {
		return 0, err
	}
	return answer.Data[0].ID, nil
}

// countRows returns the number of rows of Events of a workload.
func countRows(ctx context.Context, url string, instance int64) (int64, error) {
	var answer threeport.Response[json.RawMessage]
	path := fmt.Sprintf("%s/v0/workload-events?workloadinstanceid=%d&size=1", url, instance)
	err := exchange(ctx, http.MethodGet, path, nil, &answer)
	return answer.Meta.TotalCount, err
}

func exchange(ctx context.Context, method, url string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	raw, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %.300s", method, url, answer.Status, raw)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, out)
}
