"""`init --from` has an answer for every kind of text that `lint` knows."""

from __future__ import annotations

from pathlib import Path

import pytest
from trainlaunch.errors import JobFileRejected
from trainlaunch.init.takeover import take_over
from trainlaunch.lint.file_kinds import KINDS

LINE = "docker run --shm-size=2g trainer:1 python train.py"
TASK = """\
{"family": "train", "requiresCompatibilities": ["EC2"], "cpu": "4096", "memory": "16384", "containerDefinitions": [
  {"name": "train", "image": "trainer:1", "command": ["python", "train.py"],
   "linuxParameters": {"sharedMemorySize": 2048}, "resourceRequirements": [{"type": "GPU", "value": "1"}]}]}
"""
STACK = """\
Resources:
  Train:
    Type: AWS::ECS::TaskDefinition
    Properties:
      ContainerDefinitions:
        - {Name: train, Image: !Ref Image, Command: [python, train.py], LinuxParameters: {SharedMemorySize: 2048}}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec: {containers: [{name: train, image: "trainer:1", command: [python, train.py]}]}
"""
# A text of each kind; None where it becomes a job file, else what its refusal says.
TEXTS = {
    "shell": ("run.sh", LINE, None),
    "markdown": ("README.md", f"# Train\n\n```sh\n{LINE}\n```\n", None),
    "makefile": ("Makefile", f"train:\n\t{LINE}\n", None),
    "compose": ("compose.yaml", 'services: {train: {image: "trainer:1", command: [python, train.py]}}', None),
    "kubernetes": ("pod.yaml", POD, None),
    "dockerfile": ("Dockerfile", 'FROM trainer:1\nCMD ["python", "train.py"]\n', "builds an image and starts none"),
    "devcontainer": ("devcontainer.json", '{"image": "trainer:1", "runArgs": ["--shm-size=2g"]}', None),
    "github-actions": (
        ".github/workflows/train.yml",
        f"jobs: {{train: {{runs-on: ubuntu-latest, steps: [{{run: '{LINE}'}}]}}}}",
        None,
    ),
    "gitlab-ci": (".gitlab-ci.yml", f"train: {{script: ['{LINE}']}}", None),
    "sagemaker": ("config.yaml", "local:\n  container_config: {shm_size: 2g}\n", "`trainlaunch init train.py`"),
    "ecs": ("task.json", TASK, "`trainlaunch init --image IMAGE --cpus N --memory SIZE --gpus N`"),
    "training-script": (
        "train.py",
        "from torch.utils.data import DataLoader\nloader = DataLoader(data, num_workers=4)\n",
        "`trainlaunch init train.py`",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_becomes_a_job_file_or_is_refused_with_what_to_do(kind: str) -> None:
    """Whoever adds a kind to `lint` decides what `init --from` makes of it."""
    name, text, refused = TEXTS[kind]
    if refused is None:
        assert "image: trainer:1" in take_over(text.encode(), name, pick=None, folder=Path()).text
        return
    with pytest.raises(JobFileRejected) as rejected:
        take_over(text.encode(), name, pick=None, folder=Path())
    [diagnostic] = rejected.value.diagnostics
    assert diagnostic.code == "TL382"
    assert refused in f"{diagnostic.message}; {diagnostic.fix}"


@pytest.mark.parametrize("name", ["stack.yaml", "-"])
def test_a_stack_with_a_task_definition_is_refused_like_the_definition(name: str) -> None:
    """CloudFormation's spelling is the same kind, whether its name or its words tell."""
    with pytest.raises(JobFileRejected, match="Amazon ECS"):
        take_over(STACK.encode(), name, pick="train", folder=Path())


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("#SBATCH --container-image=a.sqsh\npython train.py\n", "srun"),
        ("srun apptainer exec --nv a.sif python train.py\n", "apptainer"),
    ],
)
def test_what_a_batch_system_starts_is_named_and_not_taken_over(text: str, program: str) -> None:
    """Its images and mounts are the cluster's; that none is there would be false; an installed program starts none."""
    with pytest.raises(JobFileRejected, match=f"starts its container by {program}, which init does not convert"):
        take_over(text.encode(), "job.sbatch", pick=None, folder=Path())
    with pytest.raises(JobFileRejected, match="starts no container that can be read"):
        take_over(b"module load apptainer\npython train.py\n", "job.sbatch", pick=None, folder=Path())
