# SPDX-License-Identifier: BSD-3-Clause
"""/metrics by TLS, for clients with a certificate and users with a password: who is refused, what a reload takes over, and a
real Prometheus that scrapes so."""
import base64
import contextlib
import http.client
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess

import pytest

from helpers import PATIENCE, ROOT, Daemon, flashield_command, free_port, until
from metrics import parse, value
from test_prometheus import Prometheus
from test_service import Notified
from test_tls import Authority, context_of, openssl

USER = ["-u", "nobody"] if os.geteuid() == 0 else []
# bcrypt of the least cost: the password is "secret", and "other".
OF_SECRET = "$2b$04$I1Ek.FiLHV0wkq04yGFGoexbeKRjmTWB2an0Wt6tCSOfoPU1Zk2Jy"
OF_OTHER = "$2b$04$0NSqERGTQnqX3aG1SEExRe85SG4EavW5P3pu6m7X/j6m6N5sD17Ba"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    made = Authority(tmp_path_factory.mktemp("authority"), "authority")
    for name in "server", "client", "next":
        made.sign(name)
    return made


@pytest.fixture
def folder(open_folder, authority):
    """Files of a daemon that serves by TLS, with a user."""
    for name in "server.pem", "server.key", "ca.pem":
        shutil.copy(authority.path(name), open_folder / name)
    (open_folder / "users").write_text(f"# Prometheus\nprom:{OF_SECRET}\n")
    for path in open_folder.iterdir():
        path.chmod(0o644)
    return open_folder


def tls(folder, ca=False):
    return ["--metrics-tls-cert", str(folder / "server.pem"), "--metrics-tls-key", str(folder / "server.key"),
            *(["--metrics-tls-ca", str(folder / "ca.pem")] if ca else [])]


class Asked(Daemon):
    """A daemon whose pages are asked for by TLS, and its log."""

    def __init__(self, folder, *options, address="127.0.0.1"):
        self.log = folder / "log"
        self.metrics_port = free_port()
        super().__init__([f"--metrics-listen={address}:{self.metrics_port}", *options], stderr=self.log.open("w"))

    def ask(self, context=None, path="/metrics", login=None, host="127.0.0.1", headers=None):
        """(status, headers, text); plain HTTP without a context."""
        connection = (http.client.HTTPSConnection(host, self.metrics_port, timeout=PATIENCE, context=context) if context
                      else http.client.HTTPConnection(host, self.metrics_port, timeout=PATIENCE))
        with contextlib.closing(connection):
            connection.request("GET", path, headers={**(headers or {}), **({"Authorization": basic(login)} if login else {})})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()

    def status(self, *words, **more):
        return self.ask(*words, **more)[0]

    def figure(self, name, *words, **more):
        return value(parse(self.ask(*words, **more)[2]), name)

    def reload(self, what):
        """SIGHUP, until the log has a line of it."""
        before = self.log.read_text()
        self.process.send_signal(signal.SIGHUP)
        return until(lambda: [line for line in self.log.read_text()[len(before):].splitlines() if what in line], what)[0]


def basic(login):
    return "Basic " + base64.b64encode(login.encode()).decode()


# ---- what is no setting ---------------------------------------------------------------------------

