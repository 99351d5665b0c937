# SPDX-License-Identifier: BSD-3-Clause
"""Daemons that ask who it is: a certificate for TLS, a user for SASL. Made in the suite's own folder."""
import os
import shutil
import socket
import subprocess

from suite import Setup

USER = "somebody"
PASSWORD = "not a secret"
SASL_CONF = """mech_list: plain
pwcheck_method: auxprop
auxprop_plugin: sasldb
sasldb_path: {folder}/sasldb
"""


def readable(*paths):
    for path in paths:
        os.chmod(path, 0o644)  # the daemon becomes another user


def tls(folder, _place):
    key, certificate = os.path.join(folder, "key.pem"), os.path.join(folder, "certificate.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True)
    readable(key, certificate)
    return Setup(["-Z", "-o", f"ssl_chain_cert={certificate},ssl_key={key}"], tls=True, words=["--ca", certificate])


def sasl(folder, _place):
    with open(os.path.join(folder, "memcached.conf"), "w", encoding="utf-8") as opened:
        opened.write(SASL_CONF.format(folder=folder))
    saslpasswd = shutil.which("saslpasswd2") or "/usr/sbin/saslpasswd2"
    subprocess.run([saslpasswd, "-p", "-c", "-f", os.path.join(folder, "sasldb"), "-u", socket.gethostname(), USER],
                   input=PASSWORD.encode(), check=True, capture_output=True)
    readable(os.path.join(folder, "sasldb"), os.path.join(folder, "memcached.conf"))
    return Setup(["-S"], env={"SASL_CONF_PATH": folder}, words=[f"--user={USER}", f"--password={PASSWORD}"])
