# Only Go is needed for build, test and demo. golangci-lint is built from
# tools/go.mod at first use; node is needed for aimock and test-openai, and with java
# and python3 for what speaks to emulators of AWS (test-aws).

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

GO        ?= go
TESTFLAGS ?=# more flags for go test, in every test target
ROOMS     ?= ./...# what make test tests
FUZZTIME  ?= 20s
BENCHTIME ?= 1s
BENCH     ?= .
COVERMIN  ?= 90
CRASH_TRIALS ?= 200

LINT    := .tools/golangci-lint
AIMOCK  := pkg/llm/openai/testdata/aimock
VERIFY  := internal/notice/webhook/testdata/verify
COVERED := internal/engine pkg/session pkg/session/journal pkg/runtime $(addprefix pkg/runtime/internal/,stored answers idempotency refusal ledger worker sweep drive control)

comma := ,
space := $(subst ,, )

.DEFAULT_GOAL := help

.PHONY: help
help:
	@awk -F ':.*## ' '/^##@ / { print "\n" substr($$0, 5) } /^[a-z-]+:.*## / { printf "  %-19s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Every day

.PHONY: build
build: ## Build bin/adjourn, static
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/adjourn ./cmd/adjourn

.PHONY: demo
demo: build ## The two-minute story: run, pause, approve from another process, finish
	bin/adjourn demo

.PHONY: test
test: ## All tests; needs nothing but Go
	$(GO) test -timeout 20m $(TESTFLAGS) $(ROOMS)

.PHONY: check
check: fmt-check vet lint tidy floors test ## What must be green before a commit

.PHONY: fmt
fmt: $(LINT) ## Format the code
	$(LINT) fmt

.PHONY: lint
lint: $(LINT) ## Lint the code; every exclusion in .golangci.yml has its reason
	$(LINT) run

##@ The parts of check

.PHONY: fmt-check
fmt-check: $(LINT) ## Fail where fmt would change something
	$(LINT) fmt --diff

.PHONY: vet
vet: ## Run go vet, and type-check what builds on a Mac and the module of the benchmarks
	$(GO) vet ./...
	$(GO) vet -tags aws ./...
	$(GO) vet -tags pythontypes ./pkg/runtime
	$(GO) vet -tags node ./internal/notice/webhook
	$(GO) vet -tags scanners ./pkg/httpapi
	cd tools && $(GO) run ./typecheck -C .. darwin
	cd tools && $(GO) run ./typecheck -C ../bench $(shell $(GO) env GOOS)

.PHONY: tidy
tidy: ## Fail where go mod tidy would change something
	$(GO) mod tidy -diff
	cd tools && $(GO) mod tidy -diff
	cd bench && $(GO) mod tidy -diff

.PHONY: floors
floors: ## The rules of the house: floors, guests, package comments, ports, file lengths
	$(GO) test ./pkg

.PHONY: each-commit
each-commit: ## Build and vet each commit since BASE=main, and hold it to the rules of the house
	@GO='$(GO)' tools/each-commit '$(or $(BASE),main)'

##@ Longer tests

# Rooms without a goroutine of their own, which the race detector would only slow
# down: a test in pkg/ looks for go statements and servers in each.
NORACE := agents agents/confined examples/support examples/tour functions/event functions/notice functions/query functions/resume \
	functions/start functions/step functions/submit functions/sweep internal/engine internal/owned \
	localstack/issuer model pkg pkg/session pkg/session/journal

# In cmd/adjourn only the races: there the test's own binary, built with the
# detector, is the program. What kills and freezes it runs in make test-crash.
RACED = $(filter-out $(NORACE:%=./%) ./cmd/adjourn,$(patsubst $(MODULE)/%,./%,$(shell $(GO) list ./...)))
MODULE := github.com/adjourn/adjourn

RACES ?= ^TestRace

# Exhaustive sweeps are sampled under the race detector, by a seed that is printed,
# and whole in make test; SWEEPS=all has them whole here too.
SWEEPS ?=

