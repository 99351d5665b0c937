# SPDX-License-Identifier: BSD-3-Clause
"""Reads what the last stage of a Dockerfile does, so that a chroot can do the same."""
import json
import shlex

KNOWN = {"FROM", "RUN", "COPY", "USER", "EXPOSE", "VOLUME", "ENTRYPOINT", "CMD", "HEALTHCHECK", "ENV", "LABEL", "WORKDIR"}


def steps(text):
    """[(instruction, argument)], comments left out and continued lines joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    found = [tuple(line.split(None, 1)) for line in joined.splitlines() if line.strip()]
    unknown = {step[0] for step in found} - KNOWN
    assert not unknown, f"instructions that this reader doesn't know: {unknown}"
    return found


def last_stage(text):
    """The steps after the last FROM."""
    all_steps = steps(text)
    begin = max(i for i, step in enumerate(all_steps) if step[0] == "FROM")
    return all_steps[begin + 1:]


def command(stage, instruction):
    """The words of an instruction in its JSON form, or of a shell's line."""
    argument = next((text for name, text in stage if name == instruction), "[]")
    if instruction == "HEALTHCHECK":
        argument = argument.partition("CMD")[2].strip()
    return json.loads(argument) if argument.startswith("[") else shlex.split(argument)
