# SPDX-License-Identifier: BSD-3-Clause
"""Sanitizers report to files, as daemons are ended by their tests; any file is a failure."""
import os
import tempfile


class Reports:
    """Use with "with", which gives the environment for what is run; ask found() before its end."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        os.chmod(self.folder.name, 0o777)  # the daemon may have become another user
        log = f"log_path={os.path.join(self.folder.name, 'report')}"
        return {
            "ASAN_OPTIONS": f"detect_stack_use_after_return=1:strict_string_checks=1:{log}",
            "UBSAN_OPTIONS": f"print_stacktrace=1:{log}",
            "TSAN_OPTIONS": f"second_deadlock_stack=1:{log}",
        }

    def found(self):
        """Returns the texts of the reports."""
        texts = []
        for report in sorted(os.listdir(self.folder.name)):
            with open(os.path.join(self.folder.name, report), encoding="utf-8", errors="replace") as opened:
                texts.append(opened.read())
        return texts

    def __exit__(self, *_):
        self.folder.cleanup()
