"""kubernetes/trainjob.yaml.j2 as Python, written by launcher/render/compiler.py: change that and run `make regen`."""

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
    'kubernetes/trainjob.yaml.j2': '8db6f200744ae5d5fa39635f2007d7e02ed49a3d234945e66033b1162716973f',
    'kubernetes/header.yaml.j2': 'a2b19eb67cd1e2607140a93194c5cd593695f3523c891d9a971b247f18ee574e',
    'kubernetes/part-metadata.yaml.j2': '0bb4c5599e16a68c68f0496c945497b804cf7115228e7ab967bf7b0aab03bf19',
    'kubernetes/jobset-spec.yaml.j2': 'ba507beae38532007a48dc0aef102a9ada3f25b26bf77a43485390e0e13c2c15',
    'kubernetes/job-spec.yaml.j2': 'e8720e536b4ad3d1be74f992029db43e04ef988eb68e6d209762d2ff937f0aa5',
    'kubernetes/pod-template.yaml.j2': '496e9cc25dd1209f6c4de2effc5d3020e31f5cfa3e136d372a31c287aeab2f78',
    'kubernetes/pod-metadata.yaml.j2': '24e3ba39b9f0c10b9f204fe04628a00b48a28f3905f315ebb9581a089e55e896',
    'kubernetes/pod-spec.yaml.j2': 'b5511753ab538a1a80f5d04d8abafbe52aac80ce5fdcdc3f61149ea9c7c6d50f',
    'kubernetes/metadata.yaml.j2': '929a8612d45a2efb16180193e01b89af1c87b956489e8cffc310fe29f9d6ed42',
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
    out.append('# A TrainJob has no pod template of its own: it names the runtime that has one.\napiVersion: "trainer.kubeflow.org/v1alpha1"\nkind: "TrainingRuntime"\nmetadata:\n')
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
        'spec:\n  mlPolicy:\n    numNodes: ',
        number(nodes),
        '\n  template:\n    metadata:\n      labels:\n',
    )
    for key_7, value_8 in labels.items():
        out += (
            '        ',
            yaml_string(key_7),
            ': ',
            yaml_string(value_8),
            '\n',
        )
    out.append('    spec:\n')
    block_9: list[str] = []
    block_9 += (
        'network:\n  enableDNSHostnames: true\n  publishNotReadyAddresses: true\nfailurePolicy:\n  # Each of them recreates all pods together: the peers of a lost one would hang.\n  maxRestarts: ',
        number((job.max_attempts - 1)),
        '\n  rules:\n',
    )
    if gang:
        block_9.append('    # A drained or preempted node is no failure of the job.\n    - name: "disrupted"\n      action: "RestartJobSetAndIgnoreMaxRestarts"\n      onJobFailureReasons:\n        - "PodFailurePolicy"\n      onJobFailureMessagePatterns:\n        - "DisruptionTarget"\n')
    block_9.append('    # The files are wrong, no process of the job ever ran, or its time is up.\n    - name: "final"\n      action: "FailJobSet"\n      onJobFailureReasons:\n        - "PodFailurePolicy"\n        - "DeadlineExceeded"\nreplicatedJobs:\n  - name: "node"\n    replicas: 1\n    template:\n      metadata:\n        labels:\n')
    if (platform.kind == 'trainjob'):
        block_9.append('          "trainer.kubeflow.org/trainjob-ancestor-step": "trainer"\n')
    for key_10, value_11 in labels.items():
        block_9 += (
            '          ',
            yaml_string(key_10),
            ': ',
            yaml_string(value_11),
            '\n',
        )
    block_9.append('      spec:\n')
    if deadline_of_pods:
        block_9 += (
            '        # JobSet has no deadline of its own: this one counts anew for each attempt.\n        activeDeadlineSeconds: ',
            number(job.active_deadline),
            '\n',
        )
    block_12: list[str] = []
    if (gang or (platform.kind != 'job')):
        block_12 += (
            '# One pod a node, each with its index.\ncompletionMode: "Indexed"\ncompletions: ',
            number(nodes),
            '\nparallelism: ',
            number(nodes),
            '\n',
        )
    block_12 += (
        'backoffLimit: ',
        number(backoff_limit),
        '\npodFailurePolicy:\n  rules:\n    # The files are wrong (78) or no process of the job ever ran: another attempt would end the same way.\n    - action: "FailJob"\n      onExitCodes:\n        containerName: ',
        yaml_string(container_name),
        '\n        operator: "In"\n        values: [78, 125, 126, 127]\n',
    )
    if (gang and (platform.kind != 'job')):
        block_12.append('    # A node that was drained or preempted takes its peers with it: the failurePolicy starts all of them again.\n    - action: "FailJob"\n      onPodConditions:\n        - type: "DisruptionTarget"\n          status: "True"\n')
    elif gang:
        block_12.append('    # A drained or preempted node is no exception here: one new pod alone would leave its peers hanging.\n')
    else:
        block_12.append('    # A drained or preempted node is no failure of the job.\n    - action: "Ignore"\n      onPodConditions:\n        - type: "DisruptionTarget"\n          status: "True"\n')
    block_12 += (
        '    # This node is wrong (75): another one may do.\n    - action: "Count"\n      onExitCodes:\n        containerName: ',
        yaml_string(container_name),
        '\n        operator: "In"\n        values: [75]\ntemplate:\n',
    )
    block_13: list[str] = []
    block_13.append('metadata:\n')
    block_14: list[str] = []
    block_14.append('labels:\n')
    for key_15, value_16 in labels.items():
        block_14 += (
            '  ',
            yaml_string(key_15),
            ': ',
            yaml_string(value_16),
            '\n',
        )
    if pod_annotations:
        block_14.append('annotations:\n')
        for key_17, value_18 in pod_annotations.items():
            block_14 += (
                '  ',
                yaml_string(key_17),
                ': ',
                yaml_string(value_18),
                '\n',
            )
    block_13.append(indented("".join(block_14), 2, first=True))
    block_13.append('spec:\n')
    block_19: list[str] = []
    block_19 += (
        'restartPolicy: "Never"\nterminationGracePeriodSeconds: ',
        number(job.stop_grace_period),
        "\n# The pod's own pid 1 passes SIGTERM on; a training process that is pid 1 itself would ignore it.\nshareProcessNamespace: true\n",
    )
    if (not (platform.service_account is None)):
        block_19 += (
            'serviceAccountName: ',
            yaml_string(platform.service_account),
            '\n',
        )
    if platform.token:
        block_19.append('automountServiceAccountToken: true\n')
    else:
        block_19.append('automountServiceAccountToken: false\n')
    if (not (subdomain is None)):
        block_19 += (
            'subdomain: ',
            yaml_string(subdomain),
            '\n',
        )
    if platform.host_network:
        block_19.append('hostNetwork: true\n# The names of the cluster are looked up from the node\'s network too.\ndnsPolicy: "ClusterFirstWithHostNet"\n')
    if (not (platform.runtime_class is None)):
        block_19 += (
            'runtimeClassName: ',
            yaml_string(platform.runtime_class),
            '\n',
        )
    if (not (platform.priority_class is None)):
        block_19 += (
            'priorityClassName: ',
            yaml_string(platform.priority_class),
            '\n',
        )
    if platform.image_pull_secrets:
        block_19.append('imagePullSecrets:\n')
        for secret_20 in platform.image_pull_secrets:
            block_19 += (
                '  - name: ',
                yaml_string(secret_20),
                '\n',
            )
    if platform.node_selector:
        block_19.append('nodeSelector:\n')
        block_21: list[str] = []
        block_21 += (
            yaml_block(platform.node_selector),
            '\n',
        )
        block_19.append(indented("".join(block_21), 2, first=True))
    if platform.affinity:
        block_19.append('affinity:\n')
        block_22: list[str] = []
        block_22 += (
            yaml_block(platform.affinity),
            '\n',
        )
        block_19.append(indented("".join(block_22), 2, first=True))
    if tolerations:
        block_19.append('tolerations:\n')
        block_23: list[str] = []
        block_23 += (
            yaml_block(tolerations),
            '\n',
        )
        block_19.append(indented("".join(block_23), 2, first=True))
    if platform.topology_spread:
        block_19.append('topologySpreadConstraints:\n')
        block_24: list[str] = []
        block_24 += (
            yaml_block(platform.topology_spread),
            '\n',
        )
        block_19.append(indented("".join(block_24), 2, first=True))
    if stated_security:
        block_19.append('securityContext:\n')
        if security.restricted:
            block_19.append('  runAsNonRoot: true\n')
        if (not (security.uid is None)):
            block_19 += (
                '  runAsUser: ',
                number(security.uid),
                '\n',
            )
        if (not (security.gid is None)):
            block_19 += (
                '  runAsGroup: ',
                number(security.gid),
                '\n',
            )
        if (not (security.fs_group is None)):
            block_19 += (
                '  fsGroup: ',
                number(security.fs_group),
                '\n  fsGroupChangePolicy: "OnRootMismatch"\n',
            )
        if job.group_add:
            block_19.append('  supplementalGroups: [')
            items_26 = list(job.group_add)
            for at_27, group_25 in enumerate(items_26, 1):
                block_19.append(number(int(group_25)))
                if (not at_27 == len(items_26)):
                    block_19.append(', ')
            block_19.append(']\n')
        if security.seccomp:
            block_19.append('  seccompProfile:\n    type: "RuntimeDefault"\n')
    block_19 += (
        'containers:\n  - name: ',
        yaml_string(container_name),
        '\n    image: ',
        yaml_string(job.image),
        '\n    imagePullPolicy: ',
        yaml_string(pull_policy),
        '\n',
    )
    if (not (job.working_dir is None)):
        block_19 += (
            '    workingDir: ',
            yaml_string(job.working_dir),
            '\n',
        )
    if ((env or container.secrets) or local_address):
        block_19.append('    env:\n')
        for name_28, value_29 in env.items():
            block_19 += (
                '      - name: ',
                yaml_string(name_28),
                '\n        value: ',
                yaml_string(dollars(value_29)),
                '\n',
            )
        for name_30, secret_31 in container.secrets:
            block_19 += (
                '      - name: ',
                yaml_string(name_30),
                '\n        valueFrom:\n          secretKeyRef:\n            name: ',
                yaml_string(secret_31.kubernetes.partition('/')[0]),
                '\n            key: ',
                yaml_string(secret_31.kubernetes.partition('/')[2]),
                '\n',
            )
        if local_address:
            block_19.append('      # A node\'s own host name means nothing to the other nodes.\n      - name: "PET_LOCAL_ADDR"\n        valueFrom:\n          fieldRef:\n            fieldPath: "status.podIP"\n')
    block_19.append('    resources:\n      requests:\n')
    for name_32, quantity_33 in requests.items():
        block_19 += (
            '        ',
            yaml_string(name_32),
            ': ',
            yaml_string(quantity_33),
            '\n',
        )
    block_19.append('      limits:\n')
    for name_34, quantity_35 in limits.items():
        block_19 += (
            '        ',
            yaml_string(name_34),
            ': ',
            yaml_string(quantity_35),
            '\n',
        )
    if (security.restricted or job.read_only):
        block_19.append('    securityContext:\n')
        if security.restricted:
            block_19.append('      allowPrivilegeEscalation: false\n')
        if job.read_only:
            block_19.append('      readOnlyRootFilesystem: true\n')
        if security.restricted:
            block_19.append('      capabilities:\n        drop:\n          - "ALL"\n')
    block_19.append('    volumeMounts:\n')
    for volume_36 in volumes:
        block_19 += (
            '      - name: ',
            yaml_string(volume_36.name),
            '\n        mountPath: ',
            yaml_string(volume_36.target),
            '\n',
        )
        if (volume_36.type == 'secret'):
            block_19.append('        subPath: "value"\n')
        if volume_36.read_only:
            block_19.append('        readOnly: true\n')
    block_19 += (
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
    for word_37 in container.entrypoint:
        block_19 += (
            '      - ',
            yaml_text(dollars(word_37), 8),
            '\n',
        )
    block_19.append('    args:\n')
    for word_38 in container.args:
        block_19 += (
            '      - ',
            yaml_text(dollars(word_38), 8),
            '\n',
        )
    block_19.append('volumes:\n')
    for volume_39 in volumes:
        block_19 += (
            '  - name: ',
            yaml_string(volume_39.name),
            '\n',
        )
        if (volume_39.type in ('shm', 'tmpfs',)):
            block_19 += (
                '    emptyDir:\n      medium: "Memory"\n      sizeLimit: ',
                yaml_string(volume_39.source),
                '\n',
            )
        elif (volume_39.type == 'scratch'):
            block_19.append('    emptyDir: {}\n')
        elif (volume_39.type == 'pvc'):
            block_19 += (
                '    persistentVolumeClaim:\n      claimName: ',
                yaml_string(volume_39.source),
                '\n',
            )
            if volume_39.read_only:
                block_19.append('      readOnly: true\n')
        elif (volume_39.type == 'config'):
            block_19 += (
                '    configMap:\n      name: ',
                yaml_string(volume_39.source),
                '\n',
            )
        elif (volume_39.type == 'secret'):
            block_19 += (
                '    secret:\n      secretName: ',
                yaml_string(volume_39.source.partition('/')[0]),
                "\n      # 0440, which fsGroup gives to the job's group.\n      defaultMode: 288\n      items:\n        - key: ",
                yaml_string(volume_39.source.partition('/')[2]),
                '\n          path: "value"\n',
            )
    block_13.append(indented("".join(block_19), 2, first=True))
    block_12.append(indented("".join(block_13), 2, first=True))
    block_9.append(indented("".join(block_12), 8, first=True))
    out.append(indented("".join(block_9), 6, first=True))
    out.append('---\napiVersion: "trainer.kubeflow.org/v1alpha1"\nkind: "TrainJob"\nmetadata:\n')
    block_40: list[str] = []
    block_40 += (
        'name: ',
        yaml_string(name),
        '\n',
    )
    if (not (platform.namespace is None)):
        block_40 += (
            'namespace: ',
            yaml_string(platform.namespace),
            '\n',
        )
    block_40.append('labels:\n')
    for key_41, value_42 in labels.items():
        block_40 += (
            '  ',
            yaml_string(key_41),
            ': ',
            yaml_string(value_42),
            '\n',
        )
    if (not (platform.queue is None)):
        block_40 += (
            '  ',
            yaml_string(queue_label),
            ': ',
            yaml_string(platform.queue),
            '\n',
        )
    if job.annotations:
        block_40.append('annotations:\n')
        for key_43, value_44 in job.annotations.items():
            block_40 += (
                '  ',
                yaml_string(key_43),
                ': ',
                yaml_string(value_44),
                '\n',
            )
    out.append(indented("".join(block_40), 2, first=True))
    out.append('spec:\n')
    if (not (platform.queue is None)):
        out.append('  # Kueue starts it when the queue has room.\n  suspend: true\n')
    if (not (job.active_deadline is None)):
        out += (
            '  activeDeadlineSeconds: ',
            number(job.active_deadline),
            '\n',
        )
    out += (
        '  runtimeRef:\n    apiGroup: "trainer.kubeflow.org"\n    kind: "TrainingRuntime"\n    name: ',
        yaml_string(name),
        '\n',
    )
    return "".join(out)
