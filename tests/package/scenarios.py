# SPDX-License-Identifier: BSD-3-Clause
"""What is done with the package in a fresh system; each scenario has one of its own."""
import os
import re
import shutil
import subprocess
import tempfile
import time

import dockerfile
import package
from package import CONF
from scenario_booted import booted  # noqa: F401 (found by its name)
from scenario_shown import shown  # noqa: F401
from service import UNIT, Service, Unit

NAMES = ["life", "port_taken", "image", "booted"]
ASKED = ["shown"]  # run when they are named
IMAGE_RELEASE = "bookworm"  # of packaging/Dockerfile
IMAGE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # as in images of Debian
DEB = "/srv/flashield.deb"
STATE = "/var/lib/flashield"
OPERATORS = "# the operator was here\nlisten = 127.0.0.1\nport = 11300\nmemory-limit = 32m\n"
FLASH_FREE = 10 << 30  # on the disk, for the default flash file to be made
MAKING_SECONDS = 600  # a bound for what hangs

# Each must be there, whatever else there is.
SHIPPED = ["/usr/bin/flashield", "/usr/bin/flashield-record", "/usr/bin/flashield-dump", "/usr/bin/flashield-load",
           "/usr/bin/flashield-replay", "/usr/bin/flashield-tracegen", "/usr/bin/flashield-inspect",
           "/usr/bin/flashield-bench", "/usr/bin/flashield-sim", "/usr/bin/flashield-admin", "/usr/bin/flashield-top", "/usr/share/man/man8/flashield.8.gz",
           "/usr/share/man/man5/flashield.conf.5.gz", "/usr/share/man/man1/flashield-top.1.gz", "/usr/share/man/man1/flashield-admin.1.gz",
           CONF, "/usr/lib/sysusers.d/flashield.conf", "/etc/apparmor.d/flashield",
           "/usr/share/bash-completion/completions/flashield", "/usr/share/doc/flashield/examples/flashield.conf",
           "/usr/share/doc/flashield/copyright"]


def names(release):
    """The scenarios that run when none is named."""
    return [name for name in NAMES if name != "image" or release.name == IMAGE_RELEASE]


def packages(report, folder, release):
    """The files that "make deb" has made."""
    deb, symbols = package.find(folder), package.find(folder, "flashield-dbgsym")
    if release.is_here():
        lint(report, folder, deb, symbols)
    version = package.field(deb, "Version")
    report.check("its version names the release", re.search(r"\+[a-z]+[0-9.]+$", version), version)
    with tempfile.TemporaryDirectory() as work:
        look_inside(report, work, deb, symbols)


def lint(report, folder, deb, symbols):
    changes = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", "--no-cfg", deb, symbols,
                              *[os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".dsc")]],
                             capture_output=True, text=True, check=False)
    said = "\n".join(line for line in (changes.stdout + changes.stderr).splitlines() if "root privileges" not in line)
    report.check("lintian is silent", changes.returncode == 0 and not said.strip(), said)


def look_inside(report, work, deb, symbols):
    subprocess.run(["dpkg-deb", "-x", deb, f"{work}/deb"], check=True)
    subprocess.run(["dpkg-deb", "-x", symbols, f"{work}/symbols"], check=True)
    programs = [f"{work}/deb/usr/bin/{name}" for name in os.listdir(f"{work}/deb/usr/bin")
                if name not in ("flashield-bench", "flashield-sim")]  # Python, and a program beside each
    programs += [f"{work}/deb/usr/lib/flashield/flashield-{tool}-worker" for tool in ("bench", "sim")]
    missing = [program for program in programs
               if not os.path.exists(f"{work}/symbols/usr/lib/debug/.build-id/{package.build_id(program)}")]
    report.check("flashield-dbgsym has the symbols of every program", programs and not missing, missing)
    profile = subprocess.run(["apparmor_parser", "-Q", "-K", f"{work}/deb/etc/apparmor.d/flashield"],
                             capture_output=True, text=True, check=False)
    report.check("the AppArmor profile parses", profile.returncode == 0, profile.stderr)
    units = f"{work}/deb{package.units(deb)}"
    asked = [name for name in os.listdir(units)
             if name.endswith(".service") and "AppArmorProfile=-flashield" not in read(f"{units}/{name}")]
    report.check("the units ask for the profile by its name", not asked, asked)