# Tests of sizes and costs, of long simulated days, and of other programs: what runs at
# the same time in them, smaller tests run too, and the detector makes them minutes longer.
RACELATER := TestBounds TestStepSize_state_of_many_workers TestStepSize_state_of_many_workers_when_stopped \
	TestAnswer_costs_the_same_with_many_old_waits TestHistory_of_a_run_found_in_the_ledger \
	TestSuspension_opens_at_most_so_many_waits TestDay TestSameSeed TestSurge TestOutage TestBackPressure \
	TestLarge TestBombs TestLargeAnswers TestDemo TestJanitor TestForgeries_inputs

# SQLite, translated from C, is not ours to check: without the detector in it its tests
# take half as long. Nor does each program that a test starts sleep a second at its end.
RACE := CGO_ENABLED=1 GORACE=atexit_sleep_ms=0
RACEFLAGS := -race -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc=-race=false \
	-shuffle=on -count=1

.PHONY: test-race
test-race: ## The rooms with goroutines under the race detector, in random order; needs a C compiler
	$(RACE) ADJOURN_SWEEPS=$(SWEEPS) $(GO) test $(RACEFLAGS) -timeout 40m \
		-skip '^($(subst $(space),|,$(strip $(RACELATER))))$$' $(TESTFLAGS) $(RACED)
	$(RACE) ADJOURN_CRASH_TRIALS=12 $(GO) test $(RACEFLAGS) -timeout 30m -run '$(RACES)' $(TESTFLAGS) ./cmd/adjourn

FORGERIES ?= 1000000

.PHONY: forgeries
forgeries: ## FORGERIES=1000000 changed bodies and tokens, at every door that takes an answer: none counts that does not say so
	ADJOURN_FORGERIES=$(FORGERIES) $(GO) test -count=1 -v -timeout 60m -run '^TestForgeries_inputs$$' $(TESTFLAGS) ./pkg/cli

# The second run takes one step a message, as on Lambda: every step hops through the queue.
.PHONY: test-crash
test-crash: ## Kill and freeze the real binary, CRASH_TRIALS=200 times, with the other tests of cmd/adjourn
	ADJOURN_CRASH_TRIALS=$(CRASH_TRIALS) $(GO) test -count=1 -timeout 30m $(TESTFLAGS) ./cmd/adjourn
	ADJOURN_STEPS_PER_INVOCATION=1 ADJOURN_CRASH_TRIALS=$(CRASH_TRIALS) \
		$(GO) test -count=1 -timeout 30m -run 'KillWindows|Frozen' $(TESTFLAGS) ./cmd/adjourn
	ADJOURN_CRASH_TRIALS=$(CRASH_TRIALS) $(GO) test -count=1 -timeout 30m -run '^TestCrash_with_a_queue_at_its_worst$$' $(TESTFLAGS) ./pkg/runtime

.PHONY: aimock
aimock: $(AIMOCK)/node_modules/.package-lock.json ## Install the pinned mock of the models' APIs; needs node

$(AIMOCK)/node_modules/.package-lock.json: $(AIMOCK)/package.json $(AIMOCK)/package-lock.json
	cd $(AIMOCK) && npm ci --no-audit --no-fund

.PHONY: test-openai
test-openai: aimock ## The adapters of OpenAI and Anthropic against the mock server; skips are failures
	ADJOURN_REQUIRE_AIMOCK=1 $(GO) test ./pkg/llm/openai/... ./pkg/llm/anthropic/... -run . -count=1 $(TESTFLAGS)

.PHONY: test-webhooks
test-webhooks: $(VERIFY)/node_modules/.package-lock.json ## Webhooks against the libraries standardwebhooks and svix; needs node
	$(GO) test -tags node -count=1 -run '^TestSend_is_verified$$' $(TESTFLAGS) ./internal/notice/webhook

$(VERIFY)/node_modules/.package-lock.json: $(VERIFY)/package.json $(VERIFY)/package-lock.json
	cd $(VERIFY) && npm ci --no-audit --no-fund

