"""What each rule catches, and near-misses that it doesn't."""

from __future__ import annotations

import pytest
from trainlaunch.rules.text_findings import RULES

from tests.lint import rule_cases
from tests.lint.texts import DEFECTS, LIMIT, MOUNT, SIZED, codes, linted, pod

RUN = "docker run --rm "
GPU = "resources: {limits: {memory: 16Gi, nvidia.com/gpu: 1}}"
JOB = "on: push\njobs:\n  gpu:\n    runs-on: %s\n    container: {image: 'trainer:1', options: --shm-size=8g}\n"
CLASS = "class A(%s):\n    def __init__(self):\n        self.f = %s\n    def __getitem__(self, i):\n        return %s\n"
STAYS = "args: [bash, -c, python train.py && sleep infinity]"
OPEN_STEPS = "args: [python, train.py, --max_steps, '-1', --num_train_epochs, '3']"
LOADER = "x = DataLoader(A(), num_workers=%s)\n"
SPAWN = "x = DataLoader(d, num_workers=2, multiprocessing_context='spawn'%s)\n"
SCRIPT = "training-script"
ZERO = "count: 0, capabilities: [gpu]"
OWN: list[tuple[str, str, str, int]] = [
    # rule, kind, text, how often it speaks
    ("shm-size-missing", "shell", RUN + "--gpus all t:1 torchrun train.py", 1),
    ("shm-size-missing", "shell", RUN + "t:1 python train.py --num_workers=4", 1),
    ("shm-size-missing", "shell", RUN + "-e NUM_WORKERS=4 t:1 python train.py", 1),
    ("shm-size-missing", "shell", RUN + "-e NUM_WORKERS=4 t:1 python main.py", 0),
    ("shm-size-missing", "shell", RUN + "--gpus 2 t:1 accelerate launch inference_api.py", 0),
    ("shm-size-missing", "shell", RUN + "--gpus all -p 80:80 t:1 torchrun serve.py", 0),
    ("shm-size-missing", "shell", RUN + "--gpus 2 vllm/vllm-openai:1 --tensor-parallel-size 2", 1),
    ("shm-size-missing", "shell", RUN + "t:1 bash -c 'cd /app && python train.py --workers 2'", 1),
    ("shm-size-missing", "shell", RUN + "--gpus all --shm-size=1g t:1 torchrun train.py", 0),
    ("shm-size-missing", "shell", RUN + "--gpus all --tmpfs /dev/shm:size=1g t:1 torchrun train.py", 0),
    ("shm-size-missing", "shell", RUN + "--gpus all --mount type=tmpfs,dst=/dev/shm,tmpfs-size=1g t:1 torchrun", 0),
    ("shm-size-missing", "shell", RUN + "--gpus all $SHM t:1 torchrun train.py", 0),
    ("shm-size-missing", "shell", RUN + "--gpus all --ipc=host t:1 torchrun train.py", 0),
    ("shm-size-missing", "shell", RUN + "t:1 python train.py --num-workers 0", 0),
    ("shm-size-missing", "shell", RUN + "t:1 python train.py --num-workers $N", 0),
    ("shm-size-missing", "shell", RUN + "t:1 python train.py", 0),
    ("shm-size-missing", "shell", RUN + "t:1 --port 80 --num-workers 8", 0),
    ("shm-size-missing", "shell", RUN + "--gpus all t:1 yolo train data=a.yaml workers=0", 0),
    ("shm-size-missing", "shell", RUN + "t:1 yolo train data=a.yaml", 0),
    ("shm-size-missing", "shell", RUN + "t:1 yolo predict source=a workers=8", 0),
    ("shm-size-missing", "shell", RUN + "t:1 gunicorn --workers 4 app", 0),
    ("shm-size-missing", "shell", RUN + "--gpus all nvidia/cuda:12 nvidia-smi", 0),
    ("shm-size-missing", "shell", "# docker run --gpus all t:1 torchrun train.py", 0),
    ("shm-size-missing", "shell", "echo docker run --gpus all t:1 torchrun train.py", 0),
    ("shm-size-missing", "compose", "services:\n  t: {image: 'x:1', command: python train.py --num-workers 2}\n", 1),
    ("shm-size-missing", "compose", "services:\n  t: {extends: {file: o.yaml, service: s}, gpus: all}\n", 0),
    ("shm-size-missing", "kubernetes", pod(f"command: [torchrun, train.py]\n{GPU}"), 1),
    ("shm-size-missing", "kubernetes", pod(f"command: [torchrun, train.py]\n{GPU}\n{MOUNT}", SIZED), 0),
    ("shm-size-missing", "kubernetes", pod("volumeMounts: {{ .Values.mounts }}\n" + GPU, image="pytorch:1"), 0),
    ("size-without-unit", "shell", RUN + "--shm-size 64 t:1", 1),
    ("size-without-unit", "shell", RUN + "--shm-size=512b t:1", 1),
    ("size-without-unit", "shell", RUN + "--shm-size 8589934592 t:1", 0),
    ("size-without-unit", "shell", RUN + "--shm-size 64m t:1", 0),
    ("size-without-unit", "shell", RUN + "--shm-size ${SHM:-64} t:1", 0),
    ("size-without-unit", "kubernetes", pod(f"{LIMIT}\n{MOUNT}", SIZED.replace("4Gi", "2")), 1),
    ("size-without-unit", "compose", "services:\n  t: {image: x, shm_size: 16, mem_limit: 32}\n", 2),
    ("size-in-thousandths", "kubernetes", pod(f"resources: {{limits: {{memory: 3500m}}}}\n{MOUNT}", SIZED), 1),
    ("size-in-thousandths", "kubernetes", pod(f"{LIMIT}\n{MOUNT}", SIZED.replace("4Gi", "2899102924800m")), 0),
    ("size-in-thousandths", "kubernetes", pod(f"{LIMIT}\n{MOUNT}", SIZED.replace("4Gi", "512M")), 0),
    ("size-not-read", "kubernetes", pod(f"{LIMIT}\n{MOUNT}", SIZED.replace("4Gi", "96Gi * 16")), 0),
    ("size-in-thousandths", "shell", RUN + "--shm-size=512m t:1", 0),
    ("size-not-read", "shell", RUN + "--shm-size=8Gi t:1", 1),
    ("size-not-read", "compose", "services:\n  t: {image: x, shm_size: 8Gi}\n", 1),
    ("size-not-read", "compose", "services:\n  t: {image: x, shm_size: 8gib}\n", 0),
    ("size-not-read", "shell", RUN + "--shm-size=8GiB t:1", 0),
    ("size-not-read", "kubernetes", pod(f"{LIMIT}\n{MOUNT}", SIZED), 0),
    ("size-decimal", "kubernetes", pod(f"{LIMIT}\n{MOUNT}", SIZED.replace("4Gi", "'4G'")), 1),
    ("size-decimal", "kubernetes", pod(f"{LIMIT}\n{MOUNT}", SIZED.replace("4Gi", "4e9")), 0),
    ("size-decimal", "shell", RUN + "--shm-size=4G t:1", 0),
    ("size-fractional", "kubernetes", pod(f"{LIMIT}\n{MOUNT}", SIZED.replace("4Gi", "1.1Gi")), 1),
    ("size-fractional", "kubernetes", pod(f"{LIMIT}\n{MOUNT}", SIZED.replace("4Gi", "1.5Gi")), 0),
    ("size-fractional", "shell", RUN + "--shm-size=1.1g t:1", 0),
    ("shm-unlimited", "kubernetes", pod(f"{LIMIT}\n{MOUNT}", "{name: dshm, emptyDir: {medium: Memory}}"), 1),
    ("shm-unlimited", "shell", RUN + "--tmpfs /dev/shm t:1", 1),
    ("shm-unlimited", "shell", RUN + "--tmpfs /tmp t:1", 0),
    ("shm-unlimited", "shell", RUN + "--tmpfs /dev/shm:rw,size=1g t:1", 0),
    ("shm-without-memory-limit", "kubernetes", pod(MOUNT, SIZED), 1),
    ("shm-without-memory-limit", "kubernetes", pod(f"resources: {{requests: {{memory: 8Gi}}}}\n{MOUNT}", SIZED), 0),
    ("shm-without-memory-limit", "kubernetes", pod(f"{LIMIT}\n{MOUNT}", SIZED), 0),
    ("shm-without-memory-limit", "shell", RUN + "--shm-size=8g t:1", 0),
    ("shm-on-disk", "kubernetes", pod(f"{LIMIT}\n{MOUNT}", "{name: dshm, persistentVolumeClaim: {claimName: c}}"), 1),
    ("shm-on-disk", "compose", "services:\n  t: {image: x, volumes: ['data:/dev/shm']}\n", 1),
    ("shm-on-disk", "kubernetes", pod(f"{LIMIT}\n{MOUNT}", SIZED), 0),
    (
        "shm-on-disk", "kubernetes",
        pod(LIMIT + "\n" + MOUNT.replace("/dev/shm", "/data"), "{name: dshm, emptyDir: {}}"),
        0,
    ),
    ("shm-volume-unmounted", "kubernetes", pod(LIMIT, SIZED), 1),
    ("shm-volume-unmounted", "kubernetes", pod(LIMIT + "\n" + MOUNT.replace("/dev/shm", "/cache"), SIZED), 0),
    ("shm-volume-unmounted", "kubernetes", pod(LIMIT, "{name: scratch, emptyDir: {}}"), 0),
    ("shm-volume-unmounted", "kubernetes", pod(f"{LIMIT}\n{MOUNT}", SIZED), 0),
    ("mounts-outside-container", "kubernetes", pod(LIMIT, SIZED, spec=MOUNT), 1),
    ("mounts-outside-container", "kubernetes", pod(f"{LIMIT}\n{MOUNT}", SIZED), 0),
    (
        "mounts-outside-container", "kubernetes",
        "kind: Workflow\nspec:\n  templates:\n  - {name: a, container: {image: x}}\n",
        0,
    ),
    (
        "claim-template-of-memory", "kubernetes",
        pod(spec="volumeClaimTemplates: [{metadata: {name: d}, emptyDir: {}}]"),
        1,
    ),
    ("claim-template-of-memory", "kubernetes", pod(spec="volumeClaimTemplates: [{metadata: {name: d}, spec: {}}]"), 0),
    ("claim-template-of-memory", "kubernetes", pod(volumes="{name: d, emptyDir: {}}"), 0),
    ("shm-size-at-build", "compose", "services:\n  t: {build: {context: ., args: [SHM_SIZE=2g]}}\n", 1),
    ("shm-size-at-build", "compose", "services:\n  t: {build: {context: ., shm_size: 2g}, shm_size: 2g}\n", 0),
    ("shm-size-at-build", "compose", "services:\n  t: {build: {context: ., args: {VERSION: 2g}}}\n", 0),
    ("shm-size-at-build", "shell", "docker buildx build --shm-size 2g . && docker run t:1", 1),
    ("shm-size-at-build", "shell", "docker build --shm-size 2g .", 0),
    ("shm-size-at-build", "shell", "docker build --shm-size 2g . && docker run --shm-size 2g t:1", 0),
    ("shm-set-in-image", "dockerfile", "FROM x\nRUN a && \\\n  mount -t tmpfs tmpfs /dev/shm\n", 1),
    ("shm-set-in-image", "dockerfile", "FROM x\nENV SHM_SIZE=8g\n", 1),
    ("shm-set-in-image", "dockerfile", "FROM x\nRUN --mount=type=tmpfs,target=/dev/shm make\n", 0),
    ("shm-set-in-image", "dockerfile", "FROM x\n# RUN mount -o remount /dev/shm\nRUN ls /dev/shm\n", 0),
    ("shm-set-in-image", "dockerfile", "FROM x\nENV SIZE=8g\n", 0),
    ("ipc-with-size", "shell", RUN + "--ipc=host --shm-size=1g t:1", 1),
    ("ipc-with-size", "shell", RUN + "--ipc=private --shm-size=1g t:1", 0),
    ("ipc-with-size", "shell", RUN + "--ipc=$IPC --shm-size=1g t:1", 0),
    ("ipc-with-size", "compose", "services:\n  t: {image: x, ipc: shareable, shm_size: 1g}\n", 0),
    ("ipc-of-host", "shell", RUN + "--ipc=host t:1", 1),
    ("ipc-of-host", "shell", RUN + "--ipc=host --shm-size=1g t:1", 0),
    ("ipc-of-host", "kubernetes", pod(f"{LIMIT}\n{MOUNT}", SIZED, spec="hostIPC: true"), 1),
    ("ipc-of-host", "kubernetes", pod(spec="hostIPC: false"), 0),
    ("size-in-podman-pod", "shell", "podman run --pod p --shm-size 8g t:1", 1),
    ("size-in-podman-pod", "shell", "podman run --pod p t:1", 0),
    ("size-in-podman-pod", "shell", "podman run --shm-size 8g t:1", 0),
    ("flag-with-underscores", "shell", RUN + "--shm_size=2gb t:1", 1),
    ("flag-with-underscores", "shell", RUN + "t:1 python train.py --shm_size=2gb", 0),
    ("flag-with-underscores", "shell", RUN + "--my_flag=2gb t:1", 0),
    ("flag-with-underscores", "shell", "other --shm_size 2gb; docker run --shm-size 2g t:1", 0),
    ("gpus-list-unquoted", "shell", RUN + '--gpus "device=0,1" t:1', 1),
    ("gpus-list-unquoted", "shell", RUN + "--gpus '\"device=0,1\"' t:1", 0),
    ("gpus-list-unquoted", "shell", RUN + "--gpus device=0 t:1", 0),
    ("gpus-list-unquoted", "shell", RUN + "--gpus device=$A,$B t:1", 0),
    ("gpus-list-unquoted", "shell", RUN + "--gpus 2 t:1", 0),
    ("run-args-unused", "devcontainer", '{"dockerComposeFile": "c.yaml", "runArgs": []}', 0),
    ("run-args-unused", "devcontainer", '{"image": "x", "runArgs": ["--gpus", "all"]}', 0),
    ("run-args-unused", "devcontainer", '{"dockerComposeFile": ["a", "b"], "runArgs": ["-v", "a:/b"]}', 1),
    ("options-left-to-runner", "github-actions", JOB % "gpu-pool", 1),
    ("options-left-to-runner", "github-actions", JOB % "ubuntu-24.04", 0),
    ("options-left-to-runner", "github-actions", JOB % "${{ matrix.runner }}", 0),
    ("options-left-to-runner", "github-actions", JOB % "[self-hosted, gpu]", 0),
    ("shell-hides-signals", "dockerfile", "FROM x\nENTRYPOINT torchrun train.py\n", 1),
    ("shell-hides-signals", "dockerfile", "FROM x\nCMD exec python train.py\n", 0),
    ("shell-hides-signals", "dockerfile", "FROM x\nCMD python train.py\nENTRYPOINT [\"/run.sh\"]\n", 0),
    ("shell-hides-signals", "dockerfile", "FROM x\nCMD nginx -g daemon\n", 0),
    ("shell-hides-signals", "shell", RUN + "t:1 sh -c 'python train.py; echo done'", 1),
    ("shell-hides-signals", "shell", RUN + "t:1 sh -c 'cd /a && python train.py'", 0),
    ("shell-hides-signals", "shell", RUN + "t:1 sh -c 'trap x TERM; python train.py; echo done'", 0),
    ("dollar-without-shell", "compose", "services:\n  t: {image: x, command: python train.py --e $$E}\n", 1),
    ("dollar-without-shell", "compose", "services:\n  t: {image: x, command: [sh, -c, 'python train.py $$E']}\n", 0),
    ("dollar-without-shell", "compose", "services:\n  t: {image: x, command: [python, train.py, $E]}\n", 0),
    ("dollar-without-shell", "compose", "services:\n  t: {image: x, entrypoint: [sh, -c], command: [python $$E]}\n", 0),
    ("nproc-under-omp", "shell", RUN + "-e OMP_NUM_THREADS=2 t:1 nproc --all", 0),
    ("nproc-under-omp", "shell", RUN + "t:1 nproc", 0),
    ("nproc-under-omp", "shell", RUN + "-e OMP_NUM_THREADS=2 t:1 sh -c 'make -j $(nproc)'", 1),
    ("nproc-under-omp", "shell", RUN + "-e OMP_NUM_THREADS=2 t:1 python --nproc 2", 0),
    ("gpu-by-cdi-name", "compose", "services:\n  t: {image: x, devices: ['/dev/fuse:/dev/fuse']}\n", 0),
    (
        "gpu-by-cdi-name", "compose",
        "services:\n  t: {image: x, devices: ['nvidia.com/gpu=0', 'nvidia.com/gpu=1']}\n",
        1,
    ),
    ("gpu-by-cdi-name", "compose", "services:\n  t: {image: x, gpus: all}\n", 0),
    ("size-for-local-mode", "sagemaker", "local: {container_config: {shm_size: 8gb}}\n", 1),
    ("size-for-local-mode", "sagemaker", "local: {container_config: {ipc_mode: host}}\n", 0),
    ("size-for-local-mode", "compose", "services:\n  t: {image: x, shm_size: 8gb}\n", 0),
    ("uid-without-name", "shell", RUN + "--user 1000 t:1", 1),
    ("uid-without-name", "shell", RUN + "--user 1000 -e USER=me t:1", 0),
    ("uid-without-name", "shell", RUN + "--user nobody t:1", 0),
    ("uid-without-name", "shell", RUN + "--user 1000 -v /etc/passwd:/etc/passwd:ro t:1", 0),
    ("uid-without-name", "dockerfile", "FROM x\nRUN useradd -u 10001 app\nUSER 10001\n", 0),
    ("uid-without-name", "dockerfile", "FROM x\nUSER app\n", 0),
    ("pipe-hides-exit-code", "shell", RUN + "t:1 sh -c 'python train.py | tee log'", 1),
    ("pipe-hides-exit-code", "shell", RUN + "t:1 python train.py | tee log", 0),
    ("pipe-hides-exit-code", "shell", RUN + "t:1 bash -c 'set -o pipefail; python train.py | tee log'", 0),
    ("pipe-hides-exit-code", "shell", RUN + "t:1 sh -c 'cat x | python train.py'", 0),
    ("pipe-hides-exit-code", "shell", RUN + "t:1 sh -c 'python train.py || exit 1'", 0),
    ("shm-of-host", "shell", RUN + "-v /dev/shm:/dev/shm t:1", 1),
    ("shm-of-host", "shell", RUN + "-v /dev:/dev t:1", 1),
    ("shm-of-host", "shell", RUN + "-v /dev/shm:/data t:1", 0),
    ("shm-of-host", "shell", RUN + "-v /dev/shm/cache:/dev/shm/cache t:1", 0),
    ("shm-of-host", "kubernetes", pod(f"{LIMIT}\n{MOUNT}", "{name: dshm, hostPath: {path: /dev/shm}}"), 1),
    ("shm-read-only", "kubernetes", pod(f"{LIMIT}\n{MOUNT}".replace("}]", ", readOnly: true}]"), SIZED), 1),
    ("shm-read-only", "kubernetes", pod(f"{LIMIT}\n{MOUNT}", SIZED), 0),
    ("shm-read-only", "shell", RUN + "-v /data:/data:ro t:1", 0),
    ("shm-size-of-default", "shell", RUN + "--shm-size=64m t:1 python train.py --num-workers 4", 1),
    ("shm-size-of-default", "shell", RUN + "--shm-size=65m t:1 python train.py --num-workers 4", 0),
    ("shm-size-of-default", "shell", RUN + "--shm-size=64m t:1 python train.py", 0),
    ("shm-size-of-default", "shell", RUN + "--shm-size=64m postgres:16", 0),
    ("shm-size-over-memory", "shell", RUN + "-m 4g --shm-size=4g t:1", 1),
    ("shm-size-over-memory", "shell", RUN + "-m 4g --shm-size=3g t:1", 0),
    ("shm-size-over-memory", "shell", RUN + "-m $M --shm-size=3g t:1", 0),
    ("shm-size-over-memory", "shell", RUN + "-m 4g --ipc=host --shm-size=8g t:1", 0),
    ("shm-size-over-memory", "compose", "services:\n  t: {image: x, tmpfs: '/dev/shm:size=4g', mem_limit: 2g}\n", 1),
    ("terminal-in-ci", "gitlab-ci", "t: {image: x, script: ['docker run -ti x:1']}\n", 1),
    ("terminal-in-ci", "gitlab-ci", "t: {image: x, script: ['docker run -i x:1', 'docker run -itd x:1']}\n", 0),
    ("terminal-in-ci", "shell", RUN + "-it x:1", 0),
    ("training-in-deployment", "kubernetes", pod("args: [python, train.py]", kind="StatefulSet"), 1),
    ("training-in-deployment", "kubernetes", pod("args: [python, train.py]"), 0),
    ("training-in-deployment", "kubernetes", pod(STAYS, kind="StatefulSet"), 0),
    ("training-in-deployment", "kubernetes", pod("args: [python, train.py, --steps=0]", kind="StatefulSet"), 0),
    ("training-in-deployment", "kubernetes", pod("args: [python, train.py, --warm_steps=0]", kind="StatefulSet"), 1),
    ("training-in-deployment", "kubernetes", pod(OPEN_STEPS, kind="StatefulSet"), 1),
    ("training-in-deployment", "kubernetes", pod("args: [python, serve.py]", kind="Deployment"), 0),
    ("handle-shared-by-workers", SCRIPT, CLASS % ("Dataset", "h5py.File(p)", "self.f[i]") + LOADER % 2, 1),
    ("handle-shared-by-workers", SCRIPT, CLASS % ("Dataset", "h5py.File(p)", "self.f[i]") + LOADER % 0, 0),
    ("handle-shared-by-workers", SCRIPT, CLASS % ("Dataset", "open(p)", "self.f[i]") + LOADER % 1, 0),
    ("handle-shared-by-workers", SCRIPT, CLASS % ("Dataset", "open(p).read()", "self.f[i]") + LOADER % 2, 0),
    ("handle-shared-by-workers", SCRIPT, CLASS % ("Dataset", "open(p)", "self.g[i]") + LOADER % 2, 0),
    ("handle-shared-by-workers", SCRIPT, CLASS % ("Dataset", "open(p); self.f = m(self.f)", "self.f") + LOADER % 2, 0),
    ("handle-shared-by-workers", SCRIPT, CLASS % ("Dataset", "p; self.f = open(self.f)", "self.f") + LOADER % 2, 1),
    ("handle-shared-by-workers", SCRIPT, CLASS % ("dict", "open(p)", "self.f[i]") + LOADER % 2, 0),
    ("cuda-in-worker", SCRIPT, CLASS % ("Dataset", "1", "t.to('cuda:0')") + LOADER % 2, 1),
    ("cuda-in-worker", SCRIPT, CLASS % ("Dataset", "1", "t.to(self.device)") + LOADER % 2, 0),
    ("cuda-in-worker", SCRIPT, CLASS % ("Dataset", "t.cuda()", "self.f[i]") + LOADER % 2, 0),
    ("cuda-in-worker", SCRIPT, CLASS % ("Dataset", "1", "t.cuda()") + LOADER % "n", 0),
    ("seed-without-worker", SCRIPT, "s = torch.initial_seed() // 4294967296\n", 1),
    ("seed-without-worker", SCRIPT, "s = torch.initial_seed() % 2**32\n", 0),
    ("seed-without-worker", SCRIPT, "s = torch.initial_seed() // 2\n", 0),
    ("lambda-to-spawned-worker", SCRIPT, SPAWN % ", worker_init_fn=lambda i: None", 1),
    ("lambda-to-spawned-worker", SCRIPT, SPAWN % ", collate_fn=collate", 0),
    ("lambda-to-spawned-worker", SCRIPT, "x = DataLoader(d, num_workers=2, collate_fn=lambda b: b)\n", 0),
    ("spawn-without-main-guard", SCRIPT, SPAWN % "" + "for b in x:\n    pass\n", 1),
    ("spawn-without-main-guard", SCRIPT, SPAWN % "", 0),
    ("spawn-without-main-guard", SCRIPT, "if __name__ == '__main__':\n    " + SPAWN % "" + "    for b in x: pass\n", 0),
    ("spawn-without-main-guard", SCRIPT, "x = DataLoader(d, num_workers=2)\nfor b in x:\n    pass\n", 0),
    ("workers-of-host", SCRIPT, "from os import cpu_count\n" + LOADER % "cpu_count()", 1),
    ("workers-of-host", SCRIPT, LOADER % "min(8, os.cpu_count())", 0),
    ("workers-of-host", SCRIPT, "pool = Pool(os.cpu_count())\n" + LOADER % 2, 0),
    ("workers-exceed-cpus", "shell", RUN + "--cpus 2 --shm-size=4g t:1 python train.py --num-workers 8", 1),
    ("workers-exceed-cpus", "shell", RUN + "--cpus 8 --shm-size=4g t:1 python train.py --num-workers 8", 0),
    ("workers-exceed-cpus", "shell", RUN + "--shm-size=4g t:1 python train.py --num-workers 8", 0),
    (
        "workers-exceed-cpus", "kubernetes",
        pod("args: [python, t.py, --num-workers, '8']\nresources: {requests: {cpu: 1}}"),
        0,
    ),
]  # fmt: skip
CASES = [*OWN, *rule_cases.CASES]


