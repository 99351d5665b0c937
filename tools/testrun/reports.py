# SPDX-License-Identifier: BSD-3-Clause
"""What sanitizers look for. Of daemons they report to files, as those are ended by their tests; any file is a failure."""
import os
import tempfile

# A frame of the stack that is used after its return: a third of all time goes into looking for it, so that "make test-all" alone does.
returned_frames = False


def options(more=""):
    """The environment for a program with sanitizers; more: options for each of them."""
    return {
        "ASAN_OPTIONS": f"detect_stack_use_after_return={int(returned_frames)}:strict_string_checks=1{more}",
        "UBSAN_OPTIONS": f"print_stacktrace=1{more}",
        "TSAN_OPTIONS": f"second_deadlock_stack=1{more}",
    }


class Reports:
    """Use with "with", which gives the environment for what is run; ask found() before its end."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        os.chmod(self.folder.name, 0o777)  # the daemon may have become another user
        return options(f":log_path={os.path.join(self.folder.name, 'report')}")

    def found(self):
        """Returns the texts of the reports."""
        texts = []
        for report in sorted(os.listdir(self.folder.name)):
            with open(os.path.join(self.folder.name, report), encoding="utf-8", errors="replace") as opened:
                texts.append(opened.read())
        return texts

    def __exit__(self, *_):
        self.folder.cleanup()
