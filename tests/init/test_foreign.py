"""`init --from` makes a job of a text that somebody wrote, whose rendering for the same tool means the same."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trainlaunch.errors import JobFileRejected
from trainlaunch.formats.workload import stated
from trainlaunch.init.takeover import take_over
from trainlaunch.init.takeover.prologue import wrapped
from trainlaunch.policy import read_job
from trainlaunch.render import render
from trainlaunch.rules import plan_job

from tests import plain_yaml
from tests.init.meaning import compared, drafted, meaning, taken, workloads

# Fields in which the job says more than the text, which leaves them to the tool.
_LEFT_OPEN = ("stop_timeout", "pull_policy", "shm")

DOCKER = {
    "plain": "docker run --rm --shm-size=8g trainer:1 python train.py",
    "all": """
        docker run -d --name train-1 --gpus '"device=0,1"' --shm-size 4g -m 32g --cpus 7.5 -u 1000:1000 --group-add 100
          -v ./src:/workspace -v /data:/data:ro -v cache:/cache --mount type=tmpfs,target=/fast -w /workspace
          -e A=b -e 'QUOTED=a "b" $c' -e WANDB_API_KEY --label team=vision --ulimit memlock=-1
          --ulimit nofile=1024:65536 --read-only --stop-signal SIGINT --stop-timeout 90 --entrypoint python
          --pull always trainer:1 -u train.py
    """,
    "podman": "sudo podman run --gpus 2 --shm-size 2g trainer:1 torchrun --nproc-per-node 2 train.py",
    "amd": "docker run --device /dev/kfd --device /dev/dri/renderD129 --shm-size=1g rocm/pytorch:6.2 python train.py",
    "shell": "docker run --shm-size=1g trainer:1 bash -c 'cd /w && python train.py --num-workers 4 | tee log'",
    "braces": "docker run --shm-size=1g trainer:1 python train.py '{num_workers}' '{\"a\": 1}' --x={batch_size}",
}
COMPOSE = {
    "short": """
        services:
          train:
            image: trainer:1
            command: python train.py --num-workers 4
            shm_size: 8gb
            mem_limit: 32g
            cpus: 4
            environment: [A=b, "C=d $$e"]
            volumes: ["./src:/workspace", "/data:/data:ro"]
    """,
    "long": """
        name: lab
        services:
          train:
            image: trainer:1
            entrypoint: [python]
            command: ["-u", train.py]
            shm_size: 2gb
            user: "1000:1000"
            working_dir: /workspace
            read_only: true
            stop_signal: SIGINT
            stop_grace_period: 1m30s
            labels: {team: vision}
            ulimits: {memlock: -1, nofile: {soft: 1024, hard: 65536}}
            tmpfs: [/fast]
            deploy:
              resources:
                limits: {memory: 16g, cpus: "8"}
                reservations: {devices: [{driver: nvidia, count: 2, capabilities: [gpu]}]}
    """,
    "anchors": """
        x-base: &base {image: "trainer:1", shm_size: 4gb, environment: &env {A: b}}
        services:
          train:
            <<: *base
            environment: {<<: *env, C: "1e3"}
            command: [python, train.py]
    """,
}
POD = """
    apiVersion: batch/v1
    kind: Job
    metadata: {name: train, namespace: ml, labels: {team: vision}}
    spec:
      backoffLimit: 2
      activeDeadlineSeconds: 3600
      template:
        spec:
          restartPolicy: Never
          nodeSelector: {gpu: a100}
          tolerations: [{key: nvidia.com/gpu, operator: Exists}]
          terminationGracePeriodSeconds: 60
          automountServiceAccountToken: false
          containers:
          - name: train
            image: trainer:1
            command: [python]
            args: [train.py, --workers=4, $(A)]
            env:
            - {name: A, value: "x $$(B)"}
            - {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hf, key: token}}}
            resources:
              limits: {nvidia.com/gpu: 2, cpu: 7500m, memory: 64Gi}
            volumeMounts:
            - {name: shm, mountPath: /dev/shm}
            - {name: data, mountPath: /data, readOnly: true}
            - {name: scratch, mountPath: /scratch}
          volumes:
          - {name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}
          - {name: data, persistentVolumeClaim: {claimName: imagenet, readOnly: true}}
          - {name: scratch, emptyDir: {}}
