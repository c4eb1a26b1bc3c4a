# What this repository is used with. Everything that is needed and missing is installed by it.

export KONFIG_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/konfig-konector
# Outside the checkout, so that a fresh clone need not build the AWS SDK again.
export CARGO_TARGET_DIR ?= $(KONFIG_CACHE)/target
ifneq ($(shell CARGO_TARGET_DIR='$(CARGO_TARGET_DIR)' tools/own-target || echo failed),)
$(error tools/own-target failed)
endif

.PHONY: demo bench faults fuzz crash simulate mutants test check prepare unit integration generate

## A running operator on this machine, from nothing; ARGS=--once takes it all down again.
demo:
	@tools/prepare control-plane/build emulators/install
	@echo '  … Operator and demo                the AWS SDK takes some 8 minutes on 2 cores, once'
	@cargo build --locked --package konfig
	@cargo build --locked --package lab --bin demo
	@cargo run --locked --quiet --package lab --bin demo -- $(ARGS)

## What the operator costs as objects grow; ARGS="buckets-1000 path" chooses. Some 45 minutes for all.
bench:
	@tools/prepare control-plane/build
	@echo '  … Operator, optimised              the AWS SDKs take some 12 minutes on 2 cores, once'
	@cargo build --locked --profile load --package konfig
	@cargo build --locked --profile load --package lab --bin bench
	@cargo run --locked --quiet --profile load --package lab --bin bench -- $(ARGS)

## All tests.
test: check unit mutants integration

## Objects at random: COUNT of them (10,000), from SEED on. A failure prints the seed that shows it again.
fuzz: prepare
	cargo build --locked --package konfig
	FUZZ_COUNT=$(or $(COUNT),10000) FUZZ_SEED=$(or $(SEED),$(shell date +%s)) \
	  cargo test --locked --package lab --test fuzz -- --nocapture --test-threads=1

## The operator killed at every AWS call and API-server write of every kind's life, and started again. KIND=vpc chooses
## data files of e2e/lifecycle by a part of their name. `make test` runs a sample.
crash: prepare
	cargo build --locked --package konfig
	KONFIG_CRASH=all cargo test --locked --package lab --test crash -- $(KIND)

## Every fault around the operator as a process; a line as each is over. `make test` runs a sample.
faults: prepare
	cargo build --locked --package konfig
	cargo test --locked --package lab --test faults -- --include-ignored --nocapture

## Formatting, lints, licences, duplicate dependencies.
check:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- --deny warnings
	tools/cargo-deny/run check licenses bans sources

## Tests that need neither a cluster nor an emulator.
unit:
	cargo test --workspace --locked --exclude lab

## The engine through SEEDS simulated schedules, or through the one of SEED.
simulate:
	cargo run --locked --quiet --package simulation --bin simulate -- $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),1000))

## Shows that the simulation bites: it must catch each broken engine of crates/simulation/mutants.
mutants:
	cargo run --locked --quiet --package simulation --bin mutants -- $(MUTANTS)

## Tests against a real control plane and the emulators.
integration: prepare
	cargo build --locked --package konfig
	cargo test --locked --package lab

## The control plane, the emulators and the other tools, each built or installed once.
prepare:
	tools/prepare

## Writes what is generated from the kinds: CRDs, RBAC and their reference.
generate:
	cargo xtask generate
