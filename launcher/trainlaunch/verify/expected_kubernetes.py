"""What a manifest must say, kind by kind: the plan in Kubernetes' words, without any template."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainlaunch.container.code_maps import code_maps
from trainlaunch.container.container import container_of
from trainlaunch.container.engine_options import needs_own_tmp
from trainlaunch.container.job_variables import RESTARTS, restarts_field
from trainlaunch.container.kubernetes import (
    LOCAL_ADDRESS,
    PULL_POLICIES,
    kubernetes_labels,
    kubernetes_name,
    needs_local_address,
    object_annotations,
    pod_annotations,
    security,
    stated_in_pod,
)
from trainlaunch.container.preflight import LIVENESS, liveness_timeout
from trainlaunch.container.secret_delivery import mounted_secrets
from trainlaunch.formats.workload import GpuRequest, MountPoint, Workload, flat
from trainlaunch.job.spec import secret_path
from trainlaunch.kinds import KINDS
from trainlaunch.plan.instrumentation import liveness_period
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.templating.quoting import kubernetes_dollars
from trainlaunch.verify.expected_workload import planned, planned_workload

_Document = dict[str, Any]


def expected_of(plan: LaunchPlan) -> Workload:
    """Return what the manifest says when it says what the plan says."""
    job, container = plan.job, container_of(plan)
    common = planned_workload(plan, container)
    ids = security(job)
    own = [MountPoint("tmpfs", None, planned("/dev/shm"), size=planned(plan.shm.size.value))]
    own += [MountPoint("scratch", None, planned("/tmp"))] if needs_own_tmp(plan) else []
    sources = {name: str(secret.kubernetes) for name, secret in container.secrets}
    if needs_local_address(job):
        sources[LOCAL_ADDRESS] = "field status.podIP"
    if restarts_field(plan):
        sources[RESTARTS] = f"field {restarts_field(plan)}"
    labels = kubernetes_labels(plan, container.labels)
    rest = dict(flat(_Expected(plan, labels).rest()))
    return common._replace(
        name=planned(kubernetes_name(plan)),
        pull_policy=planned(PULL_POLICIES[job.pull_policy]),
        env={name: planned(value) for name, value in container.env},
        secrets=sources,
        labels={name: planned(value) for name, value in labels.items()},
        gpus=planned(GpuRequest(plan.gpus.count, resource=job.resources.gpu_resource)) if plan.gpus.count else None,
        devices=_devices(plan),
        mounts=(*own, *_with_code(plan, common.mounts), *_mounted_secrets(plan)),
        health_times={key: value for key, value in common.health_times.items() if key != "start_period"},
        user=planned(f"{_shown(ids.uid)}:{_shown(ids.gid)}"),
        rest=rest | {"requests are limits": True if job.kubernetes.cpu_limit else ("cpu",)},
    )


def _with_code(plan: LaunchPlan, mounts: tuple[MountPoint, ...]) -> Iterator[MountPoint]:
    """Yield the job's mounts; one of code is a ConfigMap with the path of each key."""
    code = code_maps(plan)
    for index, mount in enumerate(mounts):
        of_code = code.get(index)
        if of_code is None:
            yield mount
            continue
        listed = [{key: value for key, value in each._asdict().items() if value is not None} for each in of_code.items]
        said = ", ".join(f"{path}={value}" for path, value in flat(listed, "items"))
        yield mount._replace(type="config", source=planned(of_code.name), options=said)


def _mounted_secrets(plan: LaunchPlan) -> Iterator[MountPoint]:
    for name, secret in mounted_secrets(plan):
        yield MountPoint("secret", planned(secret.kubernetes), planned(secret_path(name)), True)


def _shown(number: int | None) -> str:
    return "" if number is None else str(number)


def _devices(plan: LaunchPlan) -> dict[str, str]:
    asked = plan.job.resources
    devices = {name: str(count) for name, count in asked.extended.items()}
    if asked.ephemeral_storage is not None:
        devices["ephemeral-storage"] = str(asked.ephemeral_storage)
    return devices


