# `make` or `make help` lists the targets. GO, KUBECTL, DOCKER, TARGET, IMG, ARCH, REGISTRY, CONFIG, VERSION and BASE may be set. ARGS are
# flags for the program that a target runs, as in `make cluster ARGS='--nodes 5'`. NODE=real gives `make cluster` and `make demo`
# a node that runs containers (Linux, root; `make node-packages`).

GO      ?= go
KUBECTL ?= kubectl
DOCKER  ?= docker
TARGET  ?= agent
IMG     ?= threeport-$(TARGET):latest
ARCH    ?= $(shell $(GO) env GOARCH)
REGISTRY ?=
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
ARGS    ?=
NODE    ?= fake

# The modules with code of the project. Other modules, below hack and internal/e2e, pin programs of other projects.
MODULES = . internal/e2e hack

TOOL           = $(GO) tool -modfile=$(CURDIR)/hack/tools/go.mod
GOLANGCI_LINT  = $(TOOL) golangci-lint
CONTROLLER_GEN = $(TOOL) controller-gen
VALE           = env CGO_ENABLED=1 CGO_CFLAGS="-O0 -g0" $(TOOL) vale # its parsers in C compile for minutes otherwise
SBOM           = GOPROXY=off $(TOOL) cyclonedx-gomod app -json -licenses -noserial
GOVULNCHECK    = $(TOOL) govulncheck
ACTIONLINT     = $(GO) tool -modfile=$(CURDIR)/hack/actionlint/go.mod actionlint
BENCHSTAT      = $(GO) tool -modfile=$(CURDIR)/hack/benchstat/go.mod benchstat
HELM           = $(GO) tool -modfile=$(CURDIR)/hack/helm4/go.mod helm
KUSTOMIZE      = $(GO) tool -modfile=$(CURDIR)/hack/kustomize/go.mod kustomize
# Built as internal/e2e/monitoring does it, so that both share the build cache. `go tool` knows no build tags.
PROMTOOL       = $(GO) run -modfile=$(CURDIR)/hack/prometheus/go.mod -buildvcs=false -tags=remove_all_sd github.com/prometheus/prometheus/cmd/promtool

# Packages do not contain the folder of the checkout. A clean checkout in another folder uses the same build and lint caches.
export GOFLAGS += -trimpath

# Only the race detector and Vale need cgo. All else is compiled without it, once for programs, tools and linters.
export CGO_ENABLED = 0

# How tests are compiled. SQLite is C that was translated to Go. It is compiled without the race detector, which would take
# most of the store tests' time there. Package internal/e2e/process compiles in the same way. `make lint` vets, so `go test`
# does not.
GOTEST = CGO_ENABLED=1 $(GO)
RACE   = -race -gcflags='modernc.org/...=-race=false' -vet=off

# The packages that `make build` builds, and the folder for the binaries. The Dockerfile and `make image` set others.
WHAT = ./cmd/...
BIN  = bin

# The version comes from git describe, so that a checkout that git does not trust builds too.
GOBUILD = $(GO) build -trimpath -buildvcs=false

# hack builds a tool of the module hack.
hack = $(GO) -C hack build -buildvcs=false -o ../bin/$(1) ./cmd/$(1)

DEEPCOPY      = object paths=./api/...
MANIFESTS     = crd paths=./api/...
DEEPCOPY_FILE = zz_generated.deepcopy.go

# The comments of the API's types, for its document.
DESCRIPTIONS      = internal/server/zz_generated.descriptions.json
MAKE_DESCRIPTIONS = $(GO) -C hack run ./cmd/describe ../internal/threeport/reportset.go ../internal/threeport/podfacts.go ../internal/threeport/workloads.go \
	../internal/threeport/token.go ../internal/server/auth/token_api.go ../internal/server/auth/new_token.go ../internal/server/auth/audit_log.go

