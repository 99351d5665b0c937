#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""memcached's own tests (t/*.t) with our daemon in the place of memcached-debug.

    run.py [--release newest|debian] [--place dram|flash|full] [--only REGEX] [--theirs] [--wrong N]

--release names whose tests: those of the newest version, or those of Debian 12's; ours answers as that version does. --place says
how each daemon is started beyond the options of the test: as it is (dram), with a flash, or with -m 8 and the memory filled with
others' objects before the test begins (full). memcached itself fails some tests then: it is run too, and what fails with both is
told as such.

A line for each file: "PASS getset.t: passed 2049 failed 0", or with failures that tests/compare/intended.py lists: "PASS lru.t:
passed 131 failed 0, 18 intended (CLOCK)". Exit code 1 if another test fails, if a listed one doesn't (but for intended.ByChance), or if a file ends
early: the first run of a file counts. LATE is a file of which nothing failed, but which had not ended in its time; the next line is the command that
runs it alone. --wrong N changes each Nth result of ours to a failure, which must be told.
--theirs runs them with memcached-debug itself. FLASHIELD_BIN names the daemon.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "compare"), str(HERE.parent / "protocol")]

import intended
import source
from helpers import flashield_command, version_of
from wallclock import library_in

WORDS = {intended.ENDS, intended.NOT_RUN, intended.WITHOUT_EXTSTORE}
FILE_SECONDS = 300  # of a hang: the slowest takes 30
AT_A_TIME = 4  # most of them sleep
HANGS = "hangs"

# They are about the text of the tree, or a build of memcached's proxy.
LEFT_OUT = re.compile(r"proxy|whitespace|line-lengths")
ENVIRONMENT = {"ssl_": {"SSL_TEST": "1"}, "binary-sasl": {"RUN_SASL_TESTS": "1"}}

LINE = re.compile(r"^(not ok|ok)\b *(\d+)?(?: - )?(.*)$", re.MULTILINE)
PLAN = re.compile(r"^1\.\.(\d+)", re.MULTILINE)

# Time moves by a file, as an unmodified daemon has no command for that. And a file may be told that there is no extstore.
OVERLAY = r"""
{
    no warnings 'redefine';
    *mem_move_time = sub {
        my ($sock, $move) = @_;
        open(my $clock, '+<:raw', $ENV{WALLCLOCK_FILE}) or die "$ENV{WALLCLOCK_FILE}: $!";
        read($clock, my $ahead, 8);
        seek($clock, 0, 0);
        print $clock pack('q', unpack('q', $ahead) + $move);
        close($clock);
    };
    my $supports = \&supports_extstore;
    *supports_extstore = sub { return $ENV{WITHOUT_EXTSTORE} ? 0 : $supports->() };
}

1;
"""

# Fills what a test has started with objects of many sizes until some are evicted, and then as many again; the counters begin anew
# behind it. Left alone is what has its own size of memory, wants a login or a certificate, or evicts nothing.
FILLS = r"""
{
    no warnings 'redefine';
    my $start = \&new_memcached;
    *new_memcached = sub {
        my ($args, @more) = @_;
        my $handle = $start->($args, @more);
        return $handle if enabled_tls_testing() or ($args // '') =~ /(?:^| )-(?:m|M|S|Y|Z|B)|-l \S*tls|memory-file|-e /;
        my $sock = $handle->new_sock or return $handle;
        my $count = 0;
        while ($count < 30000) {
            for (1 .. 20) {  # more at once, and memcached waits for one to read answers who waits for it to take sets
                my $sets = '';
                for (1 .. 20) {
                    my $size = 100 + ++$count * 37 % 4000;
                    $sets .= "set others:$count 0 0 $size\r\n" . 'x' x $size . "\r\n";
                }
                print $sock $sets;
                <$sock> for 1 .. 20;
            }
            last if mem_stats($sock)->{evictions} >= $count / 2;
        }
        print $sock "stats reset\r\n";
        <$sock>;
        print $sock "quit\r\n";
        <$sock>;
        return $handle;
    };
}

1;
"""

WRAPPER = """#!/bin/sh
if [ -n "$WALLCLOCK_FILE" ]; then
    export LD_PRELOAD={library}
fi
case "$*" in
    *ext_path*) exec {daemon} {options} "$@" ;;
esac
exec {daemon} {options} {place} "$@"
"""

# The flash is each daemon's own, in the folder of the test's file. All objects may go there, so that those which memory has no room for do.
FLASH = "--flash-path=$FLASH_FOLDER/flash-$$ --flash-size=64m --segment-size=256k --admission=all"
PLACES = {"dram": "", "flash": FLASH, "full": "-m 8"}

# A network of its own for each file, where that is allowed: some tests want ports that others have.
LONELY = """
import fcntl, os, socket, struct, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
    fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 0x41))  # SIOCSIFFLAGS: up, running
os.execvp(sys.argv[1], sys.argv[1:])
"""


