# make demo · test · check · bench · bench-decode · docs: each works on a fresh checkout
# make bench-decode WITH='--bundle runs/mine --file test.en' adds whole files, through a model of your own

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check format bench bench-decode docs
demo: .venv/installed ; $(BIN)/allyouneed demo --overwrite
test: .venv/installed ; $(BIN)/pytest
check: .venv/installed ; $(BIN)/ruff format --check . && $(BIN)/ruff check . && $(BIN)/mypy
format: .venv/installed ; $(BIN)/ruff format . && $(BIN)/ruff check --fix .
bench: .venv/installed ; $(BIN)/python benchmarks/train.py --rounds 5
bench-decode: .venv/installed ; $(BIN)/python benchmarks/decode.py --output bench-decode.md $(WITH)
docs: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs,tasks]'
	$(BIN)/python docs/make/ablations.py  # this and the next measure only what their records lack
	$(BIN)/python docs/make/tasks.py
	$(BIN)/python docs/make/pictures.py
	$(BIN)/python docs/make/pages.py
	$(BIN)/sphinx-build -qW docs build/site

.venv/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=26'  # older ones are minutes slower
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r constraints.txt  # nothing to resolve
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $@
