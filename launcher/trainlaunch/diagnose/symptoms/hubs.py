"""Hubs of models that give nothing: tokens, gates, caches, networks."""

from __future__ import annotations

from trainlaunch.diagnose.base.case import LIKELY, Story, of_stories
from trainlaunch.diagnose.base.log_patterns import LogPattern

_GATED = LogPattern("rror: ", r"trying to access a gated repo|Cannot access gated repo|GatedRepoError: ")
_GATED_ERROR = LogPattern("rror: ", r"\bGatedRepoError: ")
_DENIED = LogPattern(
    "rror: ",
    r"(?:HTTPError|HfHubHTTPError|HTTPStatusError|RepositoryNotFoundError|OSError): "
    r".*\b40[13]\b.*(?:huggingface\.co|hf\.co)",
)
_REPOSITORY = LogPattern(
    "rror: ", r"\bRepositoryNotFoundError: |is not a local folder and is not a valid model identifier"
)
_MISSING = LogPattern(
    "rror: ", r"LocalTokenNotFoundError|Token is required \(`token=True`\)|Invalid user token|you must provide a token"
)
_WANDB = LogPattern(
    "rror",
    r"wandb\.(?:errors\.)?\w*\.?UsageError: (?:No API key|api_key not configured)|UsageError: api_key not configured",
)
_OFFLINE = LogPattern(
    "rror: ",
    r"LocalEntryNotFoundError: |outgoing traffic has been disabled|couldn't connect to '?https://huggingface\.co",
)
_OFFLINE_MODE = LogPattern("rror", r"OfflineModeIsEnabled\b")
_UNREACHABLE = LogPattern(
    "rror", r"(?:ConnectionError|MaxRetryError|ConnectError|ConnectTimeout).*(?:huggingface\.co|hf\.co)"
)
_LOGIN = (
    "pass a token into the container as a secret (secrets, or `docker run -e HF_TOKEN`): `huggingface-cli login` on "
    "the host "
    "does not reach into it"
)
_CACHE = (
    "fill the cache where there is a network (`huggingface-cli download NAME`) and mount it, with env: {HF_HOME: …} "
    "at it; "
    "or let the container reach the hub (a proxy: HTTPS_PROXY), with HF_HUB_OFFLINE unset"
)

_hub_access = of_stories(
    "TL673",
    "hub-access",
    (
        Story(
            (_GATED, _GATED_ERROR),
            "the hub does not give the model: it is gated, and the job has no token of somebody who was let in",
            f"ask for access on the model's page once, then {_LOGIN}",
        ),
        Story((_MISSING,), "the job has no token for the hub, or one that is not valid", _LOGIN),
        Story(
            (_WANDB,),
            "the job has no API key of Weights & Biases",
            "pass WANDB_API_KEY as a secret, or set env: {WANDB_MODE: offline}",
        ),
        Story(
            (_DENIED, _REPOSITORY),
            "the hub does not give the repository: it is private, or its name does not exist",
            f"check the name; for a private one {_LOGIN}",
            LIKELY,
        ),
        Story(
            (_OFFLINE, _OFFLINE_MODE),
            "the file is not in the local cache, and the job could not, or may not, ask the hub for it",
            _CACHE,
            LIKELY,
        ),
        Story((_UNREACHABLE,), "the job can't reach the hub from where it runs", _CACHE, LIKELY),
    ),
)


SYMPTOMS = (_hub_access,)
