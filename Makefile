# `make` or `make help` lists the targets. GO, KUBECTL, DOCKER, TARGET, IMG, CONFIG and VERSION may be set; ARGS are the
# flags of what a target runs, as in `make cluster ARGS='--nodes 5'`. NODE=real gives `make cluster` and `make demo` a
# node that runs containers (Linux, root; `make node-packages`).

GO      ?= go
KUBECTL ?= kubectl
DOCKER  ?= docker
TARGET  ?= agent
IMG     ?= threeport-$(TARGET):latest
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
ARGS    ?=
NODE    ?= fake

TOOL           = $(GO) tool -modfile=hack/tools/go.mod
GOLANGCI_LINT  = $(TOOL) golangci-lint
CONTROLLER_GEN = $(TOOL) controller-gen

# How tests are compiled. The race detector also has the compiler check conversions of pointers (checkptr), of which
# SQLite, translated from C to Go, has millions: that takes more than all else in the tests of the store, and tells
# nothing of our code, where it stays on. Package internal/e2e/process compiles so too.
# `make lint` vets; so go test does not.
RACE = -race -gcflags='modernc.org/...=-d=checkptr=0' -vet=off

# What `make build` builds, and the folder for it; the Dockerfile and `make image` give others.
WHAT = ./cmd/...
BIN  = bin

# The version comes from git describe, so that a checkout that git does not trust builds too.
GOBUILD = $(GO) build -trimpath -buildvcs=false

DEEPCOPY      = object paths=./api/...
MANIFESTS     = crd rbac:roleName=threeport-agent paths=./api/... paths=./internal/agent/controller/...
DEEPCOPY_FILE = zz_generated.deepcopy.go

# The comments of the API's types, for its document.
DESCRIPTIONS      = internal/server/zz_generated.descriptions.json
MAKE_DESCRIPTIONS = $(GO) run ./hack/cmd/describe internal/threeport/reportset.go internal/threeport/board.go \
	internal/server/auth/token_api.go internal/server/auth/audit_log.go

# Tests in these packages start whole control planes: one package at a time, and never from the cache, which does not know
# the binaries that they run.
CLUSTER_TESTS = $$($(GO) list ./internal/e2e/... | grep -v -e /internal/e2e/node -e /internal/e2e/faults -e /internal/e2e/browser)
# Of the tests of the tools alone, these take longest: what the demo and a local control plane leave behind, whatever of them
# dies or is interrupted. They are run by hand, for a change of the tools.
ENDS_OF_TOOLS = TestDemoInterrupted TestDemoHints TestStopLeavesNothing TestKilledProcessLeavesNothing TestKilledParentLeavesNothing \
	TestDeathOfAPart TestInterruptWhileUp TestInterruptWhileStarting TestOnceFails
# These have a cluster for each test, and mostly wait: a quarter of an hour on two cores. They need Linux, root and /dev/fuse,
# for disks that are small or fail. What every change has to pass is one test for each thing that fails (process, answers,
# disk, network, API server, permission, leader), which repeats what is random less often.
FAULT_TESTS   = ./internal/e2e/faults
FAULT_ROUND   = TestReplicasKilled TestKilledFiftyTimes TestReportSetsComeAndGo TestLostAnswers TestStateTorn TestDiskFails \
	TestBadNetwork TestAPIServerRestarted TestPermissionGoneAndBack TestLeaderTakeover TestRestoredBackup
# These drive a browser: chromium, npm for axe-core.
BROWSER_TESTS = ./internal/e2e/browser
# These need a real node besides: Linux, root, containerd. Those that run in parallel have clusters of their own: two at a time.
NODE_TESTS    = ./internal/e2e/node
# The others, started by the shell of a recipe. Those that take longest begin first, so that none is left alone in the end.
# They wait for API servers and databases in turns with others: one more at a time than there are cores.
LONG_TESTS    = ./internal/agent/informers ./internal/server/store ./internal/agent/controller
UNIT_TESTS    = $(LONG_TESTS) $$($(GO) list ./... | grep -v -e /threeport-agent/hack/ -e /threeport-agent/internal/e2e)
UNIT_AT_ONCE  = $$(($$(nproc 2>/dev/null || echo 4) + 1))

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
	@$(GOBUILD) -o bin/demo ./hack/cmd/demo
	@exec bin/demo --node $(NODE) $(ARGS)

