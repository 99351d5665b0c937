# SPDX-License-Identifier: BSD-3-Clause
"""Servers under test: started on a free loopback port, pinned to a CPU, asked for their stats, measured and ended by
pid. Their files lie in --dir and are removed with them."""
import contextlib
import ctypes
import math
import mmap
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import time

FLASHIELD, MEMCACHED, EXTSTORE = "flashield", "memcached", "extstore"
MIB = 1 << 20

START_SECONDS = 300  # a flash file is made by writing it, and valgrind makes all of it slower
STOP_SECONDS, STOP_WRAPPED_SECONDS = 10, 60
ANSWER_SECONDS = 60
EXTSTORE_PAGE_MB, EXTSTORE_PAGES_LEAST = 16, 8
PR_SET_PDEATHSIG = 1

libc = ctypes.CDLL(None)


class Trouble(Exception):
    """Something that should have worked did not. The study fails, and the exit status is 2."""


class NotFound(Trouble):
    """A program is not there."""


class WrongValue(Exception):
    """A server returned a value that was never set. The exit status is 1."""


def tell(text):
    print(f"flashield-bench: {text}", file=sys.stderr, flush=True)


def child_setup(cpu=-1):
    """Returns the function that a child runs before its exec: the child dies with the bench, is pinned, and may open
    many files. It has a process group of its own, so that the terminal's SIGINT comes to the bench alone, which ends it
    in order."""
    parent = os.getpid()

    def setup():
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the signal was asked for
            os._exit(1)
        os.setpgid(0, 0)
        if cpu >= 0:
            os.sched_setaffinity(0, {cpu})
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    return setup


class Drive:
    """The control file of the emulated drive: tools/slowdrive/slowdrive.h has its layout. Settings and counters are
    attributes: drive.reads.latency_us = 1000."""
    MAGIC = 0x31767264776f6c73
    FIELDS = ["per_second", "latency_us", "parallel", "hang", "fail_per_mille", "done", "bytes", "failed", "held",
              "held_most"]
    SETTINGS = 5  # the first so many fields

    class Side:
        def __init__(self, words, first):
            self.__dict__.update(words=words, first=first)

        def __getattr__(self, name):
            return self.words[self.first + Drive.FIELDS.index(name)]

        def __setattr__(self, name, value):
            self.words[self.first + Drive.FIELDS.index(name)] = int(value)

    def __init__(self, path):
        self.path = path
        count = 2 + 2 * len(self.FIELDS)
        with open(path, "xb+") as control:
            control.write(struct.pack(f"{count}Q", self.MAGIC, *[0] * (count - 1)))
            control.flush()
            self.words = memoryview(mmap.mmap(control.fileno(), 8 * count)).cast("Q")
        self.reads = self.Side(self.words, 2)
        self.writes = self.Side(self.words, 2 + len(self.FIELDS))

    def attached(self):
        return self.words[1]

    def release(self):
        """Releases all requests that are held."""
        for side in (self.reads, self.writes):
            for name in self.FIELDS[:self.SETTINGS]:
                setattr(side, name, 0)


class Watchdog:
    """The service manager's part: hears when a server says that it is alive."""

    def __init__(self, name, seconds):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.bind("\0" + name)  # no file: nothing is left behind
        self.environment = [f"NOTIFY_SOCKET=@{name}", f"WATCHDOG_USEC={seconds}000000"]
        self.fed = time.monotonic()

    def unfed_seconds(self):
        """Returns for how long it was not fed. This call notices food."""
        with contextlib.suppress(BlockingIOError):
            while message := self.socket.recv(4096):
                if b"WATCHDOG=1" in message.split(b"\n"):
                    self.fed = time.monotonic()
        return time.monotonic() - self.fed


