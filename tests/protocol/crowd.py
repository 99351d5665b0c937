# SPDX-License-Identifier: BSD-3-Clause
"""Many connections that ask at once, each for the next thing when it has its answer. A thread of the test's process.

    with Crowd(daemon.port, 200, lambda number: b"get key-%d\\r\\n" % number, pause=0.05) as crowd:
        crowd.each_is_answered("the first answers")
"""
import heapq
import selectors
import socket
import threading
import time
from collections import namedtuple

from helpers import PATIENCE, until

# When it was complete, how long it took, how many commands it was to, and how many values it had.
Answer = namedtuple("Answer", "at seconds commands values")
LOOK_SECONDS = 0.005


class Asker:
    """One of the connections. Values that it asks for must not hold "END\\r\\n"."""

    def __init__(self, number, port):
        self.number = number
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.commands = 0  # under way
        self.asked_at = self.answered_at = 0
        self.data = b""

    def ask(self, request):
        self.commands = request.count(b"\r\n")
        self.asked_at = time.monotonic()
        self.data = b""
        self.socket.sendall(request)

    def receive(self):
        """The answer, if it is complete. The connection's end is an error."""
        received = self.socket.recv(1 << 18)
        if not received:
            raise ConnectionResetError
        self.data += received
        if not self.data.endswith(b"END\r\n") or self.data.count(b"END\r\n") < self.commands:
            return None
        self.answered_at = time.monotonic()
        return Answer(self.answered_at, self.answered_at - self.asked_at, self.commands, self.data.count(b"VALUE "))


class Crowd(threading.Thread):
    """question(number of the connection) gives its next request: gets, each a line. pause: from an answer to the
    next request of its connection, in seconds. It goes on until the end of `with`."""

    def __init__(self, port, count, question, pause=0.0):
        super().__init__()
        self.question = question
        self.pause = pause
        self.askers = [Asker(number, port) for number in range(count)]
        self.selector = selectors.DefaultSelector()
        self.due = []  # (when, number) of those that ask next
        self.answers = []
        self.another = threading.Condition()  # told of each answer
        self.lost = 0
        self.ended = False

    def __enter__(self):
        for asker in self.askers:
            self.selector.register(asker.socket, selectors.EVENT_READ, asker)
            self.due.append((0, asker.number))
        self.start()
        return self

    def __exit__(self, *_):
        self.ended = True
        self.join()
        self.selector.close()
        for asker in self.askers:
            asker.socket.close()

    def lose(self, asker):
        self.lost += 1
        self.selector.unregister(asker.socket)

    def ask_due(self):
        now = time.monotonic()
        while self.due and self.due[0][0] <= now:
            asker = self.askers[heapq.heappop(self.due)[1]]
            try:
                asker.ask(self.question(asker.number))
            except OSError:
                self.lose(asker)

    def receive(self, asker):
        try:
            answer = asker.receive()
        except OSError:
            self.lose(asker)
            return
        if answer:
            with self.another:
                self.answers.append(answer)
                self.another.notify_all()
            heapq.heappush(self.due, (answer.at + self.pause, asker.number))

    def run(self):
        while not self.ended:
            self.ask_due()
            for ready, _ in self.selector.select(LOOK_SECONDS):
                self.receive(ready.data)

    def each_is_answered(self, what):
        """Waits until each connection has an answer that came after this call."""
        now = time.monotonic()
        until(lambda: min(asker.answered_at for asker in self.askers) > now, what)

    def has_answers(self, count):
        """Waits until there are so many."""
        with self.another:
            assert self.another.wait_for(lambda: len(self.answers) >= count, PATIENCE), f"waited for {count} answers"

    def since(self, when):
        """Answers to what was asked after that time."""
        return [answer for answer in list(self.answers) if answer.at - answer.seconds >= when]
