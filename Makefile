# make demo · test · test-all · coverage · check · bench · bench-gpu · bench-decode · docs · wheels: each works on a fresh checkout
# make bench-decode WITH='--bundle runs/mine --file test.en' adds whole files, through a model of your own

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt

# A worker that a hanging test ended (faulthandler_timeout) is not started again: its test would hang again.
PYTEST := $(BIN)/pytest --numprocesses auto --maxprocesses 4 --dist loadfile --max-worker-restart 0

.PHONY: demo test test-all coverage check format bench bench-gpu bench-decode docs wheels
demo: .venv/installed-serve,html ; $(BIN)/allyouneed demo --overwrite  # with what its last lines offer
test: .venv/installed-dev ; $(PYTEST) -m 'not slow'  # no browser, no Ray, no foreign program
test-all: .venv/installed-dev ; $(PYTEST)
coverage: .venv/installed-dev  # of the rooms of the paper: traced as a whole, the suite takes 1.7 times as long
	$(BIN)/coverage run -m pytest -m 'not slow' tests/nn tests/train tests/decode tests/younger
	$(BIN)/coverage report
check: .venv/installed-dev ; $(BIN)/ruff format --check . && $(BIN)/ruff check . && $(BIN)/mypy
format: .venv/installed-dev ; $(BIN)/ruff format . && $(BIN)/ruff check --fix .
bench: .venv/installed ; $(BIN)/python benchmarks/train.py
bench-gpu: .venv/installed-dev ; $(BIN)/python benchmarks/gpu.py $(WITH)
bench-decode: .venv/installed-dev ; $(BIN)/python benchmarks/decode.py --output bench-decode.md $(WITH)
docs: .venv/installed-dev
	$(BIN)/python docs/make/ablations.py  # this and the next measure only what their records lack
	$(BIN)/python docs/make/film.py
	$(BIN)/python docs/make/tasks.py
	$(BIN)/python docs/make/pictures.py
	$(BIN)/python docs/make/schema.py
	$(BIN)/python docs/make/pages.py
	$(BIN)/python docs/make/notebooks.py
	$(BIN)/sphinx-build -qW -d build/doctrees docs build/site
	@echo "The site is in build/site/index.html"

# The source and a wheel for each platform, in dist/; zig compiles the engine for all of them on one machine.
RELEASE := build/release/bin
wheels:
	rm -rf dist build/release
	$(PYTHON) -m venv build/release
	$(RELEASE)/pip install -q -c constraints.txt hatchling ziglang
	$(RELEASE)/hatchling build -t sdist
	for platform in $$($(PYTHON) src/allyouneed/native/build.py platforms); do \
		WHEEL_PLATFORM=$$platform $(RELEASE)/hatchling build -t wheel || exit 1; done
	$(PYTHON) tests/wheels.py dist/*.whl

# Which build of torch is taken, and so whether it needs the CUDA libraries, is for pip's settings to say;
# what cannot be imported is not installed, and the next call tries again.
# An environment of a Python that is too old is made anew, by one that is not.
NEW_ENOUGH := -c 'import sys; sys.exit(sys.version_info < (3, 11))'
TOO_OLD = { echo "make: Python 3.11 or later is needed; $(PYTHON) is $$($(PYTHON) -V 2>&1). Try: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
NO_PIP = { echo "make: pip could not install; without a network it cannot. .venv/pip.log has its messages" >&2; exit 1; }

.venv/installed: Makefile pyproject.toml constraints.txt $(wildcard src/allyouneed/native/*.[ch])
	@{ $(BIN)/python $(NEW_ENOUGH) && $(BIN)/python -m pip --version; } > /dev/null 2>&1 || { \
		$(PYTHON) $(NEW_ENOUGH) 2> /dev/null || $(TOO_OLD); rm -rf .venv; $(PYTHON) -m venv .venv; }
	@$(PIP) 'pip>=26' 2> .venv/pip.log || $(NO_PIP)  # older ones take minutes to resolve what is below
	@$(PIP) -e . 2> .venv/pip.log || $(NO_PIP)
	$(BIN)/python -c 'import torch, allyouneed.apps.cli'
	touch $@

.venv/installed-%: .venv/installed
	@$(PIP) -e '.[$*]' 2> .venv/pip.log || $(NO_PIP)
	touch $@