@pytest.mark.parametrize(("rule", "kind", "text", "times"), CASES)
def test_a_rule_speaks_where_it_should(rule: str, kind: str, text: str, times: int) -> None:
    """As often as stated, and never without a place in the text."""
    found = linted(text, kind).findings
    assert [each.name for each in found].count(rule) == times, found
    assert all(each.diagnostic.span is not None for each in found)


def test_every_rule_has_near_misses() -> None:
    """What is silent is as much a rule's work as what is told: two here, and one more in each manual."""
    silent = [name for name, _, _, times in CASES if times == 0]
    assert {rule.name: silent.count(rule.name) for rule in RULES if silent.count(rule.name) < 2} == {}


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        (RUN + "t:1 python train.py --num-workers 4", "warning"),
        (RUN + "t:1 python train.py --num-workers 4 --batch-size 64", "warning"),
        (RUN + "t:1 python train.py --num-workers 4 --batch-size 8", "info"),
        (RUN + "--gpus all t:1 --epochs 3 --num-workers 8", "warning"),
        (RUN + "--gpus all t:1 yolo detect train data=a.yaml", "warning"),
        (RUN + "--gpus all t:1 yolo detect train data=a.yaml workers=8 device=cpu", None),
        (RUN + "--gpus all t:1 yolo train data=a.yaml batch=3", "info"),
        (RUN + "--gpus all t:1 yolo train data=a.yaml workers=4 batch=16", "warning"),
        (RUN + "t:1 yolo detect train data=a.yaml workers=8", "info"),
        (RUN + "pytorch/pytorch:2.9.1 python train_mnist.py --num-workers 4", "warning"),
        (RUN + "pytorch/pytorch:2.9.1 python x-ray/train_x_ray.py --num-workers 4", "error"),
        (RUN + "t:1 python train.py --preprocessing_num_workers 4", None),
        (RUN + "--gpus all train:1 --epochs 3 --num-workers 8", "warning"),
        (RUN + "--gpus all train:1 --epochs 3 --num-workers 2 --batch-size=4", "info"),
        (RUN + "--gpus all pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime", "warning"),
        (RUN + "--gpus 4 t:1", "info"),
        (RUN + "--gpus 4 ...", None),
        (RUN + "--gpus all t:1 torchrun --nproc_per_node 4 train.py", "warning"),
        (RUN + "--gpus all t:1 python train.py", "info"),
        (RUN + "--gpus all pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime python train.py", "info"),
        (RUN + "--gpus all pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime python train.py --epochs 3", "info"),
        (
            RUN + "--gpus all -v a:/a pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime python /a/train.py --epochs 3",
            "info",
        ),
        (RUN + "t:1 python train_ray.py --num-workers 4", None),
        (RUN + "--gpus all pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime python train_mnist.py --epochs 3", "info"),
        (RUN + "--gpus 1 h.io/training:1 python -m torch.distributed.run train.py", "info"),
        (RUN + "--gpus 2 pytorch-train:1 python train.py --epochs 3", "warning"),
        (RUN + "--gpus 2 tensorflow-train:1 python train.py --epochs 3", "info"),
        (RUN + "-it --gpus all t:1 bash\npip install torch\npython train.py --epochs 3", "info"),
        (RUN + "-it --gpus all t:1 bash\npip install torch\ntorchrun --nproc_per_node 2 train.py", "warning"),
        (RUN + "-it --gpus all t:tf212 bash\nhorovodrun -np 4 python train.py", "info"),
        (RUN + "-it --gpus all t:tf2_gpu bash\nhorovodrun -np 4 python train.py", "info"),
        (RUN + "-it --gpus all t:tf32 bash\ntorchrun --nproc_per_node 4 train.py", "warning"),
    ],
)
def test_a_missing_size_is_as_grave_as_what_the_text_says(text: str, severity: str | None) -> None:
    """Stated workers or training on a GPU are certain; a GPU alone may be inference, which is right without."""
    found = [(each.name, each.severity.value) for each in linted(text, "shell", DEFECTS).findings]
    assert found == [("shm-size-missing", severity)] * (severity is not None)