"""
TEXTS = [
    *((f"docker {key}", "run.sh", each) for key, each in DOCKER.items()),
    *((f"compose {key}", "compose.yaml", each) for key, each in COMPOSE.items()),
    ("kubernetes job", "job.k8s.yaml", POD),
    ("kubernetes pod", "pod.yaml", POD.replace("batch/v1", "v1").replace("kind: Job", "kind: Pod")),
]


def written(text: str, name: str) -> str:
    """Return a text of this module as a file has it; a docker line stands on several."""
    lines = textwrap.dedent(text).strip("\n")
    if name.endswith(".sh"):
        lines = " \\\n  ".join(each.strip() for each in lines.splitlines())
    return _as_pod(lines) if "kind: Pod" in lines else lines + "\n"


def _as_pod(text: str) -> str:
    """Return a Job's text as that of a bare pod: the template's spec is its own."""

    document = plain_yaml.load(text)
    document["spec"] = document["spec"]["template"]["spec"]
    return plain_yaml.dump(document)


@pytest.mark.parametrize(("name", "text"), [each[1:] for each in TEXTS], ids=[each[0] for each in TEXTS])
def test_the_rendering_for_the_same_tool_means_the_same(name: str, text: str, tmp_path: Path) -> None:
    """Both are read by the readers of anybody's text, and each value that the first states is the second's."""
    before, after, _ = compared(written(text, name), name, tmp_path)
    open_ones = {key for key in _LEFT_OPEN if before[key] is None}
    assert {key: each for key, each in after.items() if key not in open_ones} == {
        key: _expected(key, each) for key, each in before.items() if key not in open_ones
    }


def _expected(key: str, value: Any) -> Any:
    """Return what the job's rendering says for a value: a variable that is passed on is a secret there."""
    return {name: each for name, each in value.items() if each != f"<{name}>"} if key == "env" else value


def test_a_variable_that_the_shell_passes_on_is_a_secret_by_reference(tmp_path: Path) -> None:
    """`-e NAME` and `-e NAME=$OTHER` are what this machine's variables hold when it starts."""
    line = "docker run --shm-size=1g -e WANDB_API_KEY -e X=$Y -e 'Z=${HOME}' trainer:1 python train.py"
    _, plan = taken(line, "run.sh", tmp_path)
    assert {name: each.env for name, each in plan.job.secrets.items()} == {"WANDB_API_KEY": "WANDB_API_KEY", "X": "Y"}
    assert plan.job.env == {"Z": "${HOME}"}


def test_no_value_of_a_secret_comes_into_the_job_file(tmp_path: Path) -> None:
    """Law 8: the text has it, the job file, its notes and its rendering don't."""
    made, plan = taken("docker run --shm-size=1g -e HF_TOKEN=hf_123 trainer:1 python train.py", "run.sh", tmp_path)
    assert "hf_123" not in made.text + str(made.notes) + render(plan)
    assert [each.message for each in made.notes] == ["the value of HF_TOKEN was not converted"]


def test_the_folder_of_the_shell_is_the_folder_of_the_text(tmp_path: Path) -> None:
    """$PWD, ${PWD} and $(pwd) begin the most usual mount of all; it is an assumption, and the file says so."""
    for word in ("$PWD", "${PWD}", "$(pwd)", '"$PWD"'):
        made, plan = taken(f"docker run --shm-size=1g -v {word}/src:/w trainer:1 python train.py", "run.sh", tmp_path)
        assert [each.source for each in plan.job.mounts] == ["./src"], word
        assert "is taken for the folder of run.sh" in made.text