# The document of the charts' values.
CHARTS            = config/charts/threeport-agent config/charts/threeport-controlplane
CHART_VALUES      = docs/helm-values.md
MAKE_CHART_VALUES = $(GO) -C hack run ./cmd/chartvalues $(CHARTS:%=../%)

# BUNDLE is the folder of `make bundle`, and its file without .tar.gz.
BUNDLE = bin/threeport-$(VERSION)-linux-$(ARCH)

# installer writes the objects of a program, with the image of the release if REGISTRY is set.
image     = $(if $(REGISTRY),$(REGISTRY)/threeport-$(1):$(VERSION),threeport-$(1):latest)
installer = objects=$$($(KUSTOMIZE) build $(2)) && \
	printf '%s\n' "$$objects" | sed 's|image: threeport-$(1):latest|image: $(call image,$(1))|' >$(3)/install-$(1).yaml
METRICS      = docs/metrics.md
MAKE_METRICS = $(GO) -C hack run ./cmd/metrics ..

# A PrometheusRule is a file of rules as its spec, so that both are the same. make_rule prints it for a file and a namespace.
make_rule = { printf '%s\n' '\# Generated from config/monitoring/$(1).rules.yaml: run make generate after a change.' \
	'apiVersion: monitoring.coreos.com/v1' 'kind: PrometheusRule' 'metadata:' '  name: threeport-$(1)' '  namespace: $(2)' 'spec:' && \
	sed 's/^./  &/' config/monitoring/$(1).rules.yaml; }
MAKE_AGENT_RULE        = $(call make_rule,agent,threeport-agent-system)
MAKE_CONTROLPLANE_RULE = $(call make_rule,controlplane,threeport-control-plane)
AGENT_RULE             = config/components/prometheus-rules/zz_generated.prometheus_rule.yaml
CONTROLPLANE_RULE      = config/components/controlplane-prometheus-rules/zz_generated.prometheus_rule.yaml

# Tests of the modules internal/e2e and hack run the programs as processes, so they never come from the test cache.
E2E_TEST  = $(GOTEST) -C internal/e2e test $(RACE) -count 1
HACK_TEST = $(GOTEST) -C hack test $(RACE) -count 1

# These tests check that the demo and a local control plane leave nothing behind when they die or are interrupted. They are
# the slowest tests of the tools, and matter for a change of the tools.
CLEANUP_TESTS = TestDemo_Interrupted TestDemo_Hints TestStop_LeavesNothing TestKilledProcess_LeavesNothing TestKilledParent_LeavesNothing \
	TestDemo_APIDies_Ends TestDemo_AgentDies_Continues TestDemo_InterruptedWhileUp_LeavesNothing TestDemo_InterruptedWhileStarting_Ends \
	TestDemo_OnceTimesOut_PrintsLogs
# One test for each thing that fails: process, answers, disk, network, API server, permission, leader.
FAULT_TESTS   = TestControlPlane_ReplicasKilled TestAgent_KilledFiftyTimes TestProtocol_ReportSetsComeAndGo TestDelivery_AnswersLost \
	TestStateDir_Torn TestStateDir_DiskFails TestNetwork_Impaired TestAPIServer_Restarts TestPermission_RemovedAndRestored \
	TestLeader_Takeover TestControlPlane_BackupRestored TestCredentials_TokenRenewsItself
# One attack for each thing that a client uses up or takes: bodies, lists, nesting, connections, certificates, requests, watches, writes,
# logins, and the rows of another cluster.
ATTACK_TESTS  = TestMemory_AgentSendsLargeBodies TestMemory_ViewerListsAllEvents TestMemory_AgentNestsObjectsInDefinition \
	TestMemory_ClientsWithoutCredential_OpenManyConnections TestMemory_ClientsWithoutCredential_SendExpensiveCertificates \
	TestPipeline_RequestsWithoutCredential_ArePaused TestMemory_WatchesReceiveLongCauses TestMemory_ResumedWatchesAreNotRead \
	TestStalledSets_OtherClustersReport TestWrites_AgentChangesLockedRow_OthersHaveConnections TestLogin_FormsThatDoNotArrive_DelayNobody \
	TestClaims_AgentTakesWorkloadOfOtherCluster TestEventUIDs_AgentTakesThoseOfOtherCluster \
	TestLogs_AgentSendsRefusedRecords_OthersAreExported
