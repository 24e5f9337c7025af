# Two commands: `make demo` and `make test`. Both set themselves up on a bare machine.
.PHONY: demo test test-pythons lint docs clean

demo:
	@tools/setup demo
	@tools/run .venv/bin/napari-fish demo

test: lint docs
	@tools/run --display .venv/bin/python -m pytest

# The suite on every Python from 3.11 on that is installed.
test-pythons:
	@tools/test-pythons

lint:
	@tools/setup test
	@tools/run .venv/bin/ruff check .
	@tools/run .venv/bin/ruff format --check .
	@tools/run .venv/bin/mypy
	@tools/run .venv/bin/lint-imports --no-cache
	@tools/run .venv/bin/npe2 validate napari-fish

docs:
	@tools/setup test
	@tools/run .venv/bin/sphinx-build -q -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf .venv .venv-3.* demo docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis
