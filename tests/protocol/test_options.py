# SPDX-License-Identifier: BSD-3-Clause
"""The command line, beside memcached's: the same words get the same answer, exit code, or settings.

What differs on purpose stands in tests/compare/intended.py, with its reason; each is tested to differ still.
"""
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys

import pytest

from helpers import PATIENCE, Client, as_memcached, flashield_command, free_port, memcached_command, memcached_release, memcached_version, until

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "compare"))
import intended
from intended import REFUSED, TAKEN

USER = ["-u", "nobody"] if os.geteuid() == 0 else []
# Ends ours after all options have been read and found good, as -V does memcached.
STOP_OURS = ["--flash-path=f", "--flash-size=1m", "--segment-size=512k"]
STOPPED = "--segment-size: 512k is more than a quarter of --flash-size, which is 1m\n"

SWITCHES = ("maxconns_fast no_maxconns_fast no_hashexpand slab_reassign no_slab_reassign no_slab_automove lru_crawler "
            "no_lru_crawler lru_maintainer no_lru_maintainer no_chunked_items track_sizes modern no_modern "
            "inline_ascii_resp no_inline_ascii_resp drop_privileges no_drop_privileges ssl_session_cache ssl_kernel_tls "
            "ext_drop_unread slab_automove").split()
NUMBERS = ("hashpower slab_automove slab_automove_ratio slab_automove_window slab_automove_freeratio tail_repair_time "
           "lru_crawler_sleep lru_crawler_tocrawl hot_lru_pct warm_lru_pct hot_max_factor warm_max_factor temporary_ttl "
           "idle_timeout watcher_logbuf_size read_buf_mem_limit ssl_keyformat ssl_verify_mode ssl_wbuf_size "
           "ssl_min_version ext_page_size ext_wbuf_size ext_threads ext_io_depth ext_item_size ext_item_age ext_low_ttl "
           "ext_recache_rate ext_compact_under ext_drop_under ext_max_frag ext_max_sleep").split()
TEXTS = "hash_algorithm ssl_chain_cert ssl_key ssl_ciphers ssl_ca_cert".split()
UNKNOWN = "nonsense no_track_sizes no_ssl_session_cache proxy_config proxy_uring no_ext_drop_unread temp_lru".split()
VALUES = ["", "=", "=x", "=0", "=1", "=-1", "=5x", "=0.5", "=2", "=3", "=4", "=12", "=33", "=79", "=80", "=1000001"]

# Read and refused, or read and found good, one word at a time.
WORDS = ([["-o", name + value] for name in NUMBERS for value in VALUES]
         + [["-o", name + value] for name in SWITCHES for value in ("", "=", "=x")]
         + [["-o", name + value] for name in TEXTS + UNKNOWN for value in ("", "=", "=x", "=xxh3")]
         + [["-o", word] for word in (
             "", ",", "modern,", "modern,,", "modern,nonsense=1,hashpower", "hashpower=20,track_sizes", "no_modern,modern",
             "resp_obj_mem_limit", "ext_path", "ext_path=", "ext_path=/f", "ext_path=/f:", "ext_path=:1g",
             "ext_path=/f:1g:attic", "ext_path=/f:1g:compact", "ext_path=/f:1g:default:x", "ext_path=/f:64m",
             "ext_path=/f:1G", "ext_path=/f:1t", "ext_path=/f:1P", "ext_path=/f:1g:", "ext_path=/f:1g:default",
             "ext_path=/f:128m,ext_page_size=8", "ext_page_size=8,ext_path=/f:128m", "ext_path=/a:1g,ext_path=/b:1g",
             "temporary_ttl=-1")]
         + [[flag, value] for flag in ("-t", "-c", "-R", "-f") for value in ("", "x", "0", "-0", "00", "1", "2", "10")
            if (flag, value) != ("-f", "")]
         + [["-n", value] for value in ("x", "0", "1", "48", "100000")]
         + [["-N", value] for value in ("x", "0", "1")]
         + [["-B", value] for value in ("", "x", "auto", "ascii", "binary", "auto-negotiate")]
         + [["-D", value] for value in ("", ":", "ab", " :")]
         + [["-m", value] for value in (" 8192", "+64", "\t64", "64 ", "512Mi", "100x")]
         + [["-I", value] for value in (" 2m", "+2m", "2000000b", "5m ")]
         + [["-c", value] for value in (" 16384", "+7", "16384.0", "7x")]
         + [["-t", value] for value in (" 4", "4x", "300")] + [["-a", value] for value in (" 0777", "0777x")]
         + [["-f", value] for value in (" 1.25", "1.25x")] + [["-b", " 7"], ["-R", "7x"], ["-n", " 48"], ["-p", " 7"], ["-U", "0x"]]
         + [["-m 8192"], ["-I 5m"], ["-c 16384"], ["--memory-limit= 64"]]
         + [[word] for word in (
             "-A", "-C", "-F", "-L", "-M", "-S", "-W", "-X", "-Z", "-d", "-k", "-r", "-v", "-vv", "-vvv", "-vvvvv", "-kLrM",
             "-z", "-vz", "-Mz", "--z", "--nonsense", "--nonsense=5", "--enable-shutdown", "--enable-ssl", "--enable-sasl",
             "--enable-largepages", "--enable-coredumps", "--disable-cas", "--disable-evictions", "--disable-flush-all",
             "--disable-dumping", "--disable-watch", "--lock-memory", "--daemon", "--verbose", "--verbose=3", "--verb",
             "--conn-limit=7", "--conn=7", "--max-reqs-per-event=7", "--listen-backlog=0", "--threads=3",
             "--unix-mask=0777", "--unix-socket=/s", "--pidfile=/p", "--port=-1", "--port=0", "--udp-port=0", "--listen=::1",
             "--memory-limit=100", "--max-item-size=1k", "--max-item-size=2m", "--slab-growth-factor=1.1",
             "--slab-min-size=9", "--protocol=ascii", "--auth-file=/f", "--memory-file=/f", "--napi-ids=2",
             "--extended=modern", "--user=x", "-p5", "-l::1", "-tx", "-t0", "--threads=0", "extra")])

