#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Between a client and a daemon with a flash: what the client has stored moves there before it asks again.

    place.py LISTEN_PORT DAEMON_PORT DRIVE

A client reads what it has just set, so its objects would still lie in DRAM. DRIVE is the socket by which a daemon with fault points
is driven (server/drive.h): before the client's next request is passed on, all objects of DRAM are put on flash. The daemon runs
with -M: it evicts nothing, so a miss can't be excused. The bytes are passed on as they are, whatever the protocol, TLS too.

Each time takes a segment, and with -M none is reclaimed. So that a suite of thousands of requests reads from flash up to its end, the
gap doubles every PLACES_PER_GAP times.
"""
import argparse
import asyncio
import os
import signal
import socket
import sys

PLACES_PER_GAP = 32
PATIENCE = 120.0


class Drive:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(path)
        self.reader = self.socket.makefile("rb")
        self.gap = 1
        self.places = 0
        self.requests = 0

    def place(self):
        try:
            self.socket.sendall(b"place\n")
            return self.reader.readline()
        except OSError as error:
            return str(error).encode()

    def request(self):
        self.requests += 1
        if self.requests < self.gap:
            return
        self.requests = 0
        answer = self.place()  # all clients wait meanwhile
        if not answer.startswith(b"PLACED "):
            print(f"place is answered by {answer!r}", file=sys.stderr, flush=True)
            os._exit(1)  # the end of the suite tells it
        self.places += answer != b"PLACED 0\n"
        if self.places == PLACES_PER_GAP:
            self.places = 0
            self.gap *= 2


async def serve(drive, port, client, answer):
    try:
        daemon, ask = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        answer.close()
        return
    asked = [False]  # since the last answer

    async def forth():
        while data := await client.read(1 << 16):
            if not asked[0]:
                asked[0] = True
                drive.request()
            ask.write(data)
            await ask.drain()
        ask.write_eof()

    async def back():
        while data := await daemon.read(1 << 16):
            asked[0] = False
            answer.write(data)
            await answer.drain()
        answer.close()

    forward = asyncio.ensure_future(forth())
    try:
        await back()
    except OSError:
        pass
    forward.cancel()
    await asyncio.gather(forward, return_exceptions=True)
    ask.close()
    answer.close()


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("listen", type=int)
    parser.add_argument("daemon", type=int)
    parser.add_argument("drive")
    arguments = parser.parse_args()
    drive = Drive(arguments.drive)
    await asyncio.start_server(lambda client, answer: serve(drive, arguments.daemon, client, answer), "127.0.0.1", arguments.listen)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()


if __name__ == "__main__":
    asyncio.run(main())
