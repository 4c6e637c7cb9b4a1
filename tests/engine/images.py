"""The images that engine tests run in, made on this machine because tests may not need an image registry.

    trainlaunch-test:base       Debian 12: python3 (also as `python`), bash, dash, coreutils, a static busybox
    trainlaunch-test:torch      base + torch (CPU), numpy, scikit-learn, pip, torchrun
    trainlaunch-test:examples   torch + Hugging Face's transformers and accelerate, Lightning, WebDataset, PyTorch
                                Geometric, MONAI, torchdata, torchvision, timm, Mosaic Streaming

The engine is the cache: an image carries the hash of its recipe, and one with the current hash is never made again.
Run `python -m tests.engine.images` to make the first two; the third is made where `make libraries` asks for it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

BASE_IMAGE = "trainlaunch-test:base"
TORCH_IMAGE = "trainlaunch-test:torch"
EXAMPLES_IMAGE = "trainlaunch-test:examples"
RECIPE_LABEL = "trainlaunch-test.recipe"

SUITE = "bookworm"
PYTHON = "3.11"  # the suite's own
DEBIAN_PACKAGES = ("python3", "ca-certificates", "busybox-static", "bash", "dash")
# What pip brings by itself; a wheel for CPUs is chosen where pip's configuration offers one.
PYTHON_PACKAGES = ("torch==2.13.0", "numpy==2.4.6", "scikit-learn==1.9.1", "pip==25.1.1")

EXAMPLE_PACKAGES = (
    *("transformers==5.24.0", "accelerate==1.15.0", "lightning==2.6.6"),
    *("webdataset==1.0.2", "torch_geometric==2.8.1", "monai==1.6.1", "torchdata==0.11.0"),
    *("torchvision==0.28.0", "timm==1.0.31", "mosaicml-streaming==0.13.0"),
)
# All that these need and the image with torch lacks. Left to itself pip would fetch torch a second time.
_NEEDED_BY_EXAMPLES = (
    *(
        "aiohappyeyeballs==2.7.1",
        "aiohttp==3.14.5",
        "aiosignal==1.4.0",
        "annotated-doc==0.0.7",
        "annotated-types==0.8.0",
    ),
    *("anyio==4.16.0", "attrs==26.1.0", "click==8.5.1", "frozenlist==1.8.0", "h11==0.16.0"),
    *("hf-xet==1.8.0", "httpcore2==2.16.2", "httpx2==2.16.2", "huggingface_hub==2.4.0", "idna==3.20"),
    *("lightning-utilities==0.15.3", "markdown-it-py==4.3.0", "mdurl==0.1.2", "multidict==7.2.1", "packaging==26.4"),
    *("propcache==0.5.4", "psutil==7.2.2", "pydantic==2.14.4", "pydantic_core==2.50.5", "Pygments==2.21.0"),
    *("pytorch-lightning==2.6.6", "PyYAML==6.0.4", "regex==2026.11.19", "rich==15.0.0", "safetensors==0.8.0"),
    *("shellingham==1.5.4", "tokenizers==0.23.3", "torchmetrics==1.9.0", "tqdm==4.70.1", "truststore==0.10.5"),
    *("typer==0.29.2", "typing-inspection==0.4.5", "yarl==1.25.1"),
    *("braceexpand==0.1.7", "certifi==2026.10.19.post1", "charset-normalizer==3.5.3", "pyparsing==3.3.3"),
    *("requests==2.34.2", "urllib3==2.8.0", "xxhash==4.1.0"),
    *("pillow==13.0.0", "brotli==1.2.1", "catalogue==2.0.10", "python-snappy==0.7.3", "cramjam==2.14.0"),
    *("zstd==1.5.7.2",),
)

CACHE = Path(__file__).resolve().parents[2] / ".cache"

_TRIMMED = (
    "usr/share/doc/*",
    "usr/share/man/*",
    "usr/share/info/*",
    "usr/share/locale/*",
    "var/lib/apt/lists/*",
    "var/cache/apt/*",
    "var/cache/debconf/*-old",
    "var/log/*.log",
    # As in the official python images: pip may install for the whole image.
    f"usr/lib/python{PYTHON}/EXTERNALLY-MANAGED",
)
_UNUSED_BY_TRAINING = ("torch/include", "torch/share", "torch/test", "torch/bin/test_*", "torch/lib/*.a", "bin")
_DOCKERFILE = f"""\
FROM {BASE_IMAGE}
COPY packages /usr/local/lib/python{PYTHON}/dist-packages
COPY bin /usr/local/bin
RUN python3 -m compileall -q -j 0 -x "/tests/|/torch/testing/" /usr/local/lib/python{PYTHON}/dist-packages
"""
# Of some 400 kinds of models those of the examples are compiled: all of them take most of the image's time.
_EXAMPLES_DOCKERFILE = f"""\
FROM {TORCH_IMAGE}
COPY packages /usr/local/lib/python{PYTHON}/dist-packages
RUN python3 -m compileall -q -j 0 -x "/tests/|/torch/|/transformers/models/(?!auto/|bert/)[^/]+/" \
    /usr/local/lib/python{PYTHON}/dist-packages
"""
_SHAPES_OF_OPERATORS = "torchvision/_meta_registrations.py"
_ENTRY_POINTS = {"pip": "pip._internal.cli.main", "torchrun": "torch.distributed.run"}


def base_image() -> str:
    """Return the tag of the base image, made first where this recipe's is not in the engine (about 40 s)."""
    return image(BASE_IMAGE, base_recipe(), _make_base)


def torch_image() -> str:
    """Return the tag of the image with torch, made first where this recipe's is not in the engine (a few minutes)."""
    base_image()
    return image(TORCH_IMAGE, torch_recipe(), _make_torch)


