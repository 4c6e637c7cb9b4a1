"""Which containers of a pod train, as CEL sees it: those that ask for GPUs, else those that show it by two signs.

A sign alone proves nothing: NUM_WORKERS is a web server's too, torchrun starts servers, and an image with PyTorch in
its name may serve. What does another thing besides, by any of _OTHERS and _OTHER_TASKS, doesn't train. A container's
text `t` is its `command` and `args` joined by spaces, so that a program stands at its start, at a line's, or behind a
shell's operator.
"""

from __future__ import annotations

import json

from trainlaunch.policy.objects_in_cel import FOR_GPUS

MAX_TEXT_LENGTH = 8_000  # of a pod's commands: a server cancels an expression whose matching costs more than 11,000


def _any(words: str) -> str:
    """Return the pattern of any of some words, of which each may be a pattern without spaces."""
    return f"(?:{'|'.join(words.split())})"


# What runs a program that stands behind it, and its own options and variables.
_RUNNERS = _any(
    "exec nohup time env then do else uv poetry pixi conda pipenv run numactl nsys profile stdbuf dumb-init tini"
)
_WRAPPED = rf"(?:(?:(?:\S*/)?{_RUNNERS}|--?[\w-]*(?:[= ]\S+)?|\w+=\S*)\s+)*(?:\S*/)?"
_START = rf"(?:^|[\n;&|(]|(?:^|[ /])(?:ba|da|z|k)?sh\s[^;&|\n]*?-\w*c\s)\s*{_WRAPPED}"
_RANKS = _any(r"torchrun accelerate\s+launch deepspeed")  # mpirun's and horovodrun's train in other pods
_PROGRAM = rf"(?:python[\d.]*|{_RANKS})"
_BEFORE = r"(?:\s+(?:[^\s;&|.]|\.(?:[^p\s;&|]|p[^y\s;&|]))+\.?)*?\s+"  # the words before the first that names a script
_REST = r"(?:\s(?:[^;&|\n]|\\\n)*)?\s"  # the words of one command
_TRAINING = _any(
    r"(?:pre|fine)?[_-]?(?:train|training|trainer|tune|tuning)\d? run_(?:clm|mlm|glue|ner|qa) sft dpo grpo"
)
_TOOLS = _any(
    r"fairseq-(?:hydra-)?train nnUNetv2_train (?:llamafactory-cli|axolotl|yolo)\s+train swift\s+(?:sft|pt) tune\s+run"
)
_SCRIPT = rf"(?:\S*[/_.-])?{_TRAINING}(?:[_-][\w-]+)*\.py"
_MODULE = rf"-?-m(?:odule)?\s+(?:\S*[_.-])?{_TRAINING}(?:[._-][\w.]+)?"
_WHOLE = rf"(?:(?:\S*/)?{_TRAINING}\.py|-?-m(?:odule)?\s+(?:\S*\.)?{_TRAINING})"
_NAMED = rf"{_START}(?:(?:{_PROGRAM}{_BEFORE})?{_WHOLE}|{_TOOLS})(?:\s|$)"
_AKIN = rf"{_START}(?:{_PROGRAM}{_BEFORE}(?:{_SCRIPT}|{_MODULE})|{_SCRIPT})(?:\s|$)"
_OPTIONS = _any(
    r"(?:max|num|total|n)?[_-]?(?:train[_-])?epochs lr learning[_-]rate weight[_-]decay optimizer warmup[_-]steps"
    r" do[_-]train (?:per[_-]device[_-])?train[_-]batch[_-]size gradient[_-]accumulation[_-]steps"
)
_FITS = rf"{_START}{_PROGRAM}{_BEFORE}\S+\.py\s+fit(?:\s|$)"  # Lightning's own command line
_LAUNCHED = rf"{_START}(?:{_RANKS}|python[\d.]*{_BEFORE}-m\s+torch\.distributed\.(?:run|launch))(?:\s|$)"
_LOADERS = r"(?:[\w.]+[_.-])?" + _any(r"num[_-]?workers data[_-]?loader[_-]workers loader[_-]workers")
_VARIABLE = r"^(?:\w+_)?(?:NUM_?WORKERS|DATA_?LOADER_WORKERS)$"
# Lightning alone is a network of payments too.
_TORCH = _any("pytorch torch nvidia/nemo deepspeed pytorch-?lightning lightningai transformers-pytorch")