# The unit tests that take longest begin first, so that none is left alone in the end. They wait for API servers and
# databases in turns: one more package at a time than there are cores.
LONG_TESTS    = ./internal/server/store ./internal/agent/reporter ./internal/server ./internal/agent/controller ./internal/agent/informers ./internal/kubectl
UNIT_TESTS    = $(LONG_TESTS) ./...
UNIT_AT_ONCE  = $$(($$(nproc 2>/dev/null || echo 4) + 1))

# The minors of Kubernetes that test-compatibility runs on; each is pinned in internal/e2e/cluster/pins.
MINORS = 1.35 1.36 1.37

# only makes a regular expression of the names of tests; exist fails if one is not in these folders.
only  = '^($(subst $() ,|,$(strip $(1))))$$'
exist = for test in $(1); do grep -qr --include='*_test.go' "^func $$test(" $(2) || { echo "There is no $$test." >&2; exit 1; }; done

.DEFAULT_GOAL := help
.NOTPARALLEL:

##@ Look

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z][a-z0-9-]*:.*## / {printf "  %-19s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Show the agent at work on a local control plane; NODE=real, ARGS=--once to end by itself
	@$(call hack,demo)
	@exec bin/demo --node $(NODE) $(ARGS)

.PHONY: cluster
cluster: ## Run a local control plane with fake nodes until interrupted; NODE=real, ARGS='--nodes 5'
	@$(call hack,cluster)
	@exec bin/cluster --node $(NODE) $(ARGS)

.PHONY: measure
measure: ## Measure the agent on a local control plane; see docs/measurements.md
	@$(call hack,measure)
	@exec bin/measure $(ARGS)

.PHONY: bench
bench: ## Measure the agent at several sizes of a cluster, beside bare informers and posts; ARGS='--sizes 500:0'
	@$(call hack,bench)
	@exec bin/bench $(ARGS)

.PHONY: bench-compare
bench-compare: BASE ?= origin/main
bench-compare: ## Compare the benchmarks of hot functions with those of BASE, by default origin/main; never fails for a difference
	@hack/bench-compare.sh $(BASE) $(BENCHSTAT)

.PHONY: record-fixtures
record-fixtures: ## Record the objects of workloads on a real node into internal/health/testdata/recorded/
	@$(call hack,record)
	@exec bin/record $(ARGS)

.PHONY: record-operators
record-operators: ## Record the custom resources of real operators into config/health/testdata/recorded/
	@$(call hack,record)
	@exec bin/record --operators $(ARGS)

.PHONY: bench-api
bench-api: ## Measure the control-plane API with a fleet of 1,000 agents and 10 million Events; see docs/scale.md
	@$(call hack,benchapi)
	@exec bin/benchapi $(ARGS)

.PHONY: bench-link
bench-link: ## Measure delivery over a link of 50 ms delay and 1 % loss; Linux, root; see docs/scale.md
	@$(call hack,benchlink)
	@exec bin/benchlink $(ARGS)

.PHONY: screenshots
screenshots: ## Take the pictures of the page in docs/images again: `make browser-packages`
	@$(call hack,screenshots)
	@exec bin/screenshots $(ARGS)

##@ Build

.PHONY: build
build: ## Build the binaries into bin/
	$(GOBUILD) -ldflags '-s -w -X github.com/threeport/threeport-agent/internal/version.release=$(VERSION)' -o '$(BIN)/' $(WHAT)

.PHONY: docker-build
docker-build: ## Build the agent's container image as IMG; TARGET=controlplane for the control-plane API's
	$(DOCKER) build --target $(TARGET) --build-arg VERSION=$(VERSION) -t $(IMG) .