def examples_image() -> str:
    """Return the tag of the image with what examples import, made first where this recipe's is not in the engine."""
    torch_image()
    return image(EXAMPLES_IMAGE, examples_recipe(), _make_examples)


def base_recipe() -> str:
    """Return the hash of everything that decides what is in the base image."""
    return _hash(SUITE, *DEBIAN_PACKAGES, *_TRIMMED)


def torch_recipe() -> str:
    """Return the hash of everything that decides what is in the image with torch."""
    return _hash(base_recipe(), *PYTHON_PACKAGES, *_UNUSED_BY_TRAINING, _DOCKERFILE, *_ENTRY_POINTS.values())


def examples_recipe() -> str:
    """Return the hash of everything that decides what is in the image of the examples."""
    return _hash(torch_recipe(), *EXAMPLE_PACKAGES, *_NEEDED_BY_EXAMPLES, _EXAMPLES_DOCKERFILE, _SHAPES_OF_OPERATORS)


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def image(tag: str, recipe: str, make: Callable[[str, Path], None]) -> str:
    """Return `tag`, which `make(recipe, empty_folder)` made first where the engine has none of this recipe."""
    with _lock(tag.replace(":", "-")):
        if _recipe_in_engine(tag) != recipe:
            print(f"making {tag}, once for this engine", file=sys.stderr, flush=True)
            with tempfile.TemporaryDirectory(dir=CACHE, prefix="image-") as folder:
                make(recipe, Path(folder))
    return tag


@contextmanager
def _lock(name: str) -> Iterator[None]:
    """Hold one image's lock, so that test runs side by side make it once."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _recipe_in_engine(tag: str) -> str | None:
    form = f'{{{{index .Config.Labels "{RECIPE_LABEL}"}}}}'
    asked = subprocess.run(
        ["docker", "image", "inspect", "--format", form, tag], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() if asked.returncode == 0 else None


def _make_base(recipe: str, folder: Path) -> None:
    root = folder / "root"
    included = "--include=" + ",".join(DEBIAN_PACKAGES)
    _do("debootstrap", "--variant=minbase", included, SUITE, str(root), _debian_mirror())
    _remove(root, _TRIMMED)
    (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    tar = folder / "root.tar"
    _do("tar", "-C", str(root), "--numeric-owner", "--one-file-system", "-cf", str(tar), ".")
    path = "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    changes = (path, 'CMD ["/bin/bash"]', f"LABEL {RECIPE_LABEL}={recipe}")
    _do("docker", "import", *(f"--change={each}" for each in changes), str(tar), BASE_IMAGE)


def _debian_mirror() -> str:
    """Return the Debian archive that this machine's own apt reads."""
    asking = ("apt-get", "indextargets", "--format", "$(REPO_URI) $(COMPONENT)", "Created-By: Packages")
    listed = subprocess.run(asking, capture_output=True, text=True, check=True)
    for line in listed.stdout.splitlines():
        uri, component = line.split()
        if component == "main" and uri.rstrip("/").endswith("/debian"):
            return uri
    raise RuntimeError("apt's sources name no Debian archive, which engine tests make their base image from")


def _make_torch(recipe: str, folder: Path) -> None:
    packages = _installed(folder, *PYTHON_PACKAGES)
    _remove(packages, _UNUSED_BY_TRAINING)
    (folder / "bin").mkdir()
    for name, module in _ENTRY_POINTS.items():
        script = folder / "bin" / name
        script.write_text(f"#!/usr/bin/python3\nimport sys\n\nfrom {module} import main\n\nsys.exit(main())\n")
        script.chmod(0o755)
    _build(TORCH_IMAGE, recipe, folder, _DOCKERFILE)


def _make_examples(recipe: str, folder: Path) -> None:
    packages = _installed(folder, "--no-deps", *EXAMPLE_PACKAGES, *_NEEDED_BY_EXAMPLES)
    _remove(packages, ("bin",))
    # torchvision's operators may be those for GPUs, and don't load then; its transforms and images need none of them.
    (packages / _SHAPES_OF_OPERATORS).write_text("")
    _build(EXAMPLES_IMAGE, recipe, folder, _EXAMPLES_DOCKERFILE)


def _installed(folder: Path, *wanted: str) -> Path:
    """Let pip put these packages into `folder`/packages, for the image's Python."""
    packages = folder / "packages"
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--target", str(packages))
    _do(*pip, *_for_the_image(), *wanted)
    return packages


def _build(tag: str, recipe: str, folder: Path, dockerfile: str) -> None:
    (folder / "Dockerfile").write_text(dockerfile)
    _do("docker", "build", "--quiet", "--label", f"{RECIPE_LABEL}={recipe}", "--tag", tag, str(folder))


def _for_the_image() -> tuple[str, ...]:
    """Return pip's options that choose wheels for the image's Python, whichever Python runs the tests."""
    machine = platform.machine()
    platforms = (f"manylinux_2_28_{machine}", f"manylinux_2_27_{machine}", f"manylinux2014_{machine}")
    named = [f"--platform={each}" for each in platforms]
    return ("--only-binary=:all:", "--implementation=cp", f"--python-version={PYTHON}", *named, "--no-compile")


def _remove(root: Path, patterns: tuple[str, ...]) -> None:
    for pattern in patterns:
        for path in root.glob(pattern):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def _do(*argv: str) -> None:
    """Run one step; its whole output appears only where it fails."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "DOCKER_BUILDKIT": "0"}
    done = subprocess.run(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, env=environment
    )
    if done.returncode:
        raise RuntimeError(f"exit {done.returncode} of {' '.join(argv)}:\n{done.stdout[-4000:]}")


if __name__ == "__main__":
    print(base_image(), torch_image())
