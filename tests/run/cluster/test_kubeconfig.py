"""The cluster is the one that kubectl would mean."""

from __future__ import annotations

from pathlib import Path

import pytest
from trainlaunch.errors import TargetUnavailable
from trainlaunch.run.kubernetes.kubeconfig import find_access

from tests import plain_yaml


def write(path: Path, name: str, *, current: str | None = None, namespace: str | None = None) -> str:
    """Write a kubeconfig with one context."""
    context = {"cluster": name} | ({"namespace": namespace} if namespace else {})
    content = {
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}:6443"}}],
        "contexts": [{"name": name, "context": context}],
    } | ({"current-context": current} if current else {})
    path.write_text(plain_yaml.dump(content))
    return str(path)


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def test_the_first_file_that_names_a_current_context_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for kubectl; the official client's own merge takes the last. Missing and empty files are passed over."""
    (tmp_path / "empty").write_text("")
    files = [
        str(tmp_path / "missing"),
        str(tmp_path / "empty"),
        write(tmp_path / "a", "one", current="two"),
        write(tmp_path / "b", "two", current="one", namespace="ml"),
    ]
    monkeypatch.setenv("KUBECONFIG", ":".join(files))
    access = find_access(None)
    assert (access.context, access.server, access.namespace) == ("two", "https://two:6443", "ml")
    assert access.files == ":".join(files[2:])
    assert find_access("one").namespace == "default"


def test_the_home_folder_is_looked_into(tmp_path: Path) -> None:
    """~/.kube/config, where KUBECONFIG is not set."""
    (tmp_path / ".kube").mkdir()
    write(tmp_path / ".kube" / "config", "home", current="home")
    assert find_access(None).context == "home"


def refused(context: str | None = None) -> str:
    """Return what the error for a context says."""
    with pytest.raises(TargetUnavailable) as unavailable:
        find_access(context)
    (diagnostic,) = unavailable.value.diagnostics
    assert diagnostic.code == "TL521"
    return f"{diagnostic.message}; {diagnostic.why}; {diagnostic.fix}"


def test_each_way_to_have_no_cluster_says_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file, a file that is none, no current context, an unknown context."""
    assert "~/.kube/config does not exist" in refused()
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "gone"))
    assert f"KUBECONFIG names {tmp_path / 'gone'}" in refused()
    monkeypatch.setenv("KUBECONFIG", write(tmp_path / "a", "one"))
    assert "no current context; it knows the contexts one; add `--context one`" in refused()
    assert "has no context two; it knows the contexts one" in refused("two")
    (tmp_path / "a").write_text("{: [")
    assert "can't be read" in refused()


def test_a_pod_of_a_cluster_means_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where no kubeconfig says otherwise."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    access = find_access(None)
    assert (access.context, access.server, access.words) == (
        "",
        "https://10.0.0.1:443",
        "the cluster that this pod runs in",
    )
