# SPDX-License-Identifier: BSD-3-Clause
"""Study "restart": the hit ratio of a replayed trace just before and just behind a restart."""
import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time

from figures import NAN, ratio
from flash_fill import flash_hits
from server import EXTSTORE, FLASHIELD, MEMCACHED, MIB, Trouble, WrongValue, tell
from study import study
from study_sim import answer_of, beside

MILLION = 1000000
WARM, WINDOW = 3 * MILLION, MILLION // 5  # requests: until the restart, and in each window
COPIES = 8  # of the trace, each at another hour, so that neighbouring windows are alike
MEMORY_MB, FLASH_BYTES = 64, 192 * MIB
SHARED = "/dev/shm"
STARTS_LATER = 1.1  # memcached -e starts empty in the very second in which it was stopped

# Server, arguments ({state} and {region} are folders of its own), and the signal that ends it; None: it goes on.
CONTENDERS = {
    "flashield, goes on": (FLASHIELD, ["--state-dir={state}", "--region-dir={region}"], None),
    "flashield, clean stop": (FLASHIELD, ["--state-dir={state}"], signal.SIGTERM),
    "flashield, kill -9": (FLASHIELD, ["--state-dir={state}", "--region-dir={region}"], signal.SIGKILL),
    "memcached with extstore": (EXTSTORE, [], signal.SIGUSR1),
    "memcached -e": (MEMCACHED, ["-e", "{region}/memory"], signal.SIGUSR1),
}


@contextlib.contextmanager
def own_folders(folder):
    shared = SHARED if os.access(SHARED, os.W_OK) else folder
    with tempfile.TemporaryDirectory(dir=folder) as state, tempfile.TemporaryDirectory(prefix="bench-restart-", dir=shared) as region:
        yield {"state": state, "region": region}


class Window:
    """A part of the trace that was played, in percent of its gets."""

    def __init__(self, s, server, trace, skip, limit):
        flash = flash_hits(server)
        command = [beside("flashield-replay"), "--server", f"127.0.0.1:{server.port}", "--skip", str(skip), "--limit", str(limit),
                   "--copies", str(COPIES), "--json", "-", "--quiet", trace]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode == 1 and server.kind == FLASHIELD:
            tell(f"{s.name}: {done.stderr.strip()}")
            raise WrongValue(s.name)
        if done.returncode not in (0, 1):
            raise Trouble(f"flashield-replay: {done.stderr.strip()}")
        run = json.loads(done.stdout)
        if done.returncode:
            s.note(f"{server.kind}: {run['values']['older']} older and {run['values']['wrong']} wrong values.")
        self.seconds = run["measured_seconds"]
        self.hit = 100 * ratio(run["hits"], run["gets"])
        self.flash = 100 * ratio(flash_hits(server) - flash, run["gets"])


def measure(s, row, trace, folders):
    kind, extra, end = CONTENDERS[row]
    extra = [word.format(**folders) for word in extra]
    warm, window = s.scaled(WARM, 1000), s.scaled(WINDOW, 100)
    with s.serving(kind, memory_mb=MEMORY_MB, flash_bytes=0 if kind == MEMCACHED else FLASH_BYTES, extra=extra) as server:
        if not server:
            return
        Window(s, server, trace, 0, warm - window)
        before = Window(s, server, trace, warm - window, window)
        stop_s = start_s = NAN
        if end:
            began = time.monotonic()
            server.end(end)
            stop_s = time.monotonic() - began
            time.sleep(STARTS_LATER if kind == MEMCACHED else 0)
            began = time.monotonic()
            server.begin_again()
            start_s = time.monotonic() - began
        behind = Window(s, server, trace, warm, window)
        s.add(row, before_hit=before.hit, behind_hit=behind.hit, hit_share=100 * ratio(behind.hit, before.hit),
              before_flash=before.flash, behind_flash=behind.flash, flash_share=100 * ratio(behind.flash, before.flash),
              stop_ms=1000 * stop_s, start_ms=1000 * start_s, window_s=behind.seconds)


def targets(s):
    s.target("hit ratio behind a clean stop against before", s.median("flashield, clean stop", "hit_share"), "%", at_least=98)
    s.target("hits from flash behind a kill against before", s.median("flashield, kill -9", "flash_share"), "%", at_least=95)
    for row in CONTENDERS:
        s.beside(f"hit ratio: {row}", s.median(row, "hit_share"), "%")


@study("restart", "a replayed trace over a restart, beside memcached with extstore and with -e")
def restart(s):
    window = s.scaled(WINDOW, 100)
    s.describe("A replayed trace over a restart",
               f"Hits in percent of gets, in the {window} requests before and behind a restart, as fast as one client with 8 "
               f"connections plays them, behind a warm-up of {s.scaled(WARM, 1000) - window} requests. {COPIES} copies of the trace, "
               f"each at another hour; -m {MEMORY_MB}, flash of {FLASH_BYTES // MIB} MiB. stop: from the signal to the end of the "
               "process; start: from there to the first answer. The server that goes on shows how the trace itself changes.",
               {"before_hit": ("hits before %", 2), "behind_hit": ("behind %", 2), "hit_share": ("share %", 1),
                "before_flash": ("from flash before %", 2), "behind_flash": ("behind %", 2), "flash_share": ("share %", 1),
                "stop_ms": ("stop ms", 0), "start_ms": ("start ms", 0), "window_s": ("window s", 1)}, sampled=False)
    trace = s.options.trace
    with tempfile.TemporaryDirectory(prefix="bench-restart-", dir=s.options.dir) as folder:
        if not trace:
            trace = os.path.join(folder, "trace.csv")
            s.progress("restart: making a trace")
            answer_of([beside("flashield-tracegen"), "--requests", str(s.scaled(WARM, 1000)), "--no-fit", "--quiet", "--output",
                       trace])
        for _ in s.rounds():
            for row in CONTENDERS:
                with own_folders(folder) as folders:
                    measure(s, row, trace, folders)
    targets(s)