.PHONY: test-python-types
test-python-types: ## Histories of cancelled tasks, and Anthropic's wire, against the types of the official Python SDKs; needs python3
	@localstack/install python-types
	.tools/python-types/bin/python -m unittest discover -q -s tools/python-types
	ADJOURN_PYTHON_TYPES=$(CURDIR)/.tools/python-types/bin/python \
		$(GO) test -tags pythontypes -count=1 -timeout 5m -run '^TestPythonTypes$$' $(TESTFLAGS) ./pkg/runtime
	.tools/python-types/bin/python tools/python-types/anthropic_wire.py pkg/llm/anthropic/testdata

# make test searches the same up to a small bound. MODEL chooses, as in MODEL=S.
.PHONY: model
model: ## Search the model of the chain whole: some minutes, up to 8 GB; MODEL= chooses configurations
	$(GO) run ./model -q $(MODEL)

SIMULATE ?= 100000

.PHONY: simulate
simulate: ## A day of SIMULATE=100000 sessions on a virtual clock with the limits of AWS: some 10 ms of one core each, up to 6 GB
	SIMULATE=$(SIMULATE) GOGC=400 GOMEMLIMIT=5GiB $(GO) test -count=1 -timeout 3h -v -run '^TestDay$$' $(TESTFLAGS) ./scale

.PHONY: scale
scale: ## What each part does at 10³, 10⁵ and 10⁷ sessions a day: the tables of docs/scale.md
	@$(GO) run ./scale

.PHONY: test-scanners
test-scanners: ## Links to approvals, opened by a headless Chromium over 100 times; needs chromium-headless-shell (apt-get install)
	@command -v chromium-headless-shell >/dev/null || { echo "make test-scanners needs chromium-headless-shell on PATH (Debian: apt-get install chromium-headless-shell)"; exit 1; }
	$(GO) test -tags scanners -count=1 -timeout 10m -run '^TestScanners$$' $(TESTFLAGS) ./pkg/httpapi

# go test fuzzes one target of one package at a time, so they are asked for first.
.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME=20s
	@list=$$($(GO) test -list '^Fuzz' ./...); \
	awk '/^Fuzz/ { f[n++] = $$1 } /^ok/ { for (i = 0; i < n; i++) print $$2, f[i]; n = 0 }' <<<"$$list" | \
	while read -r pkg target; do \
		echo "== $$pkg $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5x "$$pkg" </dev/null; \
	done

# One package after the other, or they would measure each other.
.PHONY: bench
bench: ## Run the benchmarks for BENCHTIME=1s each, BENCH=. of them
	@list=$$($(GO) test -list '^Benchmark' ./...); \
	pkgs=$$(awk '/^Benchmark/ { n++ } /^ok/ { if (n) print $$2; n = 0 }' <<<"$$list"); \
	if [ -z "$$pkgs" ]; then echo "no benchmarks"; exit 0; fi; \
	$(GO) test -p 1 -run '^$$' -bench '$(BENCH)' -benchmem -benchtime $(BENCHTIME) -timeout 30m $$pkgs

.PHONY: bench-once
bench-once: ## Run each benchmark once: it compiles, and does what it should
	$(MAKE) -s bench BENCHTIME=1x

ROUNDS ?= 5

.PHONY: bench-peers
bench-peers: ## Adjourn beside SQLite alone, DBOS and River, by turns: medians of ROUNDS=5 runs and their ratios
	cd bench && $(GO) run ./peers -rounds $(ROUNDS)

.PHONY: bench-large
bench-large: ## A step of an empty data file beside one of 100,000 sessions, 10,000 waits and 10 GB; minutes, and the room
	cd bench && $(GO) run ./large $(LARGE)

COUNT ?= 6

.PHONY: bench-compare
bench-compare: ## The benchmarks of BASE=<commit> and of the tree as it is, by turns, COUNT=6 times; BENCH= and PKGS= select
	BENCH='$(BENCH)' BENCHTIME='$(BENCHTIME)' COUNT='$(COUNT)' PKGS='$(PKGS)' GO='$(GO)' tools/bench-compare '$(BASE)'

