"""The API server for tests is one to the official client and to kubectl."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client as official
from kubernetes import stream, watch

from tests.kubernetes import statuses
from tests.kubernetes.asking import create, ended, job, refusal, wait_until
from tests.kubernetes.kinds import JOBS
from tests.kubernetes.logs import stamp
from tests.kubernetes.pods import Pod
from tests.kubernetes.server import FakeCluster


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("spec", "colour"), 1, 'strict decoding error: unknown field "spec.colour"'),
        (
            ("spec", "template", "spec", "containers", 0, "env"),
            [{"name": "A", "value": 1}],
            "json: cannot unmarshal number into Go struct field .spec.template.spec.containers.env.value of type ",
        ),
        (
            ("spec", "template", "spec", "containers", 0, "resources"),
            {"limits": {"memory": "8K"}},
            "unable to parse quantity's suffix",
        ),
        (
            ("spec", "template", "spec", "containers", 0, "resources"),
            {"limits": {"memory": "8 GB"}},
            "quantities must match the regular expression",
        ),
    ],
)
def test_what_can_not_be_decoded_is_a_bad_request(
    client: Any, fake: FakeCluster, path: tuple[Any, ...], value: Any, words: str
) -> None:
    """400 in the server's own words; a field that is only unknown passes where validation isn't strict."""
    body: Any = job()
    here = body
    for part in path[:-1]:
        here = here[part]
    here[path[-1]] = value
    status = refusal(client, body, field_validation="Strict", dry_run="All")
    assert status["reason"] == "BadRequest"
    assert status["message"].startswith('Job in version "v1" cannot be handled as a Job: ')
    assert words in status["message"]
    if "unknown" in words:
        create(client, body, field_validation="Ignore", dry_run="All")


def test_what_is_wrong_in_a_field_is_said_by_field(client: Any) -> None:
    """422 with one cause per field, in the path that the API uses."""
    body = job(activeDeadlineSeconds=-1)
    container = body["spec"]["template"]["spec"]["containers"][0]
    container |= {"image": "", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1", "memory": "1Gi"}}}
    container["volumeMounts"] = [{"name": "shm", "mountPath": "/dev/shm"}]
    body["metadata"]["labels"]["long"] = "x" * 64
    status = refusal(client, body, dry_run="All")
    assert status["reason"] == "Invalid"
    assert status["message"].startswith('Job.batch "digits" is invalid: [')
    assert {each["field"]: each["reason"] for each in status["details"]["causes"]} == {
        "metadata.labels": "FieldValueInvalid",
        "spec.activeDeadlineSeconds": "FieldValueInvalid",
        "spec.template.spec.containers[0].image": "FieldValueRequired",
        "spec.template.spec.containers[0].volumeMounts[0].name": "FieldValueNotFound",
        "spec.template.spec.containers[0].resources.requests": "FieldValueInvalid",
    }


def test_a_dry_run_stores_nothing_and_knows_taken_names(fake: FakeCluster, client: Any) -> None:
    """dryRun=All answers as a create would; the second create of a name is a conflict."""
    create(client, job(), dry_run="All")
    assert fake.objects() == []
    create(client, job(suspend=True))
    for query in ({}, {"dry_run": "All"}):
        status = refusal(client, job(), **query)
        assert (status["reason"], status["message"]) == ("AlreadyExists", 'jobs.batch "digits" already exists')


def test_namespaces_tokens_and_rights_are_checked(fake: FakeCluster, client: Any) -> None:
    """404 for a namespace that isn't there, 403 for what this user may not do, 401 for another token."""
    jobs = official.CustomObjectsApi(client)
    with pytest.raises(official.ApiException) as refused:
        jobs.create_namespaced_custom_object("batch", "v1", "nowhere", "jobs", job())
    assert json.loads(refused.value.body)["message"] == 'namespaces "nowhere" not found'
    fake.forbid("create", "jobs")
    assert refusal(client, job())["message"] == (
        'jobs.batch is forbidden: User "system:serviceaccount:team:trainer" cannot create resource "jobs" '
        'in API group "batch" in the namespace "team"'
    )
    fake.token = "another"
    assert refusal(client, job())["reason"] == "Unauthorized"


def test_lists_are_selected_and_paged(fake: FakeCluster, client: Any) -> None:
    """labelSelector, fieldSelector, limit and continue."""
    fake.pods_do(lambda pod: pod.start())
    create(client, job(completions=5, parallelism=5))
    core = official.CoreV1Api(client)
    wait_until(lambda: len(fake.pods()) == 5)
    first = core.list_namespaced_pod("team", limit=3)
    rest = core.list_namespaced_pod("team", limit=3, _continue=first.metadata._continue)
    names = [each.metadata.name for each in first.items + rest.items]
    assert names == sorted(each["metadata"]["name"] for each in fake.pods())
    assert rest.metadata._continue is None
    assert len(core.list_namespaced_pod("team", label_selector="app in (digits, other),!gone").items) == 5
    assert core.list_namespaced_pod("team", label_selector="app!=digits").items == []
    one = core.list_namespaced_pod("team", field_selector=f"metadata.name={names[0]}")
    assert [each.metadata.name for each in one.items] == names[:1]
    about = core.list_namespaced_event("team", field_selector=f"involvedObject.name={names[0]},reason=Started")
    assert [each.reason for each in about.items] == ["Started"]
    with pytest.raises(official.ApiException, match="field label not supported"):
        core.list_namespaced_pod("team", field_selector="spec.colour=red")


