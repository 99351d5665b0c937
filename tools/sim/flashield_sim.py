#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""flashield-sim: reads the options, has the runs played, prints a table and keeps the results as JSON and as a page; or has the
cheapest sizes found, or a model trained, or prints the paper's tables."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True  # where it is installed, nothing is written

import options  # noqa: E402
import page  # noqa: E402
import paper  # noqa: E402
import paper_page  # noqa: E402
import plots  # noqa: E402
import size  # noqa: E402
import table  # noqa: E402
import train  # noqa: E402
from worker import Bar, ask, play, tell, version  # noqa: E402

EXIT_TROUBLE = 2


def open_output(path, option):
    """Opened before the runs, which take long: what can't be written is found out at once."""
    if path is None or path == "-":
        return sys.stdout
    try:
        return open(path, "w", encoding="utf-8")
    except OSError as error:
        tell(f"--{option}: {path}: {error.strerror}")
        sys.exit(EXIT_TROUBLE)


def plotting(path):
    """What a report is drawn with, looked for before the runs."""
    try:
        return plots.load() if path else None
    except plots.Missing as missing:
        tell(f"--report: {missing}")
        sys.exit(EXIT_TROUBLE)


def write_report(chosen, output, matplotlib, trace, results, arguments):
    with output:
        if results:
            output.write(page.page(matplotlib, trace, results, arguments, version()))
    if not results:
        os.unlink(chosen.report)


def run(chosen, arguments):
    spec = options.spec_of(chosen)
    matplotlib = plotting(chosen.report)
    output = open_output(chosen.json, "json")
    report = open_output(chosen.report, "report") if chosen.report else None
    answers, complete = play(spec, Bar(chosen.quiet))
    for number, error in sorted(answers.errors.items()):
        tell(f"{spec['runs'][number]['policy']}: {error}")
    results = [{**result, "trace": {"path": chosen.trace, **answers.trace}} for result in answers.in_order()]
    if chosen.json:
        with output:
            for result in results:
                print(json.dumps(result), file=output)
    if report:
        write_report(chosen, report, matplotlib, answers.trace, results, arguments)
    if results and chosen.json != "-":
        print("\n".join(table.lines_of(answers.trace, results, chosen.apps)))
    return 0 if complete else EXIT_TROUBLE


def find_size(chosen):
    output = open_output(chosen.json, "json")
    answer, status = size.find(chosen, json.loads(ask("policies"))["policies"])
    if answer and chosen.json:
        with output:
            print(json.dumps(answer), file=output)
    if answer and chosen.json != "-":
        print("\n".join(size.lines_of(answer)))
    return status


def beside(name):
    """Another program that was built or installed with this one."""
    return os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), name)


def print_paper(chosen, arguments):
    matplotlib = plotting(chosen.report)
    output = open_output(chosen.json, "json")
    report = open_output(chosen.report, "report") if chosen.report else None
    try:
        tables, complete = paper.tables_of(chosen, play, beside("flashield-bench"))
    except (OSError, subprocess.CalledProcessError) as error:
        tell(f"the trace can't be made: {error}")
        return EXIT_TROUBLE
    if report:
        with report:
            report.write(paper_page.of_tables(matplotlib, tables, arguments, version()))
    if chosen.json:
        with output:
            for one in tables:
                print(json.dumps(one.as_json()), file=output)
    if chosen.json != "-":
        print("\n".join(line for one in tables for line in one.lines()))
    return 0 if complete else EXIT_TROUBLE


def list_policies():
    for policy in json.loads(ask("policies"))["policies"]:
        name = policy["name"] + ("[:reinsert]" if policy["reinserts"] else "") + ("[:NUMBER]" if policy["parameter"] else "")
        print(f"{name:30} {policy['help']}")
        if policy["parameter"]:
            print(f"{'':30} NUMBER: {policy['parameter']}  ({policy['default']:g})")
    return 0


def main(arguments):
    chosen = options.parse(arguments, version)
    commands = {"run": lambda one: run(one, arguments), "size": find_size, "train": train.train,
                "paper": lambda one: print_paper(one, arguments), "policies": lambda _: list_policies()}
    return commands[chosen.command](chosen)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(EXIT_TROUBLE)
    except BrokenPipeError:  # nobody reads the table any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_TROUBLE)
