# SPDX-License-Identifier: BSD-3-Clause
"""Lines for whoever counts: PASS, FAIL with what was seen, skip with why."""


class Report:
    def __init__(self):
        self.scenario = "package"
        self.failed = 0

    def check(self, what, holds, seen=""):
        """Tells it, and returns whether it holds."""
        self.failed += not holds
        print(f"{'PASS' if holds else 'FAIL'} {self.scenario}: {what}", flush=True)
        if not holds and str(seen).strip():
            print("\n".join(f"  {line}" for line in str(seen).rstrip().splitlines()), flush=True)
        return holds

    def need(self, what, holds, seen=""):
        """A check without which the rest of the scenario makes no sense."""
        if not self.check(what, holds, seen):
            raise RuntimeError(f"{what}: the rest of it can't be judged")

    def skip(self, what, why):
        print(f"skip {self.scenario}: {what}: {why}", flush=True)

    def result(self):
        return 1 if self.failed else 0