.PHONY: hops
hops: ## Functions and rooms that one start and one answer go through, and scans of their JSON; AT=<commit> for another tree
	@GO='$(GO)' tools/hops '$(AT)'

# Tests of every room count, so a block is covered if any test binary ran it. Those
# of the mains start programs, which no test binary counts.
COVERFLAGS = -coverprofile=coverage.out -coverpkg=$(subst $(space),$(comma),$(COVERED:%=./%))

.PHONY: coverflags
coverflags: # what .ci/run gives make test, so that the tests run once
	@echo '$(COVERFLAGS)'

.PHONY: cover
cover: ## Fail where engine, session or runtime is covered below COVERMIN=90 %
	$(GO) test $(COVERFLAGS) $(TESTFLAGS) ./internal/... ./pkg/... ./agents/... ./examples/...
	@$(MAKE) -s cover-check

.PHONY: cover-check
cover-check: ## Judge the coverage.out that is there
	@awk -v min=$(COVERMIN) -v rooms='$(COVERED)' ' \
		NR > 1 { size[$$1] = $$2; if ($$3 > 0) hit[$$1] = 1 } \
		END { \
			for (block in size) { \
				room = block; sub(/\/[^\/]*$$/, "", room); sub(/.*\/adjourn\//, "", room); \
				all[room] += size[block]; if (block in hit) run[room] += size[block] \
			} \
			n = split(rooms, want, " "); \
			for (i = 1; i <= n; i++) { \
				room = want[i]; share = all[room] ? 100 * run[room] / all[room] : 0; \
				printf "coverage of %-16s %5.1f %% of %d statements\n", room ":", share, all[room]; \
				if (share < min) { printf "below %d %%\n", min; bad = 1 } \
			} \
			exit bad \
		}' coverage.out

# What a change does not wait for in .ci/run.
.PHONY: nightly
nightly: ## What takes longer than .ci/run should: all under race with whole sweeps, fuzzing, benchmarks, every trial of a crash
	GOOS=darwin $(GO) vet ./...
	cd bench && $(GO) vet ./...
	$(MAKE) test-race NORACE= RACELATER= SWEEPS=all RACES=.
	$(MAKE) cover
	$(MAKE) fuzz FUZZTIME=$(or $(filter-out 20s,$(FUZZTIME)),1m)
	$(MAKE) bench
	$(MAKE) forgeries
	$(MAKE) test-crash CRASH_TRIALS=1000
	$(MAKE) test-crash-aws CRASH_TRIALS=400
	$(MAKE) test-aws LATERAWS=

##@ AWS

# The rooms with tests under the tag aws: they speak to DynamoDB Local and to
# MiniStack, which localstack/install brings by npm and pip, pinned.
AWSROOMS := pkg/store/dynamostore pkg/queue/sqsqueue pkg/app/serverless pkg/lambdafn functions cmd/erase

# The tests in files under the tag: the others of these rooms need no emulator, and run in make test.
AWSTESTS = $(subst $(space),|,$(strip $(shell grep -rlE '^//go:build aws' --include='*_test.go' $(1) | \
	xargs grep -ohE '^func (Test|Fuzz|Example)[A-Za-z0-9_]*' | awk '{ print $$2 }' | sort -u)))

# Tests of pkg/runtime that begin hundreds of worlds or walk every place where a
# process may die: many minutes over an emulator, and the kits hold both engines to
# the same contract at each of these places. And those of marks that go with entries, which
# only the embedded store writes so: marks that are written apart have tests of the ledger.
EMBEDDEDONLY := Crash|everywhere|after_every_write|^TestMarks_

# The tests of functions/ that kill, freeze and disturb them, some in CRASH_TRIALS trials,
# and so mostly wait: test-crash-aws runs them, many at a time, and test-aws all others.
TRIALSAWS := ^Test((Kill|Frozen)(Random|Windows|Overdue)|FaultsRandom|ClockJumps|DeadLetters|NeverFits|BadDeployment|Outgrown)$$

