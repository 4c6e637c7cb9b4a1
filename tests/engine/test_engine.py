"""The images that engine tests run in hold what the tests rely on."""

from __future__ import annotations

import pytest

from tests.conftest import Runs
from tests.engine import images


@pytest.mark.docker
def test_base_image_has_the_shells(base_image: str, docker_run: Runs) -> None:
    """dash, bash and busybox each run a script in the base image, where `python` is python3."""
    each = 'for shell in dash bash "/bin/busybox sh"; do $shell -c "$0"; done'
    done = docker_run(base_image, "sh", "-c", each, "python -c 'import sys; print(sys.version_info[:2])'")
    assert (done.returncode, done.stdout) == (0, "(3, 11)\n" * 3), done.stderr


@pytest.mark.docker
def test_torch_image_counts_as_installed_for_pip(torch_image: str, docker_run: Runs) -> None:
    """A Dockerfile that pins torch builds from the image without any network."""
    pinned = [each for each in images.PYTHON_PACKAGES if not each.startswith("pip=")]
    done = docker_run("--network=none", torch_image, "pip", "install", "--disable-pip-version-check", *pinned)
    assert done.returncode == 0, done.stderr
    for each in pinned:
        assert f"Requirement already satisfied: {each}" in done.stdout


@pytest.mark.docker
@pytest.mark.libraries
def test_examples_image_counts_as_installed_for_pip(examples_image: str, docker_run: Runs) -> None:
    """Nothing that the examples' packages need is missing: their Dockerfiles build from the image without a network."""
    install = ("pip", "install", "--disable-pip-version-check", *images.EXAMPLE_PACKAGES)
    done = docker_run("--network=none", examples_image, *install)
    assert done.returncode == 0, done.stderr
    for each in images.EXAMPLE_PACKAGES:
        assert f"Requirement already satisfied: {each}" in done.stdout


@pytest.mark.docker
def test_image_of_this_recipe_is_not_made_again(base_image: str) -> None:
    """The engine is the cache: asking again for an image of the current recipe makes nothing."""

    def make(recipe: str, folder: object) -> None:
        raise AssertionError(f"made again for recipe {recipe}")

    assert images.image(base_image, images.base_recipe(), make) == base_image


def test_another_package_gives_another_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recipe of the image with torch changes with a package of the base image below it."""
    before = images.torch_recipe()
    monkeypatch.setattr(images, "DEBIAN_PACKAGES", (*images.DEBIAN_PACKAGES, "procps"))
    assert images.torch_recipe() != before
