# SPDX-License-Identifier: BSD-3-Clause
"""Fresh systems of Debian or Ubuntu in folders, and networks of their own, which are gone when this process is.

All of it lies in a mount namespace and on a tmpfs: whatever ends the process, no mount and no file is left.
"""
import contextlib
import ctypes
import fcntl
import hashlib
import os
import socket
import stat
import struct
import subprocess
import urllib.request

CLONE_NEWNET = 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
COMMAND_SECONDS = 900

# Contents that belong to no package's life: mounted, or kept by apt and dpkg of any package.
NOT_COMPARED = ("/proc", "/sys", "/dev", "/run", "/tmp", "/var/tmp", "/var/log", "/var/cache/apt", "/var/cache/ldconfig",
                "/var/cache/debconf", "/var/lib/apt", "/var/lib/dpkg/status", "/var/lib/dpkg/available",
                "/var/lib/dpkg/lock", "/var/lib/dpkg/triggers", "/var/lib/dpkg/info/format", "/srv", "/etc/.pwd.lock")

MAKE_BASE = """
if [ -e "$2" ]; then
	exec tar -C "$1" --numeric-owner --xattrs --xattrs-include='*' -xpf "$2"
fi
debootstrap --variant=minbase --components="$5" --keyring="$6" "$3" "$1" "$4" $7
rm -f "${2%-*}"-*.tar*
tar -C "$1" --numeric-owner --xattrs --xattrs-include='*' -cf "$2.$$" .
mv "$2.$$" "$2"
"""

libc = ctypes.CDLL(None, use_errno=True)


def mount(source, target, kind, options="", flags=()):
    os.makedirs(target, exist_ok=True)
    subprocess.run(["mount", *flags, *(["-t", kind] if kind else []), *(["-o", options] if options else []),
                    source, target], check=True, capture_output=True, text=True)


def debootstrap(release, folder, kept, log):
    """Starts it; the caller waits for the process. The same index of a release makes the same system: it is kept as an
    archive in the folder "kept", and unpacked the next time."""
    with urllib.request.urlopen(release.index(), timeout=60) as index:
        archive = os.path.join(kept, f"base-{release.name}-{hashlib.sha256(index.read()).hexdigest()[:16]}.tar")
    os.makedirs(folder)
    os.makedirs(kept, exist_ok=True)
    return subprocess.Popen(["sh", "-euc", MAKE_BASE, "sh", folder, archive, release.name, release.mirror, release.components,
                             release.find_keyring(os.path.join(os.path.dirname(folder), "keyring")), release.script],
                            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)


class Network:
    """A network namespace with loopback alone: the default ports are free there, whatever the machine runs."""

    def __init__(self):
        self.outside = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        if libc.unshare(CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        self.inside = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            request = struct.pack("16sh14x", b"lo", 0)
            flags = struct.unpack("16sh14x", fcntl.ioctl(control, SIOCGIFFLAGS, request))[1]
            fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))
        self.enter(self.outside)

    @staticmethod
    def enter(fd):
        if libc.setns(fd, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")

    @contextlib.contextmanager
    def entered(self):
        self.enter(self.inside)
        try:
            yield
        finally:
            self.enter(self.outside)

    def close(self):
        os.close(self.inside)
        os.close(self.outside)


class System:
    """A fresh system over the bootstrapped one, which stays as it is."""

    def __init__(self, work, name, base):
        folder = os.path.join(work, name)
        self.root = os.path.join(folder, "root")
        for part in ("upper", "work"):
            os.makedirs(os.path.join(folder, part))
        mount("overlay", self.root, "overlay", f"lowerdir={base},upperdir={folder}/upper,workdir={folder}/work")
        mount("proc", self.path("/proc"), "proc")
        mount("tmpfs", self.path("/run"), "tmpfs", "mode=755,size=64m")
        mount("/sys", self.path("/sys"), None, flags=["--rbind"])
        self.network = Network()

    def path(self, inside):
        return self.root + inside

    def read(self, inside):
        with open(self.path(inside), encoding="utf-8") as opened:
            return opened.read()

    def write(self, inside, text):
        with open(self.path(inside), "w", encoding="utf-8") as opened:
            opened.write(text)

    def exists(self, inside):
        return os.path.lexists(self.path(inside))

    def run(self, *command, env=None, seconds=COMMAND_SECONDS):
        """(exit code, output) of a command as root, with the machine's network."""
        clean = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive",
                 "HOME": "/root", **(env or {})}
        for name in ("http_proxy", "https_proxy"):
            if name in os.environ:
                clean.setdefault(name, os.environ[name])
        try:
            done = subprocess.run(["chroot", self.root, *command], env=clean, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                  timeout=seconds)
        except subprocess.TimeoutExpired as late:
            return 124, f"{late.output or ''}\nended after {seconds} s"
        return done.returncode, done.stdout

    def apt(self, *words):
        """apt-get as unattended upgrades call it: nobody is asked, an operator's configuration stays."""
        return self.run("apt-get", "-q", "-y", "--no-install-recommends", "-o", "APT::Sandbox::User=root",
                        "-o", "Dpkg::Use-Pty=0", "-o", "Dpkg::Options::=--force-confdef",
                        "-o", "Dpkg::Options::=--force-confold", *words)

    def contents(self):
        """What is where: a path and all that a purge would have to restore of it."""
        found = {}
        for folder, folders, names in os.walk(self.root):
            inside = folder[len(self.root):]
            folders[:] = [f for f in folders if not f"{inside}/{f}".startswith(NOT_COMPARED)]
            for name in folders + names:
                path = f"{inside}/{name}"
                if not path.startswith(NOT_COMPARED):
                    found[path] = describe(self.path(path))
        return found

    def close(self):
        self.network.close()
        subprocess.run(["umount", "-R", "-l", self.root], check=False, capture_output=True)


def describe(path):
    info = os.lstat(path)
    text = f"{stat.filemode(info.st_mode)} {info.st_uid}:{info.st_gid}"
    if stat.S_ISLNK(info.st_mode):
        return f"{text} -> {os.readlink(path)}"
    if stat.S_ISREG(info.st_mode):
        with open(path, "rb") as opened:
            return f"{text} {hashlib.sha1(opened.read()).hexdigest()}"
    return text
