# SPDX-License-Identifier: BSD-3-Clause
"""Clients that go to other nodes while one is away, under one interface.

    set(key, value)   True when the cache said that it has it
    delete(key)       True when the cache said that it hasn't it (any more)
    get(key)          text, or None for a miss; raises Failed when there was no answer
"""
import shutil
import subprocess

import pylibmc
import pymemcache
import pytest

from cluster import ketama_client

RETRY_SECONDS = 1  # until a node that failed is tried again


class Failed(Exception):
    """No answer: as an application sees it, a miss."""


class ProxyClient:
    """pymemcache, over twemproxy."""

    def __init__(self, cluster, **settings):
        if not shutil.which("nutcracker"):
            pytest.skip("nutcracker is not installed")
        settings.setdefault("server_retry_timeout", RETRY_SECONDS * 1000)
        self.client = pymemcache.Client(("127.0.0.1", cluster.proxy(**settings)), timeout=120, connect_timeout=120)

    errors = (pymemcache.exceptions.MemcacheError, OSError)

    def set(self, key, value):
        try:
            return self.client.set(key, value, noreply=False)
        except self.errors:
            return False

    def delete(self, key):
        try:
            self.client.delete(key, noreply=False)
            return True
        except self.errors:
            return False

    def get(self, key):
        try:
            value = self.client.get(key)
        except self.errors as error:
            raise Failed from error
        return None if value is None else value.decode()

    def close(self):
        self.client.close()


class HashClient(ProxyClient):
    """pymemcache's own hashing over the nodes (rendezvous)."""

    def __init__(self, cluster):
        self.client = pymemcache.HashClient(cluster.addresses(), timeout=120, connect_timeout=120, retry_attempts=0,
                                            dead_timeout=RETRY_SECONDS)


class PylibmcClient:
    """libmemcached's ketama, from Python."""

    def __init__(self, cluster):
        self.client = pylibmc.Client(cluster.addresses(), behaviors={
            "ketama": True, "tcp_nodelay": True, "connect_timeout": 10000, "_poll_timeout": 10000, "remove_failed": 1, "failure_limit": 1,
            "retry_timeout": RETRY_SECONDS, "dead_timeout": RETRY_SECONDS})

    def set(self, key, value):
        try:
            return self.client.set(key, value.encode())
        except pylibmc.Error:
            return False

    def delete(self, key):
        try:
            self.client.delete(key)
            return True
        except pylibmc.Error:
            return False

    def get(self, key):
        try:
            value = self.client.get(key)
        except pylibmc.Error as error:
            raise Failed from error
        return None if value is None else value.decode()

    def close(self):
        self.client.disconnect_all()


class CClient:
    """libmemcached's ketama, from C: ketama_client.c."""

    def __init__(self, cluster):
        self.process = subprocess.Popen([ketama_client(), *cluster.addresses()], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().rstrip("\n")
        assert answer, "ketama_client has ended"
        return answer

    def set(self, key, value):
        return self.ask(f"set {key} {value}") == "STORED"

    def delete(self, key):
        return self.ask(f"delete {key}") in ("DELETED", "MISS")

    def get(self, key):
        answer = self.ask(f"get {key}")
        if answer.startswith("VALUE "):
            return answer[len("VALUE "):]
        if answer != "MISS":
            raise Failed(answer)
        return None

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(30) == 0
        self.process.stdout.close()
