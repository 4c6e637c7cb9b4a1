"""One string has several causes, and one cause several strings: what programs print beside the field reports."""

from __future__ import annotations

from typing import Any

import pytest
from trainlaunch.diagnose import all_causes
from trainlaunch.diagnose.base.evidence import Evidence

FRAMES = 'Traceback (most recent call last):\n  File "/w/train.py", line 31, in <module>\n    for batch in loader:\n'
SEMLOCK = (
    'Traceback (most recent call last):\n  File "/usr/lib/python3.10/multiprocessing/synchronize.py", line 57, in x\n'
    "    sl = self._semlock = _multiprocessing.SemLock(\n"
)
FORK = FRAMES + '  File "/usr/lib/python3.10/multiprocessing/popen_fork.py", line 66, in _launch\n    os.fork()\n'
DAEMON = "docker: Error response from daemon: failed to create task for container: OCI runtime create failed: "
KUBELET = "  Warning  Failed     2s    kubelet            "
SLURM = "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-01-01T10:00:00 "
OBJECT = "unable to open shared memory object </torch_8_1> in read-write mode"
STORE = "exceeds /dev/shm size (0.07 GB). This will harm performance."
VARIANTS: dict[str, tuple[str, int | None, str]] = {
    "a stale 11 of torch's": (
        FRAMES + "RuntimeError: unable to allocate shared memory(shm) for file </torch_8_1>: Resource temporarily "
        "unavailable (11)\n",
        1,
        "shm-exhausted",
    ),
    "a stale 0": (
        FRAMES + "RuntimeError: unable to allocate shared memory(shm) for file </torch_8_1>: Success (0)\n",
        1,
        "shm-exhausted",
    ),
    "11 at a fork": (FORK + "BlockingIOError: [Errno 11] Resource temporarily unavailable\n", 1, "thread-limit"),
    "11 of a socket": (
        FRAMES + "BlockingIOError: [Errno 11] Resource temporarily unavailable\n",
        1,
        "python-exception",
    ),
    "11 of threads": (
        "OpenBLAS blas_thread_init: pthread_create failed for thread 3 of 64: Resource temporarily unavailable\n",
        139,
        "thread-limit",
    ),
    "1 of threads": (
        "OpenBLAS blas_thread_init: pthread_create failed for thread 3 of 64: Operation not permitted\n",
        1,
        "old-seccomp",
    ),
    "libgomp and 139": ("libgomp: Thread creation failed: Resource temporarily unavailable\n", 139, "thread-limit"),
    "28 at a semaphore": (SEMLOCK + "OSError: [Errno 28] No space left on device\n", 1, "shm-exhausted"),
    "2 at a semaphore": (SEMLOCK + "FileNotFoundError: [Errno 2] No such file or directory\n", 1, "shm-missing"),
    "30 at a semaphore": (SEMLOCK + "OSError: [Errno 30] Read-only file system\n", 1, "shm-unwritable"),
    "28 of a checkpoint": (FRAMES + "OSError: [Errno 28] No space left on device: '/ckpt/a.pt'\n", 1, "disk-full"),
    "122 of a home": (FRAMES + "OSError: [Errno 122] Disk quota exceeded: '/home/u/a.pt'\n", 1, "disk-full"),
    "no errno of an old torch": (FRAMES + f"RuntimeError: {OBJECT}\n", 1, "fd-limit"),
    "17 of that": (FRAMES + f"RuntimeError: {OBJECT}: File exists (17)\n", 1, "shm-name-collision"),
    "13 of that": (FRAMES + f"RuntimeError: {OBJECT}: Permission denied (13)\n", 1, "shm-unwritable"),
    "nccl extends without an errno": (
        "x [0] misc/shmutils.cc:71 NCCL WARN Error: failed to extend /dev/shm/nccl-Ab to 5967876 bytes\n",
        1,
        "nccl-shm",
    ),
    "nccl may not": (
        "x [0] NCCL WARN Error: failed to extend /dev/shm/nccl-Ab to 33030660 bytes, error: Permission denied (13)\n",
        1,
        "shm-unwritable",
    ),
    "nccl attaches with a size": (
        "x [1] NCCL WARN Error while attaching to shared memory segment /dev/shm/nccl-Ab (size 192814336), error: "
        "No such file or directory (2)\n",
        1,
        "nccl-attach",
    ),
    "a rank's timeout beside another's death": (
        "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n[rank3]:[E1 "
        "ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12)\n",
        1,
        "cuda-oom",
    ),
    "the store's host is gone": (
        "torch.distributed.DistNetworkError: failed to recv, got 0 bytes\n",
        1,
        "dist-timeout-secondary",
    ),
    "deepspeed and SIGBUS": ("[ERROR] [launch.py:325] ['python'] exits with return code = -7\n", 1, "shm-exhausted"),
    "deepspeed and SIGKILL": (
        "[ERROR] [launch.py:325] ['python'] exits with return code = -9\n",
        1,
        "killed-from-outside",
    ),
    "deepspeed and SIGSEGV": (
        "[ERROR] [launch.py:325] ['python'] exits with return code = -11\n",
        1,
        "worker-segfault",
    ),
    "mp.spawn and SIGKILL": (
        "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal SIGKILL\n",
        1,
        "killed-from-outside",
    ),
    "ray kills for memory": (
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n",
        1,
        "oom-killed",
    ),
    "ray's store is too large": (
        FRAMES + f"ValueError: The configured object store size (10.0 GB) {STORE}\n",
        1,
        "ray-shm",
    ),
    "the toolkit has no driver": (
        DAEMON + "nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown.\n",
        125,
        "gpu-driver",
    ),
    "the image wants a newer driver": (
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.6\n",
        125,
        "gpu-driver",
    ),
    "podman has no such device": (
        "Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all\n",
        125,
        "gpu-missing",
    ),
    "torch finds none": (
        FRAMES + "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment\n",
        1,
        "gpu-missing",
    ),
    "podman refuses a limit": (
        "Error: crun: setrlimit `RLIMIT_NOFILE`: Operation not permitted: OCI permission denied\n",
        126,
        "launch-error",
    ),
    "podman finds no command": (
        "Error: crun: executable file `trian` not found in $PATH: No such file or directory: OCI runtime attempted to "
        "invoke a command that was not found\n",
        127,
        "command-not-started",
    ),
    "a ConfigMap that is not there": (KUBELET + 'Error: configmap "code" not found\n', None, "container-not-created"),
    "a claim that is not there": (
        '  0/3 nodes are available: persistentvolumeclaim "data" not found.\n',
        None,
        "container-not-created",
    ),
    "a volume of another node": (
        'Multi-Attach error for volume "pvc-1" Volume is already exclusively attached\n',
        None,
        "container-not-created",
    ),
    "a mount that fails": (
        'MountVolume.SetUp failed for volume "nfs" : mount failed: exit status 32\n',
        None,
        "container-not-created",
    ),
    "a taint": ("Reason: DeletionByTaintManager\n", None, "node-lost"),
    "slurm's time": (SLURM + "DUE TO TIME LIMIT ***\n", 143, "deadline-exceeded"),
    "slurm's preemption": (SLURM + "DUE TO PREEMPTION ***\n", 143, "preempted"),
    "somebody's scancel": (SLURM + "***\n", 143, "stopped"),
    "a worker's abort": (
        "terminate called after throwing an instance of 'c10::Error'\n"
        "RuntimeError: DataLoader worker (pid 801) is killed by signal: Aborted. \n",
        1,
        "worker-aborted",
    ),
    "a worker that somebody ends": (
        "RuntimeError: DataLoader worker (pid 71) is killed by signal: Terminated. \n",
        1,
        "killed-from-outside",
    ),
    "a worker that divides by zero in C": (
        "RuntimeError: DataLoader worker (pid 71) is killed by signal: Floating point exception. \n",
        1,
        "worker-segfault",
    ),
    "28 inside of HDF5's own words": (
        FRAMES + "OSError: [Errno 28] Can't write data (errno = 28, error message = 'No space left on device')\n",
        1,
        "disk-full",
    ),
    "a watchdog that gave up": (
        "[rank0]:[F1 x.cpp:1534] Terminating the process, due to ProcessGroupNCCL watchdog hang.\n",
        1,
        "dist-timeout-secondary",
    ),
    "a registry that wants a login": (
        'Failed to pull image "ghcr.io/x/y:1": failed to authorize: 401 Unauthorized\n',
        None,
        "image-not-pulled",
    ),
    "an image of another platform": (
        "no matching manifest for linux/arm64/v8 in the manifest list entries\n",
        1,
        "image-not-pulled",
    ),
    "torch makes a segment where /dev/shm is missing": (
        FRAMES + '  File "/x/torch/storage.py", line 527, in _share_fd_cpu_\n    return super()._share_fd_cpu_()\n'
        f"RuntimeError: {OBJECT}: No such file or directory (2)\n",
        1,
        "shm-missing",
    ),
    "torch opens a segment that is gone": (
        FRAMES + '  File "/x/torch/multiprocessing/reductions.py", line 490, in rebuild_storage_filename\n'
        "    storage = torch.UntypedStorage._new_shared_filename_cpu(manager, handle, size)\n"
        f"RuntimeError: {OBJECT}: No such file or directory (2)\n",
        1,
        "shm-manager",
    ),
    "streaming's directory of another dataset": (
        FRAMES
        + "ValueError: Reused local directory: ['/data'] vs ['/data']. Provide a different one. If using a unique\n",
        1,
        "shm-name-collision",
    ),
    "streaming's directory that one list names twice": (
        FRAMES + "ValueError: Reused local directory: ['/data']. Provide a different one.\n",
        1,
        "python-exception",
    ),
    "a GPU that another process holds": (
        FRAMES + "torch.AcceleratorError: CUDA error: CUDA-capable device(s) is/are busy or unavailable\n",
        1,
        "gpu-missing",
    ),
    "all GPUs held by others": (
        FRAMES + "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable\n",
        1,
        "gpu-missing",
    ),
    "a torch that warned of no driver, and failed": (
        "UserWarning: CUDA initialization: Found no NVIDIA driver on your system. Please check that you have one\n",
        1,
        "gpu-missing",
    ),
    "a module that is not there": (FRAMES + "ModuleNotFoundError: No module named 'apex'\n", 1, "module-missing"),
    "a kubelet without free GPUs": (
        "Pod was rejected: Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
        "Requested: 2, Available: 1, which is unexpected\n",
        None,
        "container-not-created",
    ),
    "a device plugin that refuses": (
        "Allocate failed due to rpc error: code = Unknown desc = no binding pod found, which is unexpected\n",
        None,
        "container-not-created",
    ),
    "a node out of memory": (
        "  Warning  SystemOOM  10s  kubelet  System OOM encountered, victim process: python\n",
        None,
        "oom-killed",
    ),
    "a launcher that only repeats": (
        "Traceback (most recent call last):\n  File \"/w/train.py\", line 4, in <module>\nNameError: name 'y' is not "
        'defined\nTraceback (most recent call last):\n  File "/opt/bin/accelerate", line 8, in <module>\n'
        "subprocess.CalledProcessError: Command '['python']' returned non-zero exit status 1.\n",
        1,
        "python-exception",
    ),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_gets_its_own_cause(name: str) -> None:
    """By what stands beside the string."""
    log, code, symptom = VARIANTS[name]
    assert [each.symptom for each in all_causes(Evidence(code, log))][:1] == [symptom]


@pytest.mark.parametrize(
    "line",
    [
        "step 12: errors 0, retries 0, killed 0, timed out 0, not found 0",
        "INFO read-only mode, device cuda:0, /dev/shm 1.2G of 8.0G used",
        "Loading checkpoint shards: 100%|##########| 3/3 [00:01<00:00,  2.1it/s]",
        "NCCL INFO NET/Plugin: No plugin found (libnccl-net.so)",
        "NCCL INFO NET/Plugin: Plugin load returned 2 : libnccl-net.so: cannot open shared object file: No such file",
        "W1 torch/distributed/run.py:792] Setting OMP_NUM_THREADS environment variable for each process to be 1",
        "the dataset has 12 images with label `killed by a bus`",
        "val_error: 0.665, rmse_error: 1.2",
        "UserWarning: This overload of add_ is deprecated; exception handling of hooks is unchanged",
        "HTTP Error 404 thrown while requesting HEAD https://huggingface.co/m/resolve/main/adapter_config.json",
        "malloc: allocate failed due to race, try again",
        "process 12 returned 0; SIGUSR1 handler installed; Signal handlers: SIGTERM SIGINT",
    ],
)
def test_an_ordinary_line_names_nothing(line: str) -> None:
    """In a run that goes on, and in one that ended with 0."""
    for code in (None, 0):
        assert all_causes(Evidence(code, f"{line}\n" * 3)) == ()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            "requested number of devices unavailable for nvidia.com/gpu. Requested: 2, Available: 1",
            "1 of nvidia.com/gpu",
        ),
        ("device plugin Allocate rpc failed with err: rpc error: code = Unknown desc = GPU is lost", "GPU of the node"),
        ("rpc error: code = Unknown desc = at most 1 nvidia.com/gpu can be requested", "device plugin"),
        ("not enough memory to satisfy the request", "no room"),
    ],
)
def test_a_refused_admission_is_told_by_its_own_words(words: str, told: str) -> None:
    """In a pod's event as in a pasted line."""
    line = f"Allocate failed due to {words}, which is unexpected"
    event = Evidence(None, target="kubernetes", reason="UnexpectedAdmissionError", words=line)
    for evidence in (event, Evidence(None, line)):
        assert told in all_causes(evidence)[0].sentence