def read(path):
    with open(path, encoding="utf-8") as opened:
        return opened.read()


def install(report, system, deb, what):
    shutil.copy(deb, system.path(DEB))
    code, output = system.apt("install", "--allow-downgrades", DEB)
    report.need(what, code == 0, output)
    return output


def life(report, system, folder):
    """Installed, used, upgraded, removed, installed again, purged."""
    deb = package.find(folder)
    report.need("package lists are fetched", system.apt("update")[0] == 0)
    needs = f"{package.field(deb, 'Pre-Depends')}, {package.field(deb, 'Depends')}".strip(", ")
    code, output = system.apt("satisfy", needs)
    report.need("what it depends on is in Debian", code == 0, output)
    shutil.copy(deb, system.path(DEB))
    before = system.contents()

    install(report, system, deb, "installs where no systemd runs")
    check_files(report, system)
    first_start(report, system)
    flash_on_disk(report, system, folder)
    completion(report, system)
    tools(report, system)

    upgrade(report, system, deb)
    code, output = system.apt("remove", "flashield")
    report.check("removes", code == 0 and not system.exists("/usr/bin/flashield"), output)
    report.check("removal keeps configuration and state", system.read(CONF) == OPERATORS and system.exists(f"{STATE}/kept"))
    install(report, system, deb, "installs again, an older version too")
    report.check("the operator's configuration is still there", system.read(CONF) == OPERATORS)
    purge(report, system, before)
    install(report, system, deb, "installs again after a purge")
    code, output = system.run("dpkg", "-V", "flashield")
    report.check("and is as it was made", code == 0 and not output.strip(), output)


def check_files(report, system):
    listed = system.run("dpkg", "-L", "flashield")[1].splitlines()
    folder = package.units(system.path(DEB))
    missing = [path for path in [*SHIPPED, f"{folder}/flashield.service"] if path not in listed]
    report.check("what belongs into it is there", not missing, missing)
    units = [path for path in listed if path.startswith(f"{folder}/flashield")]
    report.check("the units' program and configuration are there",
                 units and all(word in listed for word in Unit(system.read(UNIT)).command() if word.startswith("/")), units)
    code, output = system.run("dpkg", "-V", "flashield")
    report.check("files are as they were made (dpkg -V)", code == 0 and not output.strip(), output)
    user = system.run("getent", "passwd", "flashield")[1].strip().split(":")
    report.check("there is a system user without a shell",
                 len(user) == 7 and int(user[2]) < 1000 and user[6].endswith("nologin"), user)
    info = os.stat(system.path(CONF))
    report.check("the configuration is root's, and may be read by the service",
                 info.st_uid == 0 and info.st_mode & 0o777 == 0o644, oct(info.st_mode))


def use(report, service, what, port=11211):
    version = service.ready(port)[0]
    report.check(f"{what}: answers from outside", version.startswith("VERSION "), version)
    answer = service.ask("set k 0 0 5\r\nvalue", "get k", port=port)
    report.check(f"{what}: keeps a value", answer == ["VALUE k 0 5", "value", "END"], answer)


def first_start(report, system):
    """With the packaged configuration, in the chroot's own file system: less than 8 GiB are free there."""
    with Service(system) as service:
        use(report, service, "first start")
        flash = service.stats("flash")
        report.check("too little is free for the flash file: memory alone", not system.exists(f"{STATE}/flash"), flash)
        report.check("and it says so", "free" in service.log(), service.log())
        with service.system.network.entered():
            listening = subprocess.run(["ss", "-Hltn"], capture_output=True, text=True, check=False).stdout
        addresses = [line.split()[3] for line in listening.splitlines()]
        report.check("it listens on loopback alone",
                     addresses and all(a.startswith(("127.0.0.1:", "[::1]:")) for a in addresses), listening)
        metrics = service.scrape()
        report.check("/metrics answers where the documentation says", "flashield_" in metrics, metrics[:500])
        code = service.stop()
        report.check("SIGTERM ends it with 0", code == 0, f"{code}\n{service.log()}")


