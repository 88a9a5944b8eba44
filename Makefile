# make demo   see it work: nothing is needed but Go
# make short  what to type after each change: a minute
# make test   what README promises
# make ci     everything that must hold before a change lands
#
# Everything that is built or installed stands in .cache/, which git ignores. Needed: Go and make; a C compiler for -race;
# Node with npm for the tests against npm's servers, which are skipped with a notice where there is none.

GO    ?= go
CACHE := $(CURDIR)/.cache
BIN   := $(CACHE)/bin

# Pinned in .ci/tools/go.mod; a changed pin rebuilds them.
TOOLS := .ci/tools/go.mod .ci/tools/go.sum

.DEFAULT_GOAL := help

.PHONY: help
help: ## say what there is
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/make \1	\2/p' $(MAKEFILE_LIST) | expand -t 18

.PHONY: build
build: ## build .cache/bin/mcpvisor
	$(GO) build -o $(BIN)/mcpvisor ./cmd/mcpvisor

.PHONY: demo
demo: build ## watch a handful of built-in servers being supervised
	$(BIN)/mcpvisor up --demo

.PHONY: peers
peers: ## install the servers of other people that the end-to-end tests talk to
	@$(GO) run ./test/peers/install

# Every package's tests run once, in two halves side by side: the second waits for processes while the first computes.
# The library runs under the race detector, where there is a C compiler. The command and what is tested from outside run
# most of their work in processes of their own, which the detector does not see, and PURE packages start no goroutine (a test
# holds that test/arch says so of each), so that it has nothing to see in them: nightly has all of it under the detector,
# many times. supervisor/remote is in both halves, because the actors' library has races of its own that its tests must
# leave out under the detector. The packages that take longest stand first, because they are begun in this order.
# The tests run without the checks of vet, which lint and short make in full.
LIBRARY := ./transports/fault ./supervisor ./transports/... ./messages/... ./actors/... ./supervisor/...
PURE    := ./actors/lifecycle ./actors/catalog ./actors/opening ./actors/failure ./messages/rawjson ./supervisor/restart \
  ./supervisor/access ./supervisor/config ./supervisor/config/steer ./supervisor/config/foreign ./supervisor/install/plan \
  ./supervisor/internal/reload/plan ./transports/runner ./transports/addresses ./transports/isolation
RACED    = $(filter-out $(PURE:.%=$(shell $(GO) list -m)%),$(shell $(GO) list $(LIBRARY)))
OUTSIDE := ./cmd/mcpvisor ./test/e2e ./test/oauth ./cmd/... ./test/... ./supervisor/remote $(PURE)
WAITING  = $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))
RACE     = $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)
# A test that fails is run once more when the others have ended: real processes on a busy machine can miss any time. Each such failure
# is printed; one that fails again, a data race, and more than six failures end the run with an error.
AGAIN    = --rerun-fails=1 --rerun-fails-max-failures=6 --rerun-fails-abort-on-data-race
TESTED   = $(BIN)/gotestsum --format pkgname --hide-summary skipped --jsonfile $(CACHE)/$@.jsonl $(AGAIN)
FLAGS    = -- -vet off -timeout 20m

.PHONY: test
test: peers $(BIN)/gotestsum ## run every test, end-to-end tests on real servers included; results also in .cache/test.jsonl
	@$(MAKE) -s -k -j2 test-library test-outside; rc=$$?; \
	cat $(CACHE)/test-library.jsonl $(CACHE)/test-outside.jsonl >$(CACHE)/test.jsonl; exit $$rc

.PHONY: test-library
test-library:
	$(if $(RACE),,@echo "NOT TESTED in this run: data races (no C compiler)")
	$(TESTED) --packages "$(RACED)" $(FLAGS) $(RACE)

.PHONY: test-outside
test-outside:
	$(TESTED) --packages "$(OUTSIDE)" $(FLAGS) -p $(WAITING)

.PHONY: race
race: peers $(BIN)/gotestsum test-library ## the library under the race detector

# Nothing here needs a network or npm. These take seconds, because they wait for processes or for a peer that is silent.
SLOW := TestAsAnOrdinaryUser|TestStdioContract|TestIsolatedStdioContract|TestHTTPContract|TestWebSocketContract|TestClaudeAIContract|TestDeadConnection|TestResume|TestForgottenSession|TestAServerThatUsesItsProcessorTimeIsKilled|TestGuardianEndsWhatAKilledManagerLeaves