# The last word lacks its argument.
LACKING = ["-p", "-s", "-o", "-D", "-t", "-vt", "--port", "--listen", "--extended", "--thr"]

# Options that don't go together, or are judged when all are known.
TOGETHER = [words.split() for words in (
    "-m 1", "-I 33m", "-m 100 -I 64m", "-I 0", "-I 1023", "-I x", "-I 1025m -m 4096",
    "-S -B ascii", "-S -B auto", "-B ascii -S", "-S -U 5", "-Y /f -B binary", "-Y /f -B auto", "-N 5", "-t 2 -N 3",
    "-o hot_lru_pct=50", "-o hot_lru_pct=60,warm_lru_pct=21", "-o no_lru_maintainer,temporary_ttl=5",
    "-o no_modern,temporary_ttl=5", "-o slab_chunk_max=1000", "-o slab_chunk_max=1048577",
    "-o slab_chunk_max=2097152", "-I 2m -o slab_chunk_max=3145728",
    "-o slab_sizes=47-100", "-o slab_sizes=100-524289", "-o slab_sizes=200-100", "-o slab_sizes=100-100",
    "-o slab_sizes=96-104", "-o slab_sizes=x", "-o slab_sizes=96-x")]

# Both serve, and "stats settings" answers the same.
SERVED = [words.split() for words in (
    "",
    "-v -M -C -F -X -W -A",
    "-vv", "-vvvv",
    "-m 2048 -I 8m -c 500 -t 2 -R 7 -b 7",
    "-m 100 -I 512k -b 100000",
    "-f 1.07 -n 100 -D ab",
    "-a 0777 -B ascii",
    "-l 127.0.0.2 -t 3",
    "-o no_modern",
    "-o no_maxconns_fast,idle_timeout=5,track_sizes,hashpower=20,no_hashexpand,tail_repair_time=10",
    "-o slab_automove=2,slab_automove_ratio=0.99,slab_automove_window=3,slab_automove_freeratio=0.5,no_slab_reassign",
    "-o hash_algorithm=xxh3,lru_crawler_sleep=1000000,lru_crawler_tocrawl=4294967295,hot_lru_pct=1,warm_lru_pct=79",
    "-o hot_max_factor=0.125,warm_max_factor=99.999,temporary_ttl=-1x",
    "-o idle_timeout=-1,temporary_ttl=,slab_automove=,lru_crawler_sleep=9x",
    "-o watcher_logbuf_size=1,worker_logbuf_size=128,read_buf_mem_limit=3",
    "-o no_chunked_items -I 2m", "-o slab_chunk_max=16384", "-o slab_sizes=100-200-300,no_slab_automove",
    "-o ssl_chain_cert=c,ssl_key=k,ssl_keyformat=2,ssl_verify_mode=3,ssl_ciphers=a:b,ssl_ca_cert=d,ssl_wbuf_size=8",
    "-o ssl_session_cache,ssl_kernel_tls,ssl_min_version=3", "-o ssl_min_version=0",
    "-o ext_item_size=1,ext_item_age=2,ext_low_ttl=3,ext_recache_rate=4,ext_wbuf_size=8,ext_compact_under=5",
    "-o ext_drop_under=6,ext_max_sleep=7,ext_max_frag=0.125,ext_drop_unread,ext_threads=2,ext_io_depth=3",
    "-o ext_page_size=8,ext_path=@/e:128m", "-o ext_page_size=8,ext_path=@/e:256m,ext_drop_under=9 -o modern",
    "-o no_lru_maintainer -o no_lru_crawler", "-e @/memory")] + [
        # One word with a blank, as some charts write it, and what atoi cuts off.
        ["-m 2048", "-I 5m", "-c 500"], ["-m", "512Mi", "-c", "500.0", "-t", "+2", "-R", "7x", "-b 9", "-a 0777"]]

