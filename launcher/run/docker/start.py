"""Why an engine did not start a container, where its own words need some of ours."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic
from launcher.errors import TargetUnavailable
from launcher.run.amd_gpus import INSTALL_AMDGPU, NO_GPU
from launcher.run.docker.checks import INSTALL_TOOLKIT
from launcher.run.docker.client import EngineRefused


def start_refused(refused: EngineRefused) -> TargetUnavailable:
    """Return the error for a container that was not started: TL505 where its GPUs have no driver, else the engine's."""
    amd = "adding custom device" in refused.explanation and "/dev/" in refused.explanation
    if not amd and "could not select device driver" not in refused.explanation:
        return refused
    return TargetUnavailable(
        [
            Diagnostic(
                code=NO_GPU,
                message="the engine has no driver for the GPUs that resources.gpus asks for",
                why=f"the engine says: {refused.explanation.strip()}",
                fix=INSTALL_AMDGPU if amd else INSTALL_TOOLKIT,
            )
        ]
    )
