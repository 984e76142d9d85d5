package main

import (
	"context"
	"fmt"
	"net/url"

	"github.com/threeport/threeport-agent/internal/e2e/operator"
	"github.com/threeport/threeport-agent/internal/e2e/process"
)

// agentDeployment is the agent as the Deployment of config/, as users install it. The kubelet restarts it.
type agentDeployment struct {
	installed *operator.Operator
}

func (a *agentDeployment) start(ctx context.Context, s *stack) (err error) {
	api, err := url.Parse(s.apiURL)
	if err != nil {
		return fmt.Errorf("address of the control-plane API: %w", err)
	}
	s.printf("Building the agent's image, and installing it with config/ (a minute or two the first time, then seconds).")
	if a.installed, err = operator.Install(ctx, s.cluster, s.root, s.access.credentials, api.Host); err != nil {
		return err
	}
	s.printf("The agent is ready: it is the Deployment %s in the namespace %s.", operator.Name, operator.Namespace)
	return nil
}

func (a *agentDeployment) log(ctx context.Context) (string, error) {
	if a.installed == nil { // if its installation failed, the error has the log
		return "", nil
	}
	return a.installed.Logs(ctx)
}

func (*agentDeployment) process() *process.Process { return nil }

func (*agentDeployment) restartCommand() string { return "" }

func (*agentDeployment) commands(kubectl string) []string {
	in := kubectl + " -n " + operator.Namespace
	return []string{
		in + " logs deployment/" + operator.Name,
		in + " describe pods",
		kubectl + " create clusterrolebinding metrics --clusterrole=threeport-agent-metrics-reader --serviceaccount=default:default",
		in + " port-forward deployment/" + operator.Name + " 18080:8080  # and then: curl -sk https://127.0.0.1:18080/metrics " +
			`-H "Authorization: Bearer $(` + kubectl + ` create token default)"`,
	}
}
