# SPDX-License-Identifier: BSD-3-Clause
"""The suites: a row says what it needs, which daemons it talks to, how it is run and how its tests are counted."""
import os
import sys

import counting
import credentials
import fetch
import servers
import upstream
from suite import Setup, Suite

HERE = servers.HERE
# With a password nobody else can ask how many hits were on flash; and which of three servers has a key says nothing of where it lies there.
ONLY_DRAM = ("dram",)


def drop_in(folder, place):
    """The environment in which "memcached" is the daemon under test, for suites that start it themselves."""
    bin_folder = os.path.join(folder, "bin")
    os.mkdir(bin_folder)
    wrapper = os.path.join(bin_folder, "memcached")
    user = " -u root" if os.geteuid() == 0 else ""  # it has to read keys that the suite has made for itself
    with open(wrapper, "w", encoding="utf-8") as opened:
        beside = "".join(" " + option for option in servers.Beside.options(place))
        opened.write(f'#!/bin/sh\nexec {servers.program_of(place)}{user} "$@"{beside}\n')
    os.chmod(wrapper, 0o755)
    return {"PATH": bin_folder + os.pathsep + os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}


def script(path, *options):
    """A script of ours in this folder, which gets the servers' addresses."""
    interpreter = {".py": [sys.executable], ".php": ["php"], ".rb": ["ruby"], ".sh": ["bash"]}[os.path.splitext(path)[1]]
    return lambda context: [*interpreter, str(HERE / path), *context.servers, *options, *context.setup.words]


def capable(option):
    def command(context):
        port = context.servers[0].rsplit(":", 1)[1]
        return ["memccapable", "-h", "127.0.0.1", "-p", port, "-t", "300", option]
    return command


TLS_STALLS = "memcached 1.6.18 waits for the socket while OpenSSL holds requests: pipelines above a TLS record of 16 KiB stall"

def as_release(version):
    """For a client that a later memcached breaks, too."""
    return lambda _folder, place: Setup(["--compat-version", version] if place in servers.MEMCACHED else [])


# memccapable wants an error for words too many behind a delete, which memcached ignores since 1.6.40. It sets, counts and reads at once: of what it sets, little moves meanwhile.
LIBMEMCACHED = [
    Suite("memccapable ascii", capable("-a"), counting.memccapable, [fetch.memccapable], setup=as_release("1.6.39")),
    Suite("memccapable binary", capable("-b"), counting.memccapable, [fetch.memccapable]),
    Suite("libmemcached tools text", script("python/libmemcached_tools.py"), needs=[fetch.memccapable]),
    Suite("libmemcached tools binary", script("python/libmemcached_tools.py", "--binary"), needs=[fetch.memccapable]),
]

PYTHON = [
    Suite("pymemcache", script("python/use_pymemcache.py"), needs=[fetch.pymemcache]),
    Suite("pymemcache three servers", script("python/use_pymemcache.py"), needs=[fetch.pymemcache], servers=3,
          places=ONLY_DRAM),
    Suite("pymemcache TLS", script("python/use_pymemcache.py"), needs=[fetch.pymemcache, fetch.openssl],
          setup=credentials.tls, not_plain=TLS_STALLS),
    Suite("pylibmc text", script("python/use_pylibmc.py"), needs=[fetch.pylibmc]),
    Suite("pylibmc text ketama", script("python/use_pylibmc.py"), needs=[fetch.pylibmc], servers=3,
          places=ONLY_DRAM),
    Suite("pylibmc binary", script("python/use_pylibmc.py", "--binary"), needs=[fetch.pylibmc]),
    Suite("pylibmc binary ketama", script("python/use_pylibmc.py", "--binary"), needs=[fetch.pylibmc], servers=3,
          places=ONLY_DRAM),
    Suite("pylibmc SASL", script("python/use_pylibmc.py", "--binary"), needs=[fetch.pylibmc, fetch.sasl],
          setup=credentials.sasl, places=ONLY_DRAM),
    Suite("python-memcached", script("python/use_python_memcached.py"), needs=[fetch.python_memcached]),
    Suite("python-memcached three servers", script("python/use_python_memcached.py"), needs=[fetch.python_memcached],
          servers=3, places=ONLY_DRAM),
    Suite("python-binary-memcached", script("python/use_bmemcached.py"), needs=[fetch.bmemcached]),
    Suite("python-binary-memcached TLS", script("python/use_bmemcached.py"), needs=[fetch.bmemcached, fetch.openssl],
          setup=credentials.tls, not_plain=TLS_STALLS),
    Suite("python-binary-memcached SASL", script("python/use_bmemcached.py"), needs=[fetch.bmemcached, fetch.sasl],
          setup=credentials.sasl, places=ONLY_DRAM),
]

