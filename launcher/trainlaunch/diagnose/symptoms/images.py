"""What the image, or the node, lacks: modules, libraries, programs."""

from __future__ import annotations

import re

from trainlaunch.diagnose.base.case import (
    LIKELY,
    Case,
    Story,
    Symptom,
    Told,
    place_in_script,
    seen,
    told_by,
)
from trainlaunch.diagnose.base.log_facts import Hit
from trainlaunch.diagnose.base.log_patterns import LogPattern

_LIBRARY = LogPattern(
    "rror: ",
    r"(?:Import|OS|Runtime)Error: .*(?P<library>\blib[\w.+-]{1,60}\.so[\w.]{0,20}): cannot open shared object file",
)
_MODULE = LogPattern(
    "No module named",
    r"(?:ModuleNotFoundError|ImportError): No module named '?(?P<module>[\w.]+)(?![\w.]|'?,)"
    r"|: No module named (?P<bare>[\w.]+)$",
)
_COMPILER = LogPattern(
    "rror",
    r"Failed to find C compiler|No working C\+\+ compiler found|command '(?:gcc|cc|g\+\+|x86_64-linux-gnu-gcc)' failed",
)
_PROGRAM = LogPattern(
    "rror: [Errno 2]",
    r"No such file or directory: "
    r"'(?P<program>gcc|g\+\+|cc|c\+\+|clang|make|cmake|ninja|nvcc|git|ffmpeg|ffprobe|wget|curl|ptxas)'",
)
_NINJA = LogPattern("rror", r"Ninja is required to load C\+\+ extensions")
_CUDA_HOME = LogPattern(
    "CUDA",
    r"CUDA_HOME environment variable is not set|CUDA_HOME does not exist|No such file or directory: '\S*/bin/nvcc'",
)
_HEADERS = LogPattern("rror", r"fatal error: Python\.h: No such file")
_NCCL_SYMBOL = LogPattern("rror", r"undefined symbol: (?P<symbol>nccl\w+)")
_JITLINK = LogPattern("rror", r"undefined symbol: (?P<symbol>__nvJitLink\w+)")
_SYMBOL = LogPattern("rror", r"(?:ImportError|OSError): (?P<file>\S+\.so\S*): undefined symbol: (?P<symbol>\S+)")
_VERSION = LogPattern("rror", r"version `(?P<version>(?:GLIBC|GLIBCXX|CXXABI)_[\d.]+)' not found")
_NUMPY = LogPattern(
    "rror",
    r"numpy\.dtype size changed|numpy\.core\.multiarray failed to import|_ARRAY_API not found|RuntimeError: Numpy is "
    r"not available",
)
_LINKED = LogPattern("o such file", r"\bcannot find -l(?P<library>\w{1,60}): No such file")
_TOOLKIT = LogPattern("CUDA", r"The detected CUDA version \((?P<version>[\d.]{1,12})\) mismatches the version")
_CUDNN = LogPattern("nable to load any of", r"Unable to load any of \{?(?P<library>lib[\w.]{1,80})")
_CUDNN_STATUS = LogPattern("rror", r"CUDNN_STATUS_(?:SUBLIBRARY_LOADING_FAILED|SUBLIBRARY_VERSION_MISMATCH)")
_FFMPEG = LogPattern("rror", r"Could not load libtorchcodec|libav(?:util|codec|format)\.so[\w.]{0,12}: cannot open")
_OF_DRIVER = re.compile(r"libcuda\.so|libnvidia-")
# Names of modules under which no package of that name is installed.
_PACKAGES = {
    "cv2": "opencv-python-headless", "PIL": "pillow", "sklearn": "scikit-learn", "skimage": "scikit-image",
    "yaml": "pyyaml", "Crypto": "pycryptodome", "dateutil": "python-dateutil", "dotenv": "python-dotenv",
    "git": "gitpython", "faiss": "faiss-cpu", "attr": "attrs", "bs4": "beautifulsoup4", "google": "protobuf",
    "pkg_resources": "setuptools<81", "distutils": "setuptools", "lightning_fabric": "lightning", "hydra": "hydra-core",
    "ruamel": "ruamel.yaml", "mpi4py": "mpi4py", "pynvml": "nvidia-ml-py", "MinkowskiEngine": "MinkowskiEngine",
    "umap": "umap-learn", "OpenSSL": "pyopenssl", "serial": "pyserial", "fitz": "pymupdf", "docx": "python-docx",
    "tensorflow_datasets": "tensorflow-datasets", "pytorch_lightning": "pytorch-lightning",
}  # fmt: skip
_DEBIAN = {
    "libGL.so": "libgl1", "libgthread-2.0": "libglib2.0-0", "libglib-2.0": "libglib2.0-0", "libSM.so": "libsm6",
    "libXext": "libxext6", "libXrender": "libxrender1", "libsndfile": "libsndfile1", "libgomp": "libgomp1",
    "libnuma": "libnuma1", "libibverbs": "libibverbs1", "librdmacm": "librdmacm1", "libmpi": "libopenmpi3",
    "libturbojpeg": "libturbojpeg", "libavutil": "ffmpeg", "libavcodec": "ffmpeg", "libavformat": "ffmpeg",
    "libaio": "libaio1", "libcurl": "libcurl4", "libpython3": "libpython3-dev", "libsox": "libsox-dev",
}  # fmt: skip
_OF_CUDA = re.compile(
    r"libcu(?:dnn|blas|dart|fft|rand|solver|sparse|pti|file)|libnccl|libnvrtc|libnvJitLink|libnvToolsExt"
)
_INTERPRETER = re.compile(
    r"(/[^\s\"']{0,200}?)/lib(?:64)?/(python\d\.\d{1,2})/|^(/\S{0,200}/python[\d.]{0,6}): No module named"
)
_LOOK_NCCL = ("pip list | grep -i -e nccl -e '^torch '", "echo $LD_LIBRARY_PATH")

