# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests with several nodes. The helpers of the protocol tests are used here too.

    FLASHIELD_BIN       the daemon under test (build/flashield)
    KETAMA_CLIENT_BIN   the client in C (build/ketama_client)
"""
import pathlib
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "protocol"))

from cluster import Cluster  # noqa: E402 (it needs the path above)


@pytest.fixture
def make_cluster():
    """make_cluster("flashield" or "memcached") -> three running nodes. They end with the test."""
    clusters = []
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        folder.chmod(0o777)  # the daemons may have become another user

        def make(kind="flashield", more=()):
            clusters.append(Cluster(kind, folder, more))
            return clusters[-1]

        yield make
        for cluster in clusters:
            cluster.stop()