def test_relative_paths_are_seen_from_the_job_file(tmp_path: Path) -> None:
    """The text lies elsewhere."""
    (tmp_path / "deploy").mkdir()
    text = b"services: {train: {image: 'trainer:1', shm_size: 1gb, command: [x], volumes: ['../src:/w']}}"
    made = take_over(text, str(tmp_path / "deploy" / "compose.yaml"), pick=None, folder=tmp_path)
    assert "source: ./src" in made.text


LOST = [
    ("docker run --ipc=host trainer:1 python train.py", "run.sh", ["/dev/shm as the file has it (host)"]),
    ("docker run -it --shm-size=1g trainer:1 python train.py", "run.sh", ["--interactive", "--tty"]),
    ("docker run --shm-size=1g --restart always trainer:1 python train.py", "run.sh", ["--restart always"]),
    ("docker run --shm-size=1g --env-file .env trainer:1 python train.py", "run.sh", ["--env-file .env"]),
    ("docker run --shm-size=1g -v $DATA:/x trainer:1 python train.py", "run.sh", ["the mount at /x"]),
    ("docker run trainer:1 python train.py", "run.sh", ["the default of 64 MiB for /dev/shm"]),
    ("docker run --shm-size=1g -m 512m trainer:1 python train.py", "run.sh", ["shm_size 1Gi"]),
    (
        "services: {train: {image: 'trainer:1', command: [x], shm_size: 1gb, depends_on: [db], restart: always}}",
        "compose.yaml",
        ['depends_on: ["db"]', 'restart: "always"'],
    ),
    (
        "services: {train: {image: 'trainer:1', command: [x], shm_size: 1gb, volumes: ['data:/data']}}",
        "compose.yaml",
        ["the volume data by that name"],
    ),
]


@pytest.mark.parametrize(("text", "name", "lost"), LOST, ids=[", ".join(each[2]) for each in LOST])
def test_what_is_not_taken_over_is_listed_with_the_reason(
    text: str, name: str, lost: list[str], tmp_path: Path
) -> None:
    """The job plans all the same, and each warning has why, what to type, and the place in the text."""
    made, _ = taken(text, name, tmp_path)
    assert [each.message.removesuffix(" was not converted") for each in made.notes] == lost
    assert all(each.why and each.fix for each in made.notes)


OPEN = [
    ("docker run --shm-size=1g trainer:1", "run.sh", "command", ["the image's own command"]),
    ("docker run --shm-size=1g $IMAGE python train.py", "run.sh", "image", ["the image $IMAGE"]),
    ("docker run --shm-size=1g t:1 python a.py --lr $LR", "run.sh", "command", ["the command python a.py --lr $LR"]),
    (
        "services: {train: {build: ., command: [x], shm_size: 1gb}}", "compose.yaml", "image",
        ["the image of the file", 'build: "."'],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "name", "field", "lost"), OPEN, ids=[each[0] for each in OPEN])
def test_what_a_text_leaves_open_is_left_out_and_plan_stops_there(
    text: str, name: str, field: str, lost: list[str], tmp_path: Path
) -> None:
    """A placeholder would start something else than the text does."""
    made = take_over(text.encode(), str(tmp_path / name), pick=None, folder=tmp_path)
    assert [each.message.removesuffix(" was not converted") for each in made.notes] == lost
    assert f"as {field}." in " ".join(made.text.replace("#", "").split())
    job = tmp_path / "job.yaml"
    job.write_text(made.text)
    with pytest.raises(JobFileRejected) as rejected:
        read_job(job)
    assert next(each.message for each in rejected.value.diagnostics).startswith(field)
    job.write_text(f"{made.text}{field}: {'[x]' if field == 'command' else 't:2'}\n")
    assert plan_job(read_job(job)).name