def flash_on_disk(report, system, folder):
    """The same with a disk below the state directory."""
    if shutil.disk_usage(folder).free < FLASH_FREE:
        report.skip("flash file on a disk", "less than 10 GiB are free here")
        return
    with tempfile.TemporaryDirectory(dir=folder, prefix="state-") as disk:
        os.chmod(disk, 0o755)
        subprocess.run(["mount", "--bind", disk, system.path(STATE)], check=True)
        try:
            with Service(system) as service:
                use(report, service, "start on a disk")
                path = system.path(f"{STATE}/flash")
                end = time.monotonic() + MAKING_SECONDS
                while time.monotonic() < end and (not os.path.exists(path) or os.path.getsize(path) < 4 << 30):
                    time.sleep(0.2)  # it is made while the daemon serves
                size = os.path.getsize(path) if os.path.exists(path) else 0
                report.check("8 GiB are free: a flash file of 4 GiB is made", size == 4 << 30, f"{size}\n{service.log()}")
                service.stop()
                code, output = system.run("flashield-inspect", f"{STATE}/flash")
                report.check("flashield-inspect reads it", code == 0, output)
        finally:
            subprocess.run(["umount", system.path(STATE)], check=True)


def completion(report, system):
    """Bash's, as the shell would call it."""
    def complete(*words):
        script = ". /usr/share/bash-completion/completions/flashield; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); " \
                 "compopt() { :; }; case $1 in flashield) _flashield $1;; *) _flashield_tool $1;; esac; " \
                 "printf '%s\\n' \"${COMPREPLY[@]}\""
        return sorted(system.run("bash", "-c", script, "bash", *words)[1].split())
    wanted = [(("flashield", "--adm"), ["--admission"]), (("flashield", "--admission", "=", "s"), ["second-hit", "svm"]),
              (("flashield", "-B", ""), ["ascii", "auto", "binary"]), (("flashield", "--user", "flash"), ["flashield"]),
              (("flashield", "-o", "ssl_chain"), ["ssl_chain_cert="]), (("flashield", "--no-such", "="), []),
              (("flashield-replay", "--ware"), []), (("flashield-replay", "--warm"), ["--warmup"]),
              (("flashield-replay", "--mode", "l"), ["literal", "look-aside"])]
    wrong = [(words, got) for words, want in wanted if (got := complete(*words)) != want]
    report.check("bash completes options and their words", not wrong, wrong)
    told = {word for word in system.run("flashield", "--help")[1].replace("=", " ").replace(",", " ").split()
            if word.startswith("--") and word[2:3].isalpha()}
    known = set(complete("flashield", "--"))
    report.check("bash completes what --help lists", known and known <= told and len(known) > 40, known ^ told)


def tools(report, system):
    """A generated trace is played against the service."""
    code, output = system.run("flashield-tracegen", "--requests", "20k", "--quiet", "--output", "/run/trace.csv")
    report.check("flashield-tracegen makes a trace", code == 0, output)
    with Service(system) as service:
        service.ready()
        with system.network.entered():
            code, output = system.run("flashield-replay", "--quiet", "/run/trace.csv")
        report.check("flashield-replay plays it without a wrong value", code == 0, output)


def upgrade(report, system, deb):
    os.makedirs(system.path(STATE), exist_ok=True)
    system.write(f"{STATE}/kept", "state\n")
    with tempfile.TemporaryDirectory() as work:
        later, version = package.later_version(deb, work)
        install(report, system, later, "upgrades")
        report.check("an unchanged configuration follows the package", "later version" in system.read(CONF))
        install(report, system, deb, "goes back to the older version")
        system.write(CONF, OPERATORS)
        output = install(report, system, later, "upgrades beside a changed configuration")
        installed = system.run("dpkg-query", "-W", "-f", "${Version}", "flashield")[1]
        report.check("to the later version", installed == version, output)
    report.check("the operator's configuration survives", system.read(CONF) == OPERATORS)
    with Service(system) as service:
        use(report, service, "with the operator's configuration", 11300)
        service.stop()