.PHONY: short
short: ## format, vet, and the short tests of the library: less than a minute, without network and npm
	@bad=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	if [ -n "$$bad" ]; then echo "gofmt: not formatted:"; echo "$$bad"; exit 1; fi
	@$(GO) vet ./...
	@$(GO) test -short -skip '^($(SLOW))$$' -vet off -p $(WAITING) $(LIBRARY) ./test/arch

.PHONY: lint
# golangci-lint has the checks of go vet for this system. For others vetsystems runs them: go vet itself would compile every
# dependency for each of them.
lint: $(BIN)/golangci-lint $(BIN)/vetsystems ## format, vet for three systems, and golangci-lint: all of them, whatever fails
	@rc=0; \
	bad=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	if [ -n "$$bad" ]; then echo "gofmt: not formatted:"; echo "$$bad"; rc=1; fi; \
	$(BIN)/vetsystems $(filter-out $(shell $(GO) env GOOS),linux darwin windows) || { echo "vet fails for another system"; rc=1; }; \
	$(BIN)/golangci-lint run ./... || rc=1; \
	exit $$rc

.PHONY: lean
lean: ## vet and try the command that is built with -tags nochaos: without chaos and the demo
	@$(GO) vet -tags nochaos ./cmd/mcpvisor
	@$(GO) test -tags nochaos -vet off -run '^Test(Lean|Topics|Help|TheTopic|CommandsOf|EveryCommand(Prints|Has|ThatTakes))' ./cmd/mcpvisor

.PHONY: vulnerabilities
vulnerabilities: $(BIN)/govulncheck ## known faults of what is linked in, by the Go vulnerability database; says so where that cannot be reached
	@.ci/vulnerabilities $(BIN)/govulncheck

.PHONY: generate
generate: $(BIN)/protogen ## regenerate messages/messages.pb.go
	$(BIN)/protogen . messages/messages.proto

.PHONY: seeds
seeds: peers ## every feature that was asked for: which test shows it, does it pass, what waits for what
	@$(GO) run ./test/seeds/report $(if $(RESULTS),-results $(RESULTS))

.PHONY: conformance
conformance: ## the official conformance suite against our client, and against the servers of chaos score; ONLY=regexp of VERSION/SCENARIO runs some of it
	@$(GO) run ./test/conformance/run $(if $(ONLY),-only '$(ONLY)')

.PHONY: bench
bench: ## the benchmark tables: calls beside other clients; everything else. Samples for benchstat in .cache/bench.txt
	@mkdir -p $(CACHE)
	$(GO) run ./test/bench/run -out $(CACHE)/bench.txt
	$(GO) test -run '^$$' -bench . -benchmem -timeout 30m ./test/bench/...
	$(MAKE) -s pairs

# The commit before strangers were kept out: its calls and starts are what that is measured against.
BASE ?= fba3d32

.PHONY: pairs
pairs: ## what this tree costs a call and a start, in pairs with an older commit: BASE=commit
	$(GO) run ./test/bench/pairs -base $(BASE)

.PHONY: profile
profile: ## where the time of 1,000 callers goes: profiles in .cache/profile, and a summary
	$(GO) run ./test/bench/profile -out $(CACHE)/profile

comma := ,

.PHONY: starved
starved: peers ## servers that start with a share of a processor, ours beside the clients of two SDKs: SHARES=percents N=servers ROUNDS=n; writes test/bench/starved/README.md
	$(GO) test -count 1 -v -timeout 8h -run TestStarved ./test/bench/starved -shares '$(or $(SHARES),25$(comma)50$(comma)200)' -servers '$(or $(N),8$(comma)40)' \
	  -rounds $(or $(ROUNDS),3) -samples $(CACHE)/starved.jsonl -readme $(CURDIR)/test/bench/starved/README.md

.PHONY: crowd
crowd: ## 100 of these servers, once
	@$(MAKE) -s starved SHARES=200 N=100 ROUNDS=1

.PHONY: chaos
chaos: build ## random bad days in virtual time: SEED=first N=how many
	$(BIN)/mcpvisor chaos sim --seed $(or $(SEED),1) --seeds $(or $(N),1000) --out $(CACHE)/chaos

.PHONY: days
days: ## what a thousand random days try and which statements none of them runs; writes test/chaos/reach/README.md
	$(GO) run ./test/chaos/reach/run -readme -least $(or $(LEAST),0)

