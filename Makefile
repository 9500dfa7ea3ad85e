# All commands of a contributor. `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Tests start many interpreters: without compiled files, each reads all sources again.
export PYTHONDONTWRITEBYTECODE :=

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CARGO := cargo
MANIFEST := --manifest-path rust/Cargo.toml
PYTEST := $(BIN)/pytest -n auto --dist worksteal
PIP_TOOLS := pip-tools==7.6.2
ACTIONLINT := actionlint@v1.7.12
ZIG := ziglang==0.17.0

.PHONY: help setup viewer demo test checks lint rust-lint python-lint viewer-lint actionlint rust-test python-test viewer-test quick \
  fuzz long packages galera bench docs lock wheel clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1|\2/' | \
	  while IFS='|' read -r name text; do printf '  %-12s %s\n' "$$name" "$$text"; done

setup: $(VENV)/.built viewer ## Create the virtual environment, install the pinned tools, build the engine and the viewer, install `plait`

$(VENV)/.installed: requirements-dev.lock
	@command -v $(CARGO) >/dev/null || { echo "error: cargo is missing"; echo "hint: install Rust with rustup"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: Plait needs Python 3.11 or later"; echo "hint: make clean && make setup PYTHON=python3.11"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	touch $@

RUST_SOURCES := rust/Cargo.toml rust/Cargo.lock $(shell find rust/src -name '*.rs')

$(VENV)/.built: $(VENV)/.installed pyproject.toml $(RUST_SOURCES)
	VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(BIN)/maturin develop --release --locked
	touch $@

# The viewer of reports and of `plait explore`. Users get it built, in the wheel.
VIEWER := src/plait/report/assets/viewer.js
VIEWER_SOURCES := viewer/build.mjs $(shell find viewer/src -type f) $(wildcard src/plait/report/assets/report.css src/plait/report/assets/picture.css src/plait/report/assets/space_time*.css)

viewer: $(VIEWER) ## Build the viewer of reports and of `plait explore`

viewer/node_modules/.installed: viewer/package-lock.json
	@command -v npm >/dev/null || { echo "error: npm is missing"; echo "hint: install Node.js 20 or later: it builds the viewer of reports"; exit 1; }
	npm ci --prefix viewer --silent --no-audit --no-fund
	touch $@

$(VIEWER): viewer/node_modules/.installed $(VIEWER_SOURCES)
	node viewer/build.mjs

demo: setup ## Check Paxos and a faulty variant, show the counterexample, write an HTML report
	$(BIN)/plait check paxos
	@echo
	@code=0; $(BIN)/plait check paxos -p faulty=acceptor --html plait-report.html || code=$$?; \
	  if [ $$code -ne 1 ]; then echo "error: plait check on the faulty Paxos returned exit code $$code, expected 1 (violated)" >&2; exit 1; fi
	@echo
	@echo "The faulty Paxos violates agreement, as expected. Open the report: $$($(BIN)/python -c 'import pathlib; print(pathlib.Path("plait-report.html").absolute().as_uri())')"

# The compiler and the type checkers use one core each, so two of the checks run at a time.
test: setup packages ## Run everything that CI runs
	$(MAKE) --no-print-directory --jobs 2 --output-sync=target checks
	$(MAKE) --no-print-directory python-test

checks: rust-lint rust-test viewer-lint viewer-test python-lint actionlint

quick: setup rust-lint viewer-lint viewer-test ## Run formatting, lint, types and the fast tests, in about a minute
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(PYTEST) -m "not slow and not long" --hypothesis-profile quick

TESTS := tests
fuzz: setup ## Run the random tests with new examples; TESTS=tests/check for some of them
	$(PYTEST) $(TESTS) --hypothesis-profile fuzz -m hypothesis

long: setup packages ## Run the further cases that `make test` leaves out: other DBMS, other looks, larger searches
	$(PYTEST) $(TESTS) -m long

lint: setup rust-lint viewer-lint python-lint actionlint ## Run formatters, linters and type checkers, but no tests

rust-lint: setup
	$(CARGO) fmt $(MANIFEST) --check
	$(CARGO) fmt --manifest-path src/plait/bench/peers/models/stateright/Cargo.toml --check
	$(CARGO) clippy $(MANIFEST) --locked --all-targets --no-default-features -- -D warnings
	$(CARGO) clippy $(MANIFEST) --locked --lib --features extension -- -D warnings

rust-test: setup
	$(CARGO) test $(MANIFEST) --locked --no-default-features

python-lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest plait._native

viewer-lint: viewer
	npm --prefix viewer run --silent check

viewer-test: viewer
	npm --prefix viewer run --silent test

# actionlint is a Go program without a Python package. Without Go, only hosted CI checks the workflows.
actionlint: ## Check the workflows of hosted CI
	@if test -x $(BIN)/actionlint || GOBIN="$(CURDIR)/$(BIN)" go install github.com/rhysd/actionlint/cmd/$(ACTIONLINT); then \
	  $(BIN)/actionlint -shellcheck= -pyflakes= .github/workflows/*.yml && echo "actionlint: no errors in .github/workflows"; \
	else \
	  echo "actionlint is not installed, and Go is missing or cannot fetch it: .github/workflows is NOT CHECKED"; \
	fi

python-test: setup
	$(PYTEST)

packages: ## Install the Debian packages that tests need: a browser, clang, databases, other checkers
	@scripts/debian-packages.sh

galera: ## Install only MariaDB and Galera, which `plait bench gyro` compares with
	@scripts/debian-packages.sh galera

bench: setup ## Run all benchmarks at their smallest sizes; `plait bench` lists them
	$(BIN)/plait bench all --quick

docs: setup ## Build the documentation site in site/; a broken link or a missing docstring is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

# pip is pinned too: maturin needs a pip that supports dependency groups, and a new venv can have an older one.
lock: $(VENV)/.installed ## Pin the tools again in requirements-dev.lock, after a change of dependencies
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(PIP_TOOLS)'
	$(BIN)/python -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb")); \
	  print(*p["project"]["dependencies"], \
	  *(r for extra in p["project"]["optional-dependencies"].values() for r in extra if not r.startswith("plait[")), \
	  *sum(p["dependency-groups"].values(), []), "pip>=25.1", sep="\n")' > $(VENV)/requirements-dev.in
	cd $(VENV) && CUSTOM_COMPILE_COMMAND="make lock" bin/pip-compile --quiet --strip-extras --allow-unsafe \
	  --generate-hashes --no-annotate --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options \
	  --output-file=../requirements-dev.lock requirements-dev.in

# zig links against an old glibc, so the wheel works on distributions since 2014.
wheel: $(VENV)/.installed viewer ## Build a wheel for Linux with glibc 2.17 or later, in rust/target/wheels/
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(ZIG)'
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/maturin build --release --locked --zig --compatibility manylinux_2_17

clean: ## Remove the virtual environment and all build results
	rm -rf $(VENV) rust/target site plait-report.html .plait .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests -name __pycache__ -prune -exec rm -rf {} +
	rm -rf viewer/node_modules viewer/.tests src/plait/report/assets/viewer* src/plait/report/assets/elk-worker.js
	rm -f src/plait/_native*.so