WINDOWS = pod("resources: {limits: {memory: 800m}}", spec="%s")
UNLIMITED = pod(
    f"command: [python, train.py]\nresources: {{limits: {{%s}}}}\n{MOUNT}", "{name: dshm, emptyDir: {medium: Memory}}"
)
SHOWN_ALL = "env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]\nresources: {limits: {nvidia.com/gpu: 1, memory: 8Gi}}\n"
LOOP = "for x in y:\n    loss.backward()\n    optimizer.step()\n"
SHARED = (
    "import torch\n%s\nclass D(torch.utils.data.Dataset):\n    def __init__(self, p):\n        self.f = open(p)\n"
    "    def __getitem__(self, i):\n        return %s\nx = torch.utils.data.DataLoader(D(p), num_workers=4)\n"
)


@pytest.mark.parametrize(
    ("kind", "text", "severity"),
    [
        ("shell", RUN + "-m 4g --shm-size=4g t:1 python train.py --num-workers 4", "info"),
        ("shell", RUN + "-m 4g --shm-size=5g t:1 python train.py --num-workers 4", "error"),
        ("compose", rule_cases.DEVICES % ZERO, "info"),
        ("compose", (rule_cases.DEVICES % ZERO).replace("shm", "command: python train.py, shm"), "warning"),
        ("shell", RUN + "--ipc=host --shm-size=1g t:1 python train.py", "info"),
        ("shell", RUN + "--ipc=container:a --shm-size=1g t:1 python train.py", "warning"),
        ("compose", rule_cases.SERVICE % "command: [sh, -c, 'echo ${<NAME>}']", "info"),
        ("compose", rule_cases.SERVICE % "command: [sh, -c, '[ $A ] || A=1; echo $A']", "info"),
        ("compose", rule_cases.SERVICE % "environment: {A: 30.0}", "info"),
        ("shell", RUN + "--ipc=host --shm-size=8g -p 80:80 vllm/vllm-openai:v1", "info"),
        ("shell", RUN + "-m 4g --memory-swap 8g --shm-size=5g t:1 python train.py --num-workers 4", "warning"),
        ("shell", RUN + "-m 4g --shm-size=5g tensorflow/tensorflow:2 python train.py --epochs 3", "warning"),
        ("shell", RUN + "-v /dev/shm pytorch/pytorch:2 python train.py --num-workers 2", "warning"),
        ("shell", "podman run --shm-size=8Gi t:1", "warning"),
        ("shell", RUN + "--gpus all -v $A pytorch/pytorch:2 python train.py --num-workers 2", "warning"),
        ("compose", "services: {t: {image: x, mem_limit: 8g, memswap_limit: 2g}}", "warning"),
        ("compose", rule_cases.SERVICE % "command: [sh, -c, 'echo ${{ name }}']", "info"),
        ("devcontainer", '{"dockerComposeFile": "a", "runArgs": ["--init", "--device=/dev/ttyUSB0"]}', "info"),
        ("dockerfile", 'FROM pytorch/pytorch:2\nENV SHM_SIZE=8g\nCMD ["python", "train.py"]', "info"),
        ("github-actions", rule_cases.STEP % "'[ -t 0 ] && docker run -it x'", "info"),
        (
            "kubernetes",
            "kind: Thing\nspec: {containers: [{name: t, image: x, resources: {limits: {memory: 16GB}}}]}",
            "warning",
        ),
        ("kubernetes", "kind: Pod\nspec: {containers: [{name: t, resources: {limits: {memory: 16GB}}}]}", "warning"),
        ("kubernetes", WINDOWS % "nodeSelector: {kubernetes.io/os: windows}", "info"),
        ("kubernetes", WINDOWS % "os: {name: windows}", "info"),
        ("kubernetes", WINDOWS % "nodeSelector: {kubernetes.io/os: linux}", "error"),
        ("kubernetes", WINDOWS.replace("Pod", "Thing") % "priority: 1", "warning"),
        ("kubernetes", pod("resources: {limits: {memory: 1.2Gi}}"), "info"),
        ("kubernetes", pod("command: [python, train.py]\nresources: {limits: {memory: 1.2Gi}}"), "warning"),
        ("kubernetes", UNLIMITED % "nvidia.com/gpu: 4", "warning"),
        ("kubernetes", UNLIMITED % "nvidia.com/gpu: 8", "info"),
        ("kubernetes", UNLIMITED % "nvidia.com/mig-1g.10gb: 8", "warning"),
        ("kubernetes", UNLIMITED % "google.com/tpu: 4", "info"),
        ("kubernetes", pod("resources: {limits: {nvidia.com/gpu: 0.5}}"), "error"),
        (
            "kubernetes",
            pod("resources: {limits: {nvidia.com/gpu: 0.5}}", image="swr.x.myhuaweicloud.com/a:1"),
            "warning",
        ),
        ("kubernetes", pod("resources: {requests: {nvidia.com/gpu: 1}}", kind="Thing"), "warning"),
        ("kubernetes", pod("resources: {limits: {nvidia.com/gpu: 0.5}}", kind="ReplicationController"), "error"),
        ("shell", RUN + "--gpus 8 --tmpfs /dev/shm t:1 python train.py --num-workers 4", "info"),
        ("kubernetes", pod(SHOWN_ALL), "info"),
        ("kubernetes", pod(SHOWN_ALL.replace("all", "none")), "warning"),
        ("kubernetes", pod(SHOWN_ALL + f"command: [python, train.py]\n{MOUNT}", SIZED), "warning"),
        ("shell", RUN + "python:3 sh -c 'pip install x\npython train.py\nbentoml build'", "info"),
        ("training-script", rule_cases.STOP.replace("save_checkpoint", "print") % ("exit()", "SIGTERM") + LOOP, "info"),
        ("shell", RUN + "--shm-size=1g t:1 sh -c 'mount /dev/shm && torchrun --nproc_per_node=2 a.py'", "warning"),
        ("training-script", SHARED % ("lock = Lock()", "self.f.read()"), "warning"),
        ("training-script", SHARED % ("", "self.f.fileno()"), "warning"),
        ("training-script", SHARED % ("", "x.cuda() if i else x"), "warning"),
        ("training-script", "def worker():\n  a = [torch.initial_seed() // 2**32, 1]\n", "info"),
    ],
)
def test_what_may_be_meant_is_less_grave(kind: str, text: str, severity: str) -> None:
    """A kubelet makes /dev/shm as large as the limit, and Ray's head has no GPU on purpose."""
    (found,) = (each for each in linted(text, kind, DEFECTS).findings)
    assert found.severity.value == severity


