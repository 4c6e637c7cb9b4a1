"""kubernetes/jobset.yaml.j2 as Python, written by launcher/render/compiler.py: change that and run `make regen`."""

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
    'kubernetes/jobset.yaml.j2': '289a159e25ee5390b322c5e91f07fe55a91c724665b3fb9cb56568479daa515a',
    'kubernetes/header.yaml.j2': 'a2b19eb67cd1e2607140a93194c5cd593695f3523c891d9a971b247f18ee574e',
    'kubernetes/metadata.yaml.j2': '929a8612d45a2efb16180193e01b89af1c87b956489e8cffc310fe29f9d6ed42',
    'kubernetes/jobset-spec.yaml.j2': 'ba507beae38532007a48dc0aef102a9ada3f25b26bf77a43485390e0e13c2c15',
    'kubernetes/job-spec.yaml.j2': 'e8720e536b4ad3d1be74f992029db43e04ef988eb68e6d209762d2ff937f0aa5',
    'kubernetes/pod-template.yaml.j2': '496e9cc25dd1209f6c4de2effc5d3020e31f5cfa3e136d372a31c287aeab2f78',
    'kubernetes/pod-metadata.yaml.j2': '24e3ba39b9f0c10b9f204fe04628a00b48a28f3905f315ebb9581a089e55e896',
    'kubernetes/pod-spec.yaml.j2': 'b5511753ab538a1a80f5d04d8abafbe52aac80ce5fdcdc3f61149ea9c7c6d50f',
}