OTHERS = [
    Suite("php-memcached text", script("php/use_memcached.php"), needs=[fetch.php]),
    Suite("php-memcached text three servers", script("php/use_memcached.php"), needs=[fetch.php], servers=3,
          places=ONLY_DRAM),
    Suite("php-memcached binary", script("php/use_memcached.php", "--binary"), needs=[fetch.php]),
    Suite("php-memcached binary three servers", script("php/use_memcached.php", "--binary"), needs=[fetch.php], servers=3,
          places=ONLY_DRAM),
    Suite("php-memcached SASL", script("php/use_memcached.php", "--binary"), needs=[fetch.php, fetch.sasl],
          setup=credentials.sasl, places=ONLY_DRAM),
    Suite("dalli", script("ruby/use_dalli.rb"), needs=[fetch.dalli]),
    Suite("dalli three servers", script("ruby/use_dalli.rb"), needs=[fetch.dalli], servers=3,
          places=ONLY_DRAM),
    Suite("dalli SASL", script("ruby/use_dalli.rb"), needs=[fetch.dalli, fetch.sasl], setup=credentials.sasl,
          places=ONLY_DRAM),
]

AGENTS = [
    # Debian's takes the OK before a dump, which memcached has since 1.6.43, for one of the keys of its limit.
    Suite("memcached-tool", script("python/memcached_tool.py"), needs=[fetch.memcached_tool, fetch.pymemcache], setup=as_release("1.6.42")),
    Suite("exporters", script("python/exporters.py"), needs=[fetch.pymemcache]),
]

APPLICATIONS = [
    Suite("Django over TLS", script("python/django_app.py"), needs=[fetch.django, fetch.openssl], setup=credentials.tls),
    Suite("PHP sessions text", script("python/php_sessions.py"), needs=[fetch.php]),
    Suite("PHP sessions binary", script("python/php_sessions.py", "--binary"), needs=[fetch.php]),
]

# Toolchains and registries that a plain Debian lacks: skipped with a line where they aren't.
ELSEWHERE = [
    Suite("pymemcache's own", upstream.pymemcache, counting.junit, [fetch.pypi]),
    Suite("pylibmc's own", upstream.pylibmc, counting.junit, [fetch.pylibmc, fetch.pypi]),
    Suite("python-memcached's own", upstream.python_memcached, counting.junit, [fetch.pypi]),
    Suite("python-binary-memcached's own", upstream.python_binary_memcached, counting.junit, [fetch.bmemcached, fetch.pypi]),
    # It lets objects expire within two seconds and touches them meanwhile: place.py holds requests up for as long.
    Suite("gomemcache's own", upstream.gomemcache, counting.go, [fetch.go], places=ONLY_DRAM),
    Suite("node memcached's own", upstream.node_memcached, counting.tap, [fetch.node], servers=3),
    Suite("memjs", upstream.memjs, needs=[fetch.node]),
    Suite("memjs SASL", upstream.memjs, needs=[fetch.node, fetch.sasl], setup=credentials.sasl, places=ONLY_DRAM),
    Suite("spymemcached text", upstream.java("UseSpymemcached"), needs=[fetch.java]),
    Suite("spymemcached binary", upstream.java("UseSpymemcached", "--binary"), needs=[fetch.java]),
    Suite("spymemcached SASL", upstream.java("UseSpymemcached", "--binary"), needs=[fetch.java, fetch.sasl],
          setup=credentials.sasl, places=ONLY_DRAM),
    Suite("xmemcached text", upstream.java("UseXmemcached"), needs=[fetch.java]),
    Suite("xmemcached binary", upstream.java("UseXmemcached", "--binary"), needs=[fetch.java]),
]

SUITES = ELSEWHERE + LIBMEMCACHED + PYTHON + OTHERS + AGENTS + APPLICATIONS
