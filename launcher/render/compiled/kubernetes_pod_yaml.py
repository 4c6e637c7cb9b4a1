"""kubernetes/pod.yaml.j2 as Python, written by launcher/render/compiler.py: change that and run `make regen`."""

from __future__ import annotations

from typing import Any

from launcher.render.quoting import comment
from launcher.render.quoting import dollars
from launcher.render.text import indented
from launcher.render.quoting import number
from launcher.render.quoting import yaml_string
from launcher.render.quoting import yaml_text

SOURCES = {
    'kubernetes/pod.yaml.j2': '0751f321f715360f80145aa8440f0da0fcc75988fb63fc85a3d1582c4d95857f',
    'kubernetes/metadata.yaml.j2': 'e0d4def3a7350ef7e5bf28e3b2b21e8520274b2fe282dcb1da5e54e9d2eee0b8',
    'kubernetes/pod-spec.yaml.j2': '98f551fc3a058a60e2f7182a9b1d47906f33549c8aa05fa847efe575a780750e',
}


def text(
    *,
    container: Any,
    env: Any,
    gid: Any,
    gpu_count: Any,
    header: Any,
    job: Any,
    labels: Any,
    name: Any,
    pull_policy: Any,
    resources: Any,
    start_period: Any,
    uid: Any,
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
        'apiVersion: "v1"\nkind: "Pod"\nmetadata:\n  name: ',
        yaml_string(name),
        '\n',
    )
    if (not (job.kubernetes.namespace is None)):
        out += (
            '  namespace: ',
            yaml_string(job.kubernetes.namespace),
            '\n',
        )
    block_2: list[str] = []
    block_2.append('labels:\n')
    for key_3, value_4 in labels.items():
        block_2 += (
            '  ',
            yaml_string(key_3),
            ': ',
            yaml_string(value_4),
            '\n',
        )
    if job.annotations:
        block_2.append('annotations:\n')
        for key_5, value_6 in job.annotations.items():
            block_2 += (
                '  ',
                yaml_string(key_5),
                ': ',
                yaml_string(value_6),
                '\n',
            )
    out.append(indented("".join(block_2), 2, first=True))
    out.append('spec:\n')
    if (not (job.active_deadline is None)):
        out += (
            '  activeDeadlineSeconds: ',
            number(job.active_deadline),
            '\n',
        )
    block_7: list[str] = []
    block_7 += (
        'restartPolicy: "Never"\nterminationGracePeriodSeconds: ',
        number(job.stop_grace_period),
        "\n# The pod's own pid 1 passes SIGTERM on; a training process that is pid 1 itself would ignore it.\nshareProcessNamespace: true\nautomountServiceAccountToken: false\nsecurityContext:\n  runAsNonRoot: true\n  runAsUser: ",
        number(uid),
        '\n  runAsGroup: ',
        number(gid),
        '\n  fsGroup: 1000\n  fsGroupChangePolicy: "OnRootMismatch"\n',
    )
    if job.group_add:
        block_7.append('  supplementalGroups:\n')
        for group_8 in job.group_add:
            block_7 += (
                '    - ',
                number(int(group_8)),
                '\n',
            )
    block_7.append('  seccompProfile:\n    type: "RuntimeDefault"\n')
    if gpu_count:
        block_7 += (
            'tolerations:\n  - key: ',
            yaml_string(job.resources.gpu_resource),
            '\n    operator: "Exists"\n    effect: "NoSchedule"\n',
        )
    block_7 += (
        'containers:\n  - name: "train"\n    image: ',
        yaml_string(job.image),
        '\n    imagePullPolicy: ',
        yaml_string(pull_policy),
        '\n',
    )
    if (not (job.working_dir is None)):
        block_7 += (
            '    workingDir: ',
            yaml_string(job.working_dir),
            '\n',
        )
    block_7.append('    env:\n')
    for name_9, value_10 in env.items():
        block_7 += (
            '      - name: ',
            yaml_string(name_9),
            '\n        value: ',
            yaml_string(dollars(value_10)),
            '\n',
        )
    for name_11, secret_12 in container.secrets:
        block_7 += (
            '      - name: ',
            yaml_string(name_11),
            '\n        valueFrom:\n          secretKeyRef:\n            name: ',
            yaml_string(secret_12.kubernetes.partition('/')[0]),
            '\n            key: ',
            yaml_string(secret_12.kubernetes.partition('/')[2]),
            '\n',
        )
    block_7.append('    resources:\n      requests:\n')
    for name_13, quantity_14 in resources.items():
        block_7 += (
            '        ',
            yaml_string(name_13),
            ': ',
            yaml_string(quantity_14),
            '\n',
        )
    block_7.append('      limits:\n')
    for name_15, quantity_16 in resources.items():
        block_7 += (
            '        ',
            yaml_string(name_15),
            ': ',
            yaml_string(quantity_16),
            '\n',
        )
    block_7.append('    securityContext:\n      allowPrivilegeEscalation: false\n')
    if job.read_only:
        block_7.append('      readOnlyRootFilesystem: true\n')
    block_7.append('      capabilities:\n        drop:\n          - "ALL"\n    volumeMounts:\n')
    for volume_17 in volumes:
        block_7 += (
            '      - name: ',
            yaml_string(volume_17.name),
            '\n        mountPath: ',
            yaml_string(volume_17.target),
            '\n',
        )
        if (volume_17.type == 'secret'):
            block_7.append('        subPath: "value"\n')
        if volume_17.read_only:
            block_7.append('        readOnly: true\n')
    block_7 += (
        '    # Readiness only reports: a pod that is not ready goes on training.\n    # start_period ',
        comment(start_period),
        ' has no field here and needs none.\n    readinessProbe:\n      periodSeconds: ',
        number(job.healthcheck.interval),
        '\n      timeoutSeconds: ',
        number(job.healthcheck.timeout),
        '\n      failureThreshold: ',
        number(job.healthcheck.retries),
        '\n      exec:\n        command:\n          - "/bin/sh"\n          - "-c"\n          - ',
        yaml_text(dollars(container.health), 12),
        '\n    command:\n',
    )
    for word_18 in container.entrypoint:
        block_7 += (
            '      - ',
            yaml_text(dollars(word_18), 8),
            '\n',
        )
    block_7.append('    args:\n')
    for word_19 in container.args:
        block_7 += (
            '      - ',
            yaml_text(dollars(word_19), 8),
            '\n',
        )
    block_7.append('volumes:\n')
    for volume_20 in volumes:
        block_7 += (
            '  - name: ',
            yaml_string(volume_20.name),
            '\n',
        )
        if (volume_20.type in ('shm', 'tmpfs',)):
            block_7 += (
                '    emptyDir:\n      medium: "Memory"\n      sizeLimit: ',
                yaml_string(volume_20.source),
                '\n',
            )
        elif (volume_20.type == 'scratch'):
            block_7.append('    emptyDir: {}\n')
        elif (volume_20.type == 'pvc'):
            block_7 += (
                '    persistentVolumeClaim:\n      claimName: ',
                yaml_string(volume_20.source),
                '\n',
            )
            if volume_20.read_only:
                block_7.append('      readOnly: true\n')
        elif (volume_20.type == 'config'):
            block_7 += (
                '    configMap:\n      name: ',
                yaml_string(volume_20.source),
                '\n',
            )
        elif (volume_20.type == 'secret'):
            block_7 += (
                '    secret:\n      secretName: ',
                yaml_string(volume_20.source.partition('/')[0]),
                "\n      # 0440, which fsGroup gives to the job's group.\n      defaultMode: 288\n      items:\n        - key: ",
                yaml_string(volume_20.source.partition('/')[2]),
                '\n          path: "value"\n',
            )
    out.append(indented("".join(block_7), 2, first=True))
    return "".join(out)
