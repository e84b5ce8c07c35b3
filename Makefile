# Everything runs in .venv; targets that need it make it. `make help` reads the remarks behind the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help run test test-vllm check lint types layers format lock clean

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/run.stamp ## fetch the models, start everything, serve on 127.0.0.1:8080
	@$(BIN)/cascade serve

test: $(VENV)/dev.stamp ## run all tests: SQLite, PostgreSQL, real models
	@$(BIN)/python -m pytest

test-vllm: $(VENV)/dev.stamp ## run the suite against a real vLLM, which it installs (docs/vllm.md)
	@$(BIN)/python -m pytest -rs -o 'norecursedirs=.*' -o faulthandler_timeout=1800 -o faulthandler_exit_on_timeout=true tests/vllm

check: lint types layers ## what CI checks besides the tests

lint: $(VENV)/dev.stamp ## ruff: rules and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/dev.stamp ## mypy, strict
	@$(BIN)/mypy

layers: $(VENV)/dev.stamp ## import-linter: imports go one way
	@$(BIN)/lint-imports

format: $(VENV)/dev.stamp ## rewrite in the house format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

lock: $(VENV)/dev.stamp ## renew the two lock files
	@$(BIN)/uv pip compile -q --universal --generate-hashes --no-header --upgrade --python-version 3.11 \
	  --extra models --extra postgres --extra rules --extra evals --extra litellm --extra dev pyproject.toml -o requirements-dev.lock
	@echo 'hatchling==1.33.0' | $(BIN)/uv pip compile -q --universal --generate-hashes --no-header --python-version 3.11 \
	  --extra models --extra postgres --extra rules --extra evals -c requirements-dev.lock pyproject.toml - -o requirements.lock

clean: ## remove the environment
	@rm -rf $(VENV)

$(VENV)/bin/python:
	@echo "creating $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Cascade needs Python 3.11 or newer, this is " + sys.version.split()[0] + ". Set one: make run PYTHON=python3.12")'
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# The downloads are checked against the hashes in the lock; the project itself is linked in without a build environment.
$(VENV)/run.stamp: requirements.lock pyproject.toml | $(VENV)/bin/python
	@echo "installing the packages of requirements.lock"
	@$(BIN)/python -m pip install --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/dev.stamp: requirements-dev.lock $(VENV)/run.stamp
	@echo "installing the packages of requirements-dev.lock"
	@$(BIN)/python -m pip install --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@