@pytest.mark.parametrize("option", ["key", "ca"])
def test_options_that_need_the_certificate(option):
    """Refused when the options are read."""
    done = subprocess.run([flashield_command(), *USER, "-l", "127.0.0.1", "-p", str(free_port()), f"--metrics-tls-{option}=/x"],
                          capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (64, f"--metrics-tls-{option}: it needs --metrics-tls-cert\n")


@pytest.mark.parametrize("broken, text", [
    ({"server.pem": None}, "--metrics-tls-cert: {folder}/server.pem: No such file or directory"),
    ({"server.key": None}, "--metrics-tls-key: {folder}/server.key: No such file or directory"),
    ({"server.pem": "junk\n"}, "--metrics-tls-cert: {folder}/server.pem: "),
    ({"server.key": "next.key"}, "--metrics-tls-key: {folder}/server.key: the key is not that of --metrics-tls-cert"),
    ({"ca.pem": "junk\n"}, "--metrics-tls-ca: {folder}/ca.pem: "),
    ({"users": "prom:secret\n"}, "--metrics-auth-file: {folder}/users:1: the password is not a bcrypt hash"),
    ({"users": None}, "--metrics-auth-file: {folder}/users: No such file or directory"),
], ids=lambda case: "-".join(case) if isinstance(case, dict) else "")
def test_files_that_can_not_be_used(folder, authority, broken, text):
    """The cache serves without the endpoint, rather than without its protection; log, systemctl status and --check-config say why."""
    for name, content in broken.items():
        (folder / name).unlink()
        if content and content.endswith("\n"):
            (folder / name).write_text(content)
        elif content:
            shutil.copy(authority.path(content), folder / name)
    text = text.format(folder=folder)
    options = [*tls(folder, ca=True), "--metrics-auth-file", str(folder / "users")]
    with Asked(folder, *options) as daemon, daemon.client() as client:
        assert client.ask(b"mn\r\n") == b"MN\r\n"
        with pytest.raises(ConnectionRefusedError):
            daemon.ask()
        assert f"warning: no /metrics: {text}" in daemon.log.read_text()
    config = folder / "conf"
    config.write_text("".join(f"{name[2:]} = {given}\n" for name, given in zip(options[::2], options[1::2])))
    done = subprocess.run([flashield_command(), *USER, "-l", "127.0.0.1", "-p", str(free_port()), "--config", str(config),
                           "--check-config"], capture_output=True, text=True, timeout=PATIENCE, check=False)
    line = 1 + options[::2].index(text.split(":")[0])
    assert done.returncode == 64 and done.stderr.startswith(f"{config}:{line}: {text[2:]}"), done.stderr
    assert done.stderr.count("\n") == 1


def test_status_says_that_it_is_not_served(folder, dram_daemon):
    """Before all else, in systemctl status: the port's holder, or the file."""
    started = Notified(folder, "--metrics-listen", f"127.0.0.1:{dram_daemon.port}")
    try:
        status = started.until("READY", "1")[0]["STATUS"]
        assert re.fullmatch(rf"Degraded: no /metrics, 127\.0\.0\.1:{dram_daemon.port}: Address already in use: it is held by "
                            r".*user \w+.*; 0 objects", status), status
        started.finish()
    finally:
        started.close()


# ---- TLS ------------------------------------------------------------------------------------------

def test_plain_http_finds_no_page(folder, authority):
    """TLS takes the place of HTTP; who is silent, or sends no handshake, is closed, and others are served."""
    with Asked(folder, *tls(folder)) as daemon:
        with pytest.raises((http.client.HTTPException, OSError)):
            daemon.ask()
        with socket.create_connection(("127.0.0.1", daemon.metrics_port), PATIENCE) as silent:
            context = context_of(authority)
            assert daemon.status(context) == 200
            assert daemon.ask(context, "/healthz")[2] == "alive\n"
            assert daemon.ask(context, "/ready")[2] == "ready\nflash: none\n"
            while silent.recv(100):  # an alert may come first
                pass
        assert "https://" not in daemon.log.read_text()  # told at -v


@pytest.mark.parametrize("version, served", [(ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True),
                                             (ssl.TLSVersion.TLSv1_3, True)])
def test_versions(folder, authority, version, served):
    """1.2 and 1.3, as Prometheus' exporters by default."""
    context = context_of(authority, version)
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with Asked(folder, *tls(folder)) as daemon:
        if served:
            assert daemon.status(context) == 200
        else:
            with pytest.raises(ssl.SSLError):
                daemon.ask(context)


def test_clients_need_a_certificate(folder, authority, tmp_path):
    """Of the authority, and for a client's purpose; probes need it too, as it comes before any page."""
    stranger = Authority(tmp_path, "stranger")
    stranger.sign("client")
    (tmp_path / "extensions").write_text("extendedKeyUsage=serverAuth\n")
    openssl(authority.folder, "x509", "-req", "-in", "client.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
            "-out", "serves.pem", "-days", "2", "-extfile", str(tmp_path / "extensions"))
    shutil.copy(authority.path("client.key"), authority.path("serves.key"))
    with Asked(folder, *tls(folder, ca=True)) as daemon:
        for certificate in None, (stranger, "client"), (authority, "serves"):
            for path in "/metrics", "/healthz":
                with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
                    daemon.ask(context_of(authority, certificate=certificate), path)
        context = context_of(authority, certificate=(authority, "client"))
        assert daemon.status(context) == 200
        assert daemon.status(context, "/healthz") == 200


def test_both_families(folder, authority):
    """"*" is IPv4 and IPv6."""
    with Asked(folder, *tls(folder), address="*") as daemon:
        assert daemon.stats(b"settings")["metrics_listen"] == f"*:{daemon.metrics_port}"
        assert daemon.status(context_of(authority)) == 200
        if ipv6_is_there():
            assert daemon.status(context_of(authority), host="::1") == 200


def ipv6_is_there():
    with socket.socket(socket.AF_INET6) as one, contextlib.suppress(OSError):
        one.bind(("::1", 0))
        return True
    return False


# ---- logging in -------------------------------------------------------------------------------------

def test_who_may_not_read(folder):
    """Nothing, another scheme, garbage, other users: asked to log in. Probes are answered, without the flash."""
    with Asked(folder, "--metrics-auth-file", str(folder / "users")) as daemon:
        for headers in {}, {"Authorization": "Bearer prom:secret"}, {"Authorization": "Basic"}, {"Authorization": "Basic ????"}, \
                {"Authorization": basic("prom")}, {"Authorization": "Basic " + "A" * 8000}:
            status, answered, _ = daemon.ask(headers=headers)
            assert (status, answered["WWW-Authenticate"]) == (401, 'Basic realm="flashield"'), headers
        assert daemon.status(path="/nothing") == 404
        assert daemon.ask(path="/healthz")[2] == "alive\n"
        assert daemon.ask(path="/ready")[2] == "ready\n"
        assert daemon.ask(path="/ready", login="prom:secret")[2] == "ready\nflash: none\n"
        assert daemon.ask(path="/ready", login="prom:wrong")[2] == "ready\n"


def test_a_wrong_password_is_checked_once(folder):
    """A second one from the same address has to come again later, and a third that was refused before is refused at once."""
    with Asked(folder, "--metrics-auth-file", str(folder / "users")) as daemon:
        def checks():
            return daemon.figure("metrics_password_checks_total", login="prom:secret")
        assert checks() == 1
        for _ in range(5):
            assert daemon.status(login="prom:wrong") == 401
        assert checks() == 2
        status, headers, text = daemon.ask(login="prom:another")
        assert (status, headers["Retry-After"]) == (429, "1") and "a second" in text
        until(lambda: daemon.status(login="prom:another") == 401, "the second's end")
        assert checks() == 3
        assert daemon.status(login="nobody:secret") == 429


def test_plain_passwords_are_warned_of(folder):
    """On an address that others reach, without TLS."""
    for address, options, warned in ("127.0.0.1", [], False), ("*", [], True), ("*", tls(folder), False):
        with Asked(folder, "--metrics-auth-file", str(folder / "users"), *options, address=address) as daemon:
            assert ("come in plain text" in daemon.log.read_text()) == warned, (address, options)


# ---- reload -----------------------------------------------------------------------------------------

def test_renewed_files_are_taken_over(folder, authority):
    """By SIGHUP, and certificates by refresh_certs too; a file that can't be used leaves what is in use, and metrics tell."""
    context = context_of(authority)

    def subject():
        with socket.create_connection(("127.0.0.1", daemon.metrics_port), PATIENCE) as plain, context.wrap_socket(plain) as one:
            return one.getpeercert()["subject"][0][0][1]

    def copy(name):
        for kind in "pem", "key":
            shutil.copy(authority.path(f"{name}.{kind}"), folder / f"server.{kind}")

    with Asked(folder, *tls(folder), "--metrics-auth-file", str(folder / "users")) as daemon, daemon.client() as client:
        login = {"login": "prom:secret"}
        expiry = ssl.cert_time_to_seconds(openssl(folder, "x509", "-noout", "-enddate", "-in", "server.pem").split("=")[1].strip())
        assert daemon.figure("metrics_certificate_expiry_timestamp_seconds", context, **login) == expiry
        assert subject() == "server"
        (folder / "server.pem").write_text("junk\n")
        assert client.ask(b"refresh_certs\r\n").startswith(b"Error --metrics-tls-cert")
        assert "stay as they were: --metrics-tls-cert" in daemon.reload("stay as they were")
        assert subject() == "server"
        for name, wanted in (("metrics_certificate_renewal_successful", 0), ("metrics_certificate_renewal_failures_total", 2),
                             ("reload_successful", 0)):
            assert daemon.figure(name, context, **login) == wanted
        copy("next")
        assert client.ask(b"refresh_certs\r\n") == b"OK\r\n"
        assert subject() == "next"
        copy("server")
        (folder / "users").write_text(f"prom:{OF_OTHER}\n")
        daemon.reload("certificates and keys of /metrics were read again")
        assert subject() == "server"
        assert daemon.status(context, **login) == 401
        until(lambda: daemon.status(context, login="prom:other") == 200, "the new password")
        assert daemon.figure("metrics_certificate_renewal_successful", context, login="prom:other") == 1


def test_reloads_among_scrapes(folder, authority):
    """Connections keep the certificate that they began with."""
    context = context_of(authority)
    with Asked(folder, *tls(folder), "--seccomp=on") as daemon, daemon.client() as client:
        kept = http.client.HTTPSConnection("127.0.0.1", daemon.metrics_port, timeout=PATIENCE, context=context)
        with contextlib.closing(kept):
            for _ in range(50):
                client.send(b"refresh_certs\r\n")
                assert daemon.status(context, "/healthz") == 200
                kept.request("GET", "/healthz")
                assert kept.getresponse().read() == b"alive\n"
                assert client.line() == b"OK\r\n"


# ---- Prometheus -------------------------------------------------------------------------------------

SAMPLE = ROOT / "packaging" / "samples" / "prometheus" / "prometheus.yml"
HEAD = "global:\n  scrape_interval: 1s\n  scrape_timeout: 1s\nscrape_configs:\n"


def job_of_the_sample(replaced):
    """The sample's job for such daemons, without its "#", with paths and names of the test in place of the sample's."""
    job = re.search(r"(?m)^  # - job_name: flashield-tls\n(  # .*\n)+", SAMPLE.read_text())[0].replace("  # ", "  ")
    for before, after in replaced.items():
        assert before in job
        job = job.replace(before, str(after))
    return HEAD + job.replace("tls_config:\n", "tls_config:\n      server_name: server\n")


def test_prometheus_scrapes(folder, authority, tmp_path):
    """Debian's, with the sample's job: a certificate and a password. Its figures are stored; with another password it says
    why not."""
    if not shutil.which("prometheus"):
        pytest.skip("prometheus is not installed")
    named_certificate(authority, folder)
    (folder / "password").write_text("secret")
    (folder / "users").write_text(f"prometheus:{OF_SECRET}\n")
    config = job_of_the_sample({"/etc/prometheus/flashield-ca.pem": folder / "ca.pem",
                                "/etc/prometheus/flashield-client.pem": authority.path("client.pem"),
                                "/etc/prometheus/flashield-client.key": authority.path("client.key"),
                                "/etc/prometheus/flashield-password": folder / "password",
                                '"cache1.example.net:9151", "cache2.example.net:9151"': '"127.0.0.1:{port}"'})
    with Asked(folder, *tls(folder, ca=True), "--metrics-auth-file", str(folder / "users")) as daemon:
        with Prometheus(tmp_path, daemon.metrics_port, config) as prometheus:
            until(lambda: prometheus.one("flashield_start_time_seconds"), "a scrape")
            assert prometheus.one("up") == 1
            assert prometheus.one("flashield_metrics_password_checks_total") == 1

            def why():
                return prometheus.ask("targets")["activeTargets"][0]["lastError"]
            (folder / "users").write_text(f"prometheus:{OF_OTHER}\n")
            daemon.reload("users of /metrics were read again")
            until(lambda: "401" in why(), "the refusal")
            until(lambda: prometheus.one("up") == 0, "it to be stored")
            (folder / "users").write_text(f"prometheus:{OF_SECRET}\n")
            daemon.reload("users of /metrics were read again")
            until(lambda: why() == "", "a scrape without an error")


def named_certificate(authority, folder):
    """Prometheus wants the server's name as an alternative name."""
    (folder / "extensions").write_text("subjectAltName=DNS:server\n")
    openssl(authority.folder, "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
            "-out", str(folder / "server.pem"), "-days", "2", "-extfile", str(folder / "extensions"))
    (folder / "server.pem").chmod(0o644)
