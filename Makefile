# After `python3 -m venv .venv && .venv/bin/pip install --editable '.[test]'`. `e2e` needs a Docker engine and root.
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.PHONY: check test regen e2e

check:
	ruff check .
	ruff format --check .
	mypy
	shellcheck .ci/run
	trainlaunch check compose k8s

test:
	pytest -m "not docker"

regen:
	pytest -q --update-goldens -m "not docker"

e2e:
	pytest -m docker
