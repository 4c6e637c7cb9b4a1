"""compose.yaml.j2 as Python, written by launcher/render/compiler.py: change that and run `make regen`."""

from __future__ import annotations

from typing import Any

from launcher.render.quoting import comment
from launcher.render.quoting import compose_variable
from launcher.render.quoting import dollars
from launcher.render.quoting import number
from launcher.render.quoting import yaml_string
from launcher.render.quoting import yaml_text

SOURCES = {
    'compose.yaml.j2': '60c8cc309d47888f40fb2249fa2da227b38ee0548d00178b20152769ee3a89f5',
}


def text(
    *,
    container: Any,
    cpus: Any,
    duration: Any,
    first: Any,
    gpus: Any,
    header: Any,
    job: Any,
    job_label: Any,
    memory: Any,
    mounts: Any,
    node_label: Any,
    others: Any,
    own_tmp: Any,
    shm_size: Any,
    volumes: Any,
    **_unused: Any,
) -> str:
    """Return the text of the template."""
    out: list[str] = []
    for line_1 in header:
        out += (
            '# ',
            comment(line_1),
            '\n',
        )
    out += (
        'name: ',
        yaml_string(dollars(container.name)),
        '\nservices:\n',
    )
    if others:
        out += (
            '  ',
            yaml_string(first.name),
            ': &node\n    hostname: ',
            yaml_string(dollars(first.name)),
            '\n',
        )
    else:
        out += (
            '  ',
            yaml_string(first.name),
            ':\n',
        )
    out += (
        '    container_name: ',
        yaml_string(dollars(first.name)),
        '\n    image: ',
        yaml_string(dollars(job.image)),
        '\n    pull_policy: ',
        yaml_string(job.pull_policy),
        '\n    init: true\n    restart: "no"\n',
    )
    if others:
        out.append('    labels: &labels\n')
    else:
        out.append('    labels:\n')
    for key_2, value_3 in container.labels:
        out += (
            '      ',
            yaml_string(key_2),
            ': ',
            yaml_string(dollars(value_3)),
            '\n',
        )
    if others:
        out += (
            '      ',
            yaml_string(node_label),
            ': "0"\n',
        )
    out += (
        '    shm_size: ',
        yaml_string(shm_size),
        '\n',
    )
    if memory:
        out += (
            '    mem_limit: ',
            yaml_string(memory),
            '\n',
        )
    if cpus:
        out += (
            '    cpus: ',
            yaml_string(cpus),
            '\n',
        )
    if gpus:
        out.append('    deploy:\n      resources:\n        reservations:\n          devices:\n            - driver: "nvidia"\n')
        if first.gpu_ids:
            out.append('              device_ids:\n')
            for id_4 in first.gpu_ids:
                out += (
                    '                - ',
                    yaml_string(dollars(id_4)),
                    '\n',
                )
        elif gpus.all:
            out.append('              count: "all"\n')
        else:
            out += (
                '              count: ',
                number(gpus.count),
                '\n',
            )
        out.append('              capabilities:\n                - "gpu"\n')
    if job.ulimits:
        out.append('    ulimits:\n')
        for limit_5 in job.ulimits:
            out += (
                '      ',
                yaml_string(limit_5.name),
                ':\n        soft: ',
                number(limit_5.soft),
                '\n        hard: ',
                number(limit_5.hard),
                '\n',
            )
    if (not (job.user is None)):
        out += (
            '    user: ',
            yaml_string(dollars(job.user)),
            '\n',
        )
    if job.group_add:
        out.append('    group_add:\n')
        for group_6 in job.group_add:
            out += (
                '      - ',
                yaml_string(dollars(group_6)),
                '\n',
            )
    if job.read_only:
        out.append('    read_only: true\n')
    if own_tmp:
        out.append('    tmpfs:\n      - "/tmp:exec"\n')
    if job.mounts:
        out.append('    volumes:\n')
        for mount_7, source_8 in mounts:
            out += (
                '      - type: ',
                yaml_string(str.replace(mount_7.type, 'scratch', 'volume')),
                '\n',
            )
            if (not (source_8 is None)):
                out += (
                    '        source: ',
                    yaml_string(dollars(source_8)),
                    '\n',
                )
            out += (
                '        target: ',
                yaml_string(dollars(mount_7.target)),
                '\n',
            )
            if mount_7.read_only:
                out.append('        read_only: true\n')
            if (mount_7.type == 'bind'):
                out.append('        bind:\n          create_host_path: false\n')
    if (container.env or container.secrets):
        out.append('    environment:\n')
        for name_9, value_10 in container.env:
            out += (
                '      ',
                yaml_string(name_9),
                ': ',
                yaml_string(dollars(value_10)),
                '\n',
            )
        for name_11, secret_12 in container.secrets:
            out += (
                '      ',
                yaml_string(name_11),
                ': ',
                compose_variable(secret_12.env, ('the source of secret ' + str(name_11) + ' is not set')),
                '\n',
            )
    if (not (job.working_dir is None)):
        out += (
            '    working_dir: ',
            yaml_string(dollars(job.working_dir)),
            '\n',
        )
    if (not (job.stop_signal is None)):
        out += (
            '    stop_signal: ',
            yaml_string(job.stop_signal),
            '\n',
        )
    out += (
        '    stop_grace_period: ',
        yaml_string(duration(job.stop_grace_period)),
        '\n    healthcheck:\n      interval: ',
        yaml_string(duration(job.healthcheck.interval)),
        '\n      timeout: ',
        yaml_string(duration(job.healthcheck.timeout)),
        '\n      retries: ',
        number(job.healthcheck.retries),
        '\n      start_period: ',
        yaml_string(duration(job.healthcheck.start_period)),
        '\n      test:\n        - "CMD-SHELL"\n        - ',
        yaml_text(dollars(container.health), 10),
        '\n    entrypoint:\n',
    )
    for word_13 in container.entrypoint:
        out += (
            '      - ',
            yaml_text(dollars(word_13), 8),
            '\n',
        )
    out.append('    command:\n')
    for word_14 in container.args:
        out += (
            '      - ',
            yaml_text(dollars(word_14), 8),
            '\n',
        )
    for node_15 in others:
        out += (
            '  ',
            yaml_string(node_15.name),
            ':\n    <<: *node\n    hostname: ',
            yaml_string(dollars(node_15.name)),
            '\n    container_name: ',
            yaml_string(dollars(node_15.name)),
            "\n    # The first node's name is taken first, and the others meet there.\n    depends_on:\n      - ",
            yaml_string(first.name),
            '\n    labels:\n      <<: *labels\n      ',
            yaml_string(node_label),
            ': ',
            yaml_string(node_15.number),
            '\n',
        )
        if node_15.gpu_ids:
            out.append('    deploy:\n      resources:\n        reservations:\n          devices:\n            - driver: "nvidia"\n              device_ids:\n')
            for id_16 in node_15.gpu_ids:
                out += (
                    '                - ',
                    yaml_string(dollars(id_16)),
                    '\n',
                )
            out.append('              capabilities:\n                - "gpu"\n')
    out += (
        'networks:\n  default:\n    labels:\n      ',
        yaml_string(job_label),
        ': ',
        yaml_string(job.name),
        '\n',
    )
    if volumes:
        out.append('volumes:\n')
        for name_17 in volumes:
            out += (
                '  ',
                yaml_string(name_17),
                ':\n    name: ',
                yaml_string(dollars(name_17)),
                '\n',
            )
    return "".join(out)
