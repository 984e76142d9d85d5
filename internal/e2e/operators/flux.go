package operators

import (
	"context"

	"github.com/threeport/threeport-agent/internal/e2e/scenario"
	"github.com/threeport/threeport-agent/internal/e2e/scenario/recording"
)

const (
	kustomization  = "Kustomization"
	gitRepository  = "GitRepository"
	ociRepository  = "OCIRepository"
	helmRepository = "HelmRepository"
	helmChart      = "HelmChart"
	app            = "app"
)

// flux has the controllers of sources and of Kustomizations. The sources are on a local server.
func flux() Operator {
	const sources, kustomizations = "github.com/fluxcd/source-controller", "github.com/fluxcd/kustomize-controller"
	const group = "source.toolkit.fluxcd.io"
	return Operator{
		Name:   "flux",
		source: startSource,
		programs: []program{
			{pin: "flux-source", module: sources, command: sources, args: sourceArgs},
			{pin: "flux-kustomize", module: kustomizations, command: kustomizations, args: kustomizeArgs},
		},
		crds: []crds{
			{pin: "flux-source", module: sources, paths: []string{"config/crd/bases/*.yaml"}},
			{pin: "flux-kustomize", module: kustomizations, paths: []string{"config/crd/bases/*.yaml"}},
		},
		resources: []recording.Resource{
			custom(gitRepository, group, "v1", "gitrepositories"),
			custom(ociRepository, group, "v1", "ocirepositories"),
			custom(helmRepository, group, "v1", "helmrepositories"),
			custom(helmChart, group, "v1", "helmcharts"),
			custom(kustomization, "kustomize.toolkit.fluxcd.io", "v1", "kustomizations"),
		},
		scenarios: append(fluxSources(), fluxKustomizations()...),
	}
}

func sourceArgs(p *place) ([]string, error) {
	storage, err := p.address()
	if err != nil {
		return nil, err
	}
	health, err := p.address()
	if err != nil {
		return nil, err
	}
	p.addresses[storageAddress] = storage
	return []string{
		"--storage-path=" + p.dir, "--storage-addr=" + storage, "--storage-adv-addr=" + storage,
		"--metrics-addr=0", "--health-addr=" + health, "--log-level=info",
	}, nil
}

func kustomizeArgs(p *place) ([]string, error) {
	health, err := p.address()
	return []string{"--metrics-addr=0", "--health-addr=" + health, "--http-retry=1"}, err
}

func fluxSources() []scenario.Scenario {
	available := func(kind string) scenario.Check { return condition(kind, app, ready, isTrue, "") }
	failing := func(kind string) scenario.Check { return condition(kind, app, ready, isFalse, "") }
	one := func(name, doc, kind string, ok bool) scenario.Scenario {
		if ok {
			return moment(name, doc, scenario.Healthy, available(kind), part(kind, app, scenario.Healthy))
		}
		return moment(name, doc, scenario.Unhealthy, failing(kind), part(kind, app, scenario.Unhealthy))
	}
	charts := part(helmRepository, "charts", scenario.Healthy)
	return []scenario.Scenario{
		one("flux-git", "The branch is fetched.", gitRepository, true),
		one("flux-git-no-branch", "The repository does not have the branch.", gitRepository, false),
		one("flux-git-unreachable", "The server does not answer.", gitRepository, false),
		one("flux-git-no-secret", "The Secret with the credentials does not exist.", gitRepository, false),
		one("flux-oci", "The artifact is fetched.", ociRepository, true),
		one("flux-oci-no-tag", "The repository does not have the tag.", ociRepository, false),
		one("flux-helm-repository", "The index is fetched.", helmRepository, true),
		one("flux-helm-repository-no-index", "The file at the address is no index.", helmRepository, false),
		moment("flux-helm-chart", "The chart is fetched.", scenario.Healthy,
			all(available(helmChart), condition(helmRepository, "charts", ready, isTrue, "")),
			charts, part(helmChart, app, scenario.Healthy)),
		moment("flux-helm-chart-no-version", "The repository does not have the version.", scenario.Unhealthy,
			all(failing(helmChart), condition(helmRepository, "charts", ready, isTrue, "")),
			charts, part(helmChart, app, scenario.Unhealthy)),
	}
}

func fluxKustomizations() []scenario.Scenario {
	source := part(gitRepository, app, scenario.Healthy)
	fails := func(name, doc, reason string) scenario.Scenario {
		return moment(name, doc, scenario.Unhealthy,
			all(condition(kustomization, app, ready, isFalse, reason), condition(gitRepository, app, ready, isTrue, "")),
			source, part(kustomization, app, scenario.Unhealthy))
	}
	return []scenario.Scenario{
		moment("flux-kustomization", "The Deployment is applied and runs.", scenario.Healthy,
			condition(kustomization, app, ready, isTrue, ""), source, part(kustomization, app, scenario.Healthy)),
		moment("flux-kustomization-waiting", "It is applied, and waits for pods that are not ready.", scenario.Reconciling,
			all(condition(kustomization, app, ready, isUnknown, ""), exists("Deployment", web)),
			source, part(kustomization, app, scenario.Reconciling)),
		moment("flux-kustomization-crashing", "The pods of the Deployment crash, so its health check has failed.", scenario.Down,
			condition(kustomization, app, ready, isFalse, "HealthCheckFailed"), source, part(kustomization, app, scenario.Unhealthy)),
		fails("flux-kustomization-no-path", "The source does not have the path.", ""),
		fails("flux-kustomization-broken", "A file is no YAML.", ""),
		fails("flux-kustomization-invalid", "The API server rejects an object.", ""),
		moment("flux-kustomization-no-source", "The source does not exist.", scenario.Unhealthy,
			condition(kustomization, app, ready, isFalse, ""), part(kustomization, app, scenario.Unhealthy)),
		moment("flux-kustomization-dependency", "It depends on a Kustomization that does not exist, and waits.", scenario.Unhealthy,
			condition(kustomization, app, ready, isFalse, ""), source, part(kustomization, app, scenario.Unhealthy)),
		{Name: "flux-kustomization-suspended", Steps: []scenario.Step{
			{Reached: condition(kustomization, app, ready, isTrue, ""), Within: within},
			{
				Moment: "flux-kustomization-suspended", Doc: "It was applied, and is suspended since.", Status: scenario.Healthy,
				Do:      suspend,
				Reached: condition(kustomization, app, ready, isTrue, ""), Within: within,
				Parts: []scenario.Part{source, part(kustomization, app, scenario.Healthy)},
			},
		}},
	}
}

func suspend(ctx context.Context, env scenario.Env) error {
	return patch(custom(kustomization, "kustomize.toolkit.fluxcd.io", "v1", "kustomizations"), app, `{"spec": {"suspend": true}}`)(ctx, env)
}
