#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Between a client and a daemon with a flash: what the client has stored moves there before it asks again.

    place.py LISTEN_PORT DAEMON_PORT [--tls]

A client reads what it has just set, so its objects would still lie in DRAM. Here other objects are set before
the client's next request is passed on, until the cleaner has written segments; then those that wait in DRAM
are deleted again, so that the client finds room. The daemon runs with -M: it evicts nothing, so a miss can't be
excused. The bytes are passed on as they are, whatever the protocol; with --tls the filler alone speaks TLS.

Not before each request, as a suite of thousands would take minutes: the gap doubles every SETTLES_PER_GAP times.
"""
import argparse
import asyncio
import collections
import itertools
import signal
import socket
import ssl
import time

SIZES = [100, 300, 1500, 4000]  # mixed, as a segment of one size has no gaps that the client's objects fit
BATCH = 24  # objects, a multiple of the sizes: about 35 KB
BATCHES = 600  # more than memory holds: what came before lies on flash
ROOM = 3 << 20  # bytes that the client finds free
ROOM_BATCHES = 100
SEGMENTS = 4  # that must have been written since
SETTLE_SECONDS = 1.5  # then the client goes on: a drive may be slow, and what holds the memory can't all move
SETTLES_PER_GAP = 8
PATIENCE = 120.0


def rows(batch):
    return [(batch * BATCH + n, SIZES[n % len(SIZES)]) for n in range(BATCH)]


class Filler:
    def __init__(self, port, tls):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE  # the clients verify; this one only fills
            self.socket = context.wrap_socket(self.socket)
        self.reader = self.socket.makefile("rb")
        self.batch = itertools.count()  # of new keys: an old one may be on flash, and with -M a set looks there first
        self.stored = collections.deque(maxlen=BATCHES)
        self.ask(b"lru_crawler sleep 0\r\n")
        self.settle()

    def ask(self, command):
        self.socket.sendall(command)
        return self.reader.readline()

    def stats(self, report, *names):
        self.socket.sendall(b"stats " + report + b"\r\n")
        found = {}
        while (line := self.reader.readline()) not in (b"END\r\n", b""):
            _, name, value = line.split(None, 2)
            found[name.decode()] = value
        return [int(found[name]) for name in names]

    def segments_written(self):
        return self.stats(b"flash", "segments_written")[0]

    def free(self):
        budget, used = self.stats(b"flash", "dram_budget", "dram_bytes")
        return budget - used

    def put(self):
        """False when the memory is full; then nothing of the batch stays. The last set alone is answered, and tells it."""
        batch = next(self.batch)
        sets = b"".join(b"set filler-%d 0 0 %d noreply\r\n%s\r\n" % (key, size, bytes(size)) for key, size in rows(batch))
        if self.ask(sets + b"set filler-last-%d 0 0 1\r\nx\r\n" % batch) == b"STORED\r\n":
            self.stored.append(batch)
            return True
        self.delete(batch)
        return False

    def delete(self, batch):
        keys = [b"filler-%d" % key for key, _ in rows(batch)] + [b"filler-last-%d" % batch]
        self.ask(b"".join(b"delete %s noreply\r\n" % key for key in keys) + b"mn\r\n")

    def settle(self):
        if self.stats(b"flash", "segments_free")[0] < 2 * SEGMENTS:
            return  # nothing is reclaimed with -M: the rest of the suite goes without
        goal = self.segments_written() + SEGMENTS
        end = time.monotonic() + SETTLE_SECONDS
        while self.segments_written() < goal and time.monotonic() < end:
            if not all(self.put() for _ in range(8)):
                self.crawl()
                time.sleep(0.001)  # the cleaner's turn
        self.make_room()

    def make_room(self):
        """The youngest of the filler's objects go first: those lie in DRAM."""
        while self.stored:
            for _ in range(min(len(self.stored), ROOM_BATCHES)):
                self.delete(self.stored.pop())
            if self.free() >= ROOM:
                return
        self.crawl()
        end = time.monotonic() + SETTLE_SECONDS
        while self.free() < ROOM and time.monotonic() < end:
            time.sleep(0.001)

    def crawl(self):
        """Frees what the client has flushed or let expire, which is no candidate for flash and holds memory."""
        self.ask(b"lru_crawler crawl all\r\n")  # OK, or BUSY when it is at it already


class Place:
    def __init__(self, port, tls):
        self.port = port
        self.filler = Filler(port, tls)
        self.gap = 1
        self.settles = 0
        self.requests = 0

    def request(self):
        self.requests += 1
        if self.requests < self.gap:
            return
        self.requests = 0
        self.filler.settle()  # all clients wait meanwhile
        self.settles += 1
        if self.settles % SETTLES_PER_GAP == 0:
            self.gap *= 2

    async def serve(self, client, answer):
        try:
            daemon, ask = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            answer.close()
            return
        asked = [False]  # since the last answer

        async def forth():
            while data := await client.read(1 << 16):
                if not asked[0]:
                    asked[0] = True
                    self.request()
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
    parser.add_argument("--tls", action="store_true")
    arguments = parser.parse_args()
    place = Place(arguments.daemon, arguments.tls)
    await asyncio.start_server(place.serve, "127.0.0.1", arguments.listen)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()


if __name__ == "__main__":
    asyncio.run(main())