# What test-aws leaves to make nightly: of the kit on bad days the searches, and the day when
# every answer is lost (on the other one some are); what functions weigh and take, and how 64
# sessions in them stand still; and of pkg/runtime what takes an emulator long and depends on
# no more of a store than the kit holds it to: sweeps, what waits, deadlines and changed
# programs mean, ways back at random, verbs at once.
LATERAWS := ^TestStoreOnABadDay$$/every_answer_is_lost|^TestStoreOnABadDay$$/requests_and_answers_fail/find|^TestSize_|^TestHalt$$|^TestSweep|^Test(Abandon|Batch|Bounds|Changed|Clocks|Deadline|Decide_crossing|Delayed|Reasked|Refused|Reminder_(and_escalation|at_once|dies|several)|StandIn_who|Standing_crash|Verbs_at_once|Verdict|View|WaitNaming|CancelAfter_(costs|in_little|put_off)|GoingBack_(at_random|long_session|retry_and_fork_crossed))

.PHONY: test-aws
test-aws: ## The AWS adapters, functions and all, against pinned emulators; needs java, node and python3
	localstack/install dynamodb ministack
	localstack/emulators $(GO) test -tags aws -count=1 -timeout 30m -run '^($(call AWSTESTS,$(AWSROOMS)))$$' -skip '$(TRIALSAWS)$(LATERAWS:%=|%)' $(TESTFLAGS) $(patsubst %,./%/...,$(wildcard $(AWSROOMS)))
	localstack/emulators $(GO) test -tags aws -count=1 -timeout 30m -skip '$(EMBEDDEDONLY)$(LATERAWS:%=|%)' $(TESTFLAGS) ./pkg/runtime

# How often bench-aws stops a session at each place.
STOPS ?= 100x

.PHONY: bench-aws
bench-aws: ## What moves of a session cost on DynamoDB and SQS: requests, units, bytes, dollars a million; from signal to stopped
	localstack/install dynamodb ministack
	localstack/emulators $(GO) test -tags aws -run '^$$' -bench . -benchtime 10x -timeout 10m $(TESTFLAGS) ./pkg/store/dynamostore
	localstack/emulators $(GO) test -tags aws -p 1 -run '^$$' -bench '^BenchmarkStop$$' -benchtime $(STOPS) -timeout 30m $(TESTFLAGS) ./pkg/runtime ./functions

# The trials mostly wait: for leases, for messages to come back.
.PHONY: test-crash-aws
test-crash-aws: ## Kill, freeze and disturb the real function binaries, CRASH_TRIALS=200 times, which test-aws does not; needs what test-aws needs
	localstack/install dynamodb ministack
	ADJOURN_CRASH_TRIALS=$(CRASH_TRIALS) localstack/emulators \
		$(GO) test -tags aws -count=1 -timeout 30m -parallel 8 -run '$(TRIALSAWS)' $(TESTFLAGS) ./functions

# The functions as they were at the end of an earlier issue, beside those of this tree.
OLD ?= 4e07328e032c

.PHONY: old
old:
	@echo $(OLD)

.PHONY: test-versions
test-versions: ## The functions of commit OLD and those of this tree at work on one queue; needs what test-aws needs
	localstack/install dynamodb ministack
	@work=$$(mktemp -d); trap 'git worktree remove --force "$$work/tree"; rm -rf "$$work"' EXIT; \
	git worktree add -q --detach "$$work/tree" $(OLD); mkdir "$$work/functions"; \
	for f in start step resume submit query sweep; do \
		CGO_ENABLED=0 $(GO) build -C "$$work/tree" -trimpath -buildvcs=false -tags lambda.norpc -ldflags "-s -w" -o "$$work/functions/$$f" ./functions/$$f; \
	done; \
	ADJOURN_OLD_FUNCTIONS="$$work/functions" localstack/emulators \
		$(GO) test -tags "aws versions" -count=1 -timeout 15m -run '^TestVersions$$' $(TESTFLAGS) ./functions