FULL = "RuntimeError: unable to allocate shared memory(shm) for file </torch_8_1>: No space left on device (28)\n"


@pytest.mark.parametrize(
    ("known", "command"),
    [
        ({"container": "mnist"}, "docker inspect -f '{{.HostConfig.IpcMode}} {{.HostConfig.ShmSize}}' mnist"),
        ({"container": "mnist", "exit_code": None}, "docker exec mnist df -h /dev/shm"),
        ({"container": "mnist", "exit_code": None, "engine": "podman"}, "podman exec mnist df -h /dev/shm"),
        ({}, "docker exec NAME df -h /dev/shm  # while it runs; `docker ps` shows its NAME"),
        ({"container": "$(reboot)"}, "docker exec NAME df -h /dev/shm  # while it runs; `docker ps` shows its NAME"),
        (
            {"container": "mnist-0", "namespace": "ml", "target": "kubernetes", "exit_code": None},
            "kubectl -n ml exec mnist-0 -- df -h /dev/shm",
        ),
        (
            {"container": "mnist-0", "namespace": "ml", "target": "kubernetes"},
            "kubectl -n ml get pod mnist-0 -o jsonpath='{.spec.volumes}'",
        ),
        ({"target": "local"}, "df -h /dev/shm"),
    ],
)
def test_a_command_to_type_names_the_container(known: dict[str, Any], command: str) -> None:
    """One that can be typed as it is: no `exec` into what has ended, and no text of others into a shell."""
    evidence = Evidence(**{"exit_code": 1, "log": FULL, **known})
    assert all_causes(evidence)[0].commands == (command,)