def text(
    *,
    backoff_limit: Any,
    container: Any,
    container_name: Any,
    deadline_of_pods: Any,
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
    out.append('apiVersion: "jobset.x-k8s.io/v1alpha2"\nkind: "JobSet"\nmetadata:\n')
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
    out.append('spec:\n')
    if (not (platform.queue is None)):
        out.append('  # Kueue starts it when the queue has room.\n  suspend: true\n')
    if (not (job.ttl_after_finished is None)):
        out += (
            '  ttlSecondsAfterFinished: ',
            number(job.ttl_after_finished),
            '\n',
        )
    block_7: list[str] = []
    block_7 += (
        'network:\n  enableDNSHostnames: true\n  publishNotReadyAddresses: true\nfailurePolicy:\n  # Each of them recreates all pods together: the peers of a lost one would hang.\n  maxRestarts: ',
        number((job.max_attempts - 1)),
        '\n  rules:\n',
    )
    if gang:
        block_7.append('    # A drained or preempted node is no failure of the job.\n    - name: "disrupted"\n      action: "RestartJobSetAndIgnoreMaxRestarts"\n      onJobFailureReasons:\n        - "PodFailurePolicy"\n      onJobFailureMessagePatterns:\n        - "DisruptionTarget"\n')
    block_7.append('    # The files are wrong, no process of the job ever ran, or its time is up.\n    - name: "final"\n      action: "FailJobSet"\n      onJobFailureReasons:\n        - "PodFailurePolicy"\n        - "DeadlineExceeded"\nreplicatedJobs:\n  - name: "node"\n    replicas: 1\n    template:\n      metadata:\n        labels:\n')
    if (platform.kind == 'trainjob'):
        block_7.append('          "trainer.kubeflow.org/trainjob-ancestor-step": "trainer"\n')
    for key_8, value_9 in labels.items():
        block_7 += (
            '          ',
            yaml_string(key_8),
            ': ',
            yaml_string(value_9),
            '\n',
        )
    block_7.append('      spec:\n')
    if deadline_of_pods:
        block_7 += (
            '        # JobSet has no deadline of its own: this one counts anew for each attempt.\n        activeDeadlineSeconds: ',
            number(job.active_deadline),
            '\n',
        )
    block_10: list[str] = []
    if (gang or (platform.kind != 'job')):
        block_10 += (
            '# One pod a node, each with its index.\ncompletionMode: "Indexed"\ncompletions: ',
            number(nodes),
            '\nparallelism: ',
            number(nodes),
            '\n',
        )
    block_10 += (
        'backoffLimit: ',
        number(backoff_limit),
        '\npodFailurePolicy:\n  rules:\n    # The files are wrong (78) or no process of the job ever ran: another attempt would end the same way.\n    - action: "FailJob"\n      onExitCodes:\n        containerName: ',
        yaml_string(container_name),
        '\n        operator: "In"\n        values: [78, 125, 126, 127]\n',
    )
    if (gang and (platform.kind != 'job')):
        block_10.append('    # A node that was drained or preempted takes its peers with it: the failurePolicy starts all of them again.\n    - action: "FailJob"\n      onPodConditions:\n        - type: "DisruptionTarget"\n          status: "True"\n')
    elif gang:
        block_10.append('    # A drained or preempted node is no exception here: one new pod alone would leave its peers hanging.\n')
    else:
        block_10.append('    # A drained or preempted node is no failure of the job.\n    - action: "Ignore"\n      onPodConditions:\n        - type: "DisruptionTarget"\n          status: "True"\n')
    block_10 += (
        '    # This node is wrong (75): another one may do.\n    - action: "Count"\n      onExitCodes:\n        containerName: ',
        yaml_string(container_name),
        '\n        operator: "In"\n        values: [75]\ntemplate:\n',
    )
    block_11: list[str] = []
    block_11.append('metadata:\n')
    block_12: list[str] = []
    block_12.append('labels:\n')
    for key_13, value_14 in labels.items():
        block_12 += (
            '  ',
            yaml_string(key_13),
            ': ',
            yaml_string(value_14),
            '\n',
        )
    if pod_annotations:
        block_12.append('annotations:\n')
        for key_15, value_16 in pod_annotations.items():
            block_12 += (
                '  ',
                yaml_string(key_15),
                ': ',
                yaml_string(value_16),
                '\n',
            )
    block_11.append(indented("".join(block_12), 2, first=True))
    block_11.append('spec:\n')
    block_17: list[str] = []
    block_17 += (
        'restartPolicy: "Never"\nterminationGracePeriodSeconds: ',
        number(job.stop_grace_period),
        "\n# The pod's own pid 1 passes SIGTERM on; a training process that is pid 1 itself would ignore it.\nshareProcessNamespace: true\n",
    )
    if (not (platform.service_account is None)):
        block_17 += (
            'serviceAccountName: ',
            yaml_string(platform.service_account),
            '\n',
        )
    if platform.token:
        block_17.append('automountServiceAccountToken: true\n')
    else:
        block_17.append('automountServiceAccountToken: false\n')
    if (not (subdomain is None)):
        block_17 += (
            'subdomain: ',
            yaml_string(subdomain),
            '\n',
        )
    if platform.host_network:
        block_17.append('hostNetwork: true\n# The names of the cluster are looked up from the node\'s network too.\ndnsPolicy: "ClusterFirstWithHostNet"\n')
    if (not (platform.runtime_class is None)):
        block_17 += (
            'runtimeClassName: ',
            yaml_string(platform.runtime_class),
            '\n',
        )
    if (not (platform.priority_class is None)):
        block_17 += (
            'priorityClassName: ',
            yaml_string(platform.priority_class),
            '\n',
        )
    if platform.image_pull_secrets:
        block_17.append('imagePullSecrets:\n')
        for secret_18 in platform.image_pull_secrets:
            block_17 += (
                '  - name: ',
                yaml_string(secret_18),
                '\n',
            )
    if platform.node_selector:
        block_17.append('nodeSelector:\n')
        block_19: list[str] = []
        block_19 += (
            yaml_block(platform.node_selector),
            '\n',
        )
        block_17.append(indented("".join(block_19), 2, first=True))
    if platform.affinity:
        block_17.append('affinity:\n')
        block_20: list[str] = []
        block_20 += (
            yaml_block(platform.affinity),
            '\n',
        )
        block_17.append(indented("".join(block_20), 2, first=True))
    if tolerations:
        block_17.append('tolerations:\n')
        block_21: list[str] = []
        block_21 += (
            yaml_block(tolerations),
            '\n',
        )
        block_17.append(indented("".join(block_21), 2, first=True))
    if platform.topology_spread:
        block_17.append('topologySpreadConstraints:\n')
        block_22: list[str] = []
        block_22 += (
            yaml_block(platform.topology_spread),
            '\n',
        )
        block_17.append(indented("".join(block_22), 2, first=True))
    if stated_security:
        block_17.append('securityContext:\n')
        if security.restricted:
            block_17.append('  runAsNonRoot: true\n')
        if (not (security.uid is None)):
            block_17 += (
                '  runAsUser: ',
                number(security.uid),
                '\n',
            )
        if (not (security.gid is None)):
            block_17 += (
                '  runAsGroup: ',
                number(security.gid),
                '\n',
            )
        if (not (security.fs_group is None)):
            block_17 += (
                '  fsGroup: ',
                number(security.fs_group),
                '\n  fsGroupChangePolicy: "OnRootMismatch"\n',
            )
        if job.group_add:
            block_17.append('  supplementalGroups: [')
            items_24 = list(job.group_add)
            for at_25, group_23 in enumerate(items_24, 1):
                block_17.append(number(int(group_23)))
                if (not at_25 == len(items_24)):
                    block_17.append(', ')
            block_17.append(']\n')
        if security.seccomp:
            block_17.append('  seccompProfile:\n    type: "RuntimeDefault"\n')
    block_17 += (
        'containers:\n  - name: ',
        yaml_string(container_name),
        '\n    image: ',
        yaml_string(job.image),
        '\n    imagePullPolicy: ',
        yaml_string(pull_policy),
        '\n',
    )
    if (not (job.working_dir is None)):
        block_17 += (
            '    workingDir: ',
            yaml_string(job.working_dir),
            '\n',
        )
    if ((env or container.secrets) or local_address):
        block_17.append('    env:\n')
        for name_26, value_27 in env.items():
            block_17 += (
                '      - name: ',
                yaml_string(name_26),
                '\n        value: ',
                yaml_string(dollars(value_27)),
                '\n',
            )
        for name_28, secret_29 in container.secrets:
            block_17 += (
                '      - name: ',
                yaml_string(name_28),
                '\n        valueFrom:\n          secretKeyRef:\n            name: ',
                yaml_string(secret_29.kubernetes.partition('/')[0]),
                '\n            key: ',
                yaml_string(secret_29.kubernetes.partition('/')[2]),
                '\n',
            )
        if local_address:
            block_17.append('      # A node\'s own host name means nothing to the other nodes.\n      - name: "PET_LOCAL_ADDR"\n        valueFrom:\n          fieldRef:\n            fieldPath: "status.podIP"\n')
    block_17.append('    resources:\n      requests:\n')
    for name_30, quantity_31 in requests.items():
        block_17 += (
            '        ',
            yaml_string(name_30),
            ': ',
            yaml_string(quantity_31),
            '\n',
        )
    block_17.append('      limits:\n')
    for name_32, quantity_33 in limits.items():
        block_17 += (
            '        ',
            yaml_string(name_32),
            ': ',
            yaml_string(quantity_33),
            '\n',
        )
    if (security.restricted or job.read_only):
        block_17.append('    securityContext:\n')
        if security.restricted:
            block_17.append('      allowPrivilegeEscalation: false\n')
        if job.read_only:
            block_17.append('      readOnlyRootFilesystem: true\n')
        if security.restricted:
            block_17.append('      capabilities:\n        drop:\n          - "ALL"\n')
    block_17.append('    volumeMounts:\n')
    for volume_34 in volumes:
        block_17 += (
            '      - name: ',
            yaml_string(volume_34.name),
            '\n        mountPath: ',
            yaml_string(volume_34.target),
            '\n',
        )
        if (volume_34.type == 'secret'):
            block_17.append('        subPath: "value"\n')
        if volume_34.read_only:
            block_17.append('        readOnly: true\n')
    block_17 += (
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
    for word_35 in container.entrypoint:
        block_17 += (
            '      - ',
            yaml_text(dollars(word_35), 8),
            '\n',
        )
    block_17.append('    args:\n')
    for word_36 in container.args:
        block_17 += (
            '      - ',
            yaml_text(dollars(word_36), 8),
            '\n',
        )
    block_17.append('volumes:\n')
    for volume_37 in volumes:
        block_17 += (
            '  - name: ',
            yaml_string(volume_37.name),
            '\n',
        )
        if (volume_37.type in ('shm', 'tmpfs',)):
            block_17 += (
                '    emptyDir:\n      medium: "Memory"\n      sizeLimit: ',
                yaml_string(volume_37.source),
                '\n',
            )
        elif (volume_37.type == 'scratch'):
            block_17.append('    emptyDir: {}\n')
        elif (volume_37.type == 'pvc'):
            block_17 += (
                '    persistentVolumeClaim:\n      claimName: ',
                yaml_string(volume_37.source),
                '\n',
            )
            if volume_37.read_only:
                block_17.append('      readOnly: true\n')
        elif (volume_37.type == 'config'):
            block_17 += (
                '    configMap:\n      name: ',
                yaml_string(volume_37.source),
                '\n',
            )
        elif (volume_37.type == 'secret'):
            block_17 += (
                '    secret:\n      secretName: ',
                yaml_string(volume_37.source.partition('/')[0]),
                "\n      # 0440, which fsGroup gives to the job's group.\n      defaultMode: 288\n      items:\n        - key: ",
                yaml_string(volume_37.source.partition('/')[2]),
                '\n          path: "value"\n',
            )
    block_11.append(indented("".join(block_17), 2, first=True))
    block_10.append(indented("".join(block_11), 2, first=True))
    block_7.append(indented("".join(block_10), 8, first=True))
    out.append(indented("".join(block_7), 2, first=True))
    return "".join(out)