# Parameters of template.yaml are given by their names, as in JwtIssuer=https://…:
# make hands them on in the environment.
.PHONY: deploy
deploy: ## Deploy into your AWS account: six questions, their answers checked, sam build, sam deploy; again for each change
	@CGO_ENABLED=0 $(GO) build -o bin/deploy ./cmd/deploy
	@bin/deploy $(DEPLOYFLAGS)

# Its sam build takes most of the time, and is done once.
.PHONY: test-deploy
test-deploy: ## make deploy and sam deploy --guided at a terminal, onto MiniStack; needs what test-aws needs
	localstack/install dynamodb ministack sam
	localstack/emulators $(GO) test -tags aws -count=1 -timeout 30m $(TESTFLAGS) ./cmd/deploy

# PERSON is a name that somebody else gave: it goes by the environment, where no
# shell reads it.
.PHONY: erase
erase: ## Delete the sessions that one person started, for good: STACK=… TENANT=… PERSON=… [YES=1] [NAMED=1] [RUNNING=1]; needs the AWS CLI
	@[ -n "$$STACK" ] && [ -n "$$TENANT" ] && [ -n "$$PERSON" ] || { echo "say whose sessions: make erase STACK=adjourn TENANT=default PERSON=…" >&2; exit 2; }; \
	out() { aws cloudformation describe-stacks --stack-name "$$STACK" --query "Stacks[0].Outputs[?OutputKey=='$$1'].OutputValue" --output text; }; \
	table=$$(out StateTable); bucket=$$(out BlobBucket); \
	$(GO) run ./cmd/erase -table "$$table" -bucket "$$bucket" -tenant "$$TENANT" -person "$$PERSON" \
		$(if $(YES),-yes) $(if $(NAMED),-named) $(if $(RUNNING),-running)

##@ Local AWS: make up deploy-local smoke down

.PHONY: up
up: ## Start a local AWS on port 4566 of loopback; needs python3, or Docker and a LocalStack token
	localstack/up

.PHONY: deploy-local
deploy-local: ## Build template.yaml and deploy it onto the local AWS that make up started
	@localstack/deploy-local

