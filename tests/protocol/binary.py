# SPDX-License-Identifier: BSD-3-Clause
"""A small client of the binary protocol that says exactly what it is told to, right or wrong."""
import collections
import struct

from helpers import Client

GET, SET, ADD, REPLACE, DELETE, INCR, DECR, QUIT, FLUSH, GETQ, NOOP, VERSION, GETK, GETKQ, APPEND, PREPEND, STAT, SETQ, ADDQ, \
    REPLACEQ, DELETEQ, INCRQ, DECRQ, QUITQ, FLUSHQ, APPENDQ, PREPENDQ, VERBOSITY, TOUCH, GAT, GATQ = range(0x1f)
SASL_LIST, SASL_AUTH, SASL_STEP, GATK, GATKQ = range(0x20, 0x25)
OK, NOT_FOUND, EXISTS, TOO_LARGE, INVALID, NOT_STORED, NOT_NUMBER = range(7)
AUTH_ERROR, AUTH_CONTINUE, UNKNOWN, NO_MEMORY = 0x20, 0x21, 0x81, 0x82
NO_CREATE = 0xffffffff
KEY_MAX = 250

HEADER = struct.Struct(">BBHBBHIIQ")
Answer = collections.namedtuple("Answer", "opcode status opaque cas extras key value")


def packet(opcode, key=b"", value=b"", extras=b"", cas=0, opaque=0xdeadbeef, magic=0x80, key_length=None, body=None,
           datatype=0, vbucket=0):
    """A request; key_length and body lie about what follows."""
    return HEADER.pack(magic, opcode, len(key) if key_length is None else key_length, len(extras), datatype, vbucket,
                       len(extras) + len(key) + len(value) if body is None else body, opaque, cas) + extras + key + value


def store(opcode, key, value, flags=0, exptime=0, **more):
    return packet(opcode, key, value, struct.pack(">II", flags, exptime), **more)


def count(opcode, key, delta=1, initial=0, exptime=NO_CREATE, **more):
    return packet(opcode, key, b"", struct.pack(">QQI", delta, initial, exptime), **more)


def touch(opcode, key, exptime=0, **more):
    return packet(opcode, key, b"", struct.pack(">I", exptime), **more)


class BinaryClient(Client):
    """Reads answers as tuples."""

    def answer(self):
        """The next one; None at the end of the stream."""
        try:
            head = self.reader.read(HEADER.size)
        except ConnectionResetError:
            return None
        if not head:
            return None
        magic, opcode, key, extras, datatype, status, body, opaque, cas = HEADER.unpack(head)
        assert magic == 0x81 and datatype == 0 and key + extras <= body, head
        rest = self.reader.read(body)
        assert len(rest) == body
        return Answer(opcode, status, opaque, cas, rest[:extras], rest[extras:extras + key], rest[extras + key:])

    def ask(self, data):
        self.send(data)
        return self.answer()

    def all(self, data, last=0x12345678):
        """Answers to these packets, and None behind them if the connection ended."""
        try:
            self.send(data + packet(NOOP, opaque=last))
        except (BrokenPipeError, ConnectionResetError):
            pass
        answers = []
        while True:
            answer = self.answer()
            if answer is not None and answer.opcode == NOOP and answer.opaque == last:
                return answers
            answers.append(answer)
            if answer is None:
                return answers

    def rows(self, key=b""):
        """stat: {name: value}."""
        self.send(packet(STAT, key))
        rows = {}
        while True:
            answer = self.answer()
            assert answer.status == OK and answer.opcode == STAT
            if not answer.key:
                return rows
            rows[answer.key.decode()] = answer.value.decode()
