# SPDX-License-Identifier: BSD-3-Clause
"""The sample for Kubernetes: its objects are what Kubernetes' schemas ask for; its options are accepted, and agree with its volumes,
ports, probes and limits; a daemon of it answers the probes. (Whether a cluster takes it is not tried here.)"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import pytest
import yaml

from helpers import PATIENCE, ROOT, Daemon, flashield_command, free_port, until
from metrics import get

SAMPLE = pathlib.Path(ROOT) / "packaging" / "samples" / "kubernetes.yml"
ENTRY = pathlib.Path(ROOT) / "packaging" / "entrypoint.sh"
IMAGE = pathlib.Path(ROOT) / "packaging" / "Dockerfile"
VALIDATOR = "kubernetes-validate==1.37.0"  # PyPI's, with the schemas of that version of Kubernetes
FETCH_SECONDS = 300
UNITS = {"Mi": 1 << 20, "Gi": 1 << 30, "g": 1 << 30, "m": 1 << 20}
USER = ["-u", "nobody"] if os.geteuid() == 0 else []


def in_bytes(text):
    number, unit = re.fullmatch(r"(\d+)(\w+)", text).groups()
    return int(number) * UNITS[unit]


@pytest.fixture(scope="module")
def parts():
    return {part["kind"]: part for part in yaml.safe_load_all(SAMPLE.read_text(encoding="utf-8"))}


@pytest.fixture(scope="module")
def pod(parts):
    return parts["StatefulSet"]["spec"]["template"]["spec"]


@pytest.fixture(scope="module")
def container(pod):
    one, = pod["containers"]
    return one


@pytest.fixture(scope="module")
def options(container):
    return dict(word.removeprefix("--").split("=", 1) for word in container["args"])


@pytest.mark.long
def test_its_objects_are_valid():
    """By the published schemas, without a field that these don't know."""
    with tempfile.TemporaryDirectory() as folder:
        fetched = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-input", "--target", folder, VALIDATOR],
                                 capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
        if fetched.returncode != 0:
            pytest.skip(f"{VALIDATOR} can't be had: {(fetched.stderr.strip().splitlines() or ['no reason given'])[-1]}")
        found = subprocess.run([sys.executable, "-m", "kubernetes_validate", "--strict", str(SAMPLE)], capture_output=True, text=True,
                               timeout=PATIENCE, env=dict(os.environ, PYTHONPATH=folder), check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    objects = len(list(yaml.safe_load_all(SAMPLE.read_text(encoding="utf-8"))))
    assert (found.stdout + found.stderr).count(" passed ") == objects > 0, found.stdout + found.stderr


def test_volumes_are_local(parts):
    """The claim finds the drive of the pod's own node."""
    claim, = parts["StatefulSet"]["spec"]["volumeClaimTemplates"]
    volume, drive = parts["StorageClass"], parts["PersistentVolume"]["spec"]
    assert claim["spec"]["storageClassName"] == volume["metadata"]["name"] == drive["storageClassName"]
    assert volume["volumeBindingMode"] == "WaitForFirstConsumer" and "path" in drive["local"] and "nodeAffinity" in drive
    assert in_bytes(claim["spec"]["resources"]["requests"]["storage"]) <= in_bytes(drive["capacity"]["storage"])


def test_labels_and_names_agree(parts, container):
    """The service finds the pods, and the ports by the names that it gives them."""
    service, states = parts["Service"]["spec"], parts["StatefulSet"]["spec"]
    assert states["serviceName"] == parts["Service"]["metadata"]["name"]
    assert states["selector"]["matchLabels"] == service["selector"] == states["template"]["metadata"]["labels"]
    assert parts["PodDisruptionBudget"]["spec"]["selector"] == states["selector"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert {port["name"]: port["port"] for port in service["ports"]} == ports
    assert states["template"]["metadata"]["annotations"]["prometheus.io/port"] == str(ports["metrics"])


def test_options_agree_with_ports_and_volumes(parts, pod, container, options):
    """What the daemon writes lies on volumes; it fits there."""
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert options["metrics-listen"].endswith(f":{ports['metrics']}") and ports["memcached"] == 11211
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    claim, = parts["StatefulSet"]["spec"]["volumeClaimTemplates"]
    volume, = pod["volumes"]
    assert set(mounts) == {claim["metadata"]["name"], volume["name"]}
    data = mounts[claim["metadata"]["name"]]
    assert options["flash-path"].startswith(f"{data}/")
    assert f"state={data}\n" in ENTRY.read_text(encoding="utf-8")  # args don't replace the entry point
    security = pod["securityContext"]
    assert f"USER {security['runAsUser']}:{security['runAsGroup']}\n" in IMAGE.read_text(encoding="utf-8")
    assert options["region-dir"] == mounts[volume["name"]] and volume["emptyDir"]["medium"] == "Memory"
    memory = in_bytes(options["memory-limit"])
    assert in_bytes(options["flash-size"]) + memory <= in_bytes(claim["spec"]["resources"]["requests"]["storage"])
    assert memory / 2 <= in_bytes(volume["emptyDir"]["sizeLimit"])
    assert memory * 1.1 + (24 << 20) <= in_bytes(container["resources"]["limits"]["memory"])


def test_a_stop_has_its_time(pod, options):
    """The pod is killed after its saving could have ended."""
    deadline = int(options["stop-deadline"].removesuffix("s"))
    assert deadline + 30 <= pod["terminationGracePeriodSeconds"]


def small(options, folder):
    """These options, with the paths below a folder, and sizes that fit anywhere."""
    scaled = dict(options, **{"flash-size": "64m", "memory-limit": "16m", "flash-path": f"{folder}/flash", "region-dir": folder})
    return [f"--{name}={value}" for name, value in scaled.items() if name not in ("listen", "metrics-listen")]


def test_a_daemon_answers_its_probes(container, options):
    """With the sample's options in small. /dev/shm is there on every machine."""
    port = free_port()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        os.chmod(folder, 0o777)
        words = [*small(options, folder), f"--metrics-listen=127.0.0.1:{port}", "--segment-size=1m"]
        checked = subprocess.run([flashield_command(), *USER, "-l", "127.0.0.1", *words, "--check-config"], capture_output=True,
                                 text=True, timeout=PATIENCE, check=False)
        assert checked.returncode == 0, checked.stderr
        with Daemon(words):
            for probe in "startupProbe", "livenessProbe", "readinessProbe":
                path = container[probe]["httpGet"]["path"]
                until(lambda path=path: get(port, path)[0] == 200, f"200 of {path}")
