# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
RUNS ?= runs/demo
DEMO_STEPS ?= 600
DEMO := ctc ottc joint
# Processes that the tests are shared out to, of one thread each.
JOBS ?= 2
# Threads beside a GPU.
THREADS ?= $(shell nproc)

.PHONY: demo test lint docs tables bench gpu env wheels clean

env: $(VENV)/.ready
$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet --editable ".[onnx,synth,search]" --group test --group lint
	touch $@

# Synthesise a corpus, train three models on it, compare them: table, TextGrids, figures, one HTML page.
demo: env
	set -e; for model in $(DEMO); do \
	  $(BIN)/python recipes/timit/run.py $$model data=synthetic train.steps=$(DEMO_STEPS) output=$(RUNS)/$$model; \
	done
	$(BIN)/isotone report $(addprefix $(RUNS)/,$(DEMO)) --out $(RUNS)/report

test: env
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

# Every kernel beside its public peers: time, memory, exponents.
bench: env
	$(BIN)/pip install --quiet --group bench
	$(BIN)/python -m benchmarks --json runs/bench/rows.json --figures runs/bench

# The tables of the English pack, in the pages that show them: make tables CORPORA=FOLDER, of the recordings. Half an hour.
tables: env
	$(BIN)/pip install --quiet --group bench
	OMP_NUM_THREADS=1 $(BIN)/python -m docs.tables $(CORPORA) --jobs $(JOBS)

# On a machine with CUDA: the tests that need it, then kernels, training and alignment beside their peers, as one table.
gpu: env
	$(BIN)/python -m pytest -m gpu
	$(BIN)/python -m benchmarks --device cuda --seconds 2 --threads $(THREADS) \
	  --json runs/gpu/rows.json --markdown runs/gpu/table.md

# The site of the documentation: runs/site/index.html opens from the folder.
docs: env
	$(BIN)/pip install --quiet --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

lint: env
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

# The distributions of isotone and isotone-light in dist, each tried in fresh environments. PYTHONS="python3.11 python3.13"
# tries them with several.
PYTHONS ?= $(PYTHON)
wheels: env
	rm -rf dist
	$(BIN)/python .ci/wheels.py dist $(addprefix --python ,$(PYTHONS))

clean:
	rm -rf $(VENV) build dist *.egg-info src/*.egg-info
