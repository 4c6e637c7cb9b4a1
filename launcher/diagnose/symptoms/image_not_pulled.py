"""The node can't get the image; the pod waits for it and never ends by itself.

**What you see**: `ErrImagePull`, `ImagePullBackOff`, `InvalidImageName` or `ErrImageNeverPull`, and no line of a log.
**Why**: the name or tag does not exist, the registry wants a login that the cluster does not have, the image has no
variant for the node's CPU, or pull_policy is never and the node lacks it. The kubelet tries again for ever: neither
restart.max_attempts nor active_deadline of an attempt counts it.
**Way out**: correct image, or name the Secret that may pull it in kubernetes.image_pull_secrets.
**References**: kubernetes.io/docs/concepts/containers/images, section ImagePullBackOff.
"""

from __future__ import annotations

import re

from launcher.diagnose.diagnosis import LIKELY, Diagnosis
from launcher.diagnose.evidence import Evidence

CODE = "TL625"
NAME = "image-not-pulled"
_REASONS = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"}
)
_LOGIN = r"denied|unauthorized|authentication|authorization failed|\b40[13]\b"


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Match the reasons for which a container waits for its image."""
    if evidence.reason not in _REASONS:
        return None
    saw = f"{evidence.reason}: {evidence.words}".rstrip(": ")
    words = evidence.words
    if evidence.reason == "InvalidImageName":
        return Diagnosis(CODE, NAME, "the image's name can't be one", saw, "correct image in the job file")
    if evidence.reason == "ErrImageNeverPull":
        sentence = "the image is not on the node, and pull_policy is never"
        return Diagnosis(CODE, NAME, sentence, saw, "set pull_policy to missing, or load the image on the node")
    if re.search(_LOGIN, words, re.I):
        sentence = "the registry does not give the image to this cluster: it is private, or does not exist"
        fix = "name the Secret that may pull it in kubernetes.image_pull_secrets, and check the spelling of image"
        return Diagnosis(CODE, NAME, sentence, saw, fix)
    if re.search(r"not found|manifest unknown|does not exist", words, re.I):
        sentence = "the registry has no image of that name and tag"
        return Diagnosis(
            CODE, NAME, sentence, saw, "correct image, or push it: what was built here is not in a registry"
        )
    if "no match for platform" in words:
        sentence = "the image has no variant for the node's CPU"
        return Diagnosis(
            CODE, NAME, sentence, saw, "build it for the node too: `docker buildx build --platform linux/amd64`"
        )
    sentence = "the node can't reach the registry, or not at this time"
    fix = "try again later; where it stays, ask whether the node may reach that registry at all"
    return Diagnosis(CODE, NAME, sentence, saw, fix, LIKELY)