.PHONY: planted
planted: ## plant known bugs, one after the other: who finds them, random days or unit tests? ONLY=words SLICE=i/n SEEDS=n DAYS=no TESTS=no; all of them: writes test/chaos/planted/README.md
	@mkdir -p $(CACHE)
	$(GO) run ./test/chaos/planted/run -results $(CACHE)/planted.json $(if $(ONLY),-only '$(ONLY)',-markdown test/chaos/planted/README.md) $(if $(SLICE),-slice $(SLICE)) $(if $(SEEDS),-seeds $(SEEDS)) $(if $(filter no,$(DAYS)),-days=false) $(if $(filter no,$(TESTS)),-tests=false)

.PHONY: audited
audited: ## 100,000 audited calls, of one manager and of two into one record, with a full disk in the middle; CALLS=how many
	$(GO) test -count 1 -v -timeout 20m -run '^(TestAuditedCallsOnAFullDisk|TestAuditSurvivesAFullDisk)$$' ./supervisor -calls $(or $(CALLS),100000)

.PHONY: differential
differential: ## the same random requests to a server and through the gateway: N=how many SEED=first
	$(GO) test -count 1 -v -timeout 2h -run TestGatewayAnswersAsTheServer ./test/differential -requests $(or $(N),100000) -seed $(or $(SEED),1)

.PHONY: gateway
gateway: ## what the gateway costs, as tables: calls beside a bare edge, sessions, a killed server, fifty agents; a million abandoned sessions
	$(GO) run ./test/bench/run -only '^(gateway|agents)$$'
	$(GO) test -count 1 -v -timeout 30m -run '^Test(Sessions|Abandoned)' ./test/bench/edge -sessions 9000 -abandoned 1000000

.PHONY: score
score: build ## the same bad days for the clients of mcp-go and the Go SDK and for ours; TYPESCRIPT=yes: of the TypeScript SDK, too. Writes test/chaos/score/README.md
ifdef TYPESCRIPT
	@mkdir -p $(CACHE)/score && cp test/chaos/score/adapters/typescript/* $(CACHE)/score/ && npm ci --silent --no-audit --no-fund --prefix $(CACHE)/score
	@cd $(CACHE)/score && $(BIN)/mcpvisor chaos score mcp-go go-sdk mcpvisor --markdown $(CURDIR)/test/chaos/score/README.md \
		-- env SDK=1 npx tsx adapter.mts -- npx tsx adapter.mts || [ $$? -eq 1 ]
else
	@$(BIN)/mcpvisor chaos score mcp-go go-sdk mcpvisor --markdown test/chaos/score/README.md || [ $$? -eq 1 ]
endif

.PHONY: loop
loop: build ## five servers, one of them silent: a loop over the client of the Go SDK, then mcpvisor over the same five
	$(GO) run ./test/loop/run -program $(BIN)/mcpvisor

.PHONY: soak
soak: build ## a good server among bad ones for MINUTES=10: what a call costs beside them, what grows, what is left
	$(GO) run ./test/soak -program $(BIN)/mcpvisor -minutes $(or $(MINUTES),10)

.PHONY: nightly
nightly: peers ## hours, not minutes: full scale, the race detector many times over, every fuzz target
	NIGHTLY=1 $(GO) test -count 1 -timeout 60m ./...
	NIGHTLY=1 $(GO) test -race -count 10 -timeout 180m ./...
	.ci/fuzz 30s

.PHONY: ci
ci: ## what CI runs
	.ci/run

$(BIN)/protogen: $(TOOLS) .ci/tools/protogen/main.go
	@mkdir -p $(BIN)
	cd .ci/tools && $(GO) build -o $@ ./protogen

$(BIN)/vetsystems: $(TOOLS) .ci/tools/vetsystems/main.go
	@mkdir -p $(BIN)
	cd .ci/tools && $(GO) build -o $@ ./vetsystems

$(BIN)/golangci-lint: $(TOOLS)
	@mkdir -p $(BIN)
	cd .ci/tools && $(GO) build -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(BIN)/govulncheck: $(TOOLS)
	@mkdir -p $(BIN)
	cd .ci/tools && $(GO) build -o $@ golang.org/x/vuln/cmd/govulncheck

$(BIN)/gotestsum: $(TOOLS)
	@mkdir -p $(BIN)
	cd .ci/tools && $(GO) build -o $@ gotest.tools/gotestsum
