# SPDX-License-Identifier: BSD-3-Clause
"""Commands that run a client's own tests. These name their server in the source: a copy of them, in the suite's folder,
names the suite's."""
import os
import re
import shutil
import sys

import servers


def port(context, number=0):
    return context.servers[number].rsplit(":", 1)[1]


def copied(source, target, changes):
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    for folder, _, names in os.walk(target):
        for name in names:
            path = os.path.join(folder, name)
            os.chmod(path, 0o644)
            with open(path, encoding="utf-8", errors="surrogateescape") as opened:
                text = opened.read()
            changed = text
            for pattern, replacement in changes:
                changed = re.sub(pattern, replacement, changed)
            if changed != text:
                with open(path, "w", encoding="utf-8", errors="surrogateescape") as opened:
                    opened.write(changed)
    return target


# A client that gives up after three seconds takes a request that place.py or a busy machine holds up for a miss.
PATIENT = """import socket


class Patient(socket.socket):
    def settimeout(self, seconds):
        super().settimeout(max(seconds, 120) if seconds else seconds)


socket.socket = Patient
"""


def patient(context):
    """The options of pytest by which the suite's client waits longer, and the folder where their plugin lies."""
    with open(os.path.join(context.folder, "patient.py"), "w", encoding="utf-8") as opened:
        opened.write(PATIENT)
    return ["-p", "patient"], context.folder


def pytest(context, python, folder, tests, pythonpath, *options):
    """In the environment: where the client is, and where its tests look for a server."""
    return ["env", f"PYTHONPATH={pythonpath}", "MEMCACHED_HOST=127.0.0.1", f"MEMCACHED_PORT={port(context)}", python, "-m",
            "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", f"--rootdir={folder}", "-o", "addopts=",
            f"--junitxml={context.folder}/junit.xml", *options, *[os.path.join(folder, test) for test in tests]]


def pymemcache(context):
    pypi = context.tools["pypi"]
    source = str(pypi["pymemcache"])
    return pytest(context, pypi["python"], source, ["pymemcache/test/test_integration.py"], source, "--server=127.0.0.1",
                  f"--port={port(context)}", "--deselect", "pymemcache/test/test_integration.py::test_tls")


def pylibmc(context):
    pypi = context.tools["pypi"]
    folder = copied(pypi["pylibmc"] / "tests", os.path.join(context.folder, "tests"),
                    [(r'memcached_port = "11211"', f'memcached_port = "{port(context)}"')])
    return pytest(context, sys.executable, folder, ["test_client.py", "test_cmemcached.py", "test_pooling.py",
                                                    "test_refcounts.py", "test_serialization.py"], context.folder)


def python_memcached(context):
    pypi = context.tools["pypi"]
    folder = copied(pypi["python-memcached"] / "tests", os.path.join(context.folder, "tests"),
                    [(r"127\.0\.0\.1:11211", context.servers[0])])
    # What its archive leaves out.
    with open(os.path.join(folder, "__init__.py"), "w", encoding="utf-8"):
        pass
    with open(os.path.join(folder, "utils.py"), "w", encoding="utf-8") as opened:
        opened.write("import contextlib\nimport io\n\n\ndef captured_stderr():\n"
                     "    return contextlib.redirect_stderr(io.StringIO())\n")
    options, beside = patient(context)
    return pytest(context, pypi["python"], folder, ["test_memcache.py", "test_setmulti.py"],
                  f"{beside}:{pypi['python-memcached']}", *options)


def python_binary_memcached(context):
    """Its TLS test starts "memcached" itself, with -Z: the daemon under test."""
    pypi = context.tools["pypi"]
    tls = servers.free_port()
    wait = f"while p.poll() is None and socket.socket().connect_ex(('127.0.0.1', {tls})): time.sleep(0.02)"
    folder = copied(pypi["python-binary-memcached"] / "test", os.path.join(context.folder, "tests"),
                    [(r"\b11211\b", port(context)), (r"(\D)5001\b", rf"\g<1>{tls}"), (r"import ssl\n", r"import socket\nimport ssl\n"),
                     (r"time\.sleep\(0\.1\)", wait),
                     (r"/tmp/memcached\.sock", context.servers[0]), (r"yield_fixture", "fixture")])
    options, beside = patient(context)
    return pytest(context, pypi["python"], folder, ["test_simple_functions.py", "test_compression.py", "test_pickler.py",
                                                    "test_tls.py"], f"{folder}:{beside}:{pypi['python-binary-memcached']}", *options)


def gomemcache(context):
    """Beside the server of the suite it starts "memcached" on a UNIX socket and with TLS. Half a second for an answer is
    less than place.py takes on a busy machine."""
    source, env = context.tools["go"]
    folder = copied(source, os.path.join(context.folder, "gomemcache"),
                    [("localhost:11211", context.servers[0]),
                     # The file of a socket is there before the server listens.
                     (r"_, err := os\.Stat\(sock\)", '_, err := net.Dial("unix", sock)'),
                     (r"i < 10; i\+\+", "i < 100; i++"),
                     # What has two seconds to live may be gone after one, as time goes in whole seconds.
                     (r"secondsToExpiry = int32\(2\)", "secondsToExpiry = int32(5)"),
                     (r"s < 3; s\+\+", "s < 7; s++"),
                     # It flushes over a connection of its own, and has to wait until that has happened.
                     (r'(io\.WriteString\(c, "flush_all\\r\\n"\))', r'\g<1>; io.ReadFull(c, make([]byte, 4))'),
                     (r"(DefaultTimeout\s*=\s*)\d+ \* time\.Millisecond", r"\g<1>120 * time.Second")])
    settings = [f"{name}={env[name]}" for name in ("GOPATH", "GOCACHE", "GOFLAGS", "GOTOOLCHAIN")]
    return ["env", *settings, "go", "-C", folder, "test", "-v", "-count=1", "-timeout=30m", "-vet=off", "-run",
            "TestLocalhost|TestUnixSocket|TestTLS", "./memcache/"]


def node_memcached(context):
    modules = context.tools["node"]
    source = modules / "memcached"
    folder = os.path.join(context.folder, "memcached")
    shutil.copytree(source, folder)
    shutil.rmtree(os.path.join(folder, "test"))
    multi = iter(range(1, 3))
    copied(source / "test", os.path.join(folder, "test"),
           [(r"testMemcachedHost \+ ':11211'", f"'{context.servers[0]}'"),
            (r"testMemcachedHost \+ ':1121[23]'", lambda _: f"'{context.servers[next(multi)]}'")])
    tests = sorted(os.path.join(folder, "test", name) for name in os.listdir(os.path.join(folder, "test"))
                   if name.endswith(".test.js") and "connections" not in name)  # those look for hosts that don't answer
    return ["env", f"NODE_PATH={modules}", "node", str(modules / "mocha" / "bin" / "mocha.js"), "--reporter", "tap", "--exit",
            "--require", "should", "--timeout", "300000", *tests]


def memjs(context):
    return ["env", f"NODE_PATH={context.tools['node']}", "node", str(servers.HERE / "node" / "use_memjs.js"), *context.servers,
            *context.setup.words]


def java(program, *options):
    return lambda context: ["java", "-cp", context.tools["java"], "-Xmx256m", program, *context.servers, *options,
                            *context.setup.words]