_OTHER_PROGRAMS = _any(
    r"kubectl helm argo sbatch srun salloc qsub docker podman nerdctl buildctl ssh ray sky torchx dask\S* celery"
    r" airflow uvicorn gunicorn hypercorn daphne flask streamlit gradio jupyter\S* start-notebook\.sh tensorboard"
    r" mlflow pytest tox torchserve tritonserver vllm spark-submit java node npm sleep tail pgrep git\s+commit"
)
_OTHER_MODULES = _any(
    "uvicorn gunicorn celery dask distributed flask streamlit jupyter notebook pytest unittest http ray vllm"
)
_OTHER_SCRIPTS = _any(
    "serve server serving infer inference predict prediction api app web worker download upload prepare preprocess"
    " prep eval evaluate evaluation test tests export convert monitor schedule scheduler submit dashboard data dataset"
    " service daemon controller operator manager client gateway proxy consumer producer listener bot webhook metrics"
    " exporter report notify register cleanup backup sync collect generate split plot visualize tokenize label"
    " tokenizers? bpe launch(?:er)? status queue dispatch(?:er)? scor(?:e|er|ing) poll(?:er)? watch(?:er)? inspect"
    " tensorflow tf keras jax flax xgboost lightgbm catboost sklearn spark mxnet paddle xgb lgbm"
)
_OTHER_SCRIPT = (
    rf"{_START}(?:{_PROGRAM}{_BEFORE})?(?:(?:\S*[/_.-])?{_OTHER_SCRIPTS}(?:[_.-][\w.-]*)?\.py"
    rf"|-m\s+(?:\S*[_.-])?{_OTHER_SCRIPTS}(?:[_-]\w+)*)(?:\s|$)"
)
_ROLES = _any(
    "ps parameter-?server server serve serving eval evaluate evaluation test predict prediction infer inference env"
    " export download prepare preprocess submit status launch(?:er)? dispatch(?:er)? help score"
)
_TASK_OPTIONS = (
    r"--?(?:\w+[_-])?(?:only|dry[_-]run|help|version|evaluate|submit(?:[_-]\w+)*)(?:[=\s]|$)|-h(?:\s|$)"
    rf"|--?(?:\w+[_-])?(?:role|mode|action|task|stage|phase|job[_-]name)(?:[_-]\w+)?[= ]{_ROLES}(?:[_-]\w+)*(?:\s|$)"
)
_OTHER_TASK = rf"{_START}(?:{_PROGRAM}|\S+\.py){_REST}(?:{_TASK_OPTIONS})|\.py\s+{_ROLES}(?:\s|$)"
_OTHER_FRAMEWORK = (
    r"(?i)(?:^|[^a-z])(?:xgboost|xgb|gbtree|booster|lightgbm|lgbm|catboost|sklearn|scikit-learn)(?:[^a-z]|$)"
)
# What looks like a command in a text that is printed or written to a file, where a quote or a document spans more.
_PRINTED = (
    r"<<-?\s*[\"'\\]?[A-Za-z_]|(?:^|[\n;&|(\s])(?:echo|printf)\s(?:[^\"'\n;&|]|\"[^\";&|\n(]*\"|'[^';&|\n(]*')*"
    r"(?:\"[^\";&|\n(]*[;&|\n(]|'[^';&|\n(]*[;&|\n(])"
)
_NONE = "[= ] *[\"']?0+[\"']?(?:[^0-9.]|$)"
_NO_VARIABLE = r"(?:^|[\s;&|])(?:\w+_)?(?:NUM_?WORKERS|DATA_?LOADER_WORKERS)=[\"']?0+(?:[^0-9.]|$)"
_OTHER_IMAGES = _any(
    r"tensorflow keras jax flax xgboost lightgbm catboost sklearn scikit-learn spark mxnet paddle\w* serve serving"
    r" server scor(?:e|er|ing) predictor inference triton\w* torchserve vllm tgi jupyter\w* notebook"
)
_PORTS = json.dumps(["http", "https", "grpc", "web", "api", "http-api", "http1", "h2c"])


def _has(pattern: str, text: str = "t") -> str:
    return f"{text}.matches({json.dumps(pattern)})"


def _option(names: str, value: str) -> str:
    """Return CEL for whether a Python command has an option, or Hydra's override of it, with the start of a value."""
    return _has(rf"{_START}(?:{_PROGRAM}|\S+\.py){_REST}(?:--?|\+{{0,2}}(?:\w+\.)*)(?:{names}){value}")


def _is_image_of(words: str) -> str:
    return _has(rf"(?:^|[/_.-]){words}(?:[/_.:@-]|$)", 'c.?image.orValue("")')


def _variable(condition: str) -> str:
    return f"c.?env.orValue([]).exists(e, {condition})"


