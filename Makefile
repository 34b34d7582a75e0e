# From a bare machine with Python 3.11: `make demo` or `make test`. Each makes .venv and installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-gpu check bench docs clean

demo: $(VENV)/.demo
	$(BIN)/halfseen demo

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2

# For machines with an NVIDIA GPU.
test-gpu: $(VENV)/.test-gpu
	$(BIN)/python -m pytest tests/laws/test_engines.py tests/engines tests/laws/test_gpu.py

check: $(VENV)/.check
	$(BIN)/ruff format --check src tests benchmarks docs/building docs/pictures
	$(BIN)/ruff check src tests benchmarks docs/building docs/pictures
	$(BIN)/mypy
	$(BIN)/python docs/building/check_docstrings.py

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo 'The site is in site/: open site/index.html'

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("halfseen needs Python 3.11 or newer; try: make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

# A stamp for each set of extras, made anew when the requirements change.
$(VENV)/.demo: EXTRAS = frames,report
$(VENV)/.test: EXTRAS = test
$(VENV)/.test-gpu: EXTRAS = test,cuda
$(VENV)/.check: EXTRAS = test,check
$(VENV)/.bench: EXTRAS = bench
$(VENV)/.docs: EXTRAS = docs
$(VENV)/.%: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]'
	touch $@

clean:
	rm -rf $(VENV) halfseen-demo site
	find . -name __pycache__ -prune -exec rm -rf {} +
