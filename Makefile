# Everything runs in .venv; what a target needs is made first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
# Each worker has a lab of its own; `auto` is as many as memory and cores allow (tests/conftest.py).
TEST_WORKERS ?= auto
# A file's tests go to one worker, in order: they share a fleet, and each builds on those before it. The longest files begin
# (tests/conftest.py), then the lab's others, then the unit tests.
BY_FILE := --dist loadfile --no-loadscope-reorder
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile
UV := uv==0.13.8
# With it, each start of Python compiles all modules again: half of what tests take to be collected.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help lab lab-real lab-down lab-clean venv test test-quick test-unit test-long test-gpu test-provider fuzz lint types check dist bench chaos rehearse upgrade-test states pictures pages effects site requirements

help: ## show these targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|' 2>/dev/null \
		|| sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1: \2/p' $(MAKEFILE_LIST)

lab: $(INSTALLED) ## bring the lab and its fleet up (again: repair it, or change nothing)
	@$(BIN)/berth lab up

lab-real: $(INSTALLED) ## make one node of the lab real: containers that run, real Ray (needs root on Linux)
	@$(BIN)/berth lab real up

lab-down: $(INSTALLED) ## end every process of the lab, its real node too; its state stays
	@$(BIN)/berth lab down

lab-clean: $(INSTALLED) ## end every process of the lab and forget its state
	@$(BIN)/berth lab clean

venv: $(INSTALLED) ## the virtual environment, with everything in it

test: $(INSTALLED) ## unit, golden and lab tests, but the long ones (TEST_WORKERS=2: with fewer labs at once)
	@$(BIN)/berth lab tools
	@$(BIN)/pytest --numprocesses $(TEST_WORKERS) $(BY_FILE) --durations=25

test-quick: $(INSTALLED) ## unit and golden tests but the slow ones, types and lint, all at once
	@$(MAKE) --no-print-directory --jobs=3 test-unit lint types

test-unit: $(INSTALLED)
	@$(BIN)/pytest -m 'not long and not slow' --numprocesses auto $(BY_FILE) tests/unit

test-long: $(INSTALLED) ## the tests that take minutes a file; as root on Debian those of the real node too. Needs a quiet machine
	@$(BIN)/berth lab tools
	@$(BIN)/berth lab real prepare --where-possible
	@status=0; $(BIN)/pytest -m long tests/real tests/containers || status=$$?; \
	$(BIN)/pytest -m long --ignore tests/real --ignore tests/containers --numprocesses logical $(BY_FILE) || status=$$?; \
	exit $$status

test-gpu: $(INSTALLED) ## the parts that need a GPU, as root on a machine with one (tests/gpu/run says what each needs)
	@tests/gpu/run build
	@PYTHON=$(BIN)/python tests/gpu/run

test-provider: $(INSTALLED) ## every stack and edit on Google's own provider, skipped without it (RECORD=1 writes tests/provider/verdicts.json and tests/google/requests.json)
	@RECORD=$(RECORD) $(BIN)/pytest -rs -m provider tests/provider

fuzz: $(INSTALLED) ## settings that nobody wrote, judged by an API server (FUZZ_EXAMPLES=1000, FUZZ_SEED=1 repeats a campaign)
	@$(BIN)/berth lab tools
	@FUZZ_EXAMPLES=$(or $(FUZZ_EXAMPLES),1000) $(BIN)/pytest -s -m 'long or not long' tests/lab/test_fuzz.py

lint: $(INSTALLED) ## ruff, and the directions of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-cache

types: $(INSTALLED) ## mypy, strict
	@$(BIN)/mypy

check: lint types test ## all that a change has to pass

