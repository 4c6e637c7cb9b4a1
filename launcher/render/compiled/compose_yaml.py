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
    'compose.yaml.j2': '8534c9c8932e17ba89a75c37ffc8d097b1498ee46c04d984eb78d6f0159da0d2',
}


def text(
    *,
    container: Any,
    cpus: Any,
    devices: Any,
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
    secret_files: Any,
    shm_size: Any,
    tmpfs: Any,
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
    if devices:
        out.append('    devices:\n')
        for device_5 in devices:
            out += (
                '      - ',
                yaml_string(device_5),
                '\n',
            )
    if job.ulimits:
        out.append('    ulimits:\n')
        for limit_6 in job.ulimits:
            out += (
                '      ',
                yaml_string(limit_6.name),
                ':\n        soft: ',
                number(limit_6.soft),
                '\n        hard: ',
                number(limit_6.hard),
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
        for group_7 in job.group_add:
            out += (
                '      - ',
                yaml_string(dollars(group_7)),
                '\n',
            )
    if job.read_only:
        out.append('    read_only: true\n')
    if tmpfs:
        out.append('    tmpfs:\n')
        for mount_8 in tmpfs:
            out += (
                '      - ',
                yaml_string(dollars(mount_8)),
                '\n',
            )
    if secret_files:
        out.append('    secrets:\n')
        for name_9, path_10, source_11 in secret_files:
            out += (
                '      - source: ',
                yaml_string(name_9),
                '\n        target: ',
                yaml_string(path_10),
                '\n',
            )
    if mounts:
        out.append('    volumes:\n')
        for mount_12, source_13 in mounts:
            out += (
                '      - type: ',
                yaml_string(str.replace(mount_12.type, 'scratch', 'volume')),
                '\n',
            )
            if (not (source_13 is None)):
                out += (
                    '        source: ',
                    yaml_string(dollars(source_13)),
                    '\n',
                )
            out += (
                '        target: ',
                yaml_string(dollars(mount_12.target)),
                '\n',
            )
            if mount_12.read_only:
                out.append('        read_only: true\n')
            if (mount_12.type == 'bind'):
                out.append('        bind:\n          create_host_path: false\n')
    if (container.env or container.secrets):
        out.append('    environment:\n')
        for name_14, value_15 in container.env:
            out += (
                '      ',
                yaml_string(name_14),
                ': ',
                yaml_string(dollars(value_15)),
                '\n',
            )
        for name_16, secret_17 in container.secrets:
            out += (
                '      ',
                yaml_string(name_16),
                ': ',
                compose_variable(secret_17.env, ('the source of secret ' + str(name_16) + ' is not set')),
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
    for word_18 in container.entrypoint:
        out += (
            '      - ',
            yaml_text(dollars(word_18), 8),
            '\n',
        )
    out.append('    command:\n')
    for word_19 in container.args:
        out += (
            '      - ',
            yaml_text(dollars(word_19), 8),
            '\n',
        )
    for node_20 in others:
        out += (
            '  ',
            yaml_string(node_20.name),
            ':\n    <<: *node\n    hostname: ',
            yaml_string(dollars(node_20.name)),
            '\n    container_name: ',
            yaml_string(dollars(node_20.name)),
            "\n    # The first node's name is taken first, and the others meet there.\n    depends_on:\n      - ",
            yaml_string(first.name),
            '\n    labels:\n      <<: *labels\n      ',
            yaml_string(node_label),
            ': ',
            yaml_string(node_20.number),
            '\n',
        )
        if node_20.gpu_ids:
            out.append('    deploy:\n      resources:\n        reservations:\n          devices:\n            - driver: "nvidia"\n              device_ids:\n')
            for id_21 in node_20.gpu_ids:
                out += (
                    '                - ',
                    yaml_string(dollars(id_21)),
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
    if secret_files:
        out.append('secrets:\n')
        for name_22, path_23, source_24 in secret_files:
            out += (
                '  ',
                yaml_string(name_22),
                ':\n    file: ',
                yaml_string(dollars(source_24)),
                '\n',
            )
    if volumes:
        out.append('volumes:\n')
        for name_25 in volumes:
            out += (
                '  ',
                yaml_string(name_25),
                ':\n    name: ',
                yaml_string(dollars(name_25)),
                '\n',
            )
    return "".join(out)
