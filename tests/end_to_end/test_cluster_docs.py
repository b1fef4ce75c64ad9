"""The Kubernetes manifest of docs/cluster.md: valid YAML of the resources it names, with a command that parses."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from pondertree.cli import parser
from pondertree.cli.train import make_executor
from pondertree.learn.executors import RayExecutor

ROOT = Path(__file__).parents[2]
MANIFEST = ROOT / "docs" / "kuberay" / "training.yaml"


@pytest.fixture(scope="module")
def resources() -> dict[str, Any]:
    """The resources by kind."""
    yaml = pytest.importorskip("yaml")
    return {one["kind"]: one for one in yaml.safe_load_all(MANIFEST.read_text())}


def test_manifest_is_a_ray_job_with_a_volume(resources: dict[str, Any]) -> None:
    assert set(resources) == {"PersistentVolumeClaim", "RayJob"}
    job = resources["RayJob"]
    assert job["apiVersion"] == "ray.io/v1"
    cluster = job["spec"]["rayClusterSpec"]
    assert set(cluster) == {"rayVersion", "headGroupSpec", "workerGroupSpecs"}
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        assert "rayStartParams" in group
        for container in group["template"]["spec"]["containers"]:
            environment = {one["name"]: one for one in container["env"]}
            assert environment["RAY_AUTH_MODE"]["value"] == "token"
            assert environment["RAY_AUTH_TOKEN"]["valueFrom"]["secretKeyRef"] == {
                "name": "ray-token",
                "key": "auth_token",
            }
            assert container["resources"]["requests"] == container["resources"]["limits"]
            # Quantities of a manifest and environment variables are texts.
            assert all(isinstance(value, str) for value in container["resources"]["limits"].values())
    for group in cluster["workerGroupSpecs"]:
        assert {"groupName", "replicas", "minReplicas", "maxReplicas"} <= set(group)
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
    [volume] = cluster["headGroupSpec"]["template"]["spec"]["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] == resources["PersistentVolumeClaim"]["metadata"]["name"]


def test_entrypoint_of_manifest_is_a_valid_command(resources: dict[str, Any]) -> None:
    program, *words = shlex.split(resources["RayJob"]["spec"]["entrypoint"])
    assert program == "pondertree"
    arguments = parser().parse_args(words)
    cluster = resources["RayJob"]["spec"]["rayClusterSpec"]
    head = cluster["headGroupSpec"]["template"]["spec"]
    [mount] = head["containers"][0]["volumeMounts"]
    assert arguments.out.startswith(mount["mountPath"])
    assert arguments.resume  # a repeated job continues
    pytest.importorskip("torch")
    executor = make_executor(arguments)
    assert isinstance(executor, RayExecutor)
    [workers] = cluster["workerGroupSpecs"]
    cpus = int(workers["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"])
    # The evaluation actor needs a place, too.
    assert (executor.actors + 1) * executor.cpus <= workers["replicas"] * cpus


def test_manifest_is_formatted() -> None:
    lines = MANIFEST.read_text().splitlines()
    assert lines[0] == "---"
    assert all(len(line) <= 120 and line == line.rstrip() and "\t" not in line for line in lines)
    assert all((len(line) - len(line.lstrip())) % 2 == 0 for line in lines)