# Without URL and STACK the deployment is the local one. TOKEN is a caller's,
# OTHER_TOKEN, if given, one of another tenant's; STACK, with AWS credentials,
# lets it look beneath the API.
LOCAL_ENV = .tools/aws-$(lastword $(subst :, ,$(or $(ADJOURN_LOCAL_AWS),http://127.0.0.1:4566)))/env

.PHONY: smoke
smoke: ## Tell the story through a deployed API: URL=… TOKEN=… [OTHER_TOKEN=…] [STACK=…]; the local one by default
ifneq ($(URL)$(STACK),)
	@ADJOURN_TOKEN="$${TOKEN:-$${ADJOURN_TOKEN:-}}" ADJOURN_OTHER_TOKEN="$${OTHER_TOKEN:-$${ADJOURN_OTHER_TOKEN:-}}" \
		$(GO) run ./localstack/smoke -url "$(URL)" -stack "$(STACK)"
else
	@[ -f $(LOCAL_ENV) ] || { echo "nothing is deployed here: make up deploy-local, or name a deployment: make smoke URL=… TOKEN=…" >&2; exit 2; }
	@. $(LOCAL_ENV); $(GO) run ./localstack/smoke -url "$$URL" -stack "$$STACK"
endif

.PHONY: walk
walk: ## Walk through docs/operate.md on the local AWS: keys, restoring, forgetting, some minutes; needs the AWS CLI
	@localstack/walk

.PHONY: down
down: ## End the local AWS that make up started, with all it holds
	localstack/down

.PHONY: sam-local
sam-local: ## Serve the functions with sam local start-api over the local AWS; needs Docker
	@localstack/sam-local

##@ Lambda functions

# sam build calls build-<LogicalId> for each function of template.yaml and says
# where its bootstrap goes, but not for which machines. LAMBDA_ARCH must be the
# template's Architecture: it is what samconfig.toml says that will be deployed,
# and else the template's default.
LAMBDA_ARCH ?= $(or $(shell sed -nE 's/.*Architecture[^A-Za-z0-9]+(arm64|x86_64).*/\1/p' samconfig.toml 2>/dev/null | tail -1),arm64)
FUNCTIONS   := Start Step Resume Submit Query Event Sweep Notice
GOARCH_OF   := arm64=arm64 x86_64=amd64
lower        = $(shell tr '[:upper:]' '[:lower:]' <<<'$(1)')

.PHONY: $(FUNCTIONS:%=build-%)
$(FUNCTIONS:%=build-%): build-%:
	@[ -n "$(filter $(LAMBDA_ARCH)=%,$(GOARCH_OF))" ] || { echo "LAMBDA_ARCH=$(LAMBDA_ARCH): use arm64 or x86_64" >&2; exit 2; }
	CGO_ENABLED=0 GOOS=linux GOARCH=$(patsubst $(LAMBDA_ARCH)=%,%,$(filter $(LAMBDA_ARCH)=%,$(GOARCH_OF))) \
		$(GO) build -trimpath -buildvcs=false -tags lambda.norpc -ldflags "-s -w" -o "$(ARTIFACTS_DIR)/bootstrap" ./functions/$(call lower,$*)

.PHONY: functions
functions: ## Build the functions as sam build does, into dist/functions/, for LAMBDA_ARCH
	@for id in $(FUNCTIONS); do \
		f=$$(tr '[:upper:]' '[:lower:]' <<<$$id); \
		$(MAKE) --no-print-directory -s build-$$id ARTIFACTS_DIR="$(CURDIR)/dist/functions/$$f"; \
		awk -v f=$$f -v raw=$$(wc -c <dist/functions/$$f/bootstrap) -v gz=$$(gzip -c dist/functions/$$f/bootstrap | wc -c) \
			'BEGIN { printf "%-7s %5.1f MB, %4.1f MB zipped\n", f, raw / 1e6, gz / 1e6 }'; \
	done

.PHONY: sizes
sizes: ## What the functions weigh, how fast they start, what memory a session of 1 MB takes; needs what test-aws needs
	localstack/install dynamodb ministack
	localstack/emulators $(GO) test -tags aws -count=1 -timeout 10m -v -run '^TestSize' $(TESTFLAGS) ./functions

SAM := SAM_CLI_TELEMETRY=0 AWS_DEFAULT_REGION=$${AWS_DEFAULT_REGION:-us-east-1} .tools/sam/bin/sam

.PHONY: sam-validate
sam-validate: ## Validate and lint template.yaml with the SAM CLI, and hold the deployer's policy to the provider schemas; needs python3
	localstack/install sam
	$(SAM) validate --lint
	localstack/deployer-policy

# With the Python of the SAM CLI, which brings cfn-lint, its schemas and SAM's transform.
.PHONY: check-template
check-template: ## Hold template.yaml to AWS's schemas and documented limits; ARGS=--list prints what is known
	@localstack/install sam >/dev/null
	.tools/sam/bin/python tools/check-template/check.py $(ARGS)

.PHONY: test-check-template
test-check-template: ## Break template.yaml once for each rule of check-template, and see it found
	@localstack/install sam >/dev/null
	.tools/sam/bin/python -m unittest discover -q -s tools/check-template

.PHONY: sam-build
sam-build: ## Build what sam deploy deploys, with the SAM CLI, for LAMBDA_ARCH
	localstack/install sam
	LAMBDA_ARCH=$(LAMBDA_ARCH) $(SAM) build --parameter-overrides Architecture=$(LAMBDA_ARCH)
	.tools/sam/bin/python tools/check-template/built.py $(LAMBDA_ARCH)

##@ Tools

$(LINT): tools/go.mod tools/go.sum
	$(GO) build -C tools -o ../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: clean
clean: ## Remove what was built
	[ ! -e .tools/aws-4566/running ] || localstack/down
	rm -rf bin dist .aws-sam .tools coverage.out $(AIMOCK)/node_modules $(VERIFY)/node_modules