def test_a_missing_size_is_said_at_the_word_run_and_at_the_name() -> None:
    """What isn't there has no place of its own."""
    text = RUN + "--gpus all t:1 torchrun train.py"
    (shell,) = linted(text, "shell", DEFECTS).findings
    assert shell.diagnostic.span is not None
    assert text[shell.diagnostic.span.column - 1 : shell.diagnostic.span.end_column - 1] == "run"
    (manifest,) = linted(pod(f"command: [torchrun, train.py]\n{GPU}"), "kubernetes", DEFECTS).findings
    assert manifest.diagnostic.span is not None
    assert (manifest.diagnostic.span.line, manifest.diagnostic.span.column) == (6, 11)


def test_a_list_of_words_gets_variables_by_env() -> None:
    """No shell sets them there: docker would look for a program of the name A=1."""
    (found,) = linted("FROM x\nCMD A=1 python train.py\n", "dockerfile", DEFECTS).findings
    assert found.diagnostic.fix.startswith('write CMD ["env", "A=1", "python", "train.py"]')


@pytest.mark.parametrize("command", ["CMD ", "ENTRYPOINT ", "CMD " + "[" * 5000])
def test_an_empty_command_of_a_dockerfile_says_nothing(command: str) -> None:
    """Nor does one that no reader of JSON follows."""
    assert linted(f"FROM x\n{command}\n", "dockerfile", DEFECTS).findings == ()