_INCOMPLETE = (
    Story(
        (_COMPILER,),
        "the image has no C compiler, which Triton (torch.compile, bitsandbytes and others) and extensions need",
        "install one in the image (`apt-get install -y gcc g++`, or build-essential), or take its -devel variant; "
        "without one `torch.compile` has to stay off (env: {TORCHDYNAMO_DISABLE: '1'})",
    ),
    Story(
        (_HEADERS,),
        "the image has no headers of Python, which what is compiled at the start needs",
        "install python3-dev (of the same Python version) in the image",
    ),
    Story(
        (_CUDA_HOME,),
        "the image has no CUDA toolkit (nvcc), which an extension that is compiled needs; torch itself brings none",
        "take the image's -devel variant, or install what is compiled as a wheel; where a toolkit is there set "
        "env: "
        "{CUDA_HOME: /usr/local/cuda}",
    ),
    Story(
        (_NINJA,),
        "the image has no ninja, with which torch compiles extensions",
        "`pip install ninja` in the image",
    ),
    Story(
        (_PROGRAM,),
        "the image has no program <program>, which the job starts",
        "install <program> in the image (g++ and gcc: build-essential; nvcc: a -devel image), or start without it",
    ),
    Story(
        (_NCCL_SYMBOL,),
        "two NCCLs are in reach: torch was built for a newer one than the one that is loaded, which lacks <symbol>",
        "leave one of them: remove the older nvidia-nccl package or system library, and its folder from "
        "LD_LIBRARY_PATH",
        commands=_LOOK_NCCL,
    ),
    Story(
        (_JITLINK,),
        "two versions of CUDA's libraries are in reach: libnvJitLink of one is loaded beside the other's libcusparse",
        "take the folder of the older CUDA out of LD_LIBRARY_PATH, so that the pip packages' own libraries are found",
        commands=("echo $LD_LIBRARY_PATH", "pip list | grep -i nvidia"),
    ),
    Story(
        (_SYMBOL,),
        "<file> was built for another version of torch, Python or CUDA than is installed: it lacks <symbol>",
        "install it again for the torch that is there (`pip install --no-cache-dir --no-build-isolation "
        "--force-reinstall` "
        "of its package), or the torch that it was built for",
    ),
    Story(
        (_VERSION,),
        "a library was built on a newer system than the image's: <version> is not there",
        "use an image with a newer base, or a build of the library for this one; of conda put its lib folder first "
        "in LD_LIBRARY_PATH",
    ),
    Story(
        (_NUMPY,),
        "a package was built for another NumPy (1 or 2) than the one that is installed",
        "`pip install 'numpy<2'`, or newer versions of the packages that the traceback names",
    ),
    Story(
        (_LINKED,),
        "what is compiled at the start can't be linked: the linker finds no lib<library>",
        "install it where the linker looks; libcuda is the driver's, which a container has that was given a GPU "
        "(`ldconfig -p | grep libcuda`): set env: {LIBRARY_PATH: /usr/lib/x86_64-linux-gnu} to its folder",
        LIKELY,
    ),
    Story(
        (_TOOLKIT,),
        "an extension is compiled by the toolkit of CUDA <version>, and torch was built with another",
        "use an image whose nvcc has the CUDA of torch (`python -c 'import torch; print(torch.version.cuda)'`), or "
        "install what is compiled as a wheel",
    ),
    Story(
        (_CUDNN, _CUDNN_STATUS),
        "a part of cuDNN can't be loaded: another cuDNN than torch's own is in reach, or one is incomplete",
        "take other cuDNNs out of LD_LIBRARY_PATH and out of the image, so that torch finds the one that it brings",
        LIKELY,
        ("echo $LD_LIBRARY_PATH", "pip list | grep -i cudnn"),
    ),
    Story(
        (_FFMPEG,),
        "the image has no FFmpeg libraries (libavutil, libavcodec …), which the video or audio reader loads",
        "install ffmpeg in the image (`apt-get install -y ffmpeg`, or conda's), in a version that the reader supports",
    ),
)