def alone(command):
    for how in (["unshare", "-n"], ["unshare", "-r", "-n"]):
        whole = [*how, sys.executable, "-c", LONELY]
        if shutil.which("unshare") and subprocess.run([*whole, "true"], capture_output=True, check=False).returncode == 0:
            return [*whole, *command]
    return command


def add_to_module(folder, perl):
    """Puts it behind the functions of MemcachedTest.pm, before its next package."""
    module = folder / "t" / "lib" / "MemcachedTest.pm"
    head, package, rest = module.read_text().partition("\n####################")
    assert package and head.rstrip().endswith(("}", "1;")), "MemcachedTest.pm looks otherwise than expected"
    module.write_text(head + perl.replace("\n1;\n", "") + package + rest)


def make_folder(tree, folder, place, version):
    """A folder that looks like memcached's after its make, with the tests and one daemon: ours, as that version, or memcached."""
    shutil.copytree(tree / "t", folder / "t")
    for name in ("timedrun", "sizes", "testapp"):
        shutil.copy2(tree / name, folder / name)
    for name in ("memcached", "memcached-debug"):
        if version:
            (folder / name).write_text(WRAPPER.format(library=library_in(folder), daemon=flashield_command(), place=PLACES[place],
                                                      options=f"--metrics-listen=off --compat-version={version}"))
        else:
            (folder / name).write_text(f'#!/bin/sh\nexec {tree / name} {PLACES[place] if place == "full" else ""} "$@"\n')
        (folder / name).chmod(0o755)
    if version:
        add_to_module(folder, OVERLAY)
    if place == "full":
        add_to_module(folder, FILLS)