class _Expected:
    """Builds what the fields of a ReadBack don't hold: the objects around the pods, and the pods' own settings."""

    def __init__(self, plan: LaunchPlan, labels: dict[str, str]) -> None:
        self._plan = plan
        self._job = plan.job
        self._platform = plan.job.kubernetes
        self._labels = labels
        self._name = kubernetes_name(plan)
        self._gang = plan.job.nodes > 1
        self._again = plan.job.max_attempts > 1  # whether anything could be tried again

    def rest(self) -> _Document:
        """Return it as `parse_rendering` gives it: the main object, those before it, then the pods."""
        kind = self._platform.kind
        objects: list[_Document] = getattr(self, f"_{kind}_objects")()
        *before, main = objects
        annotations = self._template()["metadata"]["annotations"] if kind == "pod" else object_annotations(self._plan)
        return main | {
            "before": [*self._code(), *before],
            "metadata": self._placed({"annotations": annotations}),
            "pods": 2 if kind == "pytorchjob" and self._gang else 1,
            "pod": self._pod_spec(),
            "container": self._container(),
            "queue": self._platform.queue or [],
        }

    def _template(self) -> _Document:
        """Return what a pod template says beside its spec."""
        annotations = pod_annotations(self._plan, container_of(self._plan).notes)
        labels = {key: value for key, value in self._labels.items() if key != "app.kubernetes.io/managed-by"}
        return {"metadata": {"labels": labels, "annotations": annotations}}

    def _placed(self, metadata: _Document) -> _Document:
        namespace = self._platform.namespace
        return metadata if namespace is None else {**metadata, "namespace": namespace}

    def _part(self, version: str, kind: str, spec: _Document) -> _Document:
        """Return an object that serves the main one, and has its name."""
        metadata = {"name": self._name, "labels": self._labels, "annotations": object_annotations(self._plan)}
        return {"apiVersion": version, "kind": kind, "metadata": self._placed(metadata), "spec": spec}

    def _code(self) -> list[_Document]:
        """Return the ConfigMaps of the job's code."""
        metadata = self._placed({"labels": self._labels, "annotations": object_annotations(self._plan)})
        maps = {each.name: each for each in code_maps(self._plan).values()}
        head = {"apiVersion": "v1", "kind": "ConfigMap", "immutable": True}
        return [
            {**head, "metadata": {"name": name, **metadata}, "data": each.texts, "binaryData": each.binary}
            for name, each in maps.items()
        ]

    def _timed(self, spec: _Document, *, deadline: bool = True, ttl: bool = True) -> _Document:
        """Return `spec` with what ends and removes the object."""
        job = self._job
        if deadline and job.active_deadline is not None:
            spec["activeDeadlineSeconds"] = job.active_deadline
        if ttl and job.ttl_after_finished is not None:
            spec["ttlSecondsAfterFinished"] = job.ttl_after_finished
        return spec

    def _pod_objects(self) -> list[_Document]:
        return [{"apiVersion": "v1", "kind": "Pod"}]

    def _pytorchjob_objects(self) -> list[_Document]:
        alike = {"restartPolicy": "Never", "template": self._template()}
        replicas = {"Master": {"replicas": 1, **alike}}
        if self._gang:
            replicas["Worker"] = {"replicas": self._job.nodes - 1, **alike}
        policy = self._timed({"cleanPodPolicy": "Running", "backoffLimit": 0})
        spec = {"runPolicy": policy, "pytorchReplicaSpecs": replicas}
        return [{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": spec}]

    def _job_objects(self) -> list[_Document]:
        spec = self._timed(self._job_spec(backoff_limit=self._job.max_attempts - 1, indexed=self._gang))
        main = {"apiVersion": "batch/v1", "kind": "Job", "spec": spec}
        if self._job.torchrun is None or not self._gang:
            return [main]
        service = {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {"batch.kubernetes.io/job-name": self._name},
            "ports": [{"name": "rendezvous", "port": self._job.torchrun.rdzv_port}],
        }
        return [self._part("v1", "Service", service), main]

    def _jobset_objects(self) -> list[_Document]:
        job_set = self._timed(self._job_set_spec(), deadline=False)
        return [{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "spec": job_set}]

    def _trainjob_objects(self) -> list[_Document]:
        version = "trainer.kubeflow.org/v1alpha1"
        template = {"metadata": {"labels": self._labels}, "spec": self._job_set_spec()}
        runtime = {"mlPolicy": {"numNodes": self._job.nodes}, "template": template}
        reference = {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": self._name}
        spec = self._timed({"runtimeRef": reference}, ttl=False)
        main = {"apiVersion": version, "kind": "TrainJob", "spec": spec}
        return [self._part(version, "TrainingRuntime", runtime), main]

    def _job_set_spec(self) -> _Document:
        trainer = self._platform.kind == "trainjob"
        ancestor = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"} if trainer else {}
        job = self._job_spec(backoff_limit=0, indexed=True)
        if not trainer and self._job.active_deadline is not None:
            job["activeDeadlineSeconds"] = self._job.active_deadline
        disrupted = {
            "name": "disrupted",
            "action": "RestartJobSetAndIgnoreMaxRestarts",
            "onJobFailureReasons": ["PodFailurePolicy"],
            "onJobFailureMessagePatterns": ["DisruptionTarget"],
        }
        final = {
            "name": "final",
            "action": "FailJobSet",
            "onJobFailureReasons": ["PodFailurePolicy", "DeadlineExceeded"],
        }
        rules = [*([disrupted] if self._gang else []), *([final] if self._again else [])]
        policy = {"maxRestarts": self._job.max_attempts - 1 if self._again else [], "rules": rules}
        template = {"metadata": {"labels": ancestor}, "spec": job}
        return {
            "failurePolicy": policy,
            "replicatedJobs": [{"name": "node", "template": template}],
        }

    def _job_spec(self, *, backoff_limit: int, indexed: bool) -> _Document:
        disrupted = [{"type": "DisruptionTarget", "status": "True"}]
        retried = sorted({75, *(self._job.on_exit_codes or ())})
        final = self._again or self._platform.kind == "job"  # a Job's backoffLimit may change while it runs
        rules: list[_Document] = [
            *([{"action": "FailJob", "onExitCodes": self._exit_codes(78, 125, 126, 127)}] if final else []),
            {"action": "FailJob" if self._gang else "Ignore", "onPodConditions": disrupted},
        ]
        if self._job.on_exit_codes is not None:
            rules.append({"action": "Count", "onExitCodes": self._exit_codes(*retried)})
            others = {**self._exit_codes(*retried), "operator": "NotIn"}
            rules.append({"action": "FailJob", "onExitCodes": others})
        spec: _Document = {
            "backoffLimit": backoff_limit,
            "podFailurePolicy": {"rules": rules},
            "template": self._template(),
        }
        nodes = self._job.nodes
        return spec | ({"completionMode": "Indexed", "completions": nodes, "parallelism": nodes} if indexed else {})

    def _exit_codes(self, *values: int) -> _Document:
        return {"containerName": self._container_name(), "operator": "In", "values": list(values)}

    def _container_name(self) -> str:
        return KINDS[self._platform.kind].container_name

    def _container(self) -> _Document:
        contained = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        restricted = self._platform.pod_security == "restricted"
        context = contained if restricted else {}
        return {"name": self._container_name(), "securityContext": context, **self._liveness()}

    def _liveness(self) -> _Document:
        check = self._job.healthcheck
        if not check.stops:
            return {}
        command = ["/bin/sh", "-c", kubernetes_dollars(container_of(self._plan).health), LIVENESS]
        times = {"periodSeconds": liveness_period(self._job), "timeoutSeconds": liveness_timeout(self._job)}
        return {"livenessProbe": {**times, "failureThreshold": check.retries, "exec": {"command": command}}}

    def _pod_spec(self) -> _Document:
        platform, job = self._platform, self._job
        subdomain = platform.kind == "job" and self._gang
        spec: _Document = {
            "restartPolicy": "Never",
            "shareProcessNamespace": True,
            "automountServiceAccountToken": platform.token,
            "serviceAccountName": platform.service_account,
            "subdomain": self._name if subdomain else None,
            "hostNetwork": True if platform.host_network else None,
            "dnsPolicy": "ClusterFirstWithHostNet" if platform.host_network else None,
            "activeDeadlineSeconds": job.active_deadline if platform.kind == "pod" else None,
        }
        return {key: value for key, value in spec.items() if value is not None} | {
            **stated_in_pod(job),
            "imagePullSecrets": [{"name": each} for each in platform.image_pull_secrets],
            "nodeSelector": platform.node_selector,
            "affinity": platform.affinity or {},
            "tolerations": [*self._gpu_tolerations(), *platform.tolerations],
            "topologySpreadConstraints": list(platform.topology_spread),
            "securityContext": self._pod_security(),
        }

    def _gpu_tolerations(self) -> list[_Document]:
        resource = self._job.resources.gpu_resource
        keys = [resource, resource.split("/")[0] + "/gpu"] if self._plan.gpus.count else []
        return [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in dict.fromkeys(keys)]

    def _pod_security(self) -> _Document:
        ids = security(self._job)
        context: _Document = {"runAsNonRoot": True} if ids.restricted else {}
        if ids.fs_group is not None:
            context |= {"fsGroup": ids.fs_group, "fsGroupChangePolicy": "OnRootMismatch"}
        return context | ({"seccompProfile": {"type": "RuntimeDefault"}} if ids.seccomp else {})
