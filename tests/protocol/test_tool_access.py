# SPDX-License-Identifier: BSD-3-Clause
"""Tools log in and speak TLS: each that talks to a server reaches a daemon that asks for a password or for
a certificate, also both; they repeat what a server says, and send no password to one that did not ask for it."""
import contextlib
import os
import pathlib
import subprocess
import tempfile

import pytest

from helpers import PATIENCE, Daemon, flashield_command, memcached_command
from test_tls import Authority, TlsDaemon, context_of, tls_options

BUILD = pathlib.Path(flashield_command()).resolve().parent
TRACE = "time_ms,app,op,key,key_size,value_size,ttl_s\n" + "".join(f"{n},1,get,{n % 7},20,{100 + n % 7},0\n" for n in range(200))
TOOLS = {
    "top": lambda server, _: ["--once", "--interval", "100ms", server],
    "record": lambda server, folder: ["--output", str(folder / "out.csv"), "--duration", "10ms", "--server", server],
    "admin": lambda server, _: ["--server", server, "move", "status"],
    "dump": lambda server, folder: ["--quiet", "--output", str(folder / "warm"), "--server", server],
    "load": lambda server, folder: ["--quiet", "--server", server, str(folder / "one")],
    "replay": lambda server, folder: ["--flush", "--quiet", "--server", server, str(folder / "trace.csv")],
}
USER = ["--user", "user"]

pytestmark = pytest.mark.skipif(not all((BUILD / f"flashield-{tool}").exists() for tool in TOOLS), reason="tools are not built")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tools")
    (path / "trace.csv").write_text(TRACE)
    with Daemon([]) as other, other.client() as client:
        client.set(b"key", b"value")
        done = subprocess.run([str(BUILD / "flashield-dump"), "--quiet", "--output", str(path / "one"), "--server", f"127.0.0.1:{other.port}"],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr
    (path / "right").write_text("secret\nmore\n")
    (path / "wrong").write_text("secrets\n")
    return path


@pytest.fixture(scope="module")
def authority():
    """Certificates that a daemon may read as the user it has become."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        path.chmod(0o755)
        made = Authority(path, "authority")
        made.sign("server")
        made.sign("client")
        (path / "users").write_text("user:secret\n")
        (path / "users").chmod(0o644)
        yield made


def run(tool, folder, server, *options, password=None):
    env = {name: value for name, value in os.environ.items() if name != "FLASHIELD_PASSWORD"}
    env["TERM"] = "linux"
    if password:
        env["FLASHIELD_PASSWORD"] = password
    return subprocess.run([str(BUILD / f"flashield-{tool}"), *options, *TOOLS[tool](server, folder)], env=env, capture_output=True,
                          text=True, timeout=PATIENCE, check=False)


def address(daemon):
    return f"127.0.0.1:{daemon.port}"


@pytest.fixture(scope="module")
def guarded(authority):
    """Daemons with a password, with TLS, and with both and a certificate of the client."""
    context = context_of(authority)
    password = ["-Y", authority.path("users")]
    with contextlib.ExitStack() as stack:
        yield {
            "password": stack.enter_context(Daemon(password)),
            "tls": stack.enter_context(TlsDaemon(tls_options(authority), context)),
            "both": stack.enter_context(TlsDaemon([*password, *tls_options(authority, ssl_ca_cert=authority.path("ca.pem"), ssl_verify_mode=3)],
                                                  context_of(authority, certificate=(authority, "client")))),
        }


def tls_of(authority):
    return ["--tls-ca", authority.path("ca.pem"), "--tls-name", "server"]


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_does_its_work_behind_password_and_tls(tool, folder, guarded, authority):
    """The password comes from a file or from the environment; a replay, with many records and a flush, is whole."""
    file = [*USER, "--password-file", str(folder / "right")]
    client = ["--tls-cert", authority.path("client.pem"), "--tls-key", authority.path("client.key")]
    for daemon, options, password in [("password", file, None), ("password", USER, "secret"), ("tls", tls_of(authority), None),
                                      ("tls", ["--tls", *tls_of(authority)], None), ("both", [*file, *tls_of(authority), *client], None)]:
        done = run(tool, folder, address(guarded[daemon]), *options, password=password)
        assert done.returncode == 0, (daemon, options, done.stderr)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_repeats_the_words_of_a_refusal(tool, folder, guarded, authority):
    """Without a login, with a wrong one, without TLS and without a certificate that is trusted."""
    wrong = [*USER, "--password-file", str(folder / "wrong")]
    for daemon, options, words in [("password", [], "unauthenticated"), ("password", wrong, "CLIENT_ERROR authentication failure"),
                                   ("tls", ["--tls"], "its certificate is not accepted"),
                                   ("tls", ["--tls-ca", authority.path("ca.pem"), "--tls-name", "other"], "mismatch"),
                                   ("tls", ["--tls-ca", authority.path("ca.pem")], "mismatch"),
                                   ("both", [*USER, "--password-file", str(folder / "right"), *tls_of(authority)], f"flashield-{tool}")]:
        done = run(tool, folder, address(guarded[daemon]), *options)
        assert done.returncode == 2, (daemon, options, done.stdout)
        assert words in done.stderr, (daemon, options, done.stderr)


@pytest.mark.parametrize("options,named", [
    (["--user", "user"], "FLASHIELD_PASSWORD"),
    (["--user", "a b", "--password-file", "right"], "--user"),
    (["--password-file", "right"], "needs --user"),
    (["--user", "user", "--password-file", "missing"], "No such file"),
    (["--tls-key", "right"], "needs --tls-cert"),
    (["--tls-ca", "missing"], "--tls-ca: "),
    (["--tls-ca", "right"], "--tls-ca: "),
    (["--tls-cert", "right"], "--tls-cert: "),
])
def test_options_that_do_not_fit_are_refused_before_a_connection(folder, options, named):
    """Nothing listens at that port."""
    options = [str(folder / word) if word in ("right", "missing") else word for word in options]
    done = run("top", folder, "127.0.0.1:1", *options)
    assert done.returncode == 2
    assert named in done.stderr


@pytest.mark.parametrize("program", ["flashield", "memcached"])
def test_a_server_that_wants_no_login_is_sent_none(program, folder, request):
    """It would store the login as an object."""
    if program == "memcached":
        request.getfixturevalue("memcached")
    with Daemon(["-m", "64"], program=memcached_command() if program == "memcached" else None) as daemon:
        assert run("top", folder, address(daemon), *USER, password="secret").returncode == 0
        assert daemon.stats()["cmd_set"] == "0"


def test_memcached_takes_the_login_too(folder, authority, memcached):
    """Its -Y is what ours is made after."""
    with Daemon(["-Y", authority.path("users"), "-U", "0"], program=memcached.program) as daemon:
        assert run("replay", folder, address(daemon), *USER, password="secret").returncode == 0
        assert "authentication failure" in run("replay", folder, address(daemon), *USER, password="secrets").stderr