def test_a_cause_is_told_and_not_what_follows_from_it() -> None:
    """One mistake is one finding."""
    assert codes(pod(f"command: [torchrun, train.py]\n{GPU}", SIZED), "kubernetes") == ["TL310"]
    assert codes(RUN + "--gpus all --shm_size 2g t:1 torchrun train.py", "shell") == ["TL318"]


def test_a_size_of_one_pod_makes_its_lack_in_another_an_error() -> None:
    """Of a PyTorchJob's templates each has its own /dev/shm."""
    two = (
        "kind: PyTorchJob\nmetadata: {name: a}\nspec: {pytorchReplicaSpecs: {Master: {template: {spec: {containers: "
        "[{name: m, image: x, resources: {limits: {memory: 9Gi, nvidia.com/gpu: 1}}, volumeMounts: [{name: d, "
        "mountPath: /dev/shm}]}], volumes: [{name: d, emptyDir: {medium: Memory, sizeLimit: 1Gi}}]}}}, "
        "Worker: {template: {spec: {containers: [{name: w, image: x, resources: {limits: {nvidia.com/gpu: 1}}}]}}}}}\n"
    )
    found = [(each.severity.value, each.name) for each in linted(two, "kubernetes", DEFECTS).findings]
    assert found == [("error", "shm-size-missing")]


def test_a_script_that_a_config_map_carries_says_its_workers() -> None:
    """The text alone is what runs: without a loader nothing passes through /dev/shm, with workers all does."""
    job = pod(f"command: [python, /w/train.py]\n{GPU}", image="pytorch/pytorch:2.9.1")
    carried = "kind: ConfigMap\ndata:\n  train.py: |\n    import torch\n    %s\n    loss.backward()\n---\n"
    assert codes(carried % "x = 1" + job, "kubernetes") == []
    assert codes(carried % "x = DataLoader(d, num_workers=4)" + job, "kubernetes") == ["TL301"]
    on_cpus = pod("command: [python, /w/train.py]", image="pytorch/pytorch:2.9.1")
    for number, severities in (("4", ["info"]), ("4 if use_cuda else 0", [])):
        text = carried % f"x = DataLoader(d, num_workers={number})" + on_cpus
        found = [each.severity.value for each in linted(text, "kubernetes", DEFECTS).findings]
        assert found == severities, number
