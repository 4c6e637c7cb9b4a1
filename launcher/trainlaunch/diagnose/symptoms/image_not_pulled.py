from __future__ import annotations

import re

from trainlaunch.diagnose.base.case import CERTAIN, LIKELY, Case, Diagnosis, EvidenceLine, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL625"
NAME = "image-not-pulled"
_REASONS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable")
_POD = LogPattern("Image", r"\b(?:ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull)\b")
_ENGINE = LogPattern(
    "rror",
    r"Error response from daemon: .*(?:pull access denied|manifest unknown|no such image"
    r"|no matching manifest|Head \"?https|Get \"?https|toomanyrequests)"
    r"|Error response from daemon: .*(?:manifest for|repository) .* not found",
)
_PULL = LogPattern("to pull image", r"[Ff]ailed to pull image ")
_PLATFORM = LogPattern("o matching manifest", r"no matching manifest for \S+ in the manifest list")
_DENIED = LogPattern("enied", r"pull access denied for|requested access to the resource is denied")
_LATER = "try again later"
_LOGIN = r"denied|unauthorized|authentication|authorization failed|\b40[13]\b"


def diagnose(case: Case) -> Diagnosis | None:
    """Match the reasons for which a container waits for its image, and the engines' refusals to pull."""
    event = case.event(*_REASONS)
    hit = case.first(_POD, _ENGINE, _PULL, _PLATFORM, _DENIED)
    if event is None and hit is None:
        return None
    if event is not None:
        reason, words = event.reason, event.words
        shown = seen(EvidenceLine("events", 0, f"{reason}: {words}".rstrip(": ")))
    else:
        words = " ".join(each.text for each in case.hits(_POD, _ENGINE, _PULL, _PLATFORM, _DENIED))
        reason = next((each for each in _REASONS[2:] if each in words), "")
        shown = seen(hit)
    sentence, fix = _told(reason, words)
    return Diagnosis(CODE, NAME, sentence, shown, fix, LIKELY if fix.startswith(_LATER) else CERTAIN)


def _told(reason: str, words: str) -> tuple[str, str]:
    """Return what happened, what to type."""
    if reason == "InvalidImageName":
        return "the image's name can't be one", "correct image in the job file"
    if reason == "ErrImageNeverPull":
        return "the image is not on the node, and pull_policy is never", (
            "set pull_policy to missing, or load the image on the node"
        )
    if re.search(r"not found|manifest unknown|no such image", words, re.I) and not re.search(_LOGIN, words, re.I):
        return "the registry has no image of that name and tag", (
            "correct image, or push it: what was built here is not in a registry"
        )
    if re.search(_LOGIN, words, re.I):
        return "the registry does not give the image: it is private, or does not exist", (
            "log in (`docker login`; on a cluster name the Secret in kubernetes.image_pull_secrets), and check the "
            "spelling of image"
        )
    if "no match for platform" in words or "no matching manifest" in words:
        return "the image has no variant for the node's CPU", (
            "build it for the node too: `docker buildx build --platform linux/amd64`"
        )
    if "toomanyrequests" in words:
        return "the registry limits how often it is asked", "log in to it, or use a mirror; try again later"
    sentence = "the node can't reach the registry, or not at this time"
    return sentence, f"{_LATER}; where it stays, ask whether the node may reach that registry at all"
