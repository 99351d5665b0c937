#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Puts races of the engine's history back, one at a time, into a copy of the tree, and sees that the scheduler finds each.

Each row has the commit that ended the race, or that brought the guard, and edits that take it away. It prints a line for each:
"PASS race NAME: found by seed N after S s: ...", or "FAIL race NAME: not found". races.py NAMES runs those alone; --seconds S
is the bound of CPU for each (60); --check only sees that each old text occurs once in its file.
"""
import argparse
import filecmp
import os
import re
import resource
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
COPY = os.path.join(TREE, "build", "races")

# (name, commit, what is wrong then, (file, old text, new text)...)
RACES = [
    ("twins", "6140605f", "A key that changes while candidates are gathered has two records in a bin.",
     ("segments/plan_bins.c", "\t\t\tif (!(binned->order[i] & TWIN))\n", "\t\t\tif (((binned->order[i] &= ~TWIN), true))\n")),
    ("closed", "3e4d713e", "A segment that was closed before a kill is open behind it.",
     ("flashindex/frugal/frugal.c", "\tatomic_store(&frugal->closed[segment], sequence);\n", "")),
    ("slow-read", "5f9d9848", "A slow read brings an object back that was changed meanwhile.",
     ("server/store/request/lookup_end.c", "\t\tif (!lookup_has_read(lookup, &match[i]))\n\t\t\treturn false;\n",
      "\t\tif (!lookup_has_read(lookup, &match[i]))\n\t\t\treturn true;\n"),
     ("server/store/request/lookup_end.c", "\tif (found)\n\t\treturn lookup->what == LOOKUP_EXTENT && same_extent;\n",
      "\tif (found)\n\t\treturn true;\n")),
    ("flush-mark", "332c8248", "A write between the two steps of flush_all derives a value from a flushed one.",
     ("server/store/request/apply.c", "\tstore_await_flush(action->store);\n", "")),
    ("promotion", "5f9d9848", "A clean copy is made of an object that was changed since it was read.",
     ("server/store/request/promote.c", " && promote_finds_again(store, lookup) &&\n", " && (promote_finds_again(store, lookup) || true) &&\n")),
    ("reclaim", "5f9d9848", "A reclaim brings an object back that was changed since the look at its slot.",
     ("server/store/cleaner/reclaim.c", "\t\t\t : fidx_find(store->index, &walk->key, &walk->match);\n",
      "\t\t\t : fidx_find(store->index, &walk->key, &walk->match) || true;\n")),
    ("scan", "9f28549b", "A search without a lock misses a slot that moves between its buckets.",
     ("flashindex/lookup.c", "\t\tif (atomic_load_explicit(moves, memory_order_acquire) == before)\n\t\t\treturn;\n", "\t\treturn;\n")),
    ("move-order", "9f28549b", "A slot is in none of its buckets while it moves, and nobody is told.",
     ("flashindex/lookup.c", "\t\tif (before & 1) {\n", "\t\tif (false) {\n"),
     ("flashindex/lookup.c", "\t\tif (atomic_load_explicit(moves, memory_order_acquire) == before)\n\t\t\treturn;\n", "\t\treturn;\n"),
     ("flashindex/insert.c", "\taccount_overwritten(index, overwrite(to, slot));\n\tfault_kill(FAULT_killed_in_relocation);\n\twiden_race();\n\tlast = overwrite(from, SLOT_EMPTY);\n",
      "\tlast = overwrite(from, SLOT_EMPTY);\n\tfault_kill(FAULT_killed_in_relocation);\n\twiden_race();\n\taccount_overwritten(index, overwrite(to, slot));\n")),
    ("answer", "f9b2eac2", "A change is answered before the journal has it.",
     ("server/store/request/park.c", "\treturn park_until(worker, request, losses_ticket(worker->context.store->losses, tag));\n",
      "\treturn park_until(worker, request, 0 * losses_ticket(worker->context.store->losses, tag));\n")),
    ("rescue", "71acfe7f", "A close in the midst of a rescue takes a lock that has ended.",
     ("segments/segments.c", "\trescue_cancel(seg); /* changes a segment's state */\n", ""),
     ("segments/segments.c", "\tlock_fini(&seg->lock);\n\tseg->ops->close(seg->device);\n", "\tlock_fini(&seg->lock);\n\trescue_cancel(seg);\n\tseg->ops->close(seg->device);\n")),
    ("pins", "c2495792", "A segment is written again while a reader holds it.",
     ("segments/table.c", "\tif (!wait_for_pins(seg, live, timeout_ms))\n", "\tif (!wait_for_pins(seg, live, timeout_ms) && false)\n"),
     ("segments/table.c", "\treturn gone || atomic_load(&live->pins) == 0;\n", "\treturn true;\n"),
     ("segments/table.c", "\twhile (!(gone = atomic_load(&live->pins) == 0))\n", "\twhile (!(gone = true))\n")),
    ("current", "5f9d9848", "An object that was replaced while its segment was written goes to flash all the same.",
     ("server/store/cleaner/commit.c", "\tif (item->state & ITEM_LINKED && stripe->frozen == 0 &&\n", "\tif (stripe->frozen == 0 &&\n")),
]


def edit(race):
    for file, old, new in race[3:]:
        path = os.path.join(COPY, file)
        with open(path, encoding="utf-8") as source:
            text = source.read()
        if text.count(old) != 1:
            raise SystemExit(f"race {race[0]}: its text occurs {text.count(old)} times in {file}")
        with open(path, "w", encoding="utf-8") as source:
            source.write(text.replace(old, new))


def restore(race):
    for file in {row[0] for row in race[3:]}:
        shutil.copy(os.path.join(TREE, file), os.path.join(COPY, file))


def build():
    subprocess.run(["make", "-s", "VARIANT=sched", "build/sched/sched"], cwd=COPY, check=True, stdout=subprocess.DEVNULL)


def try_one(race, seconds):
    edit(race)
    try:
        build()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = subprocess.run(["build/sched/sched", "1", "1000000"], cwd=COPY, text=True, stdout=subprocess.PIPE,
                             env=os.environ | {"SCHED_SECONDS": str(seconds)})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    finally:
        restore(race)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    first = run.stdout.splitlines()[0] if run.stdout else "no line"
    found = re.match(r"FAIL seed (\d+) step (\d+): (.*)", first)
    if found:
        print(f"PASS race {race[0]}: found by seed {found[1]} at step {found[2]} after {spent:.0f} s of CPU: {found[3]}", flush=True)
    else:
        print(f"FAIL race {race[0]}: not found in {spent:.0f} s of CPU: {race[2]}", flush=True)
    return bool(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    races = [race for race in RACES if not args.names or race[0] in args.names]
    if args.check:
        for race in races:
            for file, old, _ in race[3:]:
                with open(os.path.join(TREE, file), encoding="utf-8") as source:
                    if (count := source.read().count(old)) != 1:
                        print(f"tests/sched/races.py: race {race[0]}: its text occurs {count} times in {file}")
        return 0
    os.makedirs(COPY, exist_ok=True)
    files = subprocess.run(["git", "ls-files", "-z"], cwd=TREE, check=True, text=True, stdout=subprocess.PIPE).stdout
    for file in files.strip("\0").split("\0"):
        to = os.path.join(COPY, file)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        if not os.path.exists(to) or not filecmp.cmp(os.path.join(TREE, file), to, shallow=False):
            shutil.copy(os.path.join(TREE, file), to, follow_symlinks=False)
    build()
    return 0 if all([try_one(race, args.seconds) for race in races]) else 1


if __name__ == "__main__":
    sys.exit(main())
