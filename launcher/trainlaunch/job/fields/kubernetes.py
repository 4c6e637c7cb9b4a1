"""Rows of the table of fields: what only Kubernetes knows, with the shapes of its own objects."""

from __future__ import annotations

from trainlaunch.job.fields.types import (
    BOOL,
    NAME,
    STRING,
    SUBDOMAIN,
    Field,
    Type,
    choice,
    integer,
    listing,
    mapping,
    record,
    text,
)
from trainlaunch.kinds import DEFAULT_KIND, KINDS

_LABEL_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
QUALIFIED_NAME = rf"(?:{SUBDOMAIN}/)?{_LABEL_NAME}"
LABEL_VALUE = rf"(?:{_LABEL_NAME})?"
_OBJECT_NAME = text("the name of an object (a-z, 0-9, - and .)", SUBDOMAIN)
_KEY = text("a label's key", QUALIFIED_NAME)
_VALUE = text("a label's value (at most 63 letters, digits, -, _ and .)", LABEL_VALUE)
_LABELS = mapping(_VALUE, QUALIFIED_NAME, "a label's key")
_TOPOLOGY = Field("topologyKey", _KEY, "label of the nodes that are one place", required=True,
                  example="kubernetes.io/hostname")  # fmt: skip


def _requirements(*operators: str) -> Type:
    """Kubernetes' list of `{key, operator, values}`."""
    return listing(
        record(
            Field("key", _KEY, "label", required=True, example="kubernetes.io/arch"),
            Field("operator", choice(*operators), "how it is compared", required=True, example="In"),
            Field("values", listing(_VALUE), "values; none with Exists and DoesNotExist"),
        )
    )


_OF_LABELS = _requirements("In", "NotIn", "Exists", "DoesNotExist")
_OF_NODES = _requirements("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_OF_FIELDS = listing(
    record(
        Field("key", choice("metadata.name"), "the one field that nodes are chosen by", required=True,
              example="metadata.name"),
        Field("operator", choice("In", "NotIn"), "how it is compared", required=True, example="In"),
        Field("values", listing(_OBJECT_NAME, low=1), "one node's name", required=True, example="[node-1]"),
    )
)  # fmt: skip
_SELECTOR = record(
    Field("matchLabels", _LABELS, "labels that all must have"),
    Field("matchExpressions", _OF_LABELS, "further requirements"),
)
_LABEL_KEYS = listing(_KEY)
_WEIGHT = Field("weight", integer(1, 100), "1 to 100", required=True, example="100")
_NODE_TERM = record(
    Field("matchExpressions", _OF_NODES, "requirements of labels"),
    Field("matchFields", _OF_FIELDS, "requirements of fields, like metadata.name"),
)
_POD_TERM = record(
    Field("labelSelector", _SELECTOR, "which pods"),
    _TOPOLOGY,
    Field("namespaces", listing(text("a DNS-1123 label", NAME)), "their namespaces"),
    Field("namespaceSelector", _SELECTOR, "their namespaces, by label"),
    Field("matchLabelKeys", _LABEL_KEYS, "labels in which they are like this pod"),
    Field("mismatchLabelKeys", _LABEL_KEYS, "labels in which they differ from this pod"),
)
_POD_AFFINITY = record(
    Field("requiredDuringSchedulingIgnoredDuringExecution", listing(_POD_TERM), "must"),
    Field("preferredDuringSchedulingIgnoredDuringExecution", listing(record(
        _WEIGHT,
        Field("podAffinityTerm", _POD_TERM, "term", required=True, example="{topologyKey: kubernetes.io/hostname}"),
    )), "should"),
)  # fmt: skip
_NODE_AFFINITY = record(
    Field("requiredDuringSchedulingIgnoredDuringExecution", record(
        Field("nodeSelectorTerms", listing(_NODE_TERM, low=1), "one of them must hold", required=True,
              example="[{matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]}]"),
    ), "must"),
    Field("preferredDuringSchedulingIgnoredDuringExecution", listing(record(
        _WEIGHT,
        Field("preference", _NODE_TERM, "term", required=True,
              example="{matchExpressions: [{key: kubernetes.io/arch, operator: Exists}]}"),
    )), "should"),
)  # fmt: skip
_AFFINITY = record(
    Field("nodeAffinity", _NODE_AFFINITY, "which nodes"),
    Field("podAffinity", _POD_AFFINITY, "near which pods"),
    Field("podAntiAffinity", _POD_AFFINITY, "far from which pods"),
)
_TOLERATION = record(
    Field("key", _KEY, "the taint's key; none: every taint"),
    Field("operator", choice("Equal", "Exists"), "whether its value counts"),
    Field("value", _VALUE, "its value"),
    Field("effect", choice("NoSchedule", "PreferNoSchedule", "NoExecute"), "its effect; none: every one"),
    Field("tolerationSeconds", integer(0), "how long, with NoExecute"),
)
_SPREAD = record(
    Field("maxSkew", integer(1), "most pods that two places may differ by", required=True, example="1"),
    _TOPOLOGY,
    Field("whenUnsatisfiable", choice("DoNotSchedule", "ScheduleAnyway"), "what happens else", required=True,
          example="DoNotSchedule"),
    Field("labelSelector", _SELECTOR, "which pods are counted", required=True,
          example="{matchLabels: {trainlaunch.dev/job: NAME}}"),
    Field("minDomains", integer(1), "fewest places, with DoNotSchedule"),
    Field("nodeAffinityPolicy", choice("Honor", "Ignore"), "whether node_selector and affinity narrow the places"),
    Field("nodeTaintsPolicy", choice("Honor", "Ignore"), "whether taints narrow the places"),
    Field("matchLabelKeys", _LABEL_KEYS, "labels in which counted pods are like this one"),
)  # fmt: skip