def _module_missing(case: Case) -> Told | None:
    """Match imports that ended the script: many are tried and caught."""
    if case.exit_code == 0:
        return None
    found = told_by(case, _INCOMPLETE)
    if found is not None:
        return found
    raised = case.raised
    hits = [each for each in case.hits(_MODULE, _LIBRARY) if not _OF_DRIVER.search(each.text)]
    decided = [each for each in hits if each.traceback is None or each.traceback is raised or _same(case, each.text)]
    return _lacks(case, decided[0]) if decided else None


def _lacks(case: Case, hit: Hit) -> Told:
    found = hit.match.groupdict()
    library = found.get("library")
    what = library or found.get("module") or found.get("bare") or ""
    image = f"the image {case.evidence.image}" if case.evidence.image else "the image"
    place = image if case.evidence.where.starts_container else "this host's Python"
    at = place_in_script(case.raised) if case.raised is not None else ""
    install = _library_fix(library) if library else _module_fix(what)
    own = (
        ""
        if library
        else (
            f"; if {what} is the job's own code, check mounts and working_dir, and set env: {{PYTHONPATH: …}} to the "
            f"folder that holds it"
        )
    )
    looked = _looked(case, hit)
    return Told(
        f"{place} has no {'library' if library else 'module'} {what}, which the job needs{at}{looked}",
        seen(hit),
        f"{install} in {place}{own}",
    )


def _module_fix(module: str) -> str:
    top = module.partition(".")[0]
    return f"`pip install {_PACKAGES.get(top, top.replace('_', '-'))}`"


def _library_fix(library: str) -> str:
    package = next((each for name, each in _DEBIAN.items() if library.startswith(name)), "")
    if package:
        return f"`apt-get install -y {package}`"
    if _OF_CUDA.match(library):
        return (
            "install CUDA's libraries of the version that torch was built for (they come with torch's own pip packages)"
        )
    return f"install the package that has {library} (`apt-file search {library}` names it)"


def _looked(case: Case, hit: Hit) -> str:
    """Return which Python looked for it, as far as the paths of its traceback tell."""
    text = hit.traceback.text if hit.traceback is not None else hit.text
    found = _INTERPRETER.search(text)
    if found is None:
        return ""
    return f"; {found[3] or f'{found[1]}/bin/{found[2]}'} looked for it"


def _same(case: Case, text: str) -> bool:
    """Whether the exception that ended the script repeats this one."""
    return case.raised is not None and case.raised.message != "" and case.raised.message in text


SYMPTOMS = (Symptom("TL664", "module-missing", _module_missing),)
