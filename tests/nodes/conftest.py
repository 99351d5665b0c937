# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests with several nodes. The helpers of the protocol tests are used here too.

    FLASHIELD_BIN       the daemon under test (build/flashield)
    KETAMA_CLIENT_BIN   the client in C (build/ketama_client)
"""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "protocol"))

from cluster import Cluster  # noqa: E402 (it needs the path above)


@pytest.fixture
def make_cluster(tmp_path):
    """make_cluster("flashield" or "memcached") -> three running nodes. They end with the test."""
    clusters = []
    tmp_path.chmod(0o777)  # the daemons may have become another user

    def make(kind="flashield"):
        clusters.append(Cluster(kind, tmp_path))
        return clusters[-1]

    yield make
    for cluster in clusters:
        cluster.stop()
