package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/server"
	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestNegotiatingSender_AgainstTheReferenceServer(t *testing.T) {
	config := server.DefaultConfig()
	config.Database, config.BindAddress, config.AuthEnabled = "sqlite::memory:", "127.0.0.1:0", false
	s, err := server.New(t.Context(), config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	created := func(path, body string) int64 {
		var answer threeport.Response[struct{ ID int64 }]
		ask(t, http.MethodPost, s.URL()+"/v0/"+path, body, &answer)
		return answer.Data[0].ID
	}
	instance := target.Instance{Type: target.WorkloadInstance, ID: created("workload-instances", `{"Name":"shop"}`)}
	resource := created("workload-resource-instances", fmt.Sprintf(`{"JSONDefinition":{},"WorkloadInstanceID":%d}`, instance.ID))

	b := newNegotiationBench(t, &model{url: s.URL(), close: func() {}}, nil)
	ev, again := eventAt("uid-1", "5"), eventAt("uid-1", "6")
	op := (&referenceAPI{t: t, instance: instance, resource: resource}).operation("7", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"}}`)
	tree := treeWithPods(1, 1)
	ev.Workload, again.Workload, tree.Workload = instance, instance, instance
	b.run(func() {
		b.untilChanged()
		b.offer(ev, op, tree, observe.Status{Workload: instance, Status: "Down", Reason: "Crash", Cause: "it crashes"})
		b.untilDelivered()
		b.offer(again)
	})
	if got := b.box.DeadLetters(); got > 0 {
		t.Errorf("refused are %+v", b.box.Progress(instance).Rejections)
	}
	var detail threeport.WorkloadDetail
	ask(t, http.MethodGet, fmt.Sprintf("%s/v0/workloads/%s/%d", s.URL(), instance.Type, instance.ID), "", &detail)
	if w := detail.Workload; w.Status != "Down" || w.Cause != "it crashes" || w.ClusterName != "home" || len(detail.Objects) != 1 {
		t.Errorf("the workload is %+v with %d objects", w, len(detail.Objects))
	}
	if pod := detail.Objects[0].Pod; pod == nil || pod.Node != "node-1" || pod.Containers[0].Restarts != 4 || pod.Containers[0].LastExit.Code != 137 ||
		!pod.Containers[0].LastExit.Time.Equal(time.Unix(7, 0)) {
		t.Errorf("the facts of the Pod are %+v", pod)
	}
	var rows threeport.Response[row]
	ask(t, http.MethodGet, s.URL()+"/v0/workload-events", "", &rows)
	if len(rows.Data) != 1 || rows.Data[0].Message != "Pod web-1: message 6" {
		t.Errorf("the Events are %+v", rows.Data)
	}
	ask(t, http.MethodGet, fmt.Sprintf("%s/v0/workload-resource-instances/%d", s.URL(), resource), "", &rows)
	if rows.Data[0].LastOperation != threeport.OperationAdded {
		t.Errorf("the resource is %+v", rows.Data[0])
	}
}

// ask makes a request and reads its answer.
func ask(t *testing.T, method, url, body string, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // what matters was read
	raw, err := io.ReadAll(answer.Body)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil || answer.StatusCode >= 300 {
		t.Fatalf("%s %s: %d %s, %v", method, url, answer.StatusCode, raw, err)
	}
}
