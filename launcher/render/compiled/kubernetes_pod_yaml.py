"""kubernetes/pod.yaml.j2 as Python, written by launcher/render/compiler.py: change that and run `make regen`."""

from __future__ import annotations

from typing import Any

from launcher.render.quoting import comment
from launcher.render.quoting import dollars
from launcher.render.text import indented
from launcher.render.quoting import number
from launcher.render.quoting import yaml_block
from launcher.render.quoting import yaml_string
from launcher.render.quoting import yaml_text

SOURCES = {
    'kubernetes/pod.yaml.j2': '79145e43558326ac848faae00cc0d324939aecba2173a1f8d2d38245979610b2',
    'kubernetes/header.yaml.j2': 'a2b19eb67cd1e2607140a93194c5cd593695f3523c891d9a971b247f18ee574e',
    'kubernetes/pod-metadata.yaml.j2': '24e3ba39b9f0c10b9f204fe04628a00b48a28f3905f315ebb9581a089e55e896',
    'kubernetes/pod-spec.yaml.j2': 'b5511753ab538a1a80f5d04d8abafbe52aac80ce5fdcdc3f61149ea9c7c6d50f',
}


def text(
    *,
    container: Any,
    container_name: Any,
    env: Any,
    header: Any,
    health: Any,
    job: Any,
    labels: Any,
    limits: Any,
    local_address: Any,
    name: Any,
    platform: Any,
    pod_annotations: Any,
    pull_policy: Any,
    requests: Any,
    security: Any,
    start_period: Any,
    stated_security: Any,
    subdomain: Any,
    tolerations: Any,
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
    if (not (platform.namespace is None)):
        out += (
            '  namespace: ',
            yaml_string(platform.namespace),
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
    if pod_annotations:
        block_2.append('annotations:\n')
        for key_5, value_6 in pod_annotations.items():
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
        "\n# The pod's own pid 1 passes SIGTERM on; a training process that is pid 1 itself would ignore it.\nshareProcessNamespace: true\n",
    )
    if (not (platform.service_account is None)):
        block_7 += (
            'serviceAccountName: ',
            yaml_string(platform.service_account),
            '\n',
        )
    if platform.token:
        block_7.append('automountServiceAccountToken: true\n')
    else:
        block_7.append('automountServiceAccountToken: false\n')
    if (not (subdomain is None)):
        block_7 += (
            'subdomain: ',
            yaml_string(subdomain),
            '\n',
        )
    if platform.host_network:
        block_7.append('hostNetwork: true\n# The names of the cluster are looked up from the node\'s network too.\ndnsPolicy: "ClusterFirstWithHostNet"\n')
    if (not (platform.runtime_class is None)):
        block_7 += (
            'runtimeClassName: ',
            yaml_string(platform.runtime_class),
            '\n',
        )
    if (not (platform.priority_class is None)):
        block_7 += (
            'priorityClassName: ',
            yaml_string(platform.priority_class),
            '\n',
        )
    if platform.image_pull_secrets:
        block_7.append('imagePullSecrets:\n')
        for secret_8 in platform.image_pull_secrets:
            block_7 += (
                '  - name: ',
                yaml_string(secret_8),
                '\n',
            )
    if platform.node_selector:
        block_7.append('nodeSelector:\n')
        block_9: list[str] = []
        block_9 += (
            yaml_block(platform.node_selector),
            '\n',
        )
        block_7.append(indented("".join(block_9), 2, first=True))
    if platform.affinity:
        block_7.append('affinity:\n')
        block_10: list[str] = []
        block_10 += (
            yaml_block(platform.affinity),
            '\n',
        )
        block_7.append(indented("".join(block_10), 2, first=True))
    if tolerations:
        block_7.append('tolerations:\n')
        block_11: list[str] = []
        block_11 += (
            yaml_block(tolerations),
            '\n',
        )
        block_7.append(indented("".join(block_11), 2, first=True))
    if platform.topology_spread:
        block_7.append('topologySpreadConstraints:\n')
        block_12: list[str] = []
        block_12 += (
            yaml_block(platform.topology_spread),
            '\n',
        )
        block_7.append(indented("".join(block_12), 2, first=True))
    if stated_security:
        block_7.append('securityContext:\n')
        if security.restricted:
            block_7.append('  runAsNonRoot: true\n')
        if (not (security.uid is None)):
            block_7 += (
                '  runAsUser: ',
                number(security.uid),
                '\n',
            )
        if (not (security.gid is None)):
            block_7 += (
                '  runAsGroup: ',
                number(security.gid),
                '\n',
            )
        if (not (security.fs_group is None)):
            block_7 += (
                '  fsGroup: ',
                number(security.fs_group),
                '\n  fsGroupChangePolicy: "OnRootMismatch"\n',
            )
        if job.group_add:
            block_7.append('  supplementalGroups: [')
            items_14 = list(job.group_add)
            for at_15, group_13 in enumerate(items_14, 1):
                block_7.append(number(int(group_13)))
                if (not at_15 == len(items_14)):
                    block_7.append(', ')
            block_7.append(']\n')
        if security.seccomp:
            block_7.append('  seccompProfile:\n    type: "RuntimeDefault"\n')
    block_7 += (
        'containers:\n  - name: ',
        yaml_string(container_name),
        '\n    image: ',
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
    if ((env or container.secrets) or local_address):
        block_7.append('    env:\n')
        for name_16, value_17 in env.items():
            block_7 += (
                '      - name: ',
                yaml_string(name_16),
                '\n        value: ',
                yaml_string(dollars(value_17)),
                '\n',
            )
        for name_18, secret_19 in container.secrets:
            block_7 += (
                '      - name: ',
                yaml_string(name_18),
                '\n        valueFrom:\n          secretKeyRef:\n            name: ',
                yaml_string(secret_19.kubernetes.partition('/')[0]),
                '\n            key: ',
                yaml_string(secret_19.kubernetes.partition('/')[2]),
                '\n',
            )
        if local_address:
            block_7.append('      # A node\'s own host name means nothing to the other nodes.\n      - name: "PET_LOCAL_ADDR"\n        valueFrom:\n          fieldRef:\n            fieldPath: "status.podIP"\n')
    block_7.append('    resources:\n      requests:\n')
    for name_20, quantity_21 in requests.items():
        block_7 += (
            '        ',
            yaml_string(name_20),
            ': ',
            yaml_string(quantity_21),
            '\n',
        )
    block_7.append('      limits:\n')
    for name_22, quantity_23 in limits.items():
        block_7 += (
            '        ',
            yaml_string(name_22),
            ': ',
            yaml_string(quantity_23),
            '\n',
        )
    if (security.restricted or job.read_only):
        block_7.append('    securityContext:\n')
        if security.restricted:
            block_7.append('      allowPrivilegeEscalation: false\n')
        if job.read_only:
            block_7.append('      readOnlyRootFilesystem: true\n')
        if security.restricted:
            block_7.append('      capabilities:\n        drop:\n          - "ALL"\n')
    block_7.append('    volumeMounts:\n')
    for volume_24 in volumes:
        block_7 += (
            '      - name: ',
            yaml_string(volume_24.name),
            '\n        mountPath: ',
            yaml_string(volume_24.target),
            '\n',
        )
        if (volume_24.type == 'secret'):
            block_7.append('        subPath: "value"\n')
        if volume_24.read_only:
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
        yaml_text(dollars(health), 12),
        '\n    command:\n',
    )
    for word_25 in container.entrypoint:
        block_7 += (
            '      - ',
            yaml_text(dollars(word_25), 8),
            '\n',
        )
    block_7.append('    args:\n')
    for word_26 in container.args:
        block_7 += (
            '      - ',
            yaml_text(dollars(word_26), 8),
            '\n',
        )
    block_7.append('volumes:\n')
    for volume_27 in volumes:
        block_7 += (
            '  - name: ',
            yaml_string(volume_27.name),
            '\n',
        )
        if (volume_27.type in ('shm', 'tmpfs',)):
            block_7 += (
                '    emptyDir:\n      medium: "Memory"\n      sizeLimit: ',
                yaml_string(volume_27.source),
                '\n',
            )
        elif (volume_27.type == 'scratch'):
            block_7.append('    emptyDir: {}\n')
        elif (volume_27.type == 'pvc'):
            block_7 += (
                '    persistentVolumeClaim:\n      claimName: ',
                yaml_string(volume_27.source),
                '\n',
            )
            if volume_27.read_only:
                block_7.append('      readOnly: true\n')
        elif (volume_27.type == 'config'):
            block_7 += (
                '    configMap:\n      name: ',
                yaml_string(volume_27.source),
                '\n',
            )
        elif (volume_27.type == 'secret'):
            block_7 += (
                '    secret:\n      secretName: ',
                yaml_string(volume_27.source.partition('/')[0]),
                "\n      # 0440, which fsGroup gives to the job's group.\n      defaultMode: 288\n      items:\n        - key: ",
                yaml_string(volume_27.source.partition('/')[2]),
                '\n          path: "value"\n',
            )
    out.append(indented("".join(block_7), 2, first=True))
    return "".join(out)
