# SPDX-License-Identifier: BSD-3-Clause
"""flashield-replay plays a trace over the proxy, which has no stats of its nodes."""
import json
import pathlib
import subprocess

from helpers import flashield_command

REQUESTS = 20000


def tool(name, *words):
    program = pathlib.Path(flashield_command()).parent / f"flashield-{name}"
    return subprocess.run([program, *words], capture_output=True, text=True)


def test_a_trace_is_played_over_the_proxy(make_cluster, tmp_path):
    cluster = make_cluster()
    trace = tmp_path / "trace.csv"
    made = tool("tracegen", "--requests", str(REQUESTS), "--no-fit", "--quiet", "--output", str(trace))
    assert made.returncode == 0, made.stderr
    port = cluster.proxy()
    played = tool("replay", "--server", f"127.0.0.1:{port}", "--quiet", "--json", "-", str(trace))
    assert played.returncode == 0, played.stderr  # 1 would be a wrong or an older value
    report = json.loads(played.stdout)
    assert report["hits"] > 0
    assert report["server"]["items"] is None
    held = [int(node.stats()["curr_items"]) for node in cluster.nodes]
    assert all(items > 0 for items in held), "each node has its share"


def test_who_tells_neither_stats_nor_version_is_no_server(make_cluster, tmp_path):
    cluster = make_cluster()
    port = cluster.proxy()
    for node in cluster.nodes:
        node.stop()
    trace = tmp_path / "trace.csv"
    assert tool("tracegen", "--requests", "1000", "--no-fit", "--quiet", "--output", str(trace)).returncode == 0
    played = tool("replay", "--server", f"127.0.0.1:{port}", "--quiet", str(trace))
    assert played.returncode == 2
    assert 'does not answer "stats"' in played.stderr
