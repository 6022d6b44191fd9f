# One command does what CI does: `make test`. See `make help`.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.NOTPARALLEL:
.DEFAULT_GOAL := help

CLIPPY_WORDS := --deny warnings
TARGET := $(or $(CARGO_TARGET_DIR),target)
XTASK := $(TARGET)/fast/xtask

# Sizes of the long runs; each may be given on the command line: `make soak FUZZ_RUNS=1000`.
FUZZ_RUNS ?= 10000000
SOAK_SEEDS ?= 500000
SOAK_SECONDS ?= 600
SOAK_PAIRS ?= 750000
SOAK_UNLOADS ?= 50
STORM_FRAMES ?= 1000000000

.PHONY: help run test bench demo-overload demo-proxy lab papers soak clean
help: ## Say what can be made
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 20

run: compiler ## Install what is missing, build, serve site/ on http://127.0.0.1:8080
	@test -e $(TARGET)/quick/staunch || \
	  echo "building $(TARGET)/quick/staunch: once, six minutes on two processors"
	cargo build --profile quick --package staunch
	@umask 077; od -An -N32 -tx1 /dev/urandom | tr -d ' \n' > $(TARGET)/publish-token
	@echo "the program is $(TARGET)/quick/staunch: $(TARGET)/quick/staunch serve DIR serves another folder"
	@echo "to publish:"
	@echo "  date | $(TARGET)/quick/staunch publish hello --token-file $(TARGET)/publish-token"
	@# The demonstration of live data ends by itself when the server is gone.
	@$(TARGET)/quick/staunch publish --demo --token-file $(TARGET)/publish-token & \
	exec $(TARGET)/quick/staunch serve site --config packaging/demo.toml --listen 127.0.0.1:8080 --listing on \
	  --status /status.json --live on --publish-token-file $(TARGET)/publish-token

test: ready style ## Everything CI checks; the last line counts the tests
	@# Instructions and lints are judged beside the tests, which wait more than they work. Instructions first: they are
	@# built in a folder of their own, and the tests have then begun before the lints lock theirs.
	@$(MAKE) instructions lints > $(TARGET)/beside.log 2>&1 & beside=$$!; status=0; \
	$(MAKE) check | tee $(TARGET)/check.log || status=$$?; \
	wait $$beside || status=$$?; cat $(TARGET)/beside.log; tail --lines 1 $(TARGET)/check.log; exit $$status

bench: compiler ## Measure side by side with other servers; the report goes to bench/runs/
	cargo xtask install --for bench
	cargo xtask bench

demo-overload: compiler ## Show what the gate does under overload, in under five minutes (root), and draw it
	cargo xtask install --for demo
	cargo build --release --package staunch --package staunch-instruments
	cargo xtask demo overload --staunch $(TARGET)/release/staunch

demo-proxy: compiler ## Show applications behind nginx, HAProxy and Staunch under overload, in under five minutes, and draw it
	cargo xtask install --for demo
	cargo build --release --package staunch --package staunch-instruments
	cargo xtask demo proxy --staunch $(TARGET)/release/staunch

lab: compiler ## Compare the server models by the paper's plan, five minutes beside the build; writes bench/runs/lab.html
	cargo build --release --package staunch-instruments
	mkdir -p bench/runs
	$(TARGET)/release/staunch-load lab run --plan paper --json bench/runs/lab.json --html bench/runs/lab.html

papers: compiler ## Measure each figure of the five papers again, for hours (root for half); writes bench/runs/papers.md
	cargo xtask install --for bench
	cargo build --release --package staunch --package staunch-instruments
	cargo xtask papers --run

