"""docker-run.sh.j2 as Python, written by launcher/render/compiler.py: change that and run `make regen`."""

from __future__ import annotations

from typing import Any

from launcher.render.quoting import comment
from launcher.render.quoting import number
from launcher.render.quoting import sh_name
from launcher.render.quoting import sh_variable
from launcher.render.quoting import sh_word
from launcher.render.quoting import sh_words

SOURCES = {
    'docker-run.sh.j2': '1bfb3383b71d257acea1f5188af6315063328b161c428c1ad4a20ac111385a64',
}


def text(
    *,
    container: Any,
    cpus: Any,
    duration: Any,
    extra: Any,
    gpus: Any,
    header: Any,
    job: Any,
    memory: Any,
    mounts: Any,
    own_tmp: Any,
    renamed_secrets: Any,
    shm_size: Any,
    starts_in_own_folder: Any,
    **_unused: Any,
) -> str:
    """Return the text of the template."""
    out: list[str] = []
    out.append('#!/bin/sh\n')
    for line_1 in header:
        out += (
            '# ',
            comment(line_1),
            '\n',
        )
    if starts_in_own_folder:
        out.append('cd -- "$(dirname -- "$0")" || exit 125\n')
    for name_2, secret_3 in container.secrets:
        out += (
            'if [ -z ',
            sh_variable(secret_3.env),
            ' ]; then\n  echo "secret ',
            sh_name(name_2),
            ': variable ',
            sh_name(secret_3.env),
            ' of this shell is not set" >&2\n  exit 125\nfi\n',
        )
    items_6 = list(renamed_secrets)
    for at_7, (name_4, secret_5) in enumerate(items_6, 1):
        out += (
            'trainlaunch_secret_',
            number(at_7),
            '=',
            sh_variable(secret_5.env),
            '\n',
        )
    items_10 = list(renamed_secrets)
    for at_11, (name_8, secret_9) in enumerate(items_10, 1):
        out += (
            sh_name(name_8),
            '=$trainlaunch_secret_',
            number(at_11),
            '\n',
        )
    if container.secrets:
        out.append('export')
        for name_12, secret_13 in container.secrets:
            out += (
                ' ',
                sh_name(name_12),
            )
        out.append('\n')
    out += (
        "# shellcheck disable=SC2016  # the container's shell expands what stands in single quotes, not this one\nexec docker run \\\n  --rm \\\n  --init \\\n  --name ",
        sh_word(container.name),
        ' \\\n  --pull ',
        sh_word(job.pull_policy),
        ' \\\n',
    )
    for key_14, value_15 in container.labels:
        out += (
            '  --label ',
            sh_word((str(key_14) + '=' + str(value_15))),
            ' \\\n',
        )
    out += (
        '  --shm-size ',
        sh_word(shm_size),
        ' \\\n',
    )
    if memory:
        out += (
            '  --memory ',
            sh_word(memory),
            ' \\\n',
        )
    if cpus:
        out += (
            '  --cpus ',
            sh_word(cpus),
            ' \\\n',
        )
    if gpus:
        out += (
            '  --gpus ',
            sh_word(gpus),
            ' \\\n',
        )
    for limit_16 in job.ulimits:
        out += (
            '  --ulimit ',
            sh_word((str(limit_16.name) + '=' + str(limit_16.soft) + ':' + str(limit_16.hard))),
            ' \\\n',
        )
    if (not (job.user is None)):
        out += (
            '  --user ',
            sh_word(job.user),
            ' \\\n',
        )
    for group_17 in job.group_add:
        out += (
            '  --group-add ',
            sh_word(group_17),
            ' \\\n',
        )
    if job.read_only:
        out.append('  --read-only \\\n')
    if own_tmp:
        out.append('  --tmpfs /tmp:exec \\\n')
    for mount_18 in mounts:
        out += (
            '  --mount ',
            sh_word(mount_18),
            ' \\\n',
        )
    for name_19, value_20 in container.env:
        out += (
            '  --env ',
            sh_word((str(name_19) + '=' + str(value_20))),
            ' \\\n',
        )
    for name_21, secret_22 in container.secrets:
        out += (
            '  --env ',
            sh_word(name_21),
            ' \\\n',
        )
    if (not (job.working_dir is None)):
        out += (
            '  --workdir ',
            sh_word(job.working_dir),
            ' \\\n',
        )
    if (not (job.stop_signal is None)):
        out += (
            '  --stop-signal ',
            sh_word(job.stop_signal),
            ' \\\n',
        )
    out += (
        '  --stop-timeout ',
        number(job.stop_grace_period),
        ' \\\n  --health-interval ',
        sh_word(duration(job.healthcheck.interval)),
        ' \\\n  --health-timeout ',
        sh_word(duration(job.healthcheck.timeout)),
        ' \\\n  --health-retries ',
        number(job.healthcheck.retries),
        ' \\\n  --health-start-period ',
        sh_word(duration(job.healthcheck.start_period)),
        ' \\\n  --health-cmd ',
        sh_word(container.health),
        ' \\\n  --entrypoint ',
        sh_word(container.entrypoint[0]),
        ' \\\n',
    )
    for words_23 in extra:
        out += (
            '  ',
            sh_words(words_23),
            ' \\\n',
        )
    out += (
        '  ',
        sh_word(job.image),
        ' \\\n',
    )
    for word_24 in container.entrypoint[1:]:
        out += (
            '  ',
            sh_word(word_24),
            ' \\\n',
        )
    out += (
        '  ',
        sh_words(container.args),
        '\n',
    )
    return "".join(out)
