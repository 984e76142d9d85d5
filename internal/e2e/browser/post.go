package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// reportsPerSet is the maximum number of reports in a set.
const reportsPerSet = 500

// Post registers the workloads of a fleet at a control plane, sends their reports, and returns their instances by name.
func Post(ctx context.Context, url string, fleet Fleet) (map[string]threeport.Instance, error) {
	instances := map[string]threeport.Instance{}
	for _, cluster := range fleet.Clusters {
		var reports []threeport.Report
		var before [][]threeport.Report // a set for each version, because a set has one version of each key
		for _, w := range cluster.Workloads {
			instance, err := register(ctx, url, w)
			if err != nil {
				return nil, err
			}
			if _, ok := instances[w.Name]; !ok {
				instances[w.Name] = instance
			}
			for i, report := range w.earlierReports(instance) {
				if i == len(before) {
					before = append(before, nil)
				}
				before[i] = append(before[i], report)
			}
			reports = append(reports, w.Reports(instance, threeport.ID(cluster.Agent.Time.UnixMicro()))...)
		}
		for _, versions := range before {
			if err := SendReports(ctx, url, threeport.ReportSet{Agent: cluster.Agent, Reports: versions}); err != nil {
				return nil, err
			}
		}
		for len(reports) > 0 {
			n := min(len(reports), reportsPerSet)
			if err := SendReports(ctx, url, threeport.ReportSet{Agent: cluster.Agent, Reports: reports[:n]}); err != nil {
				return nil, err
			}
			reports = reports[n:]
		}
	}
	return instances, nil
}

// register creates the row of a workload, as upstream controllers do.
func register(ctx context.Context, url string, w Workload) (threeport.Instance, error) {
	objects := upstream.WorkloadInstances
	if w.Type == threeport.TypeHelmWorkloadInstance {
		objects = upstream.HelmWorkloadInstances
	}
	id, err := upstream.API{URL: url, HTTP: http.DefaultClient}.Create(ctx, objects, map[string]any{"Name": w.Name})
	if err != nil {
		return threeport.Instance{}, fmt.Errorf("register workload: %w", err)
	}
	return threeport.Instance{Type: w.Type, ID: threeport.ID(id)}, nil
}

// Reports returns the reports of the current state of a workload.
func (w Workload) Reports(instance threeport.Instance, version threeport.ID) []threeport.Report {
	reports := []threeport.Report{{Instance: instance, Version: version, Status: &w.Status}}
	if len(w.Tree) > 0 {
		reports = append(reports, threeport.Report{Instance: instance, Version: version, Tree: &threeport.TreeReport{Objects: w.Tree}})
	}
	for i := range w.Events {
		reports = append(reports, threeport.Report{Instance: instance, Version: version, Event: &w.Events[i]})
	}
	if n := len(w.Operations); n > 0 {
		reports = append(reports, w.Operations[n-1].report(instance))
	}
	return reports
}

// earlierReports returns all operations except the last one.
func (w Workload) earlierReports(instance threeport.Instance) []threeport.Report {
	var reports []threeport.Report
	for i := range len(w.Operations) - 1 {
		reports = append(reports, w.Operations[i].report(instance))
	}
	return reports
}

func (o *Operation) report(instance threeport.Instance) threeport.Report {
	return threeport.Report{Instance: instance, Version: o.Version, Operation: &o.OperationReport}
}

// SendReports sends a report set. A rejected report is an error.
func SendReports(ctx context.Context, url string, set threeport.ReportSet) error {
	body, err := json.Marshal(set)
	if err != nil {
		return fmt.Errorf("write report set: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v0/workload-report-sets", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("send report set: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("send report set: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // a read error is returned
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("read answer to report set: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("send report set: status %d: %s", resp.StatusCode, raw)
	}
	var answer threeport.ReportSetAnswer
	if err := json.Unmarshal(raw, &answer); err != nil {
		return fmt.Errorf("read answer to report set: %w", err)
	}
	for i, item := range answer.Items {
		if item.Outcome == threeport.OutcomeRejected {
			return fmt.Errorf("report %d of the set was rejected: %+v", i, *item.Problem)
		}
	}
	return nil
}