# What is longer than its worth at each change stands here: fuzzing guided by coverage needs an instrumented build of
# everything, the image of a container one for another C library, the program as shipped one with link-time
# optimisation, and cargo-deny is itself a program to compile (`cargo xtask licences` reads its file meanwhile). Tests
# in modules named `in_depth` are left out by `xtask test`, each module says why: `cargo test` runs them with the rest.
# Instructions of the kernel's modules are counted here: an emulated machine that counts each takes half an hour for
# all rows, and what a request costs in the kernel changes with the modules, whose tests run at each change.
soak: ready ## Hours: 10^7 fuzz runs a target, many simulated seeds, a long load on both engines
	cargo xtask install --for soak
	$(TARGET)/tools/bin/cargo-deny check bans licenses sources
	$(MAKE) fuzz FUZZ_RUNS=$(FUZZ_RUNS)
	STAUNCH_SEEDS=$(SOAK_SEEDS) cargo test --profile fast --workspace --test simulation -- --nocapture
	STAUNCH_SEEDS=$(SOAK_SEEDS) cargo test --profile fast --workspace --lib simulation -- --nocapture
	STAUNCH_SEEDS=10000 cargo test --profile fast --workspace --test exchanges -- --nocapture
	STAUNCH_PAIRS=$(SOAK_PAIRS) cargo test --profile fast --workspace --test relay_readers
	STAUNCH_SEEDS=1000 cargo test --profile fast --workspace --test law -- --nocapture
	STAUNCH_STORM_FRAMES=$(STORM_FRAMES) cargo test --profile fast --workspace --test gate storm -- --nocapture
	STAUNCH_SEEDS=20 cargo test --profile fast --workspace --test control -- --nocapture
	STAUNCH_UNLOADS=$(SOAK_UNLOADS) cargo test --profile fast --workspace --test kernels
	STAUNCH_SOAK=1 cargo test --profile fast --workspace --test package -- container::
	$(XTASK) count --gate --kernel 6.1 kecho khttpd staunch behind
	$(XTASK) count --gate --kernel newest kecho khttpd staunch behind
	$(XTASK) count --gate --kernel 6.12 listing whole pieces timers
	cargo xtask soak --seconds $(SOAK_SECONDS)
	cargo build --release --package staunch --package staunch-instruments
	STAUNCH_VIEWS=all STAUNCH_BINARY=$(abspath $(TARGET))/release/staunch cargo test --profile fast --workspace --test '*'

clean: ## Remove everything that was built
	cargo clean
	rm -rf fuzz/target fuzz/corpus fuzz/artifacts

# The pieces, each to be made alone as well.

.PHONY: compiler ready style lints lint build check instructions fuzz
compiler: # Libraries in C and BPF programs are built by cargo, which links by cc: both compilers must be there first.
	@if command -v cc >/dev/null && command -v clang >/dev/null && test -e /usr/include/stdio.h; then exit 0; fi; \
	echo "missing: a C compiler, or one for BPF (packages gcc, libc6-dev and clang)"; \
	if [ "$$(id -u)" != 0 ]; then echo "run: sudo apt-get install gcc libc6-dev clang"; exit 1; fi; \
	apt-get update --quiet; apt-get -o DPkg::Lock::Timeout=600 install --yes --quiet --no-install-recommends gcc libc6-dev clang

# Packages are fetched while the tests are built. Always the whole workspace: parts of it alone would be built again
# with the features that only they ask for.
ready: compiler
	cargo build --profile fast --workspace --bin xtask
	@$(XTASK) install --for test & fetched=$$!; status=0; $(MAKE) build || status=$$?; wait $$fetched && exit $$status

# Examples are for readers; clippy looks at all of them, and one is a server that tests start.
build:
	cargo build --profile fast --workspace --lib --bins --tests --example echo

lint: style lints

style: # Seconds
	cargo fmt --all --check
	$(XTASK) tidy
	$(XTASK) papers --check
	$(XTASK) licences

# What clippy has checked is what rustdoc reads of other crates: called as by `cargo clippy`, it finds it there, and
# nothing is checked twice.
lints: # Minutes
	cargo clippy --workspace --all-targets --profile fast -- $(CLIPPY_WORDS)
	RUSTC_WORKSPACE_WRAPPER="$$(realpath "$$(rustc --print sysroot)/bin/clippy-driver")" \
	CLIPPY_ARGS="$(subst $() $(),__CLIPPY_HACKERY__,$(CLIPPY_WORDS))__CLIPPY_HACKERY__" \
	RUSTDOCFLAGS="--deny warnings" cargo doc --workspace --no-deps --document-private-items --profile fast

check: # The tests. The black-box ones find the server beside them, built with the same profile.
	cargo build --profile fast --workspace --bin xtask
	$(XTASK) test

instructions: compiler # Instructions per request, by callgrind, against bench/instructions.json
	cargo build --profile fast --workspace --bin xtask --bin staunch-bench
	$(XTASK) bench instructions --gate

FUZZ_SEED := $(shell date +%s)

fuzz: compiler # Guided by coverage, as many targets at a time as there are processors.
	fuzz/build --target-dir target
	basename --suffix .rs --multiple fuzz/targets/*.rs \
	  | xargs --max-procs $$(nproc) --replace fuzz/run {} $(FUZZ_RUNS) $(FUZZ_SEED)
