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
    'kubernetes/pod-spec.yaml.j2': '3d968881d30e89ded9ebceae8aca9fac28cdcccc309fa13b69bdc945e11c30df',
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
            block_13.append('  supplementalGroups:\n')
            for group_19 in job.group_add:
                block_13 += (
                    '    - ',
                    number(int(group_19)),
                    '\n',
                )
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
        for name_20, value_21 in env.items():
            block_13 += (
                '      - name: ',
                yaml_string(name_20),
                '\n        value: ',
                yaml_string(dollars(value_21)),
                '\n',
            )
        for name_22, secret_23 in container.secrets:
            block_13 += (
                '      - name: ',
                yaml_string(name_22),
                '\n        valueFrom:\n          secretKeyRef:\n            name: ',
                yaml_string(secret_23.kubernetes.partition('/')[0]),
                '\n            key: ',
                yaml_string(secret_23.kubernetes.partition('/')[2]),
                '\n',
            )
        if local_address:
            block_13.append('      # A node\'s own host name means nothing to the other nodes.\n      - name: "PET_LOCAL_ADDR"\n        valueFrom:\n          fieldRef:\n            fieldPath: "status.podIP"\n')
    block_13.append('    resources:\n      requests:\n')
    for name_24, quantity_25 in requests.items():
        block_13 += (
            '        ',
            yaml_string(name_24),
            ': ',
            yaml_string(quantity_25),
            '\n',
        )
    block_13.append('      limits:\n')
    for name_26, quantity_27 in limits.items():
        block_13 += (
            '        ',
            yaml_string(name_26),
            ': ',
            yaml_string(quantity_27),
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
    for volume_28 in volumes:
        block_13 += (
            '      - name: ',
            yaml_string(volume_28.name),
            '\n        mountPath: ',
            yaml_string(volume_28.target),
            '\n',
        )
        if (volume_28.type == 'secret'):
            block_13.append('        subPath: "value"\n')
        if volume_28.read_only:
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
    for word_29 in container.entrypoint:
        block_13 += (
            '      - ',
            yaml_text(dollars(word_29), 8),
            '\n',
        )
    block_13.append('    args:\n')
    for word_30 in container.args:
        block_13 += (
            '      - ',
            yaml_text(dollars(word_30), 8),
            '\n',
        )
    block_13.append('volumes:\n')
    for volume_31 in volumes:
        block_13 += (
            '  - name: ',
            yaml_string(volume_31.name),
            '\n',
        )
        if (volume_31.type in ('shm', 'tmpfs',)):
            block_13 += (
                '    emptyDir:\n      medium: "Memory"\n      sizeLimit: ',
                yaml_string(volume_31.source),
                '\n',
            )
        elif (volume_31.type == 'scratch'):
            block_13.append('    emptyDir: {}\n')
        elif (volume_31.type == 'pvc'):
            block_13 += (
                '    persistentVolumeClaim:\n      claimName: ',
                yaml_string(volume_31.source),
                '\n',
            )
            if volume_31.read_only:
                block_13.append('      readOnly: true\n')
        elif (volume_31.type == 'config'):
            block_13 += (
                '    configMap:\n      name: ',
                yaml_string(volume_31.source),
                '\n',
            )
        elif (volume_31.type == 'secret'):
            block_13 += (
                '    secret:\n      secretName: ',
                yaml_string(volume_31.source.partition('/')[0]),
                "\n      # 0440, which fsGroup gives to the job's group.\n      defaultMode: 288\n      items:\n        - key: ",
                yaml_string(volume_31.source.partition('/')[2]),
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
        block_32: list[str] = []
        block_32.append('metadata:\n')
        block_33: list[str] = []
        block_33.append('labels:\n')
        for key_34, value_35 in labels.items():
            block_33 += (
                '  ',
                yaml_string(key_34),
                ': ',
                yaml_string(value_35),
                '\n',
            )
        if pod_annotations:
            block_33.append('annotations:\n')
            for key_36, value_37 in pod_annotations.items():
                block_33 += (
                    '  ',
                    yaml_string(key_36),
                    ': ',
                    yaml_string(value_37),
                    '\n',
                )
        block_32.append(indented("".join(block_33), 2, first=True))
        block_32.append('spec:\n')
        block_38: list[str] = []
        block_38 += (
            'restartPolicy: "Never"\nterminationGracePeriodSeconds: ',
            number(job.stop_grace_period),
            "\n# The pod's own pid 1 passes SIGTERM on; a training process that is pid 1 itself would ignore it.\nshareProcessNamespace: true\n",
        )
        if (not (platform.service_account is None)):
            block_38 += (
                'serviceAccountName: ',
                yaml_string(platform.service_account),
                '\n',
            )
        if platform.token:
            block_38.append('automountServiceAccountToken: true\n')
        else:
            block_38.append('automountServiceAccountToken: false\n')
        if (not (subdomain is None)):
            block_38 += (
                'subdomain: ',
                yaml_string(subdomain),
                '\n',
            )
        if platform.host_network:
            block_38.append('hostNetwork: true\n# The names of the cluster are looked up from the node\'s network too.\ndnsPolicy: "ClusterFirstWithHostNet"\n')
        if (not (platform.runtime_class is None)):
            block_38 += (
                'runtimeClassName: ',
                yaml_string(platform.runtime_class),
                '\n',
            )
        if (not (platform.priority_class is None)):
            block_38 += (
                'priorityClassName: ',
                yaml_string(platform.priority_class),
                '\n',
            )
        if platform.image_pull_secrets:
            block_38.append('imagePullSecrets:\n')
            for secret_39 in platform.image_pull_secrets:
                block_38 += (
                    '  - name: ',
                    yaml_string(secret_39),
                    '\n',
                )
        if platform.node_selector:
            block_38.append('nodeSelector:\n')
            block_40: list[str] = []
            block_40 += (
                yaml_block(platform.node_selector),
                '\n',
            )
            block_38.append(indented("".join(block_40), 2, first=True))
        if platform.affinity:
            block_38.append('affinity:\n')
            block_41: list[str] = []
            block_41 += (
                yaml_block(platform.affinity),
                '\n',
            )
            block_38.append(indented("".join(block_41), 2, first=True))
        if tolerations:
            block_38.append('tolerations:\n')
            block_42: list[str] = []
            block_42 += (
                yaml_block(tolerations),
                '\n',
            )
            block_38.append(indented("".join(block_42), 2, first=True))
        if platform.topology_spread:
            block_38.append('topologySpreadConstraints:\n')
            block_43: list[str] = []
            block_43 += (
                yaml_block(platform.topology_spread),
                '\n',
            )
            block_38.append(indented("".join(block_43), 2, first=True))
        if stated_security:
            block_38.append('securityContext:\n')
            if security.restricted:
                block_38.append('  runAsNonRoot: true\n')
            if (not (security.uid is None)):
                block_38 += (
                    '  runAsUser: ',
                    number(security.uid),
                    '\n',
                )
            if (not (security.gid is None)):
                block_38 += (
                    '  runAsGroup: ',
                    number(security.gid),
                    '\n',
                )
            if (not (security.fs_group is None)):
                block_38 += (
                    '  fsGroup: ',
                    number(security.fs_group),
                    '\n  fsGroupChangePolicy: "OnRootMismatch"\n',
                )
            if job.group_add:
                block_38.append('  supplementalGroups:\n')
                for group_44 in job.group_add:
                    block_38 += (
                        '    - ',
                        number(int(group_44)),
                        '\n',
                    )
            if security.seccomp:
                block_38.append('  seccompProfile:\n    type: "RuntimeDefault"\n')
        block_38 += (
            'containers:\n  - name: ',
            yaml_string(container_name),
            '\n    image: ',
            yaml_string(job.image),
            '\n    imagePullPolicy: ',
            yaml_string(pull_policy),
            '\n',
        )
        if (not (job.working_dir is None)):
            block_38 += (
                '    workingDir: ',
                yaml_string(job.working_dir),
                '\n',
            )
        if ((env or container.secrets) or local_address):
            block_38.append('    env:\n')
            for name_45, value_46 in env.items():
                block_38 += (
                    '      - name: ',
                    yaml_string(name_45),
                    '\n        value: ',
                    yaml_string(dollars(value_46)),
                    '\n',
                )
            for name_47, secret_48 in container.secrets:
                block_38 += (
                    '      - name: ',
                    yaml_string(name_47),
                    '\n        valueFrom:\n          secretKeyRef:\n            name: ',
                    yaml_string(secret_48.kubernetes.partition('/')[0]),
                    '\n            key: ',
                    yaml_string(secret_48.kubernetes.partition('/')[2]),
                    '\n',
                )
            if local_address:
                block_38.append('      # A node\'s own host name means nothing to the other nodes.\n      - name: "PET_LOCAL_ADDR"\n        valueFrom:\n          fieldRef:\n            fieldPath: "status.podIP"\n')
        block_38.append('    resources:\n      requests:\n')
        for name_49, quantity_50 in requests.items():
            block_38 += (
                '        ',
                yaml_string(name_49),
                ': ',
                yaml_string(quantity_50),
                '\n',
            )
        block_38.append('      limits:\n')
        for name_51, quantity_52 in limits.items():
            block_38 += (
                '        ',
                yaml_string(name_51),
                ': ',
                yaml_string(quantity_52),
                '\n',
            )
        if (security.restricted or job.read_only):
            block_38.append('    securityContext:\n')
            if security.restricted:
                block_38.append('      allowPrivilegeEscalation: false\n')
            if job.read_only:
                block_38.append('      readOnlyRootFilesystem: true\n')
            if security.restricted:
                block_38.append('      capabilities:\n        drop:\n          - "ALL"\n')
        block_38.append('    volumeMounts:\n')
        for volume_53 in volumes:
            block_38 += (
                '      - name: ',
                yaml_string(volume_53.name),
                '\n        mountPath: ',
                yaml_string(volume_53.target),
                '\n',
            )
            if (volume_53.type == 'secret'):
                block_38.append('        subPath: "value"\n')
            if volume_53.read_only:
                block_38.append('        readOnly: true\n')
        block_38 += (
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
        for word_54 in container.entrypoint:
            block_38 += (
                '      - ',
                yaml_text(dollars(word_54), 8),
                '\n',
            )
        block_38.append('    args:\n')
        for word_55 in container.args:
            block_38 += (
                '      - ',
                yaml_text(dollars(word_55), 8),
                '\n',
            )
        block_38.append('volumes:\n')
        for volume_56 in volumes:
            block_38 += (
                '  - name: ',
                yaml_string(volume_56.name),
                '\n',
            )
            if (volume_56.type in ('shm', 'tmpfs',)):
                block_38 += (
                    '    emptyDir:\n      medium: "Memory"\n      sizeLimit: ',
                    yaml_string(volume_56.source),
                    '\n',
                )
            elif (volume_56.type == 'scratch'):
                block_38.append('    emptyDir: {}\n')
            elif (volume_56.type == 'pvc'):
                block_38 += (
                    '    persistentVolumeClaim:\n      claimName: ',
                    yaml_string(volume_56.source),
                    '\n',
                )
                if volume_56.read_only:
                    block_38.append('      readOnly: true\n')
            elif (volume_56.type == 'config'):
                block_38 += (
                    '    configMap:\n      name: ',
                    yaml_string(volume_56.source),
                    '\n',
                )
            elif (volume_56.type == 'secret'):
                block_38 += (
                    '    secret:\n      secretName: ',
                    yaml_string(volume_56.source.partition('/')[0]),
                    "\n      # 0440, which fsGroup gives to the job's group.\n      defaultMode: 288\n      items:\n        - key: ",
                    yaml_string(volume_56.source.partition('/')[2]),
                    '\n          path: "value"\n',
                )
        block_32.append(indented("".join(block_38), 2, first=True))
        out.append(indented("".join(block_32), 8, first=True))
    return "".join(out)
