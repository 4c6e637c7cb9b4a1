# After `python3 -m venv .venv && .venv/bin/pip install --editable '.[test]'`. `e2e` and `libraries` need a Docker engine and root.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export NO_MKDOCS_2_WARNING := 1

.PHONY: check test regen docs e2e full libraries

check:
	ruff check .
	ruff format --check .
	mypy
	shellcheck .ci/run templates/*.sh
	trainlaunch check compose k8s
	mkdocs build --strict --quiet

# Tests run in four processes, of which many wait; tests/groups.py says which tests share one.
test:
	pytest -n 4 -m "not docker"

regen:
	pytest -q --update-goldens -m "not docker"

# The site of docs/, at http://127.0.0.1:8000; pages are built again as they change.
docs:
	mkdocs serve

e2e:
	pytest -n 4 -m docker

# All of it, with what shows for certainty what a shorter test of the default shows once: before a release.
full:
	pytest -n 4 -m "long or not long"

# What needs large libraries in its image, which neither `pytest` nor .ci/run has time for.
libraries:
	pytest -n 4 -m libraries
