# SPDX-License-Identifier: BSD-3-Clause
"""An arm64 machine in software (qemu-system-aarch64): Debian's kernel, a file system in memory, two drives of virtio.

Run in the cross system (cross.py): machine.py FOLDER PACKAGE BUILT KERNEL TEST...
FOLDER is made for the images and removed; PACKAGE and KERNEL are packages for arm64, unpacked; BUILT has the unit tests and
model_client. It prints what the machine prints, a line for each check (work.sh).
"""
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
LIBRARIES = ("/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu")
MODULES = ("virtio_mmio", "virtio_pci", "virtio_blk", "crc32c_generic", "libcrc32c", "ext4", "loop")
# An Armv8.2 with atomic instructions, as many servers have it.
CPU = "neoverse-n1"
MACHINE = ["-machine", "virt", "-cpu", CPU, "-smp", "2", "-m", "2048", "-accel", "tcg,thread=multi", "-nographic", "-no-reboot",
           "-nodefaults", "-serial", "stdio"]
SECONDS = 4800  # a bound for what hangs
FILES = ["tests/unit/segments/golden.hex"]
DISK_BYTES, DRIVE_BYTES = 2 << 30, 64 << 20


def needed(program):
    """Names of the shared libraries that a program or a library asks for."""
    said = subprocess.run(["aarch64-linux-gnu-readelf", "-d", program], check=True, capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", said)


def copy_libraries(programs, to):
    """All libraries below the programs, and the dynamic loader."""
    wanted, seen = {"ld-linux-aarch64.so.1"}, set()
    for program in programs:
        wanted.update(needed(program))
    while wanted - seen:
        name = (wanted - seen).pop()
        seen.add(name)
        path = next(os.path.join(folder, name) for folder in LIBRARIES if os.path.exists(os.path.join(folder, name)))
        shutil.copy(path, os.path.join(to, name))
        wanted.update(needed(path))


def copy_modules(kernel, to):
    """The modules and what they depend on, in an order in which they can be loaded."""
    root = next(root for root in (pathlib.Path(kernel), pathlib.Path(kernel, "usr")) if (root / "lib/modules").exists())
    base = next((root / "lib/modules").iterdir())
    subprocess.run(["depmod", "-b", root, base.name], check=True)
    lines = [line.split() for line in (base / "modules.dep").read_text(encoding="utf-8").splitlines()]
    below = {line[0].rstrip(":"): line[1:] for line in lines}
    order = []
    for module in MODULES:
        path = next((p for p in below if os.path.basename(p).removesuffix(".xz") == f"{module}.ko"), None)
        for one in [*reversed(below[path]), path] if path else []:  # without a path: it is part of the kernel
            if one not in order:
                order.append(one)
    names = []
    for one in order:
        names.append(os.path.basename(one).removesuffix(".xz"))
        packed = (base / one).read_bytes()
        pathlib.Path(to, names[-1]).write_bytes(lzma.decompress(packed) if one.endswith(".xz") else packed)
    pathlib.Path(to, "order").write_text("".join(f"{name}\n" for name in names), encoding="utf-8")


def make_root(folder, package, built, kernel, tests):
    root = os.path.join(folder, "root")
    for name in ("bin", "lib", "modules", "tests", "proc", "sys", "dev", "run", "srv", "etc", "tmp"):
        os.makedirs(os.path.join(root, name))
    pathlib.Path(root, "etc/passwd").write_text("root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n", encoding="utf-8")
    pathlib.Path(root, "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n", encoding="utf-8")
    shutil.copy("/bin/busybox", os.path.join(root, "bin/busybox"))
    shutil.copy(os.path.join(HERE, "init.sh"), os.path.join(root, "init"))
    os.chmod(os.path.join(root, "init"), 0o755)
    shutil.copy(os.path.join(HERE, "work.sh"), os.path.join(root, "work.sh"))
    copy_modules(kernel, os.path.join(root, "modules"))
    programs = [(os.path.join(package, "usr/bin/flashield"), os.path.join(root, "bin/flashield")),
                (os.path.join(built, "model_client"), os.path.join(root, "bin/model_client"))]
    programs += [(os.path.join(built, "tests", name), os.path.join(root, "tests", name)) for name in tests]
    for program, copy in programs:
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        subprocess.run(["aarch64-linux-gnu-strip", "-o", copy, program], check=True)
    for name in FILES:  # where the tests look for them, from the top folder
        os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
        shutil.copy(os.path.join(TOP, name), os.path.join(root, name))
    pathlib.Path(root, "tests/list").write_text("".join(f"{name}\n" for name in tests), encoding="utf-8")
    copy_libraries([program for program, _ in programs], os.path.join(root, "lib"))
    return root


def main():
    folder, package, built, kernel, *tests = sys.argv[1:]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    root = make_root(folder, package, built, kernel, tests)
    image = os.path.join(folder, "initramfs")
    with open(image, "wb") as opened:
        subprocess.run("find . | cpio -o -H newc --quiet | gzip -1", shell=True, cwd=root, stdout=opened, check=True)
    shutil.rmtree(root)
    disk, drive = os.path.join(folder, "disk"), os.path.join(folder, "drive")
    for path, size in ((disk, DISK_BYTES), (drive, DRIVE_BYTES)):
        with open(path, "wb") as opened:
            opened.truncate(size)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", disk], check=True)
    command = ["qemu-system-aarch64", *MACHINE, "-kernel", *map(str, pathlib.Path(kernel, "boot").glob("vmlinuz-*")), "-initrd", image,
               "-append", "console=ttyAMA0 rdinit=/init quiet panic=-1"]
    for number, path in enumerate((disk, drive)):
        command += ["-drive", f"file={path},format=raw,if=none,id=drive{number},cache=unsafe",
                    "-device", f"virtio-blk-pci,drive=drive{number}"]
    try:
        return subprocess.run(["timeout", "--kill-after=10", str(SECONDS), *command], stdin=subprocess.DEVNULL, check=False).returncode
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
