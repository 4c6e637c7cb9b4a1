"""The field reports that are manifests, and ten thousand texts that chance made of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from trainlaunch.formats.kubernetes import read_kubernetes
from trainlaunch.yamltree.tolerant import documents

from tests.formats.readings import assert_spans_cut, mutated, reports, summary

EXPECTED = Path(__file__).parent / "golden" / "kubernetes.json"
RICH = """\
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: StatefulSet
  metadata: &meta {name: rich, labels: {team: "a"}}
  spec:
    volumeClaimTemplates: [{metadata: {name: claimed}, spec: {}}]
    template:
      metadata: *meta
      spec: &pod
        hostIPC: false
        terminationGracePeriodSeconds: 30
        securityContext: {runAsUser: 1000, runAsGroup: 0x10, supplementalGroups: [1, 2]}
        initContainers: [{name: first, image: "a:1"}]
        containers:
        - name: train
          image: 'b:1'
          command: [/bin/sh, -c, "exec $(WHAT) $$HOME"]
          args: [a, "b"]
          env:
          - {name: WHAT, value: python}
          - {name: KEY, valueFrom: {secretKeyRef: {name: s, key: k}}}
          - name: AGAIN
            value: |-
              two
              lines
          envFrom: [{configMapRef: {name: c}}]
          resources: {limits: {memory: 1.5Gi, cpu: 500m, nvidia.com/gpu: 1}, requests: {cpu: 500m}}
          readinessProbe: {exec: {command: [/bin/sh, -c, "true"]}, periodSeconds: 30}
          volumeMounts:
          - {name: dshm, mountPath: /dev/shm/}
          - {name: claimed, mountPath: /data, readOnly: true}
          - {name: secret, mountPath: /key, subPath: value}
        volumes:
        - {name: dshm, emptyDir: {medium: Memory, sizeLimit: 1e9}}
        - {name: secret, secret: {secretName: s, defaultMode: 0440, items: [{key: k, path: value}]}}
        - {name: host, hostPath: {path: /dev/shm, type: Directory}}
- apiVersion: argoproj.io/v1alpha1
  kind: Workflow
  spec:
    volumes: [{name: dshm, emptyDir: {}}]
    templates:
    - {name: a, script: {image: "c:{{inputs.parameters.tag}}", volumeMounts: [{name: dshm, mountPath: /dev/shm}]}}
---
kind: Pod
spec: {containers: [{name: x, image: "{{ .Values.image }}", args: "{{ .Values.args }}"}]}
"""


def manifests() -> dict[str, str]:
    """Return the text of each report that has pods in it, by the report's name."""
    return {
        each["id"]: each["input"]
        for each in reports()
        if each["kind"] == "k8s" or any(word in each["input"] for word in ("containers:", '"containers"'))
    }


def test_each_report_is_read_as_expected(golden: Callable[[Path, str], None]) -> None:
    """/dev/shm, memory, CPUs, GPUs, image and argv of every container of every report."""
    found = {name: [summary(each) for each in read_kubernetes(text, name)] for name, text in manifests().items()}
    assert all(found.values()), "a report without a container"
    golden(EXPECTED, json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def test_each_span_cuts_its_text() -> None:
    """What a value was read from is where its span says."""
    for text in (*manifests().values(), RICH, "\ufeff" + RICH, RICH.replace("\n", "\r\n")):
        read = read_kubernetes(text, "a.yaml")
        assert read
        for each in read:
            assert_spans_cut(text, each)


@pytest.mark.parametrize("count", [2_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_changed_texts_are_read(count: int) -> None:
    """Nothing is raised, spans still cut, and it takes seconds."""
    texts = [*manifests().values(), RICH]
    containers = broken = 0
    start = time.process_time()
    for text in mutated(texts, count, seed=8):
        for each in (read := read_kubernetes(text, "a.yaml")):
            assert_spans_cut(text, each)
        containers += len(read)
        broken += not read and documents(text, "a.yaml").broken is not None
    assert time.process_time() - start < 20
    assert containers > count * 2 // 5
    assert broken > count // 20