def test_what_a_script_sets_itself_is_taken_and_a_home_is_known(tmp_path: Path) -> None:
    """The image and the flags of variables that are literals, and how an image is fetched is no part of its name."""
    text = 'IMAGE=trainer:1\nGPU="--gpus 2"\ndocker run --shm-size=1g $GPU -v $HOME/x:/x $IMAGE python train.py\n'
    made, plan = taken(text, "run.sh", tmp_path)
    assert (plan.job.image, plan.job.resources.gpus.count) == ("trainer:1", 2)
    assert [each.message[:31] for each in made.notes] == ["what the script does beside it "]
    assert f"source: {Path.home()}/x" in made.text
    line = "docker run --shm-size=1g -v $PWD:$PWD -v $(pwd)/d:$HOME/d -w $PWD/src -e R=$PWD t:1 python train.py\n"
    made, plan = taken(line, "run.sh", tmp_path)
    assert ([each.target for each in plan.job.mounts], plan.job.working_dir) == (
        [str(tmp_path), f"{Path.home()}/d"],
        f"{tmp_path}/src",
    )
    assert f"env:\n  R: {tmp_path}\n" in made.text
    made, _ = taken(line.replace("-w $PWD/src", "-w $WHERE"), "run.sh", tmp_path)
    assert "working_dir $WHERE was not converted" in [each.message for each in made.notes]
    job = "on: push\njobs:\n  t:\n    runs-on: x\n    container: {image: 'docker://h.io/t:1', options: --shm-size=1g}\n"
    workflow = take_over(job.encode(), str(tmp_path / ".github/workflows/a.yml"), pick=None, folder=tmp_path)
    assert "image: h.io/t:1\n" in workflow.text


def test_groups_of_replicas_are_listed(tmp_path: Path) -> None:
    """A Master and its Workers run the same: one job, whose other pods are named."""
    group = (
        "{replicas: %d, template: {spec: {containers: [{name: pytorch, image: 't:1', command: [python, train.py], "
        "resources: {limits: {cpu: 1, memory: 4Gi}}}]}}}"
    )
    text = (
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: ddp}\nspec:\n  pytorchReplicaSpecs:\n"
        f"    Master: {group % 1}\n    Worker: {group % 3}\n"
    )
    made = take_over(text.encode(), str(tmp_path / "job.yaml"), pick=None, folder=tmp_path)
    (worker,) = [each for each in made.notes if "Worker" in each.message]
    assert "the number of its pods, 4, was not converted" in [each.message for each in made.notes]
    assert "the group of pods" in worker.message
    assert "nnodes" in worker.fix


def test_pods_of_a_job_set_that_run_the_same_are_counted(tmp_path: Path) -> None:
    """Replicas times parallelism of the chosen group; a driver beside it is another container."""
    group = "{replicas: %d, name: %s, template: {spec: {parallelism: %d, template: {spec: {containers: [%s]}}}}}"
    groups = [
        group % (4, "w", 2, "{name: t, image: 't:1', command: [python, train.py]}"),
        group % (1, "d", 1, "{name: d, image: 'd:1', command: [python, wait.py]}"),
    ]
    text = "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: s}\nspec:\n  replicatedJobs:\n"
    text += "".join(f"  - {each}\n" for each in groups)
    made = take_over(text.encode(), str(tmp_path / "job.yaml"), pick="1", folder=tmp_path)
    said = [each.message for each in made.notes]
    assert "the number of its pods, 8, was not converted" in said
    assert any("replicatedJobs[1]" in each for each in said)