_VALUE = 'e.?value.orValue("")'
_ELSEWHERE = "^(?:RAY_ADDRESS|DASK_SCHEDULER_ADDRESS|SPARK_MASTER|TF_CONFIG)$"  # by which its work is done
_NUMBER = _has("^[1-9][0-9]{0,2}$", _VALUE)
_OPERATED = " && ".join(_variable(f'e.name == "{name}"') for name in ("WORLD_SIZE", "MASTER_ADDR"))
_COUNTED = _variable(f"{_has(_VARIABLE, 'e.name')} && {_NUMBER}")
_SIGNS = {
    "named": _has(_NAMED),  # a script, module or tool that has no other name than training's
    "akin": _has(_AKIN),  # one whose name has such a word, as train_net.py has, and train_queue.py
    "options": f"{_option(_OPTIONS, '(?:[=[:space:]]|$)')} || {_has(_FITS)}",  # of training
    "ranks": f"{_has(_LAUNCHED)} || ({_OPERATED})",  # a launcher of several, or what an operator tells each
    "loader": _option(_LOADERS, "[= ] *[\"']?[1-9]"),  # workers by a DataLoader's own word
    "counted": f"{_option('workers', '[= ] *[1-9]')} || {_COUNTED}",  # workers of anything
    "image": _is_image_of(_TORCH),  # with PyTorch in its name
}
# One of training, and one of PyTorch's own ways to train: what other frameworks train shares no batches in /dev/shm.
_PROOF = (
    "((s.named || s.options) && (s.ranks || s.loader || s.counted || s.image)) || (s.akin && (s.ranks || s.loader)) ||"
    " (s.ranks && s.loader)"
)
_OTHERS = (
    _has(rf"{_START}{_OTHER_PROGRAMS}(?:\s|$)"),
    _has(rf"{_START}python[\d.]*{_BEFORE}-m\s+{_OTHER_MODULES}(?:[.\s]|$)"),
    _has(_OTHER_SCRIPT),
    *(
        f"c.?{probe}Probe.?{how}.hasValue()"
        for probe in ("readiness", "liveness")
        for how in ("httpGet", "grpc", "tcpSocket")
    ),
    f'c.?ports.orValue([]).exists(o, o.?name.orValue("") in {_PORTS})',
    _is_image_of(_OTHER_IMAGES),
)
_OTHER_TASKS = (
    _option(f"(?i:{_LOADERS}|workers)", _NONE),
    _option("j", "[= ]?0(?:[^0-9.]|$)"),
    _has(_NO_VARIABLE),
    _variable(f"{_has(_VARIABLE, 'e.name')} && {_has('^0+$', _VALUE)}"),
    _variable(
        f"{_has(_ELSEWHERE, 'e.name')} || ({_has('ROLE$|^JOB_NAME$', 'e.name')} && {_has(f'^{_ROLES}$', _VALUE)})"
    ),
    _has(_OTHER_TASK),
    _has(_OTHER_FRAMEWORK),
    _has(_PRINTED),
    _option("hostfile", "[= ]"),  # its ranks train in other pods
)
_TEXT = '(c.?command.orValue([]) + c.?args.orValue([])).join(" ")'
_SHOWN = ", ".join(f'"{name}": {expression}' for name, expression in _SIGNS.items())
_GPU_NAME = (
    r"(?i)gpu|nvidia|(?:^|-)mig-|(?:^|[^a-z0-9])(?:a(?:10|16|30|40|100|800)g?|h(?:20|100|200|800)|b[123]00|g[bh][23]00"
    r"|l(?:4|20|40)s?|t4|v100|rtx\w*|mi\d{3}\w?)(?:[^a-z0-9]|$)"
)
_OTHER_DEVICE = r"(?i)(?:^|[^a-z])(?:rdma|nics?|connectx|bluefield|roce|infiniband|sriov|imex|fpga|tpu|npu|non?-?gpu)"
_IS_GPU = f"l.exists(n, n.matches({json.dumps(_GPU_NAME)})) && !l.exists(n, n.matches({json.dumps(_OTHER_DEVICE)}))"
_CLAIMS_GPU = (
    "c.?resources.?claims.orValue([]).exists(x, p.spec.?resourceClaims.orValue([]).exists(r, r.name == x.name &&\n"
    '    [[r.name, x.?request.orValue(""), r.?resourceClaimTemplateName.orValue(""), r.?resourceClaimName.orValue("")]]'
    f".exists(l,\n    {_IS_GPU})))"
)

TEXT_LENGTH = f"p.spec.containers.map(c, {_TEXT}.size()).sum()"
HAS_GPUS = f"({FOR_GPUS} || {_CLAIMS_GPU})"
GPU_CONTAINERS = f"p.spec.containers.filter(c, {HAS_GPUS})"
# Apart from each other, since a server's budget is that of one expression.
SHOWS = f"[{_TEXT}].exists(t, [{{{_SHOWN}}}].exists(s, {_PROOF}))"
DOES_OTHER = f"[{_TEXT}].exists(t, {' || '.join(_OTHERS)})"
HAS_OTHER_TASK = f"[{_TEXT}].exists(t, {' || '.join(_OTHER_TASKS)})"
