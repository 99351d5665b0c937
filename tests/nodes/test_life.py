# SPDX-License-Identifier: BSD-3-Clause
"""A node goes away and comes back: no client ever reads what was overwritten or deleted meanwhile."""
import json
import shutil
import signal
import subprocess

import pytest

from clients import CClient, HashClient, ProxyClient, PylibmcClient
from cluster import sample
from helpers import ROOT, memcached_command, until
from life import Life

CLIENTS = [ProxyClient, CClient, PylibmcClient, HashClient]
KINDS = ["flashield", "memcached"]


@pytest.fixture
def make_life(make_cluster):
    """make_life(client class, kind of the nodes) -> Life."""
    lives = []

    def make(client, kind="flashield", more=(), **settings):
        if kind == "memcached" and not shutil.which(memcached_command()):
            pytest.skip("memcached is not installed")
        cluster = make_cluster(kind, more)
        lives.append(Life(cluster, client(cluster, **settings)))
        return lives[-1]

    yield make
    for life in lives:
        life.client.close()


def warm_up(life):
    """All keys are there, each on its node; some of the first node's lie on flash. Returns that node and its keys."""
    life.write_all()
    victim = life.cluster.nodes[0]
    owned = victim.holds(life.keys)
    assert len(owned) > len(life.keys) / 10, "a node has its share"
    victim.push_to_flash(owned)
    assert life.read_all() > 0
    return victim, owned


# --- the checks can fail ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_node_that_only_hung_comes_back_with_old_values(make_life, kind):
    """The negative control, and a limit that no setting of a node removes: a process that was stopped, or cut off,
    never knew that it was left out. It is as warm as before, memcached likewise."""
    # So long that a node that only had to wait for the machine is not left out, too.
    life = make_life(ProxyClient, kind, timeout=4000, server_failure_limit=1, server_retry_timeout=8000)
    victim, owned = warm_up(life)
    victim.process.send_signal(signal.SIGSTOP)
    life.meanwhile()
    life.read_all()
    assert not life.checker.wrong, "while it is away"
    victim.process.send_signal(signal.SIGCONT)
    life.returned(victim)
    life.read_all()
    assert life.checker.wrong
    assert all(wrong.partition(": ")[0] in owned for wrong in life.checker.wrong)


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_ejection_shows_what_the_first_left_on_other_nodes(make_life, kind):
    """Left out twice: what was written elsewhere the first time is still there the second time, and older than what
    was written to the node in between. So with every cache behind clients that rehash."""
    life = make_life(ProxyClient, kind)
    victim, owned = warm_up(life)
    victim.end(signal.SIGKILL)
    life.meanwhile()
    victim.start()
    life.returned(victim)
    life.write_all()
    assert life.read_all() > 0
    assert not life.checker.wrong, "after the first time"
    victim.end(signal.SIGKILL)
    until(lambda: life.client.set("probe", "x") and [life.read(key) for key in sorted(owned)] and life.checker.wrong,
          "an old value from another node")
    assert all(wrong.partition(": ")[0] in owned for wrong in life.checker.wrong)
    victim.start()


def test_a_node_that_comes_back_warm_shows_old_values(make_life):
    """Why the sample file says restart-max-downtime = 0: with --restart-max-downtime 1h, a node that was stopped cleanly
    has its objects on flash again, also those that were overwritten or deleted elsewhere meanwhile."""
    life = make_life(ProxyClient, more=["--restart-max-downtime", "1h"])
    victim, owned = warm_up(life)
    victim.end(signal.SIGTERM)
    life.meanwhile()
    life.read_all()
    assert not life.checker.wrong, "while it is away"
    victim.start()
    assert victim.stats(b"flash")["flash_start"].startswith("warm")
    life.returned(victim)
    life.read_all()
    assert life.checker.wrong
    assert all(wrong.partition(": ")[0] in owned for wrong in life.checker.wrong)


# --- what must hold --------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "stopped"])
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_a_node_comes_back_cold(make_life, client, number):
    life = make_life(client)
    victim, owned = warm_up(life)
    victim.end(number)
    life.meanwhile()
    assert life.read_all() > 0, "its keys are served by others"
    victim.start()
    assert not victim.holds(life.keys), "nothing of what it had, on flash or in memory"
    life.returned(victim)
    life.read_all()
    life.write_all()
    assert life.read_all() == len(life.keys)
    assert owned <= victim.holds(life.keys), "it has its keys again"
    assert life.checker.wrong == []


def test_the_samples_are_what_their_readers_accept():
    assert "auto_eject_hosts: true" in sample()
    mcrouter = (ROOT / "packaging" / "samples" / "mcrouter.json").read_text(encoding="utf-8")
    lines = [line for line in mcrouter.splitlines() if not line.lstrip().startswith("//")]  # mcrouter's comments
    pools = json.loads("\n".join(lines))["pools"]
    assert len(pools["cache"]["servers"]) == 3
    if shutil.which("nutcracker"):
        subprocess.run(["nutcracker", "-t", "-c", str(ROOT / "packaging" / "samples" / "nutcracker.yml")], check=True, capture_output=True)