def purge(report, system, before):
    code, output = system.apt("purge", "flashield")
    report.check("purges", code == 0, output)
    after = system.contents()
    # The user stays, as Debian does it: files elsewhere may be its.
    changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path)
                     and path.rstrip("-") not in ("/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow"))
    report.check("nothing is left", not changed, "\n".join(changed))


def port_taken(report, system, folder):
    """memcached has the port, and a systemd is there that doesn't answer."""
    report.need("package lists are fetched", system.apt("update")[0] == 0)
    code, output = system.apt("install", "memcached")
    report.need("memcached installs", code == 0, output)
    os.makedirs(system.path("/run/systemd/system"))
    with Service(system, ["memcached", "-u", "memcache", "-l", "127.0.0.1"], "memcache") as memcached:
        memcached.ready()
        output = install(report, system, package.find(folder), "installs while memcached has the port, and systemd is deaf")
        with Service(system) as service:
            code = service.wait()
            log = service.log()
        report.check("the start fails", code != 0, code)
        report.check("and names who has the port", "11211" in log and "memcached" in log, log)
        report.check("memcached is left alone", memcached.ask("version")[0].startswith("VERSION "))
        memcached.stop()
    with Service(system) as service:
        use(report, service, "after memcached has gone")
        service.stop()
    code, output = system.apt("purge", "flashield")
    report.check("purges while systemd is deaf", code == 0, output)


def image(report, system, folder):
    """The last stage of the Dockerfile, step by step."""
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    stage = dockerfile.last_stage(read(os.path.join(top, "packaging", "Dockerfile")))
    for name, argument in stage:
        if name == "COPY":
            source, target = argument.split()[-2:]
            shutil.copy(package.find(folder) if source.endswith(".deb") else os.path.join(top, source.removeprefix("/src/")),
                        system.path(target))
        elif name == "RUN":
            code, output = system.run("sh", "-c", argument)
            report.need(f"RUN {' '.join(argument.split())[:60]}...", code == 0, output)
    user = next(argument for name, argument in stage if name == "USER")
    report.check("it runs as the user of memcached's image", user == "11211:11211", user)
    words = dockerfile.command(stage, "ENTRYPOINT") + dockerfile.command(stage, "CMD")
    health = dockerfile.command(stage, "HEALTHCHECK")
    path = {"PATH": IMAGE_PATH}
    code, output = system.run(*words, "bash", "-c", "echo a shell", env=path)
    report.check("another command is run", (code, output) == (0, "a shell\n"), output)
    code, output = system.run("memcached", "-V", env=path)
    report.check("memcached is one of its commands", code == 0 and "memcached 1.6." in output, output)
    for what, more, read_only in (("as memcached's image", ["memcached", "-m", "64"], False),
                                  ("a read-only root and a chart's options", ["-m 64", "-I 5m", "-v", "-u 11211"], True)):
        with Service(system, words + more, user, path, read_only) as service:
            use(report, service, what)
            code = service.stop()
            report.check(f"{what}: SIGTERM ends it with 0", code == 0, f"{code}\n{service.log()}")
            report.check(f"{what}: it says so where nothing can be kept", read_only == ("nothing outlives a stop" in service.log()),
                         service.log())
    with Service(system, words, user, path) as service:
        use(report, service, "without a word")
        metrics = service.scrape()
        report.check("/metrics answers", "flashield_" in metrics, metrics[:500])
        with system.network.entered():
            code, output = system.run(*health)
        report.check("HEALTHCHECK says healthy", code == 0, output)
        code = service.stop()
        report.check("SIGTERM ends it with 0", code == 0, f"{code}\n{service.log()}")
    with system.network.entered():
        code, output = system.run(*health)
    report.check("HEALTHCHECK says unhealthy when it has gone", code != 0, output)