.PHONY: cluster
cluster: ## Run a local control plane with fake nodes until interrupted; NODE=real, ARGS='--nodes 5'
	@$(GOBUILD) -o bin/cluster ./hack/cmd/cluster
	@exec bin/cluster --node $(NODE) $(ARGS)

.PHONY: measure
measure: ## Measure the agent on a local control plane; see docs/measurements.md
	@$(GOBUILD) -o bin/measure ./hack/cmd/measure
	@exec bin/measure $(ARGS)

.PHONY: record
record: ## Record what the API server holds of workloads on a real node into internal/health/testdata/recorded/
	@$(GOBUILD) -o bin/record ./hack/cmd/record
	@exec bin/record $(ARGS)

.PHONY: bench-api
bench-api: ## Measure the control-plane API with a fleet of 1,000 agents and 10 million Events; see docs/scale.md
	@$(GOBUILD) -o bin/benchapi ./hack/cmd/benchapi
	@exec bin/benchapi $(ARGS)

.PHONY: bench-link
bench-link: ## Measure delivery over a link of 50 ms delay and 1 % loss; Linux, root; see docs/scale.md
	@$(GOBUILD) -o bin/benchlink ./hack/cmd/benchlink
	@exec bin/benchlink $(ARGS)

.PHONY: screenshots
screenshots: ## Make the pictures of the page in docs/images anew: `make browser-packages`
	@$(GOBUILD) -o bin/screenshots ./hack/cmd/screenshots
	@exec bin/screenshots $(ARGS)

##@ Build

.PHONY: build
build: ## Build the binaries into bin/
	CGO_ENABLED=0 $(GOBUILD) -ldflags '-s -w -X github.com/threeport/threeport-agent/internal/version.release=$(VERSION)' -o '$(BIN)/' $(WHAT)

.PHONY: docker-build
docker-build: ## Build the agent's container image as IMG; TARGET=controlplane for the control-plane API's
	$(DOCKER) build --target $(TARGET) --build-arg VERSION=$(VERSION) -t $(IMG) .

.PHONY: image
image: ## Build the same as bin/agent-image.tar, without Docker; `docker load` takes it; TARGET=controlplane
	@$(GOBUILD) -o bin/image ./hack/cmd/image
	@VERSION='$(VERSION)' exec bin/image --target $(TARGET) --ref $(IMG) $(ARGS)

.PHONY: clean
clean: ## Remove what was built here; the control plane's binaries in the user's cache stay
	rm -rf bin

##@ Check

# A part that has been run already is left out, as in `make test WITHOUT=unit`.
WITHOUT =

.PHONY: test
test: $(filter-out $(WITHOUT),unit e2e tools fault-round) ## Run the tests that need neither a real node nor a browser, with the race detector