dist: $(INSTALLED) ## build the source distribution, and from it the wheel, in dist/
	@rm -rf dist
	@$(BIN)/python -c "from setuptools.build_meta import build_sdist; build_sdist('dist')" > /dev/null
	@$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist dist/*.tar.gz
	@ls dist/*

bench: $(INSTALLED) ## measure berths beside kubectl, Helm and plain Pulumi (PART=stacks N="10 100" SHORT=1 JUDGE=1 JSON=1 RECORD=docs/performance.json)
	@$(BIN)/berth lab tools
	@$(BIN)/python -m bench $(foreach part,$(PART),--part $(part)) $(foreach size,$(N),--size $(size)) $(if $(SHORT),--short) \
		$(if $(JUDGE),--judge) $(if $(JSON),--json) $(if $(RECORD),--record $(RECORD))

chaos: $(INSTALLED) ## disturb berth in a lab of its own, for hours (SEED=1 CASES=20 PART=signals CASE=7 MINUTES=10 JOBS=2 RECORD=docs/reliability.json RESUME=1)
	@$(BIN)/berth lab tools
	@$(BIN)/python -m chaos $(if $(SEED),--seed $(SEED)) $(if $(CASES),--cases $(CASES)) $(if $(CASE),--case $(CASE)) \
		$(if $(MINUTES),--minutes $(MINUTES)) $(if $(JOBS),--jobs $(JOBS)) $(if $(BERTHS),--berths $(BERTHS)) $(foreach part,$(PART),--part $(part)) \
		$(if $(RECORD),--record $(RECORD)) $(if $(RESUME),--resume)

rehearse: $(INSTALLED) ## apply random edits in a lab of its own, and say how often their plans were right (N=100 SEED=1 MINUTES=10 RECORD=docs/reliability.json RESUME=1)
	@$(BIN)/berth lab tools
	@$(BIN)/python -m chaos.rehearsal $(if $(N),--edits $(N)) $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES)) \
		$(if $(RECORD),--record $(RECORD)) $(if $(RESUME),--resume)

upgrade-test: ## upgrade KubeRay and edit the image in one update of many berths (N=20 BERTHS=30, and as make chaos)
	@$(MAKE) --no-print-directory chaos PART=upgrades CASES=$(N)

states: $(INSTALLED) ## record the states of all shipped stacks, in a lab of its own, for tests of later versions (VERSION=0.2.0)
	@$(BIN)/python -m tests.lab.record_states $(VERSION)

tasks: $(INSTALLED) ## time the tasks of a new user, by the commands of the pages (CACHE=~/.cache: with tools that are there)
	@$(BIN)/python -m bench.tasks $(if $(CACHE),--cache $(CACHE))

pages: $(INSTALLED) ## write the generated files again: stacks/schema.json, pages and pictures of docs/
	@$(BIN)/python -m docs.pages

effects: $(INSTALLED) ## find out what an edit of each setting does, for the reference (three minutes of CPU; Ctrl-C keeps what is found)
	@$(BIN)/python -m docs.edits
	@$(BIN)/python -m docs.pages

pictures: $(INSTALLED) ## write what berth prints again, in a lab of its own: docs/recording.svg and docs/pictures/fleet.html
	@$(BIN)/pytest -m long --update-golden tests/lab/test_pictures.py

site: $(INSTALLED) ## build the docs site into build/site, without a network
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo 'Open build/site/index.html'

requirements: ## write all pinned requirements again: berth's own and those of images/ (needs the package index)
	@$(PYTHON) -m venv build/uv && build/uv/bin/pip install --quiet '$(UV)'
	@UV_CUSTOM_COMPILE_COMMAND='make requirements' build/uv/bin/uv pip compile pyproject.toml --quiet --upgrade \
		--universal --python-version 3.11 --extra dev --generate-hashes --no-emit-index-url --no-emit-find-links \
		--output-file requirements.txt
	@UV_CUSTOM_COMPILE_COMMAND='make requirements' build/uv/bin/uv pip compile lab/ray/requirements.in --quiet \
		--universal --python-version 3.11 --only-binary :all: --generate-hashes --no-emit-index-url \
		--no-emit-find-links --output-file lab/ray/requirements.txt
	@for image in ray-a4 ray-podman; do \
		UV_CUSTOM_COMPILE_COMMAND='make requirements' build/uv/bin/uv pip compile images/$$image/requirements.in \
			--quiet --upgrade --python-version 3.11 --python-platform x86_64-manylinux_2_28 --only-binary :all: \
			--generate-hashes --no-emit-index-url --no-emit-find-links --output-file images/$$image/requirements.txt \
			|| exit; done

# The pinned requirements are complete, so pip resolves no dependencies. The editable install needs no network and no
# isolation: setuptools is among them. pip compiles on one core, and all modules of pulumi_gcp, of which berth imports
# four packages: that is half of what an installation takes.
$(INSTALLED): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo 'error: berth needs Python 3.11 or newer as $(PYTHON)' >&2; \
		echo 'install it, or name another one: make PYTHON=python3.12 $(MAKECMDGOALS)' >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo 'error: this Python cannot make virtual environments: its venv module is missing' >&2; \
		echo 'on Debian and Ubuntu: apt install python3-venv' >&2; exit 2; }
	@test -x $(BIN)/pip || { echo 'Making the virtual environment'; $(PYTHON) -m venv --clear $(VENV); }
	@echo 'Installing the Python packages that requirements.txt pins'
	@# The pinned pip installs the rest: the one that comes with Python 3.11 takes half as long again.
	@{ sed -n '/^pip==/,/#/p' requirements.txt | $(PIP_INSTALL) --require-hashes -r /dev/stdin && \
		$(PIP_INSTALL) --require-hashes -r requirements.txt; } || { \
		echo 'error: the Python packages could not be installed (see above)' >&2; \
		echo 'check the network connection and the disk space, then run it again' >&2; exit 1; }
	@$(PIP_INSTALL) -q --no-build-isolation --editable .
	@touch $@
