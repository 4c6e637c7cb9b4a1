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
    'docker-run.sh.j2': '2d978d1561a06e4f56f369bb1d603b23113883df0411f961fb79bf41c018bcac',
}


def text(
    *,
    container: Any,
    cpus: Any,
    devices: Any,
    duration: Any,
    extra: Any,
    gpus: Any,
    header: Any,
    job: Any,
    memory: Any,
    mounts: Any,
    names_files: Any,
    secret_files: Any,
    secrets: Any,
    shm_size: Any,
    starts_in_own_folder: Any,
    tmpfs: Any,
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
    if names_files:
        out.append('# shellcheck disable=SC2016  # paths of secrets stand here as they are\n')
    if starts_in_own_folder:
        out.append('cd -- "$(dirname -- "$0")" || exit 125\n')
    for name_2, path_3 in secret_files:
        out += (
            'if [ ! -f ',
            sh_word(path_3),
            ' ] || [ ! -r ',
            sh_word(path_3),
            ' ] || [ ! -s ',
            sh_word(path_3),
            ' ]; then\n  echo ',
            sh_word(('secret ' + str(name_2) + ': file ' + str(path_3) + " can't be read, or is empty")),
            ' >&2\n  exit 125\nfi\n',
        )
    for secret_4 in secrets:
        if secret_4.path:
            out += (
                sh_name(secret_4.holder),
                '=$(cat ',
                sh_word(secret_4.path),
                ')\nif [ -z ',
                sh_variable(secret_4.holder),
                ' ]; then\n  echo ',
                sh_word(('secret ' + str(secret_4.name) + ': file ' + str(secret_4.path) + " can't be read, or is empty")),
                ' >&2\n  exit 125\nfi\n',
            )
        else:
            out += (
                'if [ -z ',
                sh_variable(secret_4.env),
                ' ]; then\n  echo "secret ',
                sh_name(secret_4.name),
                ': variable ',
                sh_name(secret_4.env),
                ' of this shell is not set" >&2\n  exit 125\nfi\n',
            )
    for secret_5 in secrets:
        if (secret_5.holder and (not secret_5.path)):
            out += (
                sh_name(secret_5.holder),
                '=',
                sh_variable(secret_5.env),
                '\n',
            )
    for secret_6 in secrets:
        if secret_6.holder:
            out += (
                sh_name(secret_6.name),
                '=$',
                sh_name(secret_6.holder),
                '\n',
            )
    if secrets:
        out.append('export')
        for secret_7 in secrets:
            out += (
                ' ',
                sh_name(secret_7.name),
            )
        out.append('\n')
    out += (
        "# shellcheck disable=SC2016  # the container's shell expands what stands in single quotes, not this one\nexec docker run \\\n  --rm \\\n  --init \\\n  --name ",
        sh_word(container.name),
        ' \\\n  --pull ',
        sh_word(job.pull_policy),
        ' \\\n',
    )
    for key_8, value_9 in container.labels:
        out += (
            '  --label ',
            sh_word((str(key_8) + '=' + str(value_9))),
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
    for device_10 in devices:
        out += (
            '  --device ',
            sh_word(device_10),
            ' \\\n',
        )
    for limit_11 in job.ulimits:
        out += (
            '  --ulimit ',
            sh_word((str(limit_11.name) + '=' + str(limit_11.soft) + ':' + str(limit_11.hard))),
            ' \\\n',
        )
    if (not (job.user is None)):
        out += (
            '  --user ',
            sh_word(job.user),
            ' \\\n',
        )
    for group_12 in job.group_add:
        out += (
            '  --group-add ',
            sh_word(group_12),
            ' \\\n',
        )
    if job.read_only:
        out.append('  --read-only \\\n')
    for target_13, options_14 in tmpfs.items():
        out += (
            '  --tmpfs ',
            sh_word((str(target_13) + ':' + str(options_14))),
            ' \\\n',
        )
    for mount_15 in mounts:
        out += (
            '  --mount ',
            sh_word(mount_15),
            ' \\\n',
        )
    for name_16, value_17 in container.env:
        out += (
            '  --env ',
            sh_word((str(name_16) + '=' + str(value_17))),
            ' \\\n',
        )
    for secret_18 in secrets:
        out += (
            '  --env ',
            sh_word(secret_18.name),
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
    for words_19 in extra:
        out += (
            '  ',
            sh_words(words_19),
            ' \\\n',
        )
    out += (
        '  ',
        sh_word(job.image),
        ' \\\n',
    )
    for word_20 in container.entrypoint[1:]:
        out += (
            '  ',
            sh_word(word_20),
            ' \\\n',
        )
    out += (
        '  ',
        sh_words(container.args),
        '\n',
    )
    return "".join(out)