class Server:
    """kind: FLASHIELD, MEMCACHED or EXTSTORE. flash_bytes 0: no flash. extra: further arguments. unpinned: not on
    --cpus. slow_drive: its flash is an emulated drive, server.drive. watchdog_seconds: how often the service manager
    wants to hear of it. wrapper: words before the command, which must exec the server.

    Raises NotFound, or Trouble with its log's end on standard error; nothing is left behind then."""

    def __init__(self, bench, kind, memory_mb, threads=1, flash_bytes=0, extra=(), max_connections=2048, unpinned=False,
                 slow_drive=False, watchdog_seconds=0, wrapper=()):
        self.bench, self.kind, self.memory_mb, self.threads = bench, kind, memory_mb, threads
        self.flash_bytes, self.wrapper = flash_bytes, wrapper
        self.process = self.asked = self.drive = self.watchdog = self.launched = None
        self.pid = 0
        with socket.socket() as held:
            # Bound and not listening: with SO_REUSEADDR on both sides the server may bind the port too, while the
            # kernel gives it to nobody who asks for any port.
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind(("127.0.0.1", 0))
            self.port = held.getsockname()[1]
            base = os.path.join(bench.options.dir, f"bench-{os.getpid()}-{kind}-{self.port}")
            self.log_path, self.drive_path = base + ".log", base + ".drive"
            self.flash_path = base + ".flash" if flash_bytes else ""
            try:
                environment = []
                if slow_drive:
                    self.drive = Drive(self.drive_path)
                    environment += [f"LD_PRELOAD={bench.options.slowdrive}", f"SLOWDRIVE_FILE={self.flash_path}",
                                    f"SLOWDRIVE_CONTROL={self.drive_path}"]
                if watchdog_seconds:
                    self.watchdog = Watchdog(f"flashield-bench-{os.getpid()}-{self.port}", watchdog_seconds)
                    environment += self.watchdog.environment
                command = [*wrapper, *self.command(max_connections), *extra]
                self.launch(command, environment, -1 if unpinned else bench.options.server_cpu)
                self.await_answer()
                self.await_flash()
                if self.drive and self.drive.attached() != self.pid:
                    raise Trouble(f"the emulated drive is not in effect in {kind}")
            except BaseException:
                self.show_log()
                self.kill()
                self.remove_files()
                raise
        name = f"{kind} -t {threads} -m {memory_mb}{' with flash' if flash_bytes else ''}"
        bench.figures.about[name] = " ".join([*environment, *command])

    # ---- life ----

    def command(self, max_connections):
        """Returns the options. Those that flashield takes from memcached mean the same there."""
        options = self.bench.options
        words = [options.daemon if self.kind == FLASHIELD else options.memcached, "-l", "127.0.0.1", "-p", self.port,
                 "-U", 0, "-m", self.memory_mb, "-t", self.threads, "-c", max_connections]
        # Both refuse to run as root unless told whom to become. Staying root keeps the flash file's folder usable, and
        # the kernel forgets PR_SET_PDEATHSIG when a process changes its user.
        if os.geteuid() == 0:
            words += ["-u", "root"]
        if self.kind == FLASHIELD:
            words.append("--metrics-listen=off")
            if self.flash_bytes:
                words += ["--flash-path", self.flash_path, "--flash-size", self.flash_bytes]
        if self.kind == EXTSTORE:
            # What differs from extstore's defaults, and why. Figures: 257 B values, keys of 30 B, filled as fast as it
            # goes, -t 1, memcached 1.6.18.
            # - ext_item_age=0: an object goes to flash as soon as it is cold, not when memory is short. By default all
            #   memory has been given to the values' slab class by the time that the headers of objects on flash need
            #   some, and they evict each other: of 400,000 objects under -m 64 45 % were left, and 4 % were on flash.
            #   With it all 400,000 are on flash, and of 3 M under -m 256 2.23 M, which is as many as there is memory
            #   for headers.
            # - ext_item_size=128 instead of 512, or a value of 257 B would never leave DRAM. It is compared with the
            #   slab class of the whole item: the header that stays in DRAM for each object on flash is 99 B with a key
            #   of 30 B, in chunks of 120 B, and must not be in a class that is searched for objects to write.
            # - ext_page_size=16 instead of 64: extstore keeps a quarter of its pages free and wants several.
            # - ext_threads=1 (the default) stands here so that the report shows it. Studies that want more depth add
            #   ext_threads by `extra`; memcached takes -o several times.
            mb = max(self.flash_bytes >> 20, EXTSTORE_PAGES_LEAST * EXTSTORE_PAGE_MB)
            words += ["-o", f"ext_page_size={EXTSTORE_PAGE_MB},ext_path={self.flash_path}:{mb}m,ext_item_size=128,"
                            "ext_item_age=0,ext_threads=1"]
        return [str(word) for word in words]

    def launch(self, command, environment, cpu):
        self.launched = command, environment, cpu
        with open(self.log_path, "ab") as log:
            try:
                self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                preexec_fn=child_setup(cpu),
                                                env=os.environ | dict(word.split("=", 1) for word in environment))
            except FileNotFoundError as error:
                raise NotFound(f"can't start {command[0]}: {error.strerror}") from error
            except (OSError, subprocess.SubprocessError) as error:
                raise Trouble(f"can't start {command[0]}: {error}") from error
        self.pid = self.process.pid

    def await_answer(self):
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            with contextlib.suppress(ConnectionRefusedError):
                return self.ask("version")
            with contextlib.suppress(subprocess.TimeoutExpired):
                raise Trouble(f"{self.kind} {end_text(self.process.wait(0.002))} before it answered")
        raise Trouble(f"{self.kind} doesn't answer")

    def await_flash(self):
        """Waits for a new flash file: it is made beside what a study would measure."""
        end = time.monotonic() + START_SECONDS
        while self.kind == FLASHIELD and self.stats("flash").get("flash_allocation") == "in progress":
            if time.monotonic() > end:
                raise Trouble("the flash file isn't made")
            time.sleep(0.02)

    def show_log(self):
        with contextlib.suppress(OSError), open(self.log_path, "rb") as log:
            if text := log.read()[-2000:]:
                tell(f"{self.kind} said:\n{text.decode(errors='replace').rstrip()}")

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()

    def remove_files(self):
        self.hang_up()
        if self.watchdog:
            self.watchdog.socket.close()
        for path in (self.flash_path, self.log_path, self.drive_path):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def stop(self):
        """Ends it with SIGTERM, after a while with SIGKILL. Raises Trouble if its exit status was not a clean one."""
        if not self.process:
            return
        self.hang_up()
        if self.drive:
            self.drive.release()
        self.process.terminate()
        try:
            self.process.wait(STOP_WRAPPED_SECONDS if self.wrapper else STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        status = self.process.returncode
        self.process, self.pid = None, 0
        if status != 0:
            self.show_log()
        self.remove_files()
        if status != 0:
            raise Trouble(f"{self.kind} {end_text(status)}")

    def end(self, number):
        """Ends it by a signal, and keeps its files: begin_again() or stop() comes next. Raises Trouble if it ends otherwise."""
        self.hang_up()
        self.process.send_signal(number)
        try:
            status = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise Trouble(f"{self.kind} doesn't end by signal {number}") from None
        if status != (-signal.SIGKILL if number == signal.SIGKILL else 0):
            self.show_log()
            raise Trouble(f"{self.kind} {end_text(status)} behind signal {number}")

    def begin_again(self):
        """Starts it with the same command, and waits until it answers."""
        self.launch(*self.launched)
        self.await_answer()

    def alive(self):
        """A server that has ended is left to stop(), which judges its status."""
        return self.process is not None and self.process.poll() is None

    # ---- asking ----

    def hang_up(self):
        if self.asked:
            self.asked.close()
        self.asked = None

    def ask(self, line):
        """Returns the whole answer to a line. Raises OSError if it broke off; the next question gets a connection of
        its own."""
        try:
            if not self.asked:
                self.asked = socket.create_connection(("127.0.0.1", self.port), ANSWER_SECONDS)
            self.asked.sendall(line.encode() + b"\r\n")
            answer = b""
            while not answer.endswith((b"END\r\n", b"OK\r\n", b"ERROR\r\n")) and not (
                    answer.endswith(b"\n") and answer.startswith((b"VERSION ", b"CLIENT_ERROR", b"SERVER_ERROR"))):
                piece = self.asked.recv(1 << 16)
                if not piece:
                    raise ConnectionResetError("closed by the server")
                answer += piece
            return answer.decode(errors="replace")
        except OSError:
            self.hang_up()
            raise

    def stats(self, group=""):
        """Returns names and texts; none where the server doesn't answer."""
        try:
            answer = self.ask(f"stats {group}".strip())
        except OSError:
            return {}
        words = (line.split(" ", 2) for line in answer.split("\r\n"))
        return {word[1]: word[2] for word in words if word[0] == "STAT" and len(word) == 3}

    def stat(self, group, name):
        """Returns a figure of "stats <group>" ("" is general); NaN when the server has none."""
        try:
            return float(self.stats(group).get(name, "nan"))
        except ValueError:
            return math.nan

    def flash_stat(self, name):
        return self.stat("flash", name)

    # ---- measuring ----

    def cpu_seconds(self):
        """Returns user and system time of all its threads, by the CPU clock that belongs to the pid."""
        try:
            return time.clock_gettime((~self.pid << 3) | 2)
        except OSError:
            return math.nan

    def proc(self, file, name):
        """Returns the number behind "name:" in /proc/PID/<file>; NaN when it can't be read."""
        with contextlib.suppress(OSError), open(f"/proc/{self.pid}/{file}", encoding="ascii") as lines:
            for line in lines:
                if line.startswith(name + ":"):
                    return float(line.split()[1])
        return math.nan

    def resident_mib(self):
        return self.proc("status", "VmRSS") / 1024

    def peak_mib(self):
        return self.proc("status", "VmHWM") / 1024

    def written_bytes(self):
        return self.proc("io", "write_bytes")

    def task_sum(self, figure):
        """Returns the sum of figure(folder of the thread) over its present threads."""
        total = 0
        for task in os.listdir(f"/proc/{self.pid}/task"):
            with contextlib.suppress(OSError, IndexError, ValueError):
                total += figure(f"/proc/{self.pid}/task/{task}")
        return total

    def waited_ns(self):
        """Returns how long its threads could have run but had no CPU."""
        def waited(task):
            with open(f"{task}/schedstat", encoding="ascii") as opened:
                return int(opened.read().split()[1])
        return self.task_sum(waited) if self.alive() else 0

    def sleeps(self):
        """Returns how often its threads went to sleep: their voluntary context switches."""
        def switches(task):
            with open(f"{task}/status", encoding="ascii") as opened:
                return sum(int(line.split()[1]) for line in opened if line.startswith("voluntary_ctxt_switches:"))
        return self.task_sum(switches) if self.alive() else 0

    def drop_cache(self):
        """Drops the page cache of its flash file. Dirty pages can't be dropped, hence the sync. A failure leaves the
        cache warm, which the server's own figures show."""
        with contextlib.suppress(OSError):
            fd = os.open(self.flash_path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(fd)


def end_text(status):
    return f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
