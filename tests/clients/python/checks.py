# SPDX-License-Identifier: BSD-3-Clause
"""Counts what a client script finds: "FAIL ..." for each thing that is wrong, and at the end "NAME: passed N failed M"."""
import contextlib
import sys
import time
import traceback

PATIENCE = 120.0


def short(value):
    text = repr(value)
    return text if len(text) < 200 else text[:150] + "..." + text[-40:]


class Checks:
    def __init__(self, name):
        self.name = name
        self.passed = self.failed = 0

    def true(self, what, condition, more=""):
        if condition:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAIL {what} {more}".rstrip(), flush=True)

    def same(self, what, got, wanted):
        self.true(what, got == wanted and type(got) is type(wanted), f"gave {short(got)}, not {short(wanted)}")

    def raises(self, what, error, function, *arguments, **keywords):
        try:
            got = function(*arguments, **keywords)
        except error:
            self.passed += 1
        else:
            self.true(what, False, f"gave {short(got)}, and no {error}")

    def becomes(self, what, function, wanted):
        """Asks again until the answer is the wanted one: for expiry."""
        end = time.monotonic() + PATIENCE
        while (got := function()) != wanted and time.monotonic() < end:
            time.sleep(0.05)
        self.same(what, got, wanted)

    @contextlib.contextmanager
    def part(self, name):
        """What goes wrong in one part doesn't end the script."""
        try:
            yield
        except Exception:  # a client may raise anything
            self.true(name, False, "ended by\n" + traceback.format_exc(limit=-4))

    def done(self):
        print(f"{self.name}: passed {self.passed} failed {self.failed}")
        sys.exit(1 if self.failed or not self.passed else 0)


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)
