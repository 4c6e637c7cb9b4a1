"""Failures of other launchers, by their names in the project's collection of cases, that ours can't repeat."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from trainlaunch.errors import JobFileRejected
from trainlaunch.formats.kubernetes.environment import expanded
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.policy import read_job
from trainlaunch.render import render
from trainlaunch.rules import plan_job
from trainlaunch.verify import verified
from trainlaunch.yamltree.emitter import yaml_string

from tests import plain_yaml
from tests.render.readers import kubectl_json

ON_CLUSTER = "resources: {cpus: 2, memory: 4Gi}\n"


def plan_of(folder: Path, fields: str, target: str) -> LaunchPlan:
    """Return the plan of a job file that ends with the lines `fields`, in the user's own spelling."""
    path = folder / "job.yaml"
    start = "name: digits\nimage: trainer:1\n"
    command = "" if "command:" in fields or "script:" in fields else "command: [python, train.py]\n"
    path.write_text(start + command + fields, encoding="utf-8")
    return plan_job(read_job(path, target=target))


def test_k8_dollar_paren_expansion(tmp_path: Path) -> None:
    """`$(HOME_DIR)` in an argument reaches the shell as written, though a variable HOME_DIR exists."""
    fields = "env: {HOME_DIR: /data}\ncommand: [sh, -c, 'echo $(HOME_DIR) ${HOME_DIR} $(hostname) $$(HOME_DIR)']\n"
    plan = plan_of(tmp_path, fields + ON_CLUSTER, "kubernetes")
    container = kubectl_json(verified(plan, render(plan)))["spec"]["template"]["spec"]["containers"][0]
    assert container["args"][2] == "echo $$(HOME_DIR) ${HOME_DIR} $$(hostname) $$$$(HOME_DIR)"
    assert expanded(container["args"][2], {"HOME_DIR": "/data"}) == plan.argv[2]


def test_k8_job_name_too_long(tmp_path: Path) -> None:
    """A name of 67 characters is refused with its place; the longest allowed one still fits with a Job's suffix."""
    path = tmp_path / "job.yaml"
    name = "imagenet-resnet50-augmented-long-run-2024-11-30-ablation-lr-3e-4-v2"
    path.write_text(f"name: {name}\nimage: trainer:1\ncommand: [python]\n{ON_CLUSTER}")
    with pytest.raises(JobFileRejected) as refused:
        read_job(path, target="kubernetes")
    assert [(each.code, each.field) for each in refused.value.diagnostics] == [("TL107", "name")]
    path.write_text(f"name: {name[:62]}2\nimage: trainer:1\ncommand: [python]\n{ON_CLUSTER}")
    text = render(plan_job(read_job(path, target="kubernetes")))
    made = plain_yaml.load(text)["metadata"]["name"]
    assert len(made) <= 63
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", made)


def test_lb_env_bool(tmp_path: Path) -> None:
    """Values that YAML takes for booleans, octal or sexagesimal numbers arrive as they were spelled, as strings."""
    fields = "env:\n  AMP: true\n  SEED: 0123\n  LR: 3e-4\n  RATIO: 12:30:45\n  DEBUG: no\n"
    expected = {"AMP": "true", "SEED": "0123", "LR": "3e-4", "RATIO": "12:30:45", "DEBUG": "no"}
    for target in ("docker", "compose", "kubernetes"):
        plan = plan_of(tmp_path, fields + ON_CLUSTER, target)
        text = verified(plan, render(plan))
        if target == "kubernetes":
            container = kubectl_json(text)["spec"]["template"]["spec"]["containers"][0]
            assert expected.items() <= {each["name"]: each.get("value") for each in container["env"]}.items()
        elif target == "compose":
            assert expected.items() <= plain_yaml.load(text)["services"]["digits"]["environment"].items()
        else:
            assert all(f"  --env {name}={value} \\\n" in text for name, value in expected.items())


def test_lb_gpu_count_vs_index(tmp_path: Path) -> None:
    """A list of devices is never written as the bare numbers that docker would take for counts."""
    plan = plan_of(tmp_path, "resources: {cpus: 16, gpus: [0, 1, 2, 3, 4, 5, 6, 7]}\n", "docker")
    assert "  --gpus '\"device=0,1,2,3,4,5,6,7\"' \\\n" in verified(plan, render(plan))


@pytest.mark.parametrize("target", ["docker", "compose", "kubernetes"])
@pytest.mark.parametrize(
    "fields",
    ["", "data_loader: {num_workers: 0}\n", "data_loader: {inject: off}\n", "shm_size: 1Gi\n", "script: exit 0\n"],
)
def test_lb_prefect_no_shm(tmp_path: Path, target: str, fields: str) -> None:
    """Whatever a job leaves out, its rendering states the size of /dev/shm, at least 64 MiB."""
    plan = plan_of(tmp_path, fields + ON_CLUSTER, target)
    text = verified(plan, render(plan))
    stated = {
        "docker": r"--shm-size (\d+)m ",
        "compose": r'shm_size: "(\d+)m"',
        "kubernetes": r'sizeLimit: "(\d+)Mi"',
    }
    (size,) = re.findall(stated[target], text)
    assert int(size) * 1024**2 == plan.shm.size.value >= 64 * 1024**2


def test_lb_pyyaml_go_yaml_scalars() -> None:
    """The scalars on which PyYAML and Kubernetes' reader disagree are strings to both."""
    values = ["y", "n", "Y", "N", "1e3", "1e+3", "00215e6", "08", "0o14"]
    items = "".join(f"  v{index}: {yaml_string(value)}\n" for index, value in enumerate(values))
    text = 'apiVersion: "v1"\nkind: "ConfigMap"\nmetadata:\n  name: "scalars"\ndata:\n' + items
    assert list(kubectl_json(text)["data"].values()) == values
    assert list(plain_yaml.load(text)["data"].values()) == values


def test_rt_minikube_hostipc_still_64m(tmp_path: Path) -> None:
    """No manifest trusts the node's /dev/shm: it mounts its own and never asks for hostIPC."""
    text = render(plan_of(tmp_path, ON_CLUSTER, "kubernetes"))
    assert "hostIPC" not in text
    assert 'mountPath: "/dev/shm"' in text


def test_rt_unsized_emptydir_equals_allocatable_or_pod_limit(tmp_path: Path) -> None:
    """/dev/shm has a sizeLimit and every container a memory limit that is larger, so none can fill a node's memory."""
    plan = plan_of(tmp_path, ON_CLUSTER, "kubernetes")
    spec = plain_yaml.load(render(plan))["spec"]["template"]["spec"]
    memory = [each["resources"]["limits"]["memory"] for each in spec["containers"]]
    sizes = [each["emptyDir"]["sizeLimit"] for each in spec["volumes"] if each.get("emptyDir")]
    assert memory == ["4096Mi"]
    assert sizes == [f"{plan.shm.size.value // 1024**2}Mi"]
    assert plan.memory.limit is not None
    assert plan.shm.size.value < plan.memory.limit
