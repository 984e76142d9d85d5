package operators

import (
	"context"

	"github.com/threeport/threeport-agent/internal/e2e/scenario"
	"github.com/threeport/threeport-agent/internal/e2e/scenario/recording"
)

const (
	rollout          = "Rollout"
	analysisRun      = "AnalysisRun"
	analysisTemplate = "AnalysisTemplate"
)

// argoRollouts has canaries. Its pods run on a fake node, which simulates their failures.
func argoRollouts() Operator {
	const module = "github.com/argoproj/argo-rollouts"
	rollouts := custom(rollout, "argoproj.io", "v1alpha1", "rollouts")
	phase := func(want string) scenario.Check { return text(rollout, web, "status.phase", want) }
	update := func(behaviour string) func(context.Context, scenario.Env) error {
		return patch(rollouts, web, `{"spec": {"template": {"metadata": {"annotations": {"version": "2"`+behaviour+`}}}}}`)
	}
	const pullFails = `, "kwok.threeport.io/behaviour": "image-pull"`
	return Operator{
		Name: "argo-rollouts",
		programs: []program{{
			pin: "argo-rollouts", module: module, command: module + "/cmd/rollouts-controller",
			// It serves on all interfaces. With an invalid port it logs an error and serves nothing.
			args: func(p *place) ([]string, error) {
				return []string{"--kubeconfig=" + p.kubeconfig, "--leader-elect=false", "--metricsPort=-1", "--healthzPort=-1"}, nil
			},
		}},
		crds: []crds{{pin: "argo-rollouts", module: module, paths: []string{"manifests/crds/*-crd.yaml"}}},
		resources: []recording.Resource{
			rollouts,
			custom(analysisTemplate, "argoproj.io", "v1alpha1", "analysistemplates"),
			custom(analysisRun, "argoproj.io", "v1alpha1", "analysisruns"),
		},
		scenarios: []scenario.Scenario{
			moment("argo-rollouts-healthy", "All pods run.", scenario.Healthy, phase("Healthy"), part(rollout, web, scenario.Healthy)),
			moment("argo-rollouts-scaled-to-zero", "No pod is wanted, and none runs.", scenario.Healthy, phase("Healthy"),
				part(rollout, web, scenario.Healthy)),
			moment("argo-rollouts-starting", "The first pod is not ready yet.", scenario.Reconciling, phase("Progressing"),
				part(rollout, web, scenario.Reconciling)),
			moment("argo-rollouts-never-ready", "No pod became ready before the deadline.", scenario.Down,
				all(phase("Degraded"), condition(rollout, web, "Progressing", isFalse, "ProgressDeadlineExceeded")),
				part(rollout, web, scenario.Down)),
			moment("argo-rollouts-invalid", "The Service of the canary does not exist, so there are no pods.", scenario.Down,
				condition(rollout, web, "InvalidSpec", isTrue, ""), part(rollout, web, scenario.Down)),
			{Name: "argo-rollouts-update", Steps: []scenario.Step{
				{Reached: phase("Healthy"), Within: within},
				{
					Moment: "argo-rollouts-paused", Doc: "Half of the pods are of the next version; a person has to promote it.",
					Status: scenario.Reconciling, Do: update(""), Reached: phase("Paused"), Within: within,
					Parts: []scenario.Part{part(rollout, web, scenario.Reconciling)},
				},
			}},
			{Name: "argo-rollouts-bad-update", Steps: []scenario.Step{
				{Reached: phase("Healthy"), Within: within},
				{
					Moment: "argo-rollouts-bad-update", Doc: "The image of the next version cannot be pulled; the version before serves.",
					Status: scenario.Unhealthy, Do: update(pullFails), Reached: phase("Degraded"), Within: within,
					Parts: []scenario.Part{part(rollout, web, scenario.Unhealthy)},
				},
			}},
			{Name: "argo-rollouts-analysis", Steps: []scenario.Step{
				{Reached: phase("Healthy"), Within: within},
				{
					Moment: "argo-rollouts-analysis", Doc: "The metric cannot be measured, so the update is aborted; the version before serves.",
					Status: scenario.Unhealthy, Do: update(""), Reached: phase("Degraded"), Within: within,
					Parts: []scenario.Part{
						part(rollout, web, scenario.Unhealthy), part(analysisTemplate, "success", scenario.Healthy),
						part(analysisRun, "web-7bc5c8574d-2-1", scenario.Down), // the hash is of the pod template
					},
				},
			}},
		},
	}
}
