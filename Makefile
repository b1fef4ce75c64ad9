# Every target sets up .venv and compiles the engine by itself, and only what changed since the last time.
#   PYTHON  the interpreter .venv is made from               make test PYTHON=python3.12
#   EXTRAS  the extras of pyproject.toml that are installed  make test EXTRAS="dev keras"
#   ARGS    passed on to demo, pytest or bench               make test ARGS="-k chess"

PYTHON ?= python3
EXTRAS ?= dev
ARGS ?=

VENV := .venv
PY := $(VENV)/bin/python
space := $(subst ,, )
PACKAGES := $(VENV)/.packages-$(subst $(space),-,$(strip $(EXTRAS)))
ENGINE := $(VENV)/.engine

# Folders are listed too: their time changes when a file comes or goes.
RUST := $(shell find core/src bindings/src) $(wildcard Cargo.toml Cargo.lock core/Cargo.toml bindings/Cargo.toml core/build.rs bindings/build.rs)

# One interpreter for every cargo command, or pyo3 would be compiled anew each time another one shows up.
export PYO3_PYTHON := $(CURDIR)/$(PY)
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DELETE_ON_ERROR:
# cargo already uses all cores; two targets at once would only fight over .venv and target/.
.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help demo test loom check format bench wheel clean tools

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

demo: $(ENGINE) ## watch a search think (examples/demo.py)
	@$(PY) examples/demo.py $(ARGS)

test: $(ENGINE) ## Rust tests with every assertion on, then pytest (ARGS="-k chess")
	cargo test --package pondertree-core
	$(PY) -m pytest $(ARGS)

loom: ## models of the thread pool under every interleaving (needs no Python; two minutes to compile, one to run)
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test --package pondertree-core --release --lib loom_

check: $(ENGINE) ## formatting, lints and types of Python and Rust; the stub against the compiled module
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	$(PY) -m mypy --strict
	$(PY) -m mypy.stubtest pondertree._core --mypy-config-file pyproject.toml

format: $(PACKAGES) ## rewrite the sources in the project's formatting
	$(PY) -m ruff check --fix-only --quiet .
	$(PY) -m ruff format .
	cargo fmt --all

bench: $(ENGINE) ## measure speed (benches/run.py)
	@$(PY) benches/run.py $(ARGS)

wheel: $(PACKAGES) ## build the wheel that users install, into dist/
	$(PY) -m maturin build --release --out dist --interpreter $(PY)

clean: ## remove everything that make made
	rm -rf $(VENV) target dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	rm -f python/pondertree/_core*.so python/pondertree/_core*.pyd
	find python tests examples benches scripts -name __pycache__ -type d -prune -exec rm -rf {} +

tools:
	@sh scripts/check_tools.sh "$(PYTHON)"

# The packages, when pyproject.toml changed.
$(PACKAGES): pyproject.toml scripts/requirements.py | tools
	@echo "Setting up $(VENV): $(EXTRAS) (some minutes the first time)"
	@$(PY) -c pass 2>/dev/null || "$(PYTHON)" -m venv --clear $(VENV)
	@$(PY) scripts/requirements.py $(EXTRAS) > $@.txt
	@$(PY) -m pip install --quiet --requirement $@.txt
	@touch $@

# The engine, when Rust changed. Installed as editable: Python files are used where they are and need no build.
$(ENGINE): $(PACKAGES) $(RUST) | tools
	@echo "Compiling the engine (about a minute the first time)"
	@PIP_QUIET=1 $(PY) -m maturin develop --release --quiet
	@touch $@