# What is said or done otherwise, with its entry of the list.
# The intended difference "chunks in bytes": releases from then on want KiB, and say so whatever else is wrong.
CHUNKS_IN_BYTES = "slab_chunk_max=1048577", "slab_chunk_max=2097152", "slab_chunk_max=3145728", "slab_chunk_max=16384"

DIFFERENT = [(words, expected, entry) for entry in intended.LIST for words, expected in entry.options]


def without_bytes(cases):
    """The cases but for those whose chunks this memcached takes for KiB."""
    return [words for words in cases if not (intended.INTENDED["chunks in bytes"].applies(memcached_release()) and
                                             any(word in CHUNKS_IN_BYTES for word in words))]


def same_in_memcached(words):
    """Words in which nothing of the file system matters; -V goes last, as memcached reads in order."""
    return subprocess.run([memcached_command(), *words, "-V"], capture_output=True, text=True, timeout=PATIENCE, check=False)


def ours(words):
    return subprocess.run([flashield_command(), *as_memcached(), *words, *STOP_OURS], capture_output=True, text=True, timeout=PATIENCE,
                          check=False)


def neutral(text):
    """Without the programs' names, without our warnings, and without the upper bound that a line of ours and of later releases names."""
    for command in memcached_command(), flashield_command():
        text = text.replace(f"{command}: ", "")
    text = text.replace("slab_automove_window must be > 2 and < 1800", "slab_automove_window must be > 2")
    return "".join(line for line in text.splitlines(True) if not re.match(r"([\d:.TZ-]+ )?warning: |DEPRECATED: ", line))


def answer(done):
    """(exit code, what it says); (0, "") when the options are good."""
    good = (done.returncode, done.stdout) == (0, f"memcached {memcached_version()}\n") or done.stderr.endswith(STOPPED)
    return (0, "") if good else (done.returncode, neutral(done.stderr))


@pytest.fixture(autouse=True, scope="module")
def needs_memcached():
    if not shutil.which(memcached_command()):
        pytest.skip("memcached is not installed")


def compare(cases, run_theirs, run_ours):
    different = []
    for words in cases:
        theirs, mine = run_theirs(words), run_ours(words)
        if theirs != mine:
            different.append((words, "memcached", theirs, "ours", mine))
    assert not different
    return len(cases)


def test_words():
    """Each flag and suboption with good and bad values: the same error line and exit code, or none."""
    listed = [words.split() for words, _, _ in DIFFERENT]
    cases = [words for words in WORDS if words not in listed]
    assert compare(cases, lambda words: answer(same_in_memcached(words)), lambda words: answer(ours(words))) > 600


def test_lacking_arguments():
    """The last word wants an argument."""
    def run(command, words):
        done = subprocess.run([command, *words], capture_output=True, text=True, timeout=PATIENCE, check=False)
        return done.returncode, neutral(done.stderr)
    compare([[word] for word in LACKING], lambda words: run(memcached_command(), words),
            lambda words: run(flashield_command(), words))


def test_ambiguous():
    """getopt's words; the order of the possibilities is our own."""
    done = ours(["--disable"])
    theirs = same_in_memcached(["--disable"])
    assert done.returncode == theirs.returncode == 1
    assert sorted(neutral(done.stderr).split()) == sorted(neutral(theirs.stderr).split())


def test_together():
    """Options that don't go together end the start in the same words."""
    def run(command, words, compat=()):
        done = subprocess.run([command, *compat, *USER, "-l", "127.0.0.1", "-p", str(free_port()), *words], capture_output=True,
                              text=True, timeout=PATIENCE, check=False)
        assert done.returncode > 0, words
        return done.returncode, neutral(done.stderr)
    compare(without_bytes(TOGETHER), lambda words: run(memcached_command(), words), lambda words: run(flashield_command(), words, as_memcached()))


