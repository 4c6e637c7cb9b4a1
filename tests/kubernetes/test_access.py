"""A cluster that can't be reached or won't let us in: one error each, with what to type, and nothing made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import plain_yaml
from tests.kubernetes import statuses
from tests.kubernetes.contract.user import GIVES_UP_SOON, Place, Running, User
from tests.kubernetes.server import NAMESPACE, FakeCluster

# One that ends with 125 and one that ends with 3; the others reach a cluster in the same way.
VERBS = ("up", "status", *(pytest.param(each, marks=pytest.mark.long) for each in ("logs", "wait", "down")))
Tell = Callable[..., Running]


@pytest.fixture
def tell(fake: FakeCluster, tmp_path: Path) -> Iterator[Tell]:
    """Run a verb about a small job with this kubeconfig, to its end."""
    users: list[User] = []

    def run(verb: str, kubeconfig: Path | str, *args: str) -> Running:
        users.append(User(Place(str(kubeconfig), NAMESPACE, "trainer:1", fake), tmp_path / "work", "digits"))
        users[-1].speed = GIVES_UP_SOON
        users[-1].writes(command=["true"])
        done = users[-1].starts(verb, "job.yaml", *args)
        done.end()
        return done

    yield run
    for each in users:
        each.leaves()


def one_error(done: Running, code: str, *words: str) -> None:
    """Assert that a command ended with one error of this code, in our own words, and with each of these."""
    assert done.process.returncode == (125 if done.verb in {"up", "wait"} else 3), done.words()
    assert done.said.count("error[") == 1, done.words()
    assert f"error[{code}]" in done.said, done.words()
    assert "= fix: " in done.said
    assert "Traceback" not in done.said
    for each in words:
        assert each in done.said, done.words()


@pytest.mark.parametrize("verb", VERBS)
def test_a_server_that_is_away_is_named(fake: FakeCluster, kubeconfig: Path, tell: Tell, verb: str) -> None:
    """Connection refused: the address stands there."""
    fake.stop()
    one_error(tell(verb, kubeconfig), "TL522", fake.url)


def test_a_name_that_is_not_known_is_said(fake: FakeCluster, kubeconfig: Path, tell: Tell) -> None:
    """DNS."""
    config = plain_yaml.load(kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = "http://api.cluster.invalid:6443"
    kubeconfig.write_text(plain_yaml.dump(config))
    one_error(tell("up", kubeconfig), "TL522", "api.cluster.invalid")


def test_a_certificate_of_another_authority_is_refused(tmp_path: Path, tell: Tell) -> None:
    """TLS: nothing is sent to a server that the kubeconfig's authority did not sign."""
    with FakeCluster(tls=True) as cluster:
        one_error(tell("up", cluster.kubeconfig(tmp_path / "config", trusted=False)), "TL523", "certificate")
        assert cluster.requests == []
        done = tell("up", cluster.kubeconfig(tmp_path / "config"))
        assert done.process.returncode == 0, done.words()


@pytest.mark.parametrize("verb", VERBS)
def test_a_wrong_token_is_said_plainly(fake: FakeCluster, kubeconfig: Path, tell: Tell, verb: str) -> None:
    """401."""
    fake.token = "another"
    one_error(tell(verb, kubeconfig), "TL524")
    assert fake.objects() == []


def test_a_login_program_that_fails_is_told_with_its_words(fake: FakeCluster, tmp_path: Path, tell: Tell) -> None:
    """An exec plugin whose session has expired."""
    program = tmp_path / "login"
    program.write_text("#!/bin/sh\necho 'session expired, run: login again' >&2\nexit 1\n")
    program.chmod(0o755)
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(program), "interactiveMode": "Never"}
    done = tell("up", fake.kubeconfig(tmp_path / "config", exec=plugin))
    one_error(done, "TL524", "session expired, run: login again")


def test_no_kubeconfig_at_all_is_said(tmp_path: Path, tell: Tell) -> None:
    """And a context that isn't there, with those that are."""
    one_error(tell("up", tmp_path / "none"), "TL521")


def test_a_context_that_is_not_there_is_said_with_those_that_are(kubeconfig: Path, tell: Tell) -> None:
    """A typing mistake."""
    one_error(tell("up", kubeconfig, "--context", "fakt"), "TL521", "fakt", "fake")


def test_a_namespace_that_is_not_there_is_said(fake: FakeCluster, kubeconfig: Path, tell: Tell) -> None:
    """404 of the namespace, not of the job."""
    done = tell("up", kubeconfig, "--namespace", "nowhere")
    assert done.process.returncode == 125, done.words()
    assert "nowhere" in done.said
    assert "Traceback" not in done.said
    assert fake.objects() == []


def test_the_job_files_namespace_goes_before_the_contexts(fake: FakeCluster, kubeconfig: Path, tell: Tell) -> None:
    """And the option goes before both."""
    fake.add_namespace("other")
    fake.pods_do(lambda pod: pod.exit(0))
    assert tell("up", kubeconfig, "--set", "kubernetes.namespace=other").process.returncode == 0
    assert len(fake.pods("other")) == 1
    done = tell("up", kubeconfig, "--set", "kubernetes.namespace=other", "--namespace", "default")
    assert done.process.returncode == 0, done.words()
    assert len(fake.pods("default")) == 1
    assert fake.pods() == []


def test_a_server_that_always_fails_is_no_traceback(fake: FakeCluster, kubeconfig: Path, tell: Tell) -> None:
    """500 to each dry run."""
    fake.fail("create", "jobs", answer=statuses.internal("etcdserver: no leader"), times=100)
    done = tell("up", kubeconfig)
    assert done.process.returncode == 125, done.words()
    assert "etcdserver: no leader" in done.said
    assert "Traceback" not in done.said
