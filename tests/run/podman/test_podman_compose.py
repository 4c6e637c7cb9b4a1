"""Target compose on Podman: what it does on Docker it does here, with Podman's corrections; nodes need names."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from trainlaunch.run.backends import compose_backend
from trainlaunch.run.compose.backend import HELPERS, PodmanCompose
from trainlaunch.run.docker.backend import DockerBackend

from tests.conftest import Runs
from tests.run.conftest import containers_of, docker, networks_of
from tests.run.contract import BackendContract, CreatingContract, ShmContract, UserContract
from tests.run.podman.conftest import CONF, Podman, configuration
from tests.run.podman.test_podman import Without, without_docker  # noqa: F401 - a fixture
from tests.run.test_compose import (  # noqa: F401 - collected here, where the fixtures give Podman
    make_nodes,
    test_nodes_meet_by_name_and_print_with_their_number,
)
from tests.run.test_compose_contract import TestCompose as _OnCompose

MakeJob = Callable[..., Path]
AARDVARK = Path(HELPERS["netavark"].folders[-1], HELPERS["netavark"].name)
pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("compose", "names")]


@pytest.fixture(scope="module")
def names() -> None:
    """See to it that this Podman can resolve names."""
    _need(AARDVARK.exists(), "aardvark-dns")


def _need(there: bool, package: str) -> None:
    if there:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"{package} is not installed, and CI may not skip its tests", pytrace=False)
    pytest.skip(f"{package} is not installed")


class TestPodmanCompose:
    """Of the contract of all backends what creating by Compose and Podman's own ways could break together."""

    make_plan_of = _OnCompose.make_plan_of
    begin = CreatingContract.begin
    test_an_attempt_is_on_record_and_knows_its_number = (
        CreatingContract.test_an_attempt_is_on_record_and_knows_its_number
    )
    test_stop_lets_the_jobs_handler_run = CreatingContract.test_stop_lets_the_jobs_handler_run

    @pytest.fixture
    def backend(self, on_podman: None, compose: str) -> Iterator[DockerBackend]:
        """Return what trainlaunch itself takes here."""
        with contextlib.closing(compose_backend(print)) as backend:
            assert isinstance(backend, PodmanCompose)
            yield backend


@pytest.mark.long
class TestPodmanComposeWholly(UserContract, CreatingContract, ShmContract):
    """What creating by Compose does, and what Podman's ways do to a container, whoever made it."""

    backend = TestPodmanCompose.backend
    make_plan_of = TestPodmanCompose.make_plan_of
    test_stop_kills_after_the_grace_period = BackendContract.test_stop_kills_after_the_grace_period
    test_kill_does_not_ask = BackendContract.test_kill_does_not_ask


def test_a_network_that_a_stranger_is_on_is_left(
    trainlaunch: Runs, make_job: MakeJob, job_name: str, base_image: str
) -> None:
    """As on Docker; Podman would take it away from the running container."""
    job = str(make_job(target="compose", command=["true"]))
    assert trainlaunch("up", job).returncode == 0
    (network,) = networks_of(job_name)
    stranger = docker("run", "--detach", "--network", network, base_image, "sleep", "600")
    try:
        done = trainlaunch("down", job)
        assert done.returncode == 0, done.stderr
        assert (containers_of(job_name), networks_of(job_name)) == ([], [network])
        assert docker("inspect", "--format", "{{.State.Running}}", stranger) == "true"
    finally:
        docker("rm", "--force", stranger)


def test_what_can_not_start_is_told_in_podmans_words_and_leaves_nothing(
    trainlaunch: Runs,
    make_nodes: MakeJob,  # noqa: F811
    job_name: str,
) -> None:
    """Neither containers nor a network."""
    done = trainlaunch("up", str(make_nodes("exit 0", user="nobody-here")))
    assert done.returncode == 125
    assert "error[TL508]: podman: " in done.stderr
    assert (containers_of(job_name), networks_of(job_name)) == ([], [])


def test_compose_reaches_the_service_of_one_command(without_docker: Without, make_job: MakeJob) -> None:  # noqa: F811
    """Where only the `podman` program is, Compose is told the socket of the service that was started for `up`."""
    job = str(make_job(target="compose", command=["/bin/sh", "-c", "echo hello; exit 7"]))
    code, out, err = without_docker("up", job)
    assert (code, out) == (7, "hello\n"), err
    assert "using Podman, by a service for this command alone" in err
    assert "Compose is `docker" in err
    assert without_docker("down", job)[0] == 0


def test_nodes_are_refused_where_podman_resolves_no_names(
    trainlaunch: Runs,
    make_nodes: MakeJob,  # noqa: F811
    podman: Podman,
    job_name: str,
) -> None:
    """TL516 before anything is made: with CNI and without its plugin every node would wait for node 0."""
    cni = HELPERS["cni"]
    _need(any(Path(each, cni.beside).exists() for each in cni.folders), "containernetworking-plugins")
    if any(Path(each, cni.name).exists() for each in cni.folders):
        pytest.skip("CNI's plugin dnsname is installed")
    conf = podman.folder / "cni.conf"
    conf.write_text(configuration(podman.folder, "cni"))
    service = podman.serve("cni.sock", **{CONF: str(conf)})
    try:
        done = trainlaunch("up", str(make_nodes("exit 0")), env={"DOCKER_HOST": f"unix://{podman.folder}/cni.sock"})
    finally:
        service.terminate()
        service.wait(timeout=30)
    assert done.returncode == 125
    assert "error[TL516]: torchrun.nnodes is 2 and this Podman resolves no container names" in done.stderr
    assert "run `sudo apt-get install golang-github-containernetworking-plugin-dnsname`" in done.stderr
    assert containers_of(job_name) == []