.PHONY: image
image: ## Build the same as bin/agent-image.tar, without Docker; `docker load` takes it; TARGET=controlplane
	@$(call hack,image)
	@VERSION='$(VERSION)' exec bin/image --target $(TARGET) --ref $(IMG) --arch $(ARCH) $(ARGS)

.PHONY: charts
charts: ## Package the Helm charts into bin/; REGISTRY=ghcr.io/threeport is that of the images, VERSION their tag
	@mkdir -p bin
	@hack/charts/package.sh '$(VERSION)' '$(REGISTRY)' bin $(HELM)

.PHONY: build-installer
build-installer: ## Write bin/install-agent.yaml and bin/install-controlplane.yaml from config/; REGISTRY as for charts
	@mkdir -p bin
	$(call installer,agent,config/default,bin)
	$(call installer,controlplane,config/controlplane,bin)

.PHONY: bundle
bundle: ## Pack images, charts and manifests for clusters without internet into bin/; needs REGISTRY, ARCH=arm64
	@[ -n '$(REGISTRY)' ] || { echo 'bundle: set REGISTRY to the registry of the clusters, such as registry.example.org/threeport' >&2; exit 1; }
	@rm -rf $(BUNDLE)
	@mkdir -p $(BUNDLE)/charts $(BUNDLE)/images $(BUNDLE)/manifests
	@$(call hack,image)
	@for target in agent controlplane; do VERSION='$(VERSION)' bin/image --target $$target --arch $(ARCH) \
		--ref $(call image,$$target) --output $(BUNDLE)/images/$$target.tar || exit 1; done
	@hack/charts/package.sh '$(VERSION)' '$(REGISTRY)' $(BUNDLE)/charts $(HELM)
	@GOOS=linux GOARCH=$(ARCH) $(MAKE) --no-print-directory build WHAT=./cmd/kubectl-threeport BIN=$(BUNDLE)
	@$(call installer,agent,config/default,$(BUNDLE)/manifests)
	@$(call installer,controlplane,config/controlplane,$(BUNDLE)/manifests)
	@cp -r LICENSE docs $(BUNDLE)
	@(cd $(BUNDLE) && find . -type f ! -name SHA256SUMS -exec sha256sum {} + >SHA256SUMS)
	@tar -C bin -czf $(BUNDLE).tar.gz $(notdir $(BUNDLE)) && rm -rf $(BUNDLE)
	@echo '$(BUNDLE).tar.gz has the images, charts and manifests: see docs/operating.md'

.PHONY: site
site: ## Write the documents as static pages with search into bin/site/: `make site-packages`
	PYTHONDONTWRITEBYTECODE=1 mkdocs build --strict --quiet --config-file hack/site/mkdocs.yml

.PHONY: clean
clean: ## Remove what was built here; the control plane's binaries in the user's cache stay
	rm -rf bin

##@ Check

.PHONY: test
test: unit ## Run the everyday tests: no root, no packages, minutes
	@echo 'Not run: test-e2e test-attacks-short test-faults-short test-scenarios-short test-operator test-browser, which `.ci/run` runs, and `make nightly`.'

