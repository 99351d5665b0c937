# SPDX-License-Identifier: BSD-3-Clause
"""PHP's sessions in the cache, through its own session handler with locking: php_sessions.py HOST:PORT [--binary]

Four PHP processes serve a small application; visitors ask side by side, also several with the same session: then the
handler's lock, an add with an expiry, makes them wait for each other, and no visit may be lost.
"""
import argparse
import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time

from checks import PATIENCE, Checks

parser = argparse.ArgumentParser()
parser.add_argument("server")
parser.add_argument("--binary", action="store_true")
arguments = parser.parse_args()
checks = Checks(f"PHP sessions {'binary' if arguments.binary else 'text'}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(port, where, session=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request("GET", where, headers={"Cookie": f"PHPSESSID={session}"} if session else {})
    answer = connection.getresponse()
    body = answer.read().decode()
    cookie = (answer.headers.get("Set-Cookie") or "").partition(";")[0].removeprefix("PHPSESSID=")
    connection.close()
    try:
        return json.loads(body), cookie or session
    except ValueError:
        raise AssertionError(f"{answer.status} {body[:500]}") from None


def visits(number):
    return {"visits": number, "items": number, "right": True}


def visit(port, session, times, bad):
    for _ in range(times):
        body, _ = get(port, "/visit", session)
        if not body.get("right"):
            bad.append(body)


def together(functions):
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@contextlib.contextmanager
def php():
    port = free_port()
    settings = {"session.save_handler": "memcached", "session.save_path": arguments.server, "session.cookie_httponly": 1,
                "memcached.sess_locking": "On", "memcached.sess_lock_wait_min": 5, "memcached.sess_lock_wait_max": 20,
                "memcached.sess_lock_retries": 2000, "memcached.sess_binary_protocol": int(arguments.binary)}
    words = [word for name, value in settings.items() for word in ("-d", f"{name}={value}")]
    app = pathlib.Path(__file__).resolve().parents[1] / "php" / "session_app.php"
    process = subprocess.Popen(["php", *words, "-S", f"127.0.0.1:{port}", str(app)], stderr=subprocess.DEVNULL,
                               env=dict(os.environ, PHP_CLI_SERVER_WORKERS="4"), start_new_session=True)
    try:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.02)
        yield port
    finally:
        os.killpg(process.pid, signal.SIGTERM)  # its workers too, they are of its own session
        process.wait()


with php() as port:
    with checks.part("one visitor"):
        body, session = get(port, "/visit")
        checks.same("a first visit", body, visits(1))
        checks.true("a session", session)
        for number in range(2, 12):
            checks.same("again", get(port, "/visit", session)[0], visits(number))
        body, renewed = get(port, "/renew", session)
        checks.same("renewed", body, visits(12))
        checks.true("under another id", renewed != session, renewed)
        checks.same("and goes on", get(port, "/visit", renewed)[0], visits(13))
        checks.same("the old id is empty", get(port, "/visit", session)[0], visits(1))
        get(port, "/leave", renewed)
        checks.same("after leaving", get(port, "/visit", renewed)[0], visits(1))

    with checks.part("visitors side by side"):
        sessions = [get(port, "/visit")[1] for _ in range(8)]
        bad = []
        together([lambda s=session: visit(port, s, 12, bad) for session in sessions])
        checks.same("nobody sees another's", bad, [])
        for session in sessions:
            checks.same("all visits counted", get(port, "/visit", session)[0], visits(14))

    with checks.part("one session, four windows"):
        session = get(port, "/visit")[1]
        together([lambda: visit(port, session, 10, bad)] * 4)
        checks.same("no visit is wrong", bad, [])
        checks.same("no visit is lost", get(port, "/visit", session)[0], visits(42))

checks.done()