*_ALL_BUT_LAST, _LAST = (each.word for each in KINDS.values() if each.controller)
_WITH_CONTROLLERS = f"{', '.join(_ALL_BUT_LAST)} and {_LAST}"

# One row a paragraph, as a table reads.
# fmt: off
KUBERNETES = record(
    Field("namespace", text("a DNS-1123 label", NAME), "namespace", shown="the context's",
          kubernetes="`metadata.namespace`"),
    Field("kind", choice(*KINDS), f"object that runs the job; {_WITH_CONTROLLERS} need their controllers",
          default=DEFAULT_KIND, kubernetes="`kind`"),
    Field("service_account", _OBJECT_NAME, "service account", kubernetes="`serviceAccountName`"),
    Field("node_selector", _LABELS, "labels that a node must have", default={}, kubernetes="`nodeSelector`"),
    Field("affinity", _AFFINITY, "affinity, in Kubernetes' own words", kubernetes="`affinity`"),
    Field("tolerations", listing(_TOLERATION),
          "tolerations, in Kubernetes' own words, beside those for the GPU's taints", default=(),
          kubernetes="`tolerations`"),
    Field("topology_spread", listing(_SPREAD), "topology spread constraints, in Kubernetes' own words", default=(),
          kubernetes="`topologySpreadConstraints`"),
    Field("runtime_class", _OBJECT_NAME, "runtime class", pod_key="runtimeClassName"),
    Field("host_network", BOOL, "whether pods use the node's network; needs pod_security privileged", default=False,
          kubernetes="`hostNetwork`, `dnsPolicy`"),
    Field("queue", text("the name of a Kueue LocalQueue", NAME), "Kueue queue; it holds the job back until admitted",
          kubernetes="label"),
    Field("priority_class", _OBJECT_NAME, "priority class", pod_key="priorityClassName"),
    Field("scheduler_name", _OBJECT_NAME, "scheduler that places the pods; none: the cluster's default",
          pod_key="schedulerName"),
    Field("image_pull_secrets", listing(_OBJECT_NAME), "Secrets that pull the image", default=(),
          kubernetes="`imagePullSecrets`"),
    Field("run_as", choice("uid", "assigned"),
          "UID that runs the container: that of `user`, else 1000; or the one that the cluster assigns to the "
          "namespace, as OpenShift does", default="uid", kubernetes="no `runAsUser`, `runAsGroup`, `fsGroup`"),
    Field("fs_group", integer(0), "group of volumes; none where the image's user is kept", shown="1000",
          kubernetes="`fsGroup`"),
    Field("pod_security", choice("restricted", "baseline", "privileged"),
          "Pod Security level that the pod must pass: restricted sets uid 1000 where `user` is unset, the others "
          "keep the image's user", default="restricted", kubernetes="`securityContext`"),
    Field("cpu_limit", BOOL, "whether CPUs are limited too, not only requested", default=True,
          kubernetes="`limits.cpu`"),
    Field("annotations", mapping(STRING, r"\S+", "a key"), "annotations of pods alone", default={},
          kubernetes="`template.metadata.annotations`"),
    Field("stable_name", BOOL,
          "whether `metadata.name` is the job's name without a hash of the pod template, for those who replace the "
          "object when it changes", default=False, kubernetes="`metadata.name`"),
    Field("prune", BOOL,
          "whether a controller that applies rendered files from Git may delete the object once Git has it no more; "
          "false "
          "lets a run end first", default=False, kubernetes="`metadata.annotations` of Argo CD and Flux"),
    Field("token", BOOL, "whether the service account's token is mounted", default=False,
          kubernetes="`automountServiceAccountToken`"),
)
# fmt: on
POD_KEYS = {each.pod_key: each.name for each in KUBERNETES.fields if each.pod_key}  # of a pod's spec → field
