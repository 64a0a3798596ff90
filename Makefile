# `make help` lists the targets. PYTHON chooses the interpreter: make PYTHON=python3.12

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))

# The first Python >= 3.11 on the path, unless PYTHON is given.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c '$(NEW_ENOUGH)' >/dev/null 2>&1 && { echo $$p; break; }; done)
UV ?= $(shell command -v uv || echo $(BIN)/uv)
LOCK_FLAGS ?=

# Tests start many processes, each of which would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := all
.PHONY: all help install warm lint style types test tests coverage prove bench demo docs papers pictures lock wheel clean

all: install warm  ## Install into .venv and compile the kernels (plain `make`)

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

install: $(STAMP)  ## Create .venv and install armid and its locked dependencies

$(STAMP): requirements.lock pyproject.toml
	@python='$(PYTHON)'; \
	{ test -n "$$python" && "$$python" -c '$(NEW_ENOUGH)' >/dev/null 2>&1; } || \
	{ echo "armid needs Python 3.11 or newer: install one, or name it with make PYTHON=/path/to/python3." >&2; exit 1; }; \
	test -x $(BIN)/pip || { echo "Creating $(VENV) with $$("$$python" --version)"; "$$python" -m venv $(VENV); }
	@echo "Installing the locked dependencies into $(VENV) (about a minute)"
	@# the lock is complete; asked for dependencies, pip refuses extras of a package that has a newer release
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
	@echo "Installed: $(BIN)/armid"

warm: install  ## Compile the numeric kernels into the cache, once
	@$(BIN)/python -m armid.run.warm

lint: style types  ## Check style, formatting and types

style: install
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

types: install
	@$(BIN)/mypy

test: install style warm  ## Check everything: lint and the tests
	@$(MAKE) --no-print-directory -j2 types tests

tests: install
	@$(BIN)/python -m pytest

coverage: install warm  ## Which lines the tests reach; fails below 85 %, page in build/coverage
	$(BIN)/python -m pytest --cov=armid --cov-report=term:skip-covered --cov-report=html:build/coverage --cov-fail-under=85

prove: install  ## Run the long proofs
	@$(BIN)/python -m pytest -m prove

bench: install  ## Measure speed; writes benchmarks/results.json
	@$(BIN)/python -m benchmarks

demo: install warm  ## The whole procedure on a virtual PA-10; ends with a report to open
	@$(BIN)/armid run pa10 -o build/demo

docs: install  ## Build the documentation into build/docs
	@$(BIN)/python -m mkdocs build --strict --quiet
	@echo "Open build/docs/index.html"

papers: install  ## The papers with ten seeds (an hour), and their tables in docs/papers.md
	-@$(BIN)/armid reproduce all --seeds 10 -o build/papers
	@$(BIN)/python docs/papers_page.py build/papers

pictures: install  ## Renew the pictures and figures of the README
	@$(BIN)/python docs/pictures/make.py

lock:  ## Renew requirements.lock (needs uv; LOCK_FLAGS=--upgrade for newer versions)
	@"$(UV)" --version >/dev/null 2>&1 || { echo "make lock needs uv: install it, or name it with make lock UV=/path/to/uv." >&2; exit 1; }
	@"$(UV)" --no-config --quiet pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 \
		--generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links $(LOCK_FLAGS) -o requirements.lock
	@if grep -nE '://|file:|^-|@ ' requirements.lock; then echo "requirements.lock must not name an address or a path." >&2; exit 1; fi
	@echo "requirements.lock: $$(grep -c == requirements.lock) pinned packages"

wheel: install  ## Build the wheel into dist/
	@$(BIN)/python -m build --wheel --no-isolation

clean:  ## Remove caches and build outputs (keeps .venv)
	@rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis benchmarks/results.json
	@for d in src tests benchmarks examples; do if [ -d $$d ]; then find $$d -name __pycache__ -prune -exec rm -rf {} +; fi; done
