"""kubernetes/job.yaml.j2 as Python, written by launcher/render/compiler.py: change that and run `make regen`."""

from __future__ import annotations

from typing import Any

from launcher.render.quoting import comment
from launcher.render.quoting import dollars
from launcher.render.text import indented
from launcher.render.quoting import number
from launcher.render.quoting import yaml_string
from launcher.render.quoting import yaml_text

SOURCES = {
    'kubernetes/job.yaml.j2': '1d88675833964b150426c8148fc31e2489991c34525b69f477eb5a673fcee7aa',
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
        'apiVersion: "batch/v1"\nkind: "Job"\nmetadata:\n  name: ',
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
    out += (
        'spec:\n  backoffLimit: ',
        number((job.max_attempts - 1)),
        '\n',
    )
    if (not (job.active_deadline is None)):
        out += (
            '  activeDeadlineSeconds: ',
            number(job.active_deadline),
            '\n',
        )
    if (not (job.ttl_after_finished is None)):
        out += (
            '  ttlSecondsAfterFinished: ',
            number(job.ttl_after_finished),
            '\n',
        )
    out.append('  podFailurePolicy:\n    rules:\n      # The files are wrong (78) or no process of the job ever ran: another attempt would end the same way.\n      - action: "FailJob"\n        onExitCodes:\n          containerName: "train"\n          operator: "In"\n          values: [78, 125, 126, 127]\n      # A drained or preempted node is no failure of the job.\n      - action: "Ignore"\n        onPodConditions:\n          - type: "DisruptionTarget"\n            status: "True"\n      # This node is wrong (75): another one may do.\n      - action: "Count"\n        onExitCodes:\n          containerName: "train"\n          operator: "In"\n          values: [75]\n  template:\n    metadata:\n')
    block_7: list[str] = []
    block_7.append('labels:\n')
    for key_8, value_9 in labels.items():
        block_7 += (
            '  ',
            yaml_string(key_8),
            ': ',
            yaml_string(value_9),
            '\n',
        )
    if job.annotations:
        block_7.append('annotations:\n')
        for key_10, value_11 in job.annotations.items():
            block_7 += (
                '  ',
                yaml_string(key_10),
                ': ',
                yaml_string(value_11),
                '\n',
            )
    out.append(indented("".join(block_7), 6, first=True))
    out.append('    spec:\n')
    block_12: list[str] = []
    block_12 += (
        'restartPolicy: "Never"\nterminationGracePeriodSeconds: ',
        number(job.stop_grace_period),
        "\n# The pod's own pid 1 passes SIGTERM on; a training process that is pid 1 itself would ignore it.\nshareProcessNamespace: true\nautomountServiceAccountToken: false\nsecurityContext:\n  runAsNonRoot: true\n  runAsUser: ",
        number(uid),
        '\n  runAsGroup: ',
        number(gid),
        '\n  fsGroup: 1000\n  fsGroupChangePolicy: "OnRootMismatch"\n',
    )
    if job.group_add:
        block_12.append('  supplementalGroups:\n')
        for group_13 in job.group_add:
            block_12 += (
                '    - ',
                number(int(group_13)),
                '\n',
            )
    block_12.append('  seccompProfile:\n    type: "RuntimeDefault"\n')
    if gpu_count:
        block_12 += (
            'tolerations:\n  - key: ',
            yaml_string(job.resources.gpu_resource),
            '\n    operator: "Exists"\n    effect: "NoSchedule"\n',
        )
    block_12 += (
        'containers:\n  - name: "train"\n    image: ',
        yaml_string(job.image),
        '\n    imagePullPolicy: ',
        yaml_string(pull_policy),
        '\n',
    )
    if (not (job.working_dir is None)):
        block_12 += (
            '    workingDir: ',
            yaml_string(job.working_dir),
            '\n',
        )
    block_12.append('    env:\n')
    for name_14, value_15 in env.items():
        block_12 += (
            '      - name: ',
            yaml_string(name_14),
            '\n        value: ',
            yaml_string(dollars(value_15)),
            '\n',
        )
    for name_16, secret_17 in container.secrets:
        block_12 += (
            '      - name: ',
            yaml_string(name_16),
            '\n        valueFrom:\n          secretKeyRef:\n            name: ',
            yaml_string(secret_17.kubernetes.partition('/')[0]),
            '\n            key: ',
            yaml_string(secret_17.kubernetes.partition('/')[2]),
            '\n',
        )
    block_12.append('    resources:\n      requests:\n')
    for name_18, quantity_19 in resources.items():
        block_12 += (
            '        ',
            yaml_string(name_18),
            ': ',
            yaml_string(quantity_19),
            '\n',
        )
    block_12.append('      limits:\n')
    for name_20, quantity_21 in resources.items():
        block_12 += (
            '        ',
            yaml_string(name_20),
            ': ',
            yaml_string(quantity_21),
            '\n',
        )
    block_12.append('    securityContext:\n      allowPrivilegeEscalation: false\n')
    if job.read_only:
        block_12.append('      readOnlyRootFilesystem: true\n')
    block_12.append('      capabilities:\n        drop:\n          - "ALL"\n    volumeMounts:\n')
    for volume_22 in volumes:
        block_12 += (
            '      - name: ',
            yaml_string(volume_22.name),
            '\n        mountPath: ',
            yaml_string(volume_22.target),
            '\n',
        )
        if (volume_22.type == 'secret'):
            block_12.append('        subPath: "value"\n')
        if volume_22.read_only:
            block_12.append('        readOnly: true\n')
    block_12 += (
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
    for word_23 in container.entrypoint:
        block_12 += (
            '      - ',
            yaml_text(dollars(word_23), 8),
            '\n',
        )
    block_12.append('    args:\n')
    for word_24 in container.args:
        block_12 += (
            '      - ',
            yaml_text(dollars(word_24), 8),
            '\n',
        )
    block_12.append('volumes:\n')
    for volume_25 in volumes:
        block_12 += (
            '  - name: ',
            yaml_string(volume_25.name),
            '\n',
        )
        if (volume_25.type in ('shm', 'tmpfs',)):
            block_12 += (
                '    emptyDir:\n      medium: "Memory"\n      sizeLimit: ',
                yaml_string(volume_25.source),
                '\n',
            )
        elif (volume_25.type == 'scratch'):
            block_12.append('    emptyDir: {}\n')
        elif (volume_25.type == 'pvc'):
            block_12 += (
                '    persistentVolumeClaim:\n      claimName: ',
                yaml_string(volume_25.source),
                '\n',
            )
            if volume_25.read_only:
                block_12.append('      readOnly: true\n')
        elif (volume_25.type == 'config'):
            block_12 += (
                '    configMap:\n      name: ',
                yaml_string(volume_25.source),
                '\n',
            )
        elif (volume_25.type == 'secret'):
            block_12 += (
                '    secret:\n      secretName: ',
                yaml_string(volume_25.source.partition('/')[0]),
                "\n      # 0440, which fsGroup gives to the job's group.\n      defaultMode: 288\n      items:\n        - key: ",
                yaml_string(volume_25.source.partition('/')[2]),
                '\n          path: "value"\n',
            )
    out.append(indented("".join(block_12), 6, first=True))
    return "".join(out)