@pytest.mark.parametrize("value", ["0", "x"])
def test_memory_limit_is_refused_in_own_words(value):
    """memcached tells of half of a limit that was not given; ours has its exit code, and tells what -m takes."""
    mine = ours(["-m", value])
    with subprocess.Popen([memcached_command(), *USER, "-l", "127.0.0.1", *port_for("-m"), "-m", value],
                          stderr=subprocess.PIPE, text=True) as process:
        theirs = process.communicate(timeout=PATIENCE)[1]
    assert mine.returncode == process.returncode == 64
    assert mine.stderr == f'-m/--memory-limit: "{value}" is not a size from 1m to 1p, in MiB or with a suffix k m g t p\n'
    assert "1/2 of memory max" in theirs


@pytest.mark.parametrize("words, expected, entry", DIFFERENT, ids=[words for words, _, _ in DIFFERENT])
def test_intended_differences(words, expected, entry, open_folder):
    """Ours does as the list says, and memcached still doesn't."""
    words = words.replace("@", str(open_folder)).replace("=/f:", f"={open_folder}/f:")
    mine = answer(ours(words.split()))
    assert (REFUSED if mine[0] else TAKEN) == expected, entry.reason
    with subprocess.Popen([memcached_command(), *USER, "-l", "127.0.0.1", *port_for(words), *words.split()],
                          stderr=subprocess.PIPE, text=True) as process:
        theirs = ends_or_serves(process)
    if entry.name == "crashes":
        assert process.returncode < 0 or not entry.applies(memcached_release())
    else:
        assert (theirs != expected) == entry.applies(memcached_release())


def port_for(words):
    return [] if words.startswith("-p") else ["-p", str(free_port())]


def ends_or_serves(process):
    """Does it end by itself, or does it get to the point of listening?"""
    try:
        until(lambda: process.poll() is not None or listens(process.pid), "its end, or a socket")
        return REFUSED if process.poll() is not None else TAKEN
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def listens(pid):
    """Has the process a socket that listens?"""
    try:
        inodes = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    except OSError:
        return False
    listening = set()
    for name in "tcp", "tcp6", "udp", "udp6":
        with open(f"/proc/net/{name}", encoding="ascii") as table:
            listening |= {f"socket:[{row.split()[9]}]" for row in table if row.split()[3] in ("0A", "07")}
    return bool(inodes & listening)


def settings(command, words, port):
    """The rows of "stats settings" of a daemon that is ended again."""
    host = "127.0.0.2" if "127.0.0.2" in words else "127.0.0.1"
    with subprocess.Popen([command, *USER, "-p", str(port), *([] if "-l" in words else ["-l", host]), *words],
                          stderr=subprocess.DEVNULL) as process:
        try:
            with until(lambda: connect(process, host, port), f"an answer of {command} {words}") as client:
                client.send(b"stats settings\r\n")
                rows = []
                while (line := client.line()) != b"END\r\n":
                    assert line.startswith(b"STAT "), line
                    rows.append(line.decode())
        finally:
            process.kill()
    return rows


def connect(process, host, port):
    assert process.poll() is None, f"it ended with {process.returncode}"
    try:
        with socket.create_connection((host, port), PATIENCE):
            pass
        return OnHost(host, port)
    except OSError:
        return None


class OnHost(Client):
    """A client of another address than 127.0.0.1."""

    def __init__(self, host, port):  # pylint: disable=super-init-not-called
        self.socket = socket.create_connection((host, port), PATIENCE)
        self.reader = self.socket.makefile("rb")


@pytest.mark.parametrize("words", SERVED, ids=[" ".join(words) or "none" for words in SERVED])
def test_settings(words, open_folder):
    """memcached's rows, in its order, with its values; ours follow with other names."""
    if not without_bytes([words]):
        pytest.skip("this memcached takes the size of chunks for KiB")
    words, port = [word.replace("@", str(open_folder)) for word in words], free_port()
    theirs = settings(memcached_command(), words, port)
    for path in open_folder.iterdir():
        path.unlink()
    mine = settings(flashield_command(), [*as_memcached(), *words], port)
    assert mine[:len(theirs)] == theirs
    names = [row.split()[1] for row in mine]
    assert len(set(names)) == len(names)
    assert "flash_path" in names[len(theirs):]