def test_a_pod_loses_what_a_job_has_no_field_for(tmp_path: Path) -> None:
    """Init containers, a folder of the node, a probe that kills: each once, at a place of the manifest."""
    text = written(POD, "job.k8s.yaml").replace("emptyDir: {}", "hostPath: {path: /mnt}")
    containers, image = "      containers:\n", "        image: trainer:1\n"
    text = text.replace(containers, f"      initContainers: [{{name: i, image: i}}]\n{containers}")
    text = text.replace(image, f"{image}        livenessProbe: {{exec: {{command: [x]}}}}\n")
    made, _ = taken(text, "job.k8s.yaml", tmp_path)
    assert sorted(each.message for each in made.notes) == [
        "container.livenessProbe was not converted",
        "the bind mount at /scratch was not converted",
    ]


def test_flags_that_no_field_has_go_into_the_patch_of_their_tool(tmp_path: Path) -> None:
    """They are in the rendering again, where the same reader finds them."""
    line = "docker run --shm-size=1g --cap-add SYS_PTRACE --network host --privileged trainer:1 python train.py"
    _, plan = taken(line, "run.sh", tmp_path)
    rest = drafted(plan, tmp_path).rest
    assert (rest["--cap-add"], rest["--network"], rest["--privileged"]) == (("SYS_PTRACE",), ("host",), True)
    text = (
        "services: {train: {image: 'trainer:1', command: [x], shm_size: 1gb, ports: ['80:80'], cap_add: [SYS_PTRACE]}}"
    )
    _, plan = taken(text, "compose.yaml", tmp_path)
    rest = drafted(plan, tmp_path).rest
    assert (rest["service.ports.0"], rest["service.cap_add.0"]) == ("80:80", "SYS_PTRACE")


def test_a_kind_is_kept_and_another_one_becomes_a_job(tmp_path: Path) -> None:
    """A Deployment that trains is told."""
    text = written(POD, "job.k8s.yaml")
    _, plan = taken(
        text.replace("batch/v1", "kubeflow.org/v1").replace("kind: Job", "kind: PyTorchJob"), "a.yaml", tmp_path
    )
    assert plan.job.kubernetes.kind == "pytorchjob"
    made, plan = taken(text.replace("batch/v1", "apps/v1").replace("kind: Job", "kind: Deployment"), "a.yaml", tmp_path)
    assert plan.job.kubernetes.kind == "job"
    assert "the kind Deployment was not converted" in [each.message for each in made.notes]


def test_a_pod_without_limits_gets_some_that_are_called_a_guess(tmp_path: Path) -> None:
    """Kubernetes requires both in a job file; nothing is guessed in silence."""
    spec = "{containers: [{name: a, image: 'trainer:1', command: [x]}]}"
    text = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: train}}\nspec: {spec}\n"
    made, plan = taken(text, "pod.yaml", tmp_path)
    assert plan.job.resources.memory == 16 * 2**30
    assert "is a guess" in made.text
    assert "no limit of memory was not converted" in [each.message for each in made.notes]


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)


@settings(deadline=None, max_examples=25)
@given(argv=st.lists(WORDS, min_size=1, max_size=4), value=WORDS, label=WORDS)
def test_any_string_arrives_as_it_was(
    argv: list[str], value: str, label: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Quotes, newlines, braces, dollars, look-alikes of numbers: the job's rendering has the same bytes."""
    from trainlaunch.templating.quoting import sh_words

    folder = tmp_path_factory.mktemp("any")
    words = ("--env", f"A={value}", "--label", f"team={label}", "trainer:1", "x", *argv)
    line = f"docker run --shm-size=1g {sh_words(words)}\n"
    read = workloads(line, "run.sh")
    before, after, made = compared(line, "run.sh", folder)
    assert len(read) == 1
    assert {key: after[key] for key in ("env", "labels")} == {key: before[key] for key in ("env", "labels")}
    job = read_job(folder / "job.yaml")
    assert job.env == {"A": value}
    workload = drafted(plan_job(job), folder)
    plan = wrapped(workload)
    assert plan is not None
    assert tuple(before["argv"]) == ("x", *argv)
    assert stated(workload.image) == "trainer:1"
    assert meaning(workload, folder)["argv"] == after["argv"]
    assert made.notes == ()
