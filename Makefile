PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: help demo test bench accuracy docs lint format clean

help:
	@echo 'make demo      make up a log and go through all the steps, to demo/report.html'
	@echo 'make test      style, types and tests'
	@echo 'make bench     time and memory, beside the obvious ways to do the same'
	@echo 'make accuracy  bias, errors and coverage in worlds of known truth, beside the peers'
	@echo 'make docs      the documentation as a site, under build/site'
	@echo 'make lint      style and types only'
	@echo 'make format    put the code into the common style'
	@echo 'make clean     remove everything the other targets made'

demo: $(READY)
	$(BIN)/rankdrift demo

test: lint
	$(BIN)/pytest -q -n 2 --dist loadgroup

bench: $(READY)
	$(BIN)/python -m benchmarks

accuracy: $(READY)
	$(BIN)/python -m benchmarks.accuracy --peers

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv demo build dist benchmarks/.data benchmarks/results.json
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks spark-warehouse
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment is made again whenever the dependencies change.
$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,spark,rank,xgboost]'
	touch $@