.PHONY: unit
unit: cluster-binaries ## Run the tests that need no more than an API server, and PostgreSQL if there is one
	@for server in "$$(command -v postgres)" /usr/lib/postgresql/*/bin/postgres; do [ ! -x "$$server" ] || exit 0; done; \
	echo '*** There is no PostgreSQL here: the control-plane API is tested on SQLite only. `make postgres-packages` installs it. ***'
	$(GO) test $(RACE) -timeout 30m -p $(UNIT_AT_ONCE) -parallel 8 $(UNIT_TESTS)

.PHONY: e2e
e2e: cluster-binaries ## Run the tests on whole control planes
	$(GO) test $(RACE) -timeout 60m -p 1 -count 1 $(CLUSTER_TESTS)

.PHONY: tools
tools: cluster-binaries ## Run the tests of the tools in hack/
	$(GO) test $(RACE) -timeout 30m -p 1 -count 1 -skip $(call only,$(ENDS_OF_TOOLS)) ./hack/...

.PHONY: fault-round
fault-round: cluster-binaries ## Run one test for each thing that fails, with fewer repeats: Linux, root
	@$(call exist,$(FAULT_ROUND),$(FAULT_TESTS))
	$(GO) test $(RACE) -timeout 30m -parallel 6 -count 1 -short -run $(call only,$(FAULT_ROUND)) $(FAULT_TESTS)

.PHONY: test-faults
test-faults: cluster-binaries ## Run all tests on faults, with all repeats: a quarter of an hour, not a part of `make test`
	$(GO) test $(RACE) -timeout 60m -parallel 6 -count 1 $(FAULT_TESTS)

# Without the race detector: it would take what 2,000 Events a second need.
.PHONY: test-burst
test-burst: cluster-binaries ## Run the tests of 60,000 Events with the agent as it is shipped: minutes, not a part of `make test`
	$(GO) test -timeout 30m -count 1 -v -run 'TestFloodOfEvents|TestBurstOfEvents' $(FAULT_TESTS) -as-shipped -burst=60000

.PHONY: test-tools
test-tools: real-node ## Run the tests of how the tools end, not a part of `make test`: Linux, root, `make node-packages`
	@$(call exist,$(ENDS_OF_TOOLS),./hack $(NODE_TESTS))
	$(GO) test $(RACE) -timeout 60m -p 1 -parallel 2 -count 1 -run $(call only,$(ENDS_OF_TOOLS)) ./internal/e2e/cluster ./hack/cmd/demo $(NODE_TESTS)

.PHONY: test-node
test-node: test-scenarios test-operator ## Run the tests on a real node: Linux, root, `make node-packages`

.PHONY: test-scenarios
test-scenarios: real-node ## Run workloads that fail on a real node, and compare what the control plane shows
	$(GO) test $(RACE) -timeout 60m -count 1 -run $(call only,TestScenarios) $(NODE_TESTS)

.PHONY: test-operator
test-operator: real-node ## Run the agent, the control-plane API and the demo as they are installed, on a real node
	$(GO) test $(RACE) -timeout 60m -parallel 2 -count 1 -skip $(call only,TestScenarios $(ENDS_OF_TOOLS)) $(NODE_TESTS)

.PHONY: real-node
real-node:
	@$(GOBUILD) -o bin/cluster ./hack/cmd/cluster
	@bin/cluster --build-only --node real

.PHONY: test-browser
test-browser: ## Run the tests of the page in a browser: `make browser-packages`
	$(GO) test $(RACE) -timeout 30m -count 1 $(BROWSER_TESTS)

.PHONY: browser-packages
browser-packages: ## Install what they need: chromium from Debian's packages, axe-core from npm's
	hack/browser-packages.sh

.PHONY: postgres-packages
postgres-packages: ## Install PostgreSQL for the tests on it, from Debian's packages
	hack/postgres-packages.sh

.PHONY: node-packages
node-packages: ## Install what a real node needs: containerd, runc and network plugins, from Debian's packages
	hack/node-packages.sh

.PHONY: cluster-binaries
cluster-binaries: ## Build etcd, Kubernetes and kwok into the user's cache: minutes the first time
	@$(GOBUILD) -o bin/cluster ./hack/cmd/cluster
	@bin/cluster --build-only --node $(NODE)

.PHONY: lint
lint: ## Run the linters and check the format
	$(GOLANGCI_LINT) run --allow-serial-runners ./...

.PHONY: fmt
fmt: ## Format the Go files
	$(GOLANGCI_LINT) fmt

##@ Generate

.PHONY: generate
generate: ## Generate the deep copies of the CRD's types, and the descriptions of the control-plane API's
	$(CONTROLLER_GEN) $(DEEPCOPY)
	$(MAKE_DESCRIPTIONS) >$(DESCRIPTIONS)

.PHONY: manifests
manifests: ## Generate the CRD and the agent's role
	$(CONTROLLER_GEN) $(MANIFESTS) output:crd:artifacts:config=config/crd/bases output:rbac:artifacts:config=config/rbac

.PHONY: verify-generated
verify-generated: ## Check that generated files are current
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	$(CONTROLLER_GEN) $(DEEPCOPY) output:object:dir="$$dir/api" && \
	$(MAKE_DESCRIPTIONS) >"$$dir/descriptions.json" && \
	$(CONTROLLER_GEN) $(MANIFESTS) output:crd:artifacts:config="$$dir/crd" output:rbac:artifacts:config="$$dir/rbac" && \
	if diff -u api/v1alpha1/$(DEEPCOPY_FILE) "$$dir/api/$(DEEPCOPY_FILE)" && \
		diff -u $(DESCRIPTIONS) "$$dir/descriptions.json" && \
		diff -ru config/crd/bases "$$dir/crd" && \
		diff -u config/rbac/role.yaml "$$dir/rbac/role.yaml"; \
	then echo 'Generated files are current.'; \
	else echo 'Generated files are not current: run `make generate manifests` and commit the result.' >&2; exit 1; fi

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
