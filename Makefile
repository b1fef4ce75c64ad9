# Every target sets up .venv and compiles the engine by itself, and only what changed since the last time.
#   PYTHON   the interpreter .venv is made from               make test PYTHON=python3.12
#   EXTRAS   the extras of pyproject.toml that are installed  make test EXTRAS="dev keras"
#   ARGS     passed on to demo, view, pytest or bench         make test ARGS="-k chess"
#   TARGETS  the Rust targets that wheels are built for       make wheel TARGETS=x86_64-unknown-linux-gnu

PYTHON ?= python3
EXTRAS ?= dev
ARGS ?=
TARGETS ?= x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu

VENV := .venv
PY := $(VENV)/bin/python

# One stamp per set of packages, all of them in the same .venv: `make demo` installs few, `make test` adds its own.
space := $(subst ,, )
stamp = $(VENV)/.packages-$(subst $(space),+,$(strip $(1)))
PACKAGES := $(call stamp,$(EXTRAS))
PACKAGES_DEMO := $(call stamp,cli engine)
PACKAGES_VIEW := $(call stamp,cli engine web)
PACKAGES_DOCS := $(call stamp,docs engine)
PACKAGES_WHEEL := $(call stamp,wheel)

# The engine as it is developed (quick to compile), or as it is released (link-time optimised). There is one compiled
# module in python/pondertree, so that each of the two stamps is removed when the other one is made.
ENGINE := $(VENV)/.engine-develop
ENGINE_RELEASE := $(VENV)/.engine-release

# Folders are listed too: their time changes when a file comes or goes.
RUST := $(shell find core/src core/data bindings/src) $(wildcard Cargo.toml Cargo.lock core/Cargo.toml bindings/Cargo.toml core/build.rs bindings/build.rs)

# The page of `pondertree view`, and the packages of npm that build it.
PAGE := python/pondertree/view/static/index.html
NODE_MODULES := web/node_modules/.complete
WEB := $(shell find web/src web/build.mjs web/tsconfig.json 2>/dev/null)

# As many workers as cores; each worker imports PyTorch (about 500 MB), hence at most eight.
PYTEST := $(PY) -m pytest --numprocesses auto --maxprocesses 8 --dist worksteal --durations 10

# One interpreter for every cargo command, or pyo3 would be compiled anew each time another one shows up.
export PYO3_PYTHON := $(CURDIR)/$(PY)
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# An interrupted set-up or an uninstalled Python leaves a .venv that does not work, and whose stamps say nothing.
VENV_WORKS := test -e $(VENV)/.complete && $(PY) -c 'import pip' 2>/dev/null
$(shell { $(VENV_WORKS); } || rm -f $(VENV)/.packages-* $(VENV)/.engine-*)

.DELETE_ON_ERROR:
# cargo already uses all cores; two targets at once would only fight over .venv and target/.
# It also keeps prerequisites in the order in which they are listed: packages (maturin is one of them), then the engine.
.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help demo view page test loom check format bench docs wheel clean tools targets node

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

demo: $(PACKAGES_DEMO) $(ENGINE) ## watch a search think (examples/demo.py)
	@$(PY) examples/demo.py $(ARGS)

view: $(PACKAGES_VIEW) $(ENGINE) $(PAGE) ## look inside a search in the browser (ARGS="chess", default: connect4); builds the page, with Node.js
	@$(PY) -m pondertree view $(or $(ARGS),connect4)

page: $(PAGE) ## build the page of `pondertree view` and test its parts, with Node.js
	cd web && npm run --silent check && npm test --silent

test: $(PACKAGES) $(ENGINE) ## Rust tests with every assertion on, then pytest on all cores (ARGS="-k chess")
	cargo test --package pondertree-core
	$(PYTEST) $(ARGS)

loom: ## models of the thread pool in all interleavings of few preemptions (two minutes to compile, one to run)
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test --package pondertree-core --release --lib loom_

check: $(PACKAGES) $(ENGINE) ## formatting, lints, types, layers and limits of Python and Rust; the stub against the compiled module
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo clippy --workspace --all-targets --all-features -- -D warnings
	$(PY) scripts/check_layers.py
	$(VENV)/bin/lint-imports --no-logo
	$(PY) scripts/check_limits.py
	$(PY) -m mypy --strict
	$(PY) -m mypy.stubtest pondertree._core pondertree.games.compiled --mypy-config-file pyproject.toml

format: $(PACKAGES) ## rewrite the sources in the project's formatting
	$(PY) -m ruff check --fix-only --quiet .
	$(PY) -m ruff format .
	cargo fmt --all

bench: $(PACKAGES) $(ENGINE_RELEASE) ## measure speed (benches/run.py); ARGS=--check compares results and speed with the baselines
	@$(PY) benches/run.py $(ARGS)

docs: $(PACKAGES_DOCS) $(ENGINE) ## build the documentation site: target/docs/site/index.html; fails on broken links
	@$(PY) scripts/build_docs.py

wheel: targets $(PACKAGES_WHEEL) $(PAGE) ## build wheels for Linux and the sdist into dist/, install and try them
	rm -rf dist
	$(PY) -m maturin sdist --out dist
	@# zig links against the symbols of glibc 2.28, whatever this machine has; without PYO3_PYTHON, which is for this machine.
	for target in $(TARGETS); do \
	    env -u PYO3_PYTHON PATH="$(CURDIR)/$(VENV)/bin:$$PATH" \
	    maturin build --release --zig --compatibility manylinux_2_28 --target $$target --out dist || exit 1; \
	done
	$(PY) scripts/smoke_wheel.py --auditwheel dist

clean: ## remove everything that make made
	rm -rf $(VENV) target dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	rm -rf python/pondertree/view/static web/node_modules
	rm -f python/pondertree/_core*.so python/pondertree/_core*.pyd
	find python tests examples benches scripts -name __pycache__ -type d -prune -exec rm -rf {} +

tools:
	@sh scripts/check_tools.sh "$(PYTHON)"

node:
	@sh scripts/check_tools.sh --node

targets:
	@sh scripts/check_tools.sh "$(PYTHON)" $(TARGETS)

# The packages, when pyproject.toml changed. The stamp comes last: an install that failed or was interrupted is repeated.
$(VENV)/.packages-%: pyproject.toml scripts/requirements.py | tools
	@echo "Setting up $(VENV): $(subst +, ,$*)"
	@{ $(VENV_WORKS); } || { "$(PYTHON)" -m venv --clear $(VENV) && touch $(VENV)/.complete; }
	@$(PY) scripts/requirements.py $(subst +, ,$*) > $@.txt
	@$(PY) -m pip install --quiet --requirement $@.txt
	@touch $@

$(PAGE): $(NODE_MODULES) $(WEB)
	@cd web && node build.mjs

$(NODE_MODULES): web/package.json web/package-lock.json | node
	@echo "Setting up web/node_modules"
	@cd web && npm ci --silent --no-audit --no-fund
	@touch $@

# The engine, when Rust changed. Installed as editable: Python files are used where they are and need no build.
$(VENV)/.engine-%: pyproject.toml $(RUST) | tools
	@echo "Compiling the engine, profile $* (about a minute the first time)"
	@rm -f $(VENV)/.engine-*
	@PIP_QUIET=1 $(PY) -m maturin develop --profile $* --quiet
	@touch $@
