# Two commands: `make demo` and `make test`. Both set themselves up on a bare machine.
.PHONY: demo test lint clean

demo:
	@tools/setup demo
	@tools/run .venv/bin/napari-fish demo

test: lint
	@tools/run --display .venv/bin/python -m pytest

lint:
	@tools/setup test
	@tools/run .venv/bin/ruff check .
	@tools/run .venv/bin/ruff format --check .
	@tools/run .venv/bin/mypy
	@tools/run .venv/bin/lint-imports --no-cache
	@tools/run .venv/bin/npe2 validate napari-fish

clean:
	rm -rf .venv demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
