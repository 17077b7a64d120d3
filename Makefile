# Nova: every target sets up what it needs on a fresh machine with Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BROWSER := $(VENV)/.browser

.DEFAULT_GOAL := help
.PHONY: help setup check test golden bench axe report screenshots walk map run demo docs lock clean

help: ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(READY): requirements/dev.lock pyproject.toml scripts/setup.sh
	@PYTHON=$(PYTHON) sh scripts/setup.sh $(VENV)
	@touch $@

$(BROWSER): $(READY)
	@$(BIN)/python -m nova_mcp.browser.process.install
	@touch $@

setup: $(BROWSER) ## virtual environment, locked dependencies, a Chromium

check: $(READY) ## lint, types, architecture, generated files up to date
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/nova tools --check
	$(BIN)/python -m bench.code_map --check

test: setup ## everything: rules, stores on SQLite and PostgreSQL, wire, real Chromium
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

golden: setup ## record the answers, schemas and reasons that tests/golden compares with (a change needs a reason in its commit)
	NOVA_WRITE_GOLDEN=1 $(BIN)/python -m pytest tests/golden

bench: setup ## print the measurement tables (BENCH=name for one)
	$(BIN)/python -m bench $(BENCH)

report: setup ## run every benchmark in its short form and write docs/report.md (about 40 minutes; ONLY=name for one)
	$(BIN)/python -m bench report $(if $(ONLY),--only $(ONLY))

screenshots: setup ## pictures of every dashboard page under docs/images/
	$(BIN)/python -m bench.pictures

axe: setup ## write docs/accessibility.md: what axe-core finds on every dashboard page
	PYTHONPATH=tests:tests/dashboard $(BIN)/python tests/dashboard/axe_report.py > docs/accessibility.md

walk: setup ## files and functions that five calls run through, from the server to the answer
	scripts/walk

map: setup ## draw docs/map.md: the layers with their packages, and one call as it ran
	scripts/map

run: setup ## HTTP server on loopback, with the dashboard
	$(BIN)/nova serve --http

demo: setup ## a story over eight simulated days with a real browser, every chapter checked
	$(BIN)/nova demo

docs: $(READY) ## regenerate the tool manifest, the shell's completions, docs/tools.md and docs/reasons.md
	$(BIN)/nova tools --write

lock: $(READY) ## resolve and lock dependencies anew
	sh scripts/lock.sh $(BIN)

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