def test_a_watch_of_the_past_is_gone_after_compaction(fake: FakeCluster, client: Any) -> None:
    """410 as an event of the stream, as the watch cache gives it."""
    core = official.CoreV1Api(client)
    fake.pods_do(lambda pod: pod.start())
    create(client, job())
    fake.store.compact()
    with pytest.raises(official.ApiException) as gone:
        list(watch.Watch().stream(core.list_namespaced_pod, "team", resource_version="1", timeout_seconds=5))
    assert (gone.value.status, gone.value.reason.partition(":")[0]) == (410, "Expired")


def test_bookmarks_come_where_they_are_asked_for(fake: FakeCluster, client: Any) -> None:
    """A BOOKMARK carries a resourceVersion that a later watch can start from."""
    answer = official.CoreV1Api(client).list_namespaced_pod(
        "team", watch=True, allow_watch_bookmarks=True, timeout_seconds=2, _preload_content=False
    )
    events = [json.loads(line) for line in answer.read().splitlines()]
    assert {each["type"] for each in events} == {"BOOKMARK"}
    assert int(events[-1]["object"]["metadata"]["resourceVersion"]) > 0


def test_logs_begin_at_the_whole_second_of_since_time(fake: FakeCluster, client: Any) -> None:
    """Entries of that second come again; timestamps have nine digits; two of one moment are two."""
    second = 10**9 * int(fake.clock.time())

    def script(pod: Pod) -> None:
        for offset, line in ((0, "early"), (10**9, "a"), (10**9, "b"), (10**9 + 5, "c")):
            pod.say(line + "\n", at=second + offset)
        pod.exit(0)

    fake.pods_do(script)
    create(client, job())
    ended(client)
    at = stamp(second + 10**9 + 5).decode()
    core = official.CoreV1Api(client)
    path = f"/api/v1/namespaces/team/pods/{fake.pods()[0]['metadata']['name']}/log"
    query = [("sinceTime", at), ("timestamps", "true")]
    answer = core.api_client.call_api(
        *core.api_client.param_serialize("GET", path, query_params=query, auth_settings=["BearerToken"])
    )
    lines = answer.read().decode().splitlines()
    assert [each.partition(" ")[2] for each in lines] == ["a", "b", "c"]
    assert lines[2].partition(" ")[0] == at
    assert [len(each.partition(" ")[0]) for each in lines] == [30] * 3


def test_exec_answers_on_its_channels(fake: FakeCluster, client: Any) -> None:
    """stdout, stderr and the exit code, as the client's own stream reads them."""
    fake.pods_do(lambda pod: pod.start())
    create(client, job())
    wait_until(lambda: any(each["status"]["phase"] == "Running" for each in fake.pods()))
    core = official.CoreV1Api(client)
    name = fake.pods()[0]["metadata"]["name"]

    def run(*command: str) -> Any:
        asked = {"command": list(command), "stdout": True, "stderr": True, "stdin": False, "tty": False}
        found = stream.stream(core.connect_get_namespaced_pod_exec, name, "team", _preload_content=False, **asked)
        found.run_forever(timeout=10)
        found.sock.shutdown()  # its own close() leaves the socket open once the server has closed
        return found

    healthy = run("sh", "-c", "# trainlaunch health")
    assert healthy.read_stdout().startswith("shm used=")
    assert healthy.returncode == 0
    unknown = run("nothing")
    assert "not found" in unknown.read_stderr()
    assert unknown.returncode == 127


def test_faults_come_once_each_and_in_order(fake: FakeCluster) -> None:
    """A 500, then a 429 with Retry-After, then the answer."""
    fake.fail("list", "pods", answer=statuses.internal("etcdserver: request timed out"))
    fake.fail("list", "pods", answer=statuses.too_many(3))
    seen = []
    for _ in range(3):
        asking = http.client.HTTPConnection("127.0.0.1", fake.port, timeout=20)
        asking.request("GET", "/api/v1/namespaces/team/pods", headers={"Authorization": f"Bearer {fake.token}"})
        answer = asking.getresponse()
        seen.append((answer.status, answer.headers.get("Retry-After")))
        asking.close()
    assert seen == [(500, None), (429, "3"), (200, None)]


def test_kubectl_takes_it_for_a_cluster(tmp_path: Path) -> None:
    """get, logs, describe and delete over TLS."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    with FakeCluster(tls=True) as cluster:
        config = cluster.kubeconfig(tmp_path / "config")

        def kubectl(*args: str) -> str:
            env = {**os.environ, "KUBECONFIG": str(config), "HOME": str(tmp_path)}
            done = subprocess.run(["kubectl", *args], env=env, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 0, done.stderr
            return done.stdout

        cluster.pods_do(one_epoch)
        cluster.store.create(*created(cluster))
        wait_until(lambda: any(each["status"]["phase"] == "Succeeded" for each in cluster.pods()))
        assert "job.batch/digits" in kubectl("get", "jobs,pods")
        assert kubectl("logs", "job/digits") == "epoch 1\n"
        assert "SuccessfulCreate" in kubectl("describe", "job", "digits")
        kubectl("delete", "job", "digits", "--cascade=foreground")
        assert cluster.objects() == []


def one_epoch(pod: Pod) -> None:
    """Print a line and end."""
    pod.say("epoch 1\n")
    pod.exit(0)


def created(cluster: FakeCluster) -> tuple[Any, str, dict[str, Any]]:
    """Return what puts the Job into a cluster without a client."""
    made = job()
    made["status"] = {}
    return JOBS, "team", made
