#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes inputs to begin with, made of the protocol tests' sessions: seeds.py FOLDER makes FOLDER/<target>/<number>.

A stream's first bytes choose options and how it is cut into pieces (stream.h).
"""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "protocol"))
import binary  # noqa: E402
import sessions  # noqa: E402
import sessions_binary  # noqa: E402
import sessions_meta  # noqa: E402

MOST_BYTES = 4096
META = [b"mg", b"ms", b"md", b"ma", b"me"]
HEAD = bytes(8)  # of a stream
FLASH = 8


def spelled(session):
    return (session.replace(b"%k", b"k" * 250).replace(b"%K", b"k" * 251).replace(b"%O", b"O" + b"o" * 32)
            .replace(b"%X", b"x" * 2000))


def text_sessions():
    for group in [*sessions_meta.SESSIONS.values(), sessions.SESSIONS]:
        yield from (spelled(session) for session in group if len(session) <= MOST_BYTES)


def binary_sessions():
    for opcode in sessions_binary.OPCODES:
        for _, steps in list(sessions_binary.sessions(opcode))[::5]:
            yield b"".join(packet(0) for step in steps for packet in step)


def line_seeds():
    for session in text_sessions():
        yield from session.splitlines()


def meta_seeds():
    for line in line_seeds():
        words = line.split(b" ", 1)
        if words[0] in META:
            yield bytes([META.index(words[0])]) + b" ".join(words[1:])


def packet_seeds():
    yield from (stream[:300] for stream in binary_sessions())
    for opcode in (binary.GET, binary.SET, binary.INCR, binary.TOUCH):
        for key in (0, 1, 250, 251, 65535):
            for extras in (0, 4, 8, 20, 255):
                for body in (key + extras - 1, key + extras, key + extras + 1):
                    yield binary.packet(opcode, extras=bytes(20), key_length=key, body=max(body, 0))[:4] + \
                        bytes([extras]) + binary.packet(opcode, bytes(key), body=max(body, 0))[5:] + bytes(extras)


def stream_seeds(streams, on_flash):
    """As they are; and some with other options and cuts, or with the keys of objects that lie on flash."""
    for number, stream in enumerate(streams):
        yield bytes(2) + number.to_bytes(4, "little") + bytes(2) + stream
        head = bytes([number % 64, number % 16]) + number.to_bytes(4, "little") + bytes(2)
        if number % 11 == 0:
            yield head + stream
        if number % 7 == 0:
            yield bytes([head[0] | FLASH]) + head[1:] + on_flash(stream, number % 10)


def text_on_flash(stream, number):
    return stream.replace(b" a", b" f%d" % number).replace(b" n", b" n0").replace(b"set f", b"get f")


def binary_on_flash(stream, number):
    """Keys of the same length."""
    return stream.replace(b"key", b"n-%d" % (number % 2) if number < 3 else b"f-%d" % number)


def datagram_seeds():
    """A length, then a frame: id, number, total, reserved."""
    for stream in text_sessions():
        frame = b"\x00\x07\x00\x00\x00\x01\x00\x00" + stream
        yield HEAD + len(frame).to_bytes(2, "little") + frame


def conf_seeds():
    with open("packaging/samples/flashield.conf", encoding="utf-8") as sample:
        lines = [line.lstrip("# ") for line in sample]
    for line in lines:
        if " = " in line:
            yield b"f" + line.encode()
            yield b"a--" + line.strip().replace(" = ", "=").encode()
    for line in ("-m 64\n-p 11211\n-u memcache\n-l 127.0.0.1\n-P /run/pid", "logfile /var/log/memcached.log\n-d -vv\n-c 10"):
        yield b"f" + line.encode()
    with open("conf/extended.def", encoding="utf-8") as rows:
        for row in rows:
            if '("' in row:
                name = row.split('"')[1]
                yield b"o" + name.encode()
                yield b"o" + name.encode() + b"=1," + name.encode() + b"=yes"
    yield b"oext_path=/tmp/x:64m,ext_page_size=8"


def user_seeds():
    for text in (b"user:secret\n", b"a:b\r\nc:d:e\n:x\n", b"a:b", b"\n", b"nocolon", b"u:\r\n"):
        yield text


def inspect_seeds():
    for kind in range(6):
        for segment in range(3):
            for place, value in ((0, 0), (16, 1), (40, 0xffffffff), (1000, 65536)):
                yield struct.pack("<BBHI", kind, segment, place, value)


SEEDS = {
    "line": line_seeds,
    "meta": meta_seeds,
    "packet": packet_seeds,
    "text": lambda: stream_seeds(text_sessions(), text_on_flash),
    "binary": lambda: stream_seeds(binary_sessions(), binary_on_flash),
    "udp": datagram_seeds,
    "conf": conf_seeds,
    "users": user_seeds,
    "inspect": inspect_seeds,
}


def main():
    for target, seeds in SEEDS.items():
        folder = os.path.join(sys.argv[1], target)
        os.makedirs(folder, exist_ok=True)
        for number, seed in enumerate(sorted(set(seeds()))):
            with open(os.path.join(folder, f"seed-{number:05}"), "wb") as out:
                out.write(seed[:2 * MOST_BYTES])


if __name__ == "__main__":
    main()
