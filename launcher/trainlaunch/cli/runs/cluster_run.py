"""The argument RUN on target kubernetes: the run of the namespace that is meant, and what `down` takes."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from trainlaunch.cli.arguments.run_argument import asked_run, chosen_for_removal, owned_by
from trainlaunch.errors import TargetUnavailable
from trainlaunch.run.base.run_query import ANYONE, RunQuery, matching, newest_allowed
from trainlaunch.run.base.wording import not_yours
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.identity import who_am_i
from trainlaunch.run.kubernetes.objects import ForbiddenKinds
from trainlaunch.run.kubernetes.owned_runs import OwnedRun, owned_runs
from trainlaunch.run.kubernetes.removal import remove_orphans, remove_runs
from trainlaunch.run.kubernetes.runs import ClusterRun, no_such_run
from trainlaunch.targets import KUBERNETES

Say = Callable[[str], None]


def newest_run(args: argparse.Namespace, cluster: Cluster, say: Say) -> ClusterRun:
    """Return the newest run of the caller's that RUN means, and name it where RUN means several.

    Raises TargetUnavailable (TL510) where there is none, or none of the caller's.
    """
    asked, found = _found(args, cluster)
    if not found:
        raise TargetUnavailable([no_such_run(cluster, asked.job or asked.text, say)])
    chosen = found[0] if args.owner else newest_allowed(found)
    if chosen is None:
        raise TargetUnavailable([not_yours(args.job, found)])
    if len(found) > 1:
        say(f"{chosen.run.main} of job {chosen.job}, the newest of {len(found)}")
    return chosen.run


def remove(args: argparse.Namespace, cluster: Cluster, say: Say) -> None:
    """Delete what `down` may take, and return when it is gone; or what runs that are gone have left.

    Raises UsageError (TL119), and TargetUnavailable (TL510) where there is nothing.
    """
    asked, found = _found(args, cluster)
    if found:
        return remove_runs(cluster, [each.run for each in chosen_for_removal(args, found)], say)
    hashes = None if args.owner == ANYONE else {who_am_i(cluster).hash}
    return remove_orphans(cluster, asked.job or asked.text, hashes, say)


def _found(args: argparse.Namespace, cluster: Cluster) -> tuple[RunQuery, Sequence[OwnedRun]]:
    asked = asked_run(args, target=KUBERNETES.name)
    return asked, matching(owned_by(args.owner, owned_runs(cluster, ForbiddenKinds())), asked)