.PHONY: unit
unit: cluster-binaries ## Run the tests of each package, with a real API server and database: 5 min
	@for server in "$$(command -v postgres)" /usr/lib/postgresql/*/bin/postgres; do [ ! -x "$$server" ] || exit 0; done; \
	echo '*** No PostgreSQL found: the control-plane API is tested on SQLite only. `make postgres-packages` installs it. ***'
	$(GOTEST) test $(RACE) -timeout 30m -p $(UNIT_AT_ONCE) -parallel 8 $(UNIT_TESTS)

# These suites are too long for each change, or matter for a change of one place only.
NIGHTLY = test-attacks test-faults test-scenarios test-tools test-tools-cleanup test-monitoring test-bundle measure test-compatibility

.PHONY: nightly
nightly: ## Run the suites that `.ci/run` leaves out, one after the other: 90 min; Linux, root, all packages
	@failed=; for target in $(NIGHTLY); do $(MAKE) --no-print-directory $$target || failed="$$failed $$target"; done; \
	[ -z "$$failed" ] || { echo "nightly: these failed:$$failed" >&2; exit 1; }

.PHONY: test-e2e
test-e2e: cluster-binaries ## Run the agent as a process on whole control planes: 4 min
	$(E2E_TEST) -short -timeout 60m -p 2 -parallel 4 . ./kstatus ./openapi ./operators ./oracle ./scenario/...

# The first test prints the version that the API server reports. A minor that fails does not stop the others.
.PHONY: test-compatibility
test-compatibility: ## Run the agent as a process on each Kubernetes of MINORS: 5 min each, and minutes to build it
	@failed=; for minor in $(MINORS); do \
		echo "=== Kubernetes $$minor" && export THREEPORT_KUBERNETES=$$minor && $(MAKE) --no-print-directory cluster-binaries && \
		$(E2E_TEST) -v -run $(call only,TestKubernetes_IsChosenVersion) . && \
		$(E2E_TEST) -short -timeout 60m -parallel 4 . || failed="$$failed $$minor"; \
	done; [ -z "$$failed" ] || { echo "test-compatibility: FAILED on Kubernetes$$failed" >&2; exit 1; }

.PHONY: test-alerts
test-alerts: ## Test the alerts and recording rules with promtool: 10 s; minutes the first time
	$(PROMTOOL) check rules config/monitoring/*.rules.yaml
	$(PROMTOOL) test rules config/monitoring/*.test.yaml

.PHONY: test-monitoring
test-monitoring: real-node ## Run Prometheus, Alertmanager and an OpenTelemetry Collector on the programs, during faults: 17 min; Linux, root, `make node-packages postgres-packages`
	$(E2E_TEST) -timeout 60m -p 1 -parallel 8 ./alerts ./otlp
	$(E2E_TEST) -timeout 60m -parallel 2 ./installed -outage=5m

.PHONY: test-attacks-short
test-attacks-short: ## Run one attack of each kind on the API, those on its memory with SQLite: 2 min
	@$(call exist,$(ATTACK_TESTS),internal/e2e/attacks)
	$(E2E_TEST) -timeout 30m -short -run $(call only,$(ATTACK_TESTS)) ./attacks

.PHONY: test-attacks
test-attacks: ## Run all attacks on the API on both databases: 10 min
	$(E2E_TEST) -timeout 60m ./attacks

.PHONY: test-bundle
test-bundle: cluster-binaries ## Pack the bundle of the other architecture, and run its programs under QEMU: `make emulator-packages`
	$(E2E_TEST) -timeout 30m ./bundle

.PHONY: test-tools
test-tools: cluster-binaries ## Run the tests of the tools in hack/ and of test support: 2 min
	$(E2E_TEST) -timeout 30m -p 1 -skip $(call only,$(CLEANUP_TESTS)) ./cluster/... ./image/... ./behave/... ./process
	$(HACK_TEST) -timeout 30m -p 1 -skip $(call only,$(CLEANUP_TESTS)) ./...

.PHONY: test-tools-cleanup
test-tools-cleanup: real-node ## Test that interrupted tools leave nothing behind: 4 min; Linux, root, `make node-packages`
	@$(call exist,$(CLEANUP_TESTS),internal/e2e/cluster internal/e2e/node hack/cmd/demo)
	$(E2E_TEST) -timeout 60m -p 1 -parallel 2 -run $(call only,$(CLEANUP_TESTS)) ./cluster ./node
	$(HACK_TEST) -timeout 60m -p 1 -parallel 2 -run $(call only,$(CLEANUP_TESTS)) ./cmd/demo

.PHONY: test-faults-short
test-faults-short: cluster-binaries ## Run one test for each kind of fault, with fewer repeats: 4 min; Linux, root, /dev/fuse
	@$(call exist,$(FAULT_TESTS),internal/e2e/faults)
	$(E2E_TEST) -timeout 30m -parallel 6 -short -run $(call only,$(FAULT_TESTS)) ./faults

.PHONY: test-faults
test-faults: cluster-binaries ## Run all tests on faults, with all repeats: 17 min; Linux, root, /dev/fuse
	$(E2E_TEST) -timeout 60m -parallel 6 ./faults
	$(GOTEST) test $(RACE) -timeout 30m -run '^TestReporter_Churn' ./internal/agent/reporter -churn.workloads=1000 -churn.kinds=50

# Without the race detector: it would take what 2,000 Events a second need.
.PHONY: test-burst
test-burst: cluster-binaries ## Run the tests of 60,000 Events with the agent as it is shipped: 3 min
	$(GO) -C internal/e2e test -timeout 30m -count 1 -v -run 'TestEvents_Flood|TestEvents_Burst' ./faults -as-shipped -burst=60000

.PHONY: test-node
test-node: test-scenarios test-operator ## Run the tests on a real node: 11 min; Linux, root, `make node-packages`

.PHONY: test-scenarios
test-scenarios: real-node ## Run failing workloads on a real node, and compare what the control plane shows: 7 min
	$(E2E_TEST) -timeout 60m -run $(call only,TestScenarios) ./node

.PHONY: test-scenarios-short
test-scenarios-short: real-node ## Run one workload for each kind of failure on a real node: 4 min
	$(E2E_TEST) -short -timeout 60m -run $(call only,TestScenarios) ./node

.PHONY: test-operator
test-operator: real-node ## Run the agent, the control-plane API and the demo as installed, on a real node: 4 min
	$(E2E_TEST) -timeout 60m -parallel 2 -skip $(call only,TestScenarios $(CLEANUP_TESTS)) ./node

.PHONY: real-node
real-node:
	@$(call hack,cluster)
	@bin/cluster --build-only --node real

.PHONY: test-browser
test-browser: ## Run the tests of the page and of the documents' site in a browser: 5 min; `make browser-packages site-packages`
	$(E2E_TEST) -timeout 30m ./browser

.PHONY: browser-packages
browser-packages: ## Install what they need: chromium from Debian's packages, axe-core from npm's
	hack/packages.sh browser

.PHONY: site-packages
site-packages: ## Install mkdocs for the site of the documents, from Debian's packages
	hack/packages.sh site

.PHONY: emulator-packages
emulator-packages: ## Install QEMU for test-bundle, from Debian's packages
	hack/packages.sh emulator

.PHONY: postgres-packages
postgres-packages: ## Install PostgreSQL for the tests on it, from Debian's packages
	hack/packages.sh postgres

.PHONY: node-packages
node-packages: ## Install what a real node needs: containerd, runc and network plugins, from Debian's packages
	hack/packages.sh node

.PHONY: cluster-binaries
cluster-binaries: ## Build etcd, Kubernetes and kwok into the user's cache: minutes the first time
	@$(call hack,cluster)
	@bin/cluster --build-only --node $(NODE)

.PHONY: lint
lint: lint-prose ## Run the linters, check the format, the workflows and the prose
	hack/check-requirements.sh
	$(ACTIONLINT)
	for module in $(MODULES); do (cd "$$module" && $(GOLANGCI_LINT) run --allow-serial-runners ./...) || exit 1; done

.PHONY: lint-prose
lint-prose: ## Check the prose of documents, comments and strings with Vale
	@hack/lint-prose.sh $(VALE)

.PHONY: fmt
fmt: ## Format the Go files
	for module in $(MODULES); do (cd "$$module" && $(GOLANGCI_LINT) fmt) || exit 1; done

##@ Supply chain

.PHONY: sbom
sbom: ## Write the bill of materials of each program, bin/*.cdx.json (CycloneDX), and check the licenses
	@mkdir -p bin
	@$(TOOL) -n cyclonedx-gomod >/dev/null
	for program in cmd/*; do $(SBOM) -main $$program -output bin/$${program##*/}.cdx.json . || exit 1; done
	@$(call hack,licenses)
	@bin/licenses bin/*.cdx.json

.PHONY: reproducible
reproducible: ## Check that two builds in two folders are equal byte for byte
	@hack/check-reproducible.sh

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities; skipped without network, unless VULNCHECK=required
	@hack/vulncheck.sh $(GOVULNCHECK)

##@ Generate

.PHONY: generate
generate: ## Generate the deep copies of the CRD's types, the descriptions of the API's, docs/metrics.md and the PrometheusRules
	$(CONTROLLER_GEN) $(DEEPCOPY)
	$(MAKE_DESCRIPTIONS) >$(DESCRIPTIONS)
	$(MAKE_METRICS) >$(METRICS)
	@$(MAKE_AGENT_RULE) >$(AGENT_RULE)
	@$(MAKE_CONTROLPLANE_RULE) >$(CONTROLPLANE_RULE)

.PHONY: manifests
manifests: ## Generate the CRD
	$(CONTROLLER_GEN) $(MANIFESTS) output:crd:artifacts:config=config/crd/bases

.PHONY: charts-generate
charts-generate: ## Generate the objects of the Helm charts from config/, and the document of their values
	hack/charts/generate.sh config/charts $(KUSTOMIZE)
	$(MAKE_CHART_VALUES) >$(CHART_VALUES)

.PHONY: verify-generated
verify-generated: ## Check that generated files are current
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	$(CONTROLLER_GEN) $(DEEPCOPY) output:object:dir="$$dir/api" && \
	$(MAKE_DESCRIPTIONS) >"$$dir/descriptions.json" && \
	$(MAKE_METRICS) >"$$dir/metrics.md" && \
	$(MAKE_AGENT_RULE) >"$$dir/agent.yaml" && \
	$(MAKE_CONTROLPLANE_RULE) >"$$dir/controlplane.yaml" && \
	$(CONTROLLER_GEN) $(MANIFESTS) output:crd:artifacts:config="$$dir/crd" && \
	hack/charts/generate.sh "$$dir/charts" $(KUSTOMIZE) && \
	$(MAKE_CHART_VALUES) >"$$dir/values.md" && \
	if diff -u api/v1alpha1/$(DEEPCOPY_FILE) "$$dir/api/$(DEEPCOPY_FILE)" && \
		diff -u $(DESCRIPTIONS) "$$dir/descriptions.json" && \
		diff -u $(METRICS) "$$dir/metrics.md" && \
		diff -u $(AGENT_RULE) "$$dir/agent.yaml" && \
		diff -u $(CONTROLPLANE_RULE) "$$dir/controlplane.yaml" && \
		diff -ru config/crd/bases "$$dir/crd" && \
		(for chart in $(CHARTS:config/%=%); do \
			diff -ru config/$$chart/files "$$dir/$$chart/files" && \
			diff -u config/$$chart/templates/_deployment.tpl "$$dir/$$chart/templates/_deployment.tpl" || exit 1; \
		done) && \
		diff -u $(CHART_VALUES) "$$dir/values.md"; \
	then echo 'Generated files are current.'; \
	else echo 'Generated files are not current: run `make generate manifests charts-generate` and commit the result.' >&2; exit 1; fi

##@ Install

.PHONY: install
install: ## Install the CRD into kubectl's current cluster
	$(KUBECTL) apply --server-side -k config/crd

.PHONY: deploy
deploy: CONFIG ?= config/default
deploy: ## Install the agent there, with the CRD; CONFIG= is an overlay of config/default
	$(KUBECTL) apply --server-side -k $(CONFIG)

.PHONY: deploy-controlplane
deploy-controlplane: CONFIG ?= config/controlplane
deploy-controlplane: ## Install the control-plane API there; CONFIG=config/controlplane-postgres, or an overlay of one of both
	$(KUBECTL) apply --server-side -k $(CONFIG)
