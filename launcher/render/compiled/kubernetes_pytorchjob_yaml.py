"""kubernetes/pytorchjob.yaml.j2 as Python, written by launcher/render/compiler.py: change that and run `make regen`."""

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
    'kubernetes/pytorchjob.yaml.j2': '848e0511958cd106a9d49aca5c5f8cf8270d6daaed0c6d5c8d0889c4bee263a0',
    'kubernetes/header.yaml.j2': 'a2b19eb67cd1e2607140a93194c5cd593695f3523c891d9a971b247f18ee574e',
    'kubernetes/metadata.yaml.j2': '929a8612d45a2efb16180193e01b89af1c87b956489e8cffc310fe29f9d6ed42',
    'kubernetes/pod-template.yaml.j2': '496e9cc25dd1209f6c4de2effc5d3020e31f5cfa3e136d372a31c287aeab2f78',
    'kubernetes/pod-metadata.yaml.j2': '24e3ba39b9f0c10b9f204fe04628a00b48a28f3905f315ebb9581a089e55e896',
    'kubernetes/pod-spec.yaml.j2': 'b5511753ab538a1a80f5d04d8abafbe52aac80ce5fdcdc3f61149ea9c7c6d50f',
}


def text(
    *,
    container: Any,
    container_name: Any,
    env: Any,
    gang: Any,
    header: Any,
    health: Any,
    job: Any,
    labels: Any,
    limits: Any,
    local_address: Any,
    name: Any,
    nodes: Any,
    platform: Any,
    pod_annotations: Any,
    pull_policy: Any,
    queue_label: Any,
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
    out.append('apiVersion: "kubeflow.org/v1"\nkind: "PyTorchJob"\nmetadata:\n')
    block_2: list[str] = []
    block_2 += (
        'name: ',
        yaml_string(name),
        '\n',
    )
    if (not (platform.namespace is None)):
        block_2 += (
            'namespace: ',
            yaml_string(platform.namespace),
            '\n',
        )
    block_2.append('labels:\n')
    for key_3, value_4 in labels.items():
        block_2 += (
            '  ',
            yaml_string(key_3),
            ': ',
            yaml_string(value_4),
            '\n',
        )
    if (not (platform.queue is None)):
        block_2 += (
            '  ',
            yaml_string(queue_label),
            ': ',
            yaml_string(platform.queue),
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
    out.append('spec:\n  runPolicy:\n    # When one pod has failed its peers wait for ever; ended pods stay, for their logs.\n    cleanPodPolicy: "Running"\n    backoffLimit: 0\n')
    if (not (platform.queue is None)):
        out.append('    # Kueue starts it when the queue has room.\n    suspend: true\n')
    if (not (job.active_deadline is None)):
        out += (
            '    activeDeadlineSeconds: ',
            number(job.active_deadline),
            '\n',
        )
    if (not (job.ttl_after_finished is None)):
        out += (
            '    ttlSecondsAfterFinished: ',
            number(job.ttl_after_finished),
            '\n',
        )
    out.append('  pytorchReplicaSpecs:\n    Master:\n      replicas: 1\n      restartPolicy: "Never"\n      template:\n')
    block_7: list[str] = []
    block_7.append('metadata:\n')
    block_8: list[str] = []
    block_8.append('labels:\n')
    for key_9, value_10 in labels.items():
        block_8 += (
            '  ',
            yaml_string(key_9),
            ': ',
            yaml_string(value_10),
            '\n',
        )
    if pod_annotations:
        block_8.append('annotations:\n')
        for key_11, value_12 in pod_annotations.items():
            block_8 += (
                '  ',
                yaml_string(key_11),
                ': ',
                yaml_string(value_12),
                '\n',
            )
    block_7.append(indented("".join(block_8), 2, first=True))
    block_7.append('spec:\n')
    block_13: list[str] = []
    block_13 += (
        'restartPolicy: "Never"\nterminationGracePeriodSeconds: ',
        number(job.stop_grace_period),
        "\n# The pod's own pid 1 passes SIGTERM on; a training process that is pid 1 itself would ignore it.\nshareProcessNamespace: true\n",
    )
    if (not (platform.service_account is None)):
        block_13 += (
            'serviceAccountName: ',
            yaml_string(platform.service_account),
            '\n',
        )
    if platform.token:
        block_13.append('automountServiceAccountToken: true\n')
    else:
        block_13.append('automountServiceAccountToken: false\n')
    if (not (subdomain is None)):
        block_13 += (
            'subdomain: ',
            yaml_string(subdomain),
            '\n',
        )
    if platform.host_network:
        block_13.append('hostNetwork: true\n# The names of the cluster are looked up from the node\'s network too.\ndnsPolicy: "ClusterFirstWithHostNet"\n')
    if (not (platform.runtime_class is None)):
        block_13 += (
            'runtimeClassName: ',
            yaml_string(platform.runtime_class),
            '\n',
        )
    if (not (platform.priority_class is None)):
        block_13 += (
            'priorityClassName: ',
            yaml_string(platform.priority_class),
            '\n',
        )
    if platform.image_pull_secrets:
        block_13.append('imagePullSecrets:\n')
        for secret_14 in platform.image_pull_secrets:
            block_13 += (
                '  - name: ',
                yaml_string(secret_14),
                '\n',
            )
    if platform.node_selector:
        block_13.append('nodeSelector:\n')
        block_15: list[str] = []
        block_15 += (
            yaml_block(platform.node_selector),
            '\n',
        )
        block_13.append(indented("".join(block_15), 2, first=True))
    if platform.affinity:
        block_13.append('affinity:\n')
        block_16: list[str] = []
        block_16 += (
            yaml_block(platform.affinity),
            '\n',
        )
        block_13.append(indented("".join(block_16), 2, first=True))
    if tolerations:
        block_13.append('tolerations:\n')
        block_17: list[str] = []
        block_17 += (
            yaml_block(tolerations),
            '\n',
        )
        block_13.append(indented("".join(block_17), 2, first=True))
    if platform.topology_spread:
        block_13.append('topologySpreadConstraints:\n')
        block_18: list[str] = []
        block_18 += (
            yaml_block(platform.topology_spread),
            '\n',
        )
        block_13.append(indented("".join(block_18), 2, first=True))
    if stated_security:
        block_13.append('securityContext:\n')
        if security.restricted:
            block_13.append('  runAsNonRoot: true\n')
        if (not (security.uid is None)):
            block_13 += (
                '  runAsUser: ',
                number(security.uid),
                '\n',
            )
        if (not (security.gid is None)):
            block_13 += (
                '  runAsGroup: ',
                number(security.gid),
                '\n',
            )
        if (not (security.fs_group is None)):
            block_13 += (
                '  fsGroup: ',
                number(security.fs_group),
                '\n  fsGroupChangePolicy: "OnRootMismatch"\n',
            )
        if job.group_add:
            block_13.append('  supplementalGroups: [')
            items_20 = list(job.group_add)
            for at_21, group_19 in enumerate(items_20, 1):
                block_13.append(number(int(group_19)))
                if (not at_21 == len(items_20)):
                    block_13.append(', ')
            block_13.append(']\n')
        if security.seccomp:
            block_13.append('  seccompProfile:\n    type: "RuntimeDefault"\n')
    block_13 += (
        'containers:\n  - name: ',
        yaml_string(container_name),
        '\n    image: ',
        yaml_string(job.image),
        '\n    imagePullPolicy: ',
        yaml_string(pull_policy),
        '\n',
    )
    if (not (job.working_dir is None)):
        block_13 += (
            '    workingDir: ',
            yaml_string(job.working_dir),
            '\n',
        )
    if ((env or container.secrets) or local_address):
        block_13.append('    env:\n')
        for name_22, value_23 in env.items():
            block_13 += (
                '      - name: ',
                yaml_string(name_22),
                '\n        value: ',
                yaml_string(dollars(value_23)),
                '\n',
            )
        for name_24, secret_25 in container.secrets:
            block_13 += (
                '      - name: ',
                yaml_string(name_24),
                '\n        valueFrom:\n          secretKeyRef:\n            name: ',
                yaml_string(secret_25.kubernetes.partition('/')[0]),
                '\n            key: ',
                yaml_string(secret_25.kubernetes.partition('/')[2]),
                '\n',
            )
        if local_address:
            block_13.append('      # A node\'s own host name means nothing to the other nodes.\n      - name: "PET_LOCAL_ADDR"\n        valueFrom:\n          fieldRef:\n            fieldPath: "status.podIP"\n')
    block_13.append('    resources:\n      requests:\n')
    for name_26, quantity_27 in requests.items():
        block_13 += (
            '        ',
            yaml_string(name_26),
            ': ',
            yaml_string(quantity_27),
            '\n',
        )
    block_13.append('      limits:\n')
    for name_28, quantity_29 in limits.items():
        block_13 += (
            '        ',
            yaml_string(name_28),
            ': ',
            yaml_string(quantity_29),
            '\n',
        )
    if (security.restricted or job.read_only):
        block_13.append('    securityContext:\n')
        if security.restricted:
            block_13.append('      allowPrivilegeEscalation: false\n')
        if job.read_only:
            block_13.append('      readOnlyRootFilesystem: true\n')
        if security.restricted:
            block_13.append('      capabilities:\n        drop:\n          - "ALL"\n')
    block_13.append('    volumeMounts:\n')
    for volume_30 in volumes:
        block_13 += (
            '      - name: ',
            yaml_string(volume_30.name),
            '\n        mountPath: ',
            yaml_string(volume_30.target),
            '\n',
        )
        if (volume_30.type == 'secret'):
            block_13.append('        subPath: "value"\n')
        if volume_30.read_only:
            block_13.append('        readOnly: true\n')
    block_13 += (
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
    for word_31 in container.entrypoint:
        block_13 += (
            '      - ',
            yaml_text(dollars(word_31), 8),
            '\n',
        )
    block_13.append('    args:\n')
    for word_32 in container.args:
        block_13 += (
            '      - ',
            yaml_text(dollars(word_32), 8),
            '\n',
        )
    block_13.append('volumes:\n')
    for volume_33 in volumes:
        block_13 += (
            '  - name: ',
            yaml_string(volume_33.name),
            '\n',
        )
        if (volume_33.type in ('shm', 'tmpfs',)):
            block_13 += (
                '    emptyDir:\n      medium: "Memory"\n      sizeLimit: ',
                yaml_string(volume_33.source),
                '\n',
            )
        elif (volume_33.type == 'scratch'):
            block_13.append('    emptyDir: {}\n')
        elif (volume_33.type == 'pvc'):
            block_13 += (
                '    persistentVolumeClaim:\n      claimName: ',
                yaml_string(volume_33.source),
                '\n',
            )
            if volume_33.read_only:
                block_13.append('      readOnly: true\n')
        elif (volume_33.type == 'config'):
            block_13 += (
                '    configMap:\n      name: ',
                yaml_string(volume_33.source),
                '\n',
            )
        elif (volume_33.type == 'secret'):
            block_13 += (
                '    secret:\n      secretName: ',
                yaml_string(volume_33.source.partition('/')[0]),
                "\n      # 0440, which fsGroup gives to the job's group.\n      defaultMode: 288\n      items:\n        - key: ",
                yaml_string(volume_33.source.partition('/')[2]),
                '\n          path: "value"\n',
            )
    block_7.append(indented("".join(block_13), 2, first=True))
    out.append(indented("".join(block_7), 8, first=True))
    if gang:
        out += (
            '    Worker:\n      replicas: ',
            number((nodes - 1)),
            '\n      restartPolicy: "Never"\n      template:\n',
        )
        block_34: list[str] = []
        block_34.append('metadata:\n')
        block_35: list[str] = []
        block_35.append('labels:\n')
        for key_36, value_37 in labels.items():
            block_35 += (
                '  ',
                yaml_string(key_36),
                ': ',
                yaml_string(value_37),
                '\n',
            )
        if pod_annotations:
            block_35.append('annotations:\n')
            for key_38, value_39 in pod_annotations.items():
                block_35 += (
                    '  ',
                    yaml_string(key_38),
                    ': ',
                    yaml_string(value_39),
                    '\n',
                )
        block_34.append(indented("".join(block_35), 2, first=True))
        block_34.append('spec:\n')
        block_40: list[str] = []
        block_40 += (
            'restartPolicy: "Never"\nterminationGracePeriodSeconds: ',
            number(job.stop_grace_period),
            "\n# The pod's own pid 1 passes SIGTERM on; a training process that is pid 1 itself would ignore it.\nshareProcessNamespace: true\n",
        )
        if (not (platform.service_account is None)):
            block_40 += (
                'serviceAccountName: ',
                yaml_string(platform.service_account),
                '\n',
            )
        if platform.token:
            block_40.append('automountServiceAccountToken: true\n')
        else:
            block_40.append('automountServiceAccountToken: false\n')
        if (not (subdomain is None)):
            block_40 += (
                'subdomain: ',
                yaml_string(subdomain),
                '\n',
            )
        if platform.host_network:
            block_40.append('hostNetwork: true\n# The names of the cluster are looked up from the node\'s network too.\ndnsPolicy: "ClusterFirstWithHostNet"\n')
        if (not (platform.runtime_class is None)):
            block_40 += (
                'runtimeClassName: ',
                yaml_string(platform.runtime_class),
                '\n',
            )
        if (not (platform.priority_class is None)):
            block_40 += (
                'priorityClassName: ',
                yaml_string(platform.priority_class),
                '\n',
            )
        if platform.image_pull_secrets:
            block_40.append('imagePullSecrets:\n')
            for secret_41 in platform.image_pull_secrets:
                block_40 += (
                    '  - name: ',
                    yaml_string(secret_41),
                    '\n',
                )
        if platform.node_selector:
            block_40.append('nodeSelector:\n')
            block_42: list[str] = []
            block_42 += (
                yaml_block(platform.node_selector),
                '\n',
            )
            block_40.append(indented("".join(block_42), 2, first=True))
        if platform.affinity:
            block_40.append('affinity:\n')
            block_43: list[str] = []
            block_43 += (
                yaml_block(platform.affinity),
                '\n',
            )
            block_40.append(indented("".join(block_43), 2, first=True))
        if tolerations:
            block_40.append('tolerations:\n')
            block_44: list[str] = []
            block_44 += (
                yaml_block(tolerations),
                '\n',
            )
            block_40.append(indented("".join(block_44), 2, first=True))
        if platform.topology_spread:
            block_40.append('topologySpreadConstraints:\n')
            block_45: list[str] = []
            block_45 += (
                yaml_block(platform.topology_spread),
                '\n',
            )
            block_40.append(indented("".join(block_45), 2, first=True))
        if stated_security:
            block_40.append('securityContext:\n')
            if security.restricted:
                block_40.append('  runAsNonRoot: true\n')
            if (not (security.uid is None)):
                block_40 += (
                    '  runAsUser: ',
                    number(security.uid),
                    '\n',
                )
            if (not (security.gid is None)):
                block_40 += (
                    '  runAsGroup: ',
                    number(security.gid),
                    '\n',
                )
            if (not (security.fs_group is None)):
                block_40 += (
                    '  fsGroup: ',
                    number(security.fs_group),
                    '\n  fsGroupChangePolicy: "OnRootMismatch"\n',
                )
            if job.group_add:
                block_40.append('  supplementalGroups: [')
                items_47 = list(job.group_add)
                for at_48, group_46 in enumerate(items_47, 1):
                    block_40.append(number(int(group_46)))
                    if (not at_48 == len(items_47)):
                        block_40.append(', ')
                block_40.append(']\n')
            if security.seccomp:
                block_40.append('  seccompProfile:\n    type: "RuntimeDefault"\n')
        block_40 += (
            'containers:\n  - name: ',
            yaml_string(container_name),
            '\n    image: ',
            yaml_string(job.image),
            '\n    imagePullPolicy: ',
            yaml_string(pull_policy),
            '\n',
        )
        if (not (job.working_dir is None)):
            block_40 += (
                '    workingDir: ',
                yaml_string(job.working_dir),
                '\n',
            )
        if ((env or container.secrets) or local_address):
            block_40.append('    env:\n')
            for name_49, value_50 in env.items():
                block_40 += (
                    '      - name: ',
                    yaml_string(name_49),
                    '\n        value: ',
                    yaml_string(dollars(value_50)),
                    '\n',
                )
            for name_51, secret_52 in container.secrets:
                block_40 += (
                    '      - name: ',
                    yaml_string(name_51),
                    '\n        valueFrom:\n          secretKeyRef:\n            name: ',
                    yaml_string(secret_52.kubernetes.partition('/')[0]),
                    '\n            key: ',
                    yaml_string(secret_52.kubernetes.partition('/')[2]),
                    '\n',
                )
            if local_address:
                block_40.append('      # A node\'s own host name means nothing to the other nodes.\n      - name: "PET_LOCAL_ADDR"\n        valueFrom:\n          fieldRef:\n            fieldPath: "status.podIP"\n')
        block_40.append('    resources:\n      requests:\n')
        for name_53, quantity_54 in requests.items():
            block_40 += (
                '        ',
                yaml_string(name_53),
                ': ',
                yaml_string(quantity_54),
                '\n',
            )
        block_40.append('      limits:\n')
        for name_55, quantity_56 in limits.items():
            block_40 += (
                '        ',
                yaml_string(name_55),
                ': ',
                yaml_string(quantity_56),
                '\n',
            )
        if (security.restricted or job.read_only):
            block_40.append('    securityContext:\n')
            if security.restricted:
                block_40.append('      allowPrivilegeEscalation: false\n')
            if job.read_only:
                block_40.append('      readOnlyRootFilesystem: true\n')
            if security.restricted:
                block_40.append('      capabilities:\n        drop:\n          - "ALL"\n')
        block_40.append('    volumeMounts:\n')
        for volume_57 in volumes:
            block_40 += (
                '      - name: ',
                yaml_string(volume_57.name),
                '\n        mountPath: ',
                yaml_string(volume_57.target),
                '\n',
            )
            if (volume_57.type == 'secret'):
                block_40.append('        subPath: "value"\n')
            if volume_57.read_only:
                block_40.append('        readOnly: true\n')
        block_40 += (
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
        for word_58 in container.entrypoint:
            block_40 += (
                '      - ',
                yaml_text(dollars(word_58), 8),
                '\n',
            )
        block_40.append('    args:\n')
        for word_59 in container.args:
            block_40 += (
                '      - ',
                yaml_text(dollars(word_59), 8),
                '\n',
            )
        block_40.append('volumes:\n')
        for volume_60 in volumes:
            block_40 += (
                '  - name: ',
                yaml_string(volume_60.name),
                '\n',
            )
            if (volume_60.type in ('shm', 'tmpfs',)):
                block_40 += (
                    '    emptyDir:\n      medium: "Memory"\n      sizeLimit: ',
                    yaml_string(volume_60.source),
                    '\n',
                )
            elif (volume_60.type == 'scratch'):
                block_40.append('    emptyDir: {}\n')
            elif (volume_60.type == 'pvc'):
                block_40 += (
                    '    persistentVolumeClaim:\n      claimName: ',
                    yaml_string(volume_60.source),
                    '\n',
                )
                if volume_60.read_only:
                    block_40.append('      readOnly: true\n')
            elif (volume_60.type == 'config'):
                block_40 += (
                    '    configMap:\n      name: ',
                    yaml_string(volume_60.source),
                    '\n',
                )
            elif (volume_60.type == 'secret'):
                block_40 += (
                    '    secret:\n      secretName: ',
                    yaml_string(volume_60.source.partition('/')[0]),
                    "\n      # 0440, which fsGroup gives to the job's group.\n      defaultMode: 288\n      items:\n        - key: ",
                    yaml_string(volume_60.source.partition('/')[2]),
                    '\n          path: "value"\n',
                )
        block_34.append(indented("".join(block_40), 2, first=True))
        out.append(indented("".join(block_34), 8, first=True))
    return "".join(out)
