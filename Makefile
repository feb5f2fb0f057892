# make demo · test · check · bench · bench-gpu · bench-decode · docs: each works on a fresh checkout
# make bench-decode WITH='--bundle runs/mine --file test.en' adds whole files, through a model of your own

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt

AVX2_ONLY := NUMBA_CPU_NAME=haswell NUMBA_CPU_FEATURES=+avx2 ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2

.PHONY: demo test test-avx2 check format bench bench-gpu bench-decode docs
demo: .venv/installed ; $(BIN)/allyouneed demo --overwrite
test: .venv/installed-dev ; $(BIN)/pytest --numprocesses auto --maxprocesses 4 --dist loadfile
test-avx2: .venv/installed-dev ; $(AVX2_ONLY) $(BIN)/pytest tests/inference  # the engines of most processors
check: .venv/installed-dev ; $(BIN)/ruff format --check . && $(BIN)/ruff check . && $(BIN)/mypy
format: .venv/installed-dev ; $(BIN)/ruff format . && $(BIN)/ruff check --fix .
bench: .venv/installed ; $(BIN)/python benchmarks/train.py
bench-gpu: .venv/installed-bench ; $(BIN)/python benchmarks/gpu.py $(WITH)
bench-decode: .venv/installed-dev ; $(BIN)/python benchmarks/decode.py --output bench-decode.md $(WITH)
docs: .venv/installed-docs
	$(BIN)/python docs/make/ablations.py  # this and the next measure only what their records lack
	$(BIN)/python docs/make/film.py
	$(BIN)/python docs/make/tasks.py
	$(BIN)/python docs/make/pictures.py
	$(BIN)/python docs/make/schema.py
	$(BIN)/python docs/make/commands.py
	$(BIN)/python docs/make/pages.py
	$(BIN)/python docs/make/notebooks.py
	$(BIN)/python docs/make/live.py
	$(BIN)/sphinx-build -qW docs build/site
	@echo "The site is in build/site/index.html"

# Which build of torch is taken, and so whether it needs the CUDA libraries, is for pip's settings to say;
# what cannot be imported is not installed, and the next call tries again.
.venv/installed: Makefile pyproject.toml constraints.txt
	$(BIN)/python -m pip --version || $(PYTHON) -m venv .venv
	$(PIP) 'pip>=26'  # older ones take minutes to resolve what is below
	$(PIP) -e .
	$(BIN)/python -c 'import torch, allyouneed.apps.cli'
	touch $@

.venv/installed-%: .venv/installed
	$(PIP) -e '.[$*]'
	touch $@