def run_file(folder, name, theirs, listed):
    """(exit code, output)."""
    flash = folder / f"flash-{name}"
    flash.mkdir()
    env = dict(os.environ, TMPDIR=str(folder), FLASH_FOLDER=str(flash))
    if any(intended.WITHOUT_EXTSTORE in patterns for _, patterns in listed):
        env["WITHOUT_EXTSTORE"] = "1"
    for prefix, more in ENVIRONMENT.items():
        env.update(more if name.startswith(prefix) else {})
    if not theirs and b"mem_move_time" in (folder / "t" / name).read_bytes():
        clock = folder / f"clock-{name}"
        clock.write_bytes(bytes(8))
        env.update(WALLCLOCK_FILE=str(clock), WALLCLOCK_BOOT="1")
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(alone(["perl", "-I", "t/lib", f"t/{name}"]), cwd=folder, env=env, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = process.wait(FILE_SECONDS)
        except subprocess.TimeoutExpired:
            code = -1
        try:
            os.killpg(process.pid, signal.SIGKILL)  # daemons that it has left behind
        except ProcessLookupError:
            pass
        process.wait()
        output.seek(0)
        shutil.rmtree(flash)
        return code, output.read()


class Result:
    """What a file's output says, beside what is listed for it. With a reference, memcached's own result in the same place, what fails
    there too is told apart."""

    def __init__(self, name, code, output, listed, reference=None):
        found = LINE.findall(output)
        self.name, self.output = name, output
        self.passed = sum(word == "ok" for word, _, _ in found)
        self.failed = [f"{number} {what}".strip() for word, number, what in found if word != "ok"]
        plan = PLAN.search(output)
        self.early = code == -1 or not plan or int(plan.group(1)) != len(found)
        self.skipped = bool(plan) and plan.group(1) == "0"
        self.excuses = {}  # entry: how many
        self.with_both = 0
        self.wrong = []
        for test in self.failed:
            entry = next((entry for entry, patterns in listed if any(re.search(p, test) for p in set(patterns) - WORDS)), None)
            if reference and test in reference.failed:
                self.with_both += 1
            elif entry:
                self.excuses[entry] = self.excuses.get(entry, 0) + 1
            else:
                self.wrong.append(f"fails: {test}")
        ends = [entry for entry, patterns in listed if intended.ENDS in patterns]
        if self.early and reference and reference.early:
            self.with_both += 1
        elif self.early and ends:
            self.excuses[ends[0]] = self.excuses.get(ends[0], 0)
        elif self.early:
            self.wrong.append(HANGS if code == -1 else f"ends early: {len(found)} tests")
        elif ends:
            self.wrong.append(f"ends as it should, though '{ends[0]}' lists that it doesn't")
        for entry, patterns in listed:
            self.wrong += [f"'{entry}' lists {pattern}, which doesn't fail" for pattern in patterns
                           if pattern not in WORDS and not isinstance(pattern, intended.ByChance) and
                           not any(re.search(pattern, test) for test in self.failed)]

    def is_late(self):
        """Has nothing gone wrong but that it had not ended in its time?"""
        return self.wrong == [HANGS]

    def line(self):
        if self.skipped:
            return f"SKIP {self.name}: {self.output.strip().splitlines()[-1]}"
        excused = sum(self.excuses.values())
        rest = f", {excused} intended ({', '.join(self.excuses)})" if self.excuses else ""
        both = f", {self.with_both} with memcached too" if self.with_both else ""
        word = "PASS" if not self.wrong else "LATE" if self.is_late() else "FAIL"
        return f"{word} {self.name}: passed {self.passed} failed {len(self.wrong)}{rest}{both}"

    def tell(self, again):
        print(self.line(), flush=True)
        if self.wrong:
            print(f"  again: {again} --only {shlex.quote(f'^{re.escape(self.name)}$')}\n" + "".join(f"  {wrong}\n" for wrong in self.wrong) + "  ...\n" +
                  "".join(f"  {line}\n" for line in self.output.splitlines()[-12:]), end="", flush=True)


class Run:
    """All files with one daemon: ours, when there is a version that it answers as, or memcached."""

    def __init__(self, tree, folder, place, version, listed, again="", falsify=lambda output, listed: output):
        self.folder, self.theirs, self.listed, self.again, self.falsify = folder, not version, listed, again, falsify
        self.references = {}
        make_folder(tree, folder, place, version)

    def result(self, name):
        listed = self.listed.get(name, [])
        code, output = run_file(self.folder, name, self.theirs, listed)
        return Result(name, code, self.falsify(output, listed), listed, self.references.get(name))

    def results(self, names):
        results = []
        with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
            for result in pool.map(self.result, names):
                results.append(result)
                result.tell(self.again)
        return results


class Falsifier:
    """Changes each Nth result of all files that nothing excuses to a failure."""

    def __init__(self, one_in):
        self.one_in, self.count, self.changed, self.lock = one_in, 0, 0, threading.Lock()

    def __call__(self, output, listed):
        excuses = [pattern for _, patterns in listed for pattern in set(patterns) - WORDS]

        def result(found):
            with self.lock:
                self.count += 1
                if self.count % self.one_in or found.group(1) != "ok" or \
                        any(re.search(excuse, f"{found.group(2)} {found.group(3)}") for excuse in excuses):
                    return found.group(0)
                self.changed += 1
            return f"not {found.group(0)} CHANGED"

        return LINE.sub(result, output)

    def tell(self, results):
        told = sum(wrong.endswith("CHANGED") for result in results for wrong in result.wrong)
        print(f"{'PASS' if told == self.changed > 0 else 'FAIL'} changed results: {told} of {self.changed} were told")
        return int(told != self.changed or not told)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--release", choices=list(source.VERSIONS), default="newest")
    parser.add_argument("--place", choices=list(PLACES), default="dram")
    parser.add_argument("--only", default="")
    parser.add_argument("--theirs", action="store_true")
    parser.add_argument("--wrong", type=int, metavar="N", help="change each Nth result of ours to a failure, which must be told")
    arguments = parser.parse_args()
    try:
        tree = source.built(arguments.release)
    except source.Missing as why:
        print(f"SKIP memcached's own tests: {why}")
        return 0
    version = version_of(str(tree / "memcached"))
    names = sorted(path.name for path in (tree / "t").glob("*.t")
                   if not LEFT_OUT.search(path.name) and re.search(arguments.only, path.name))
    listed = {} if arguments.theirs else intended.upstream(int(version.split(".")[2]), arguments.release, arguments.place)
    not_run = [name for name in names if any(intended.NOT_RUN in patterns for _, patterns in listed.get(name, []))]
    names = [name for name in names if name not in not_run]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        folder.chmod(0o777)
        again = shlex.join(["tests/upstream/run.py", "--release", arguments.release, "--place", arguments.place])
        falsifier = Falsifier(arguments.wrong) if arguments.wrong else None
        run = Run(tree, folder / "tree", arguments.place, None if arguments.theirs else version, listed, again,
                  *([falsifier] if falsifier else []))
        if arguments.place == "full" and not arguments.theirs:
            theirs = Run(tree, folder / "theirs", arguments.place, None, {})
            with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
                run.references = {result.name: result for result in pool.map(theirs.result, names)}
        results = run.results(names)
    if falsifier:
        return falsifier.tell(results)
    for name in not_run:
        print(f"SKIP {name}: " + "; ".join(f"{entry}: {intended.INTENDED[entry].reason}" for entry, _ in listed[name]))
    print(f"{'memcached' if arguments.theirs else 'ours as'} {version}, {arguments.place}: {len(results)} files, "
          f"{sum(result.passed for result in results)} passed, {sum(len(result.wrong) for result in results)} failed, "
          f"{sum(sum(result.excuses.values()) for result in results)} failures intended, "
          f"{sum(result.with_both for result in results)} with memcached too")
    return 1 if any(result.wrong for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
