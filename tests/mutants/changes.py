# SPDX-License-Identifier: BSD-3-Clause
"""Changes that a machine can make to a C source, each of which is most likely a fault. run.py --random draws some by a seed.

changes(text) gives them in the order of the source, as (offset, length, new text, what was done). They are inside of
functions alone. Comments, strings and lines of the preprocessor are left as they are. So are assertions, which say what is
known already, and calls that only log, prefetch or kill a test's process.
"""
import collections
import random
import re

Change = collections.namedtuple("Change", "offset length new says")

SWAPPED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "+": "-", "-": "+",
           "+=": "-=", "-=": "+="}
HIDDEN = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|^[ \t]*#(?:\\\n|[^\n])*", re.S | re.M)
FUNCTION = re.compile(r"^[a-zA-Z][^;{}=]*\)\n\{\n.*?^\}", re.S | re.M)
SPARED = re.compile(r"\b(?:must|debug_must|lock_assert_held|_Static_assert|log_\w+|fault_\w+|\w*prefetch\w*)\s*\(")
# A sign or a pointer has no operand before it, and an arrow is one token.
OPERATOR = re.compile(r"(?<=[\w)\]] )(&&|\|\||[<>=!]=|[+-]=|[<>+-])(?= )")
CONDITION = re.compile(r"\b(?:if|while) \(")
NUMBER = re.compile(r"(?<![\w.\[])(?:0x[0-9a-fA-F]+|\d+)(?:[uU]?[lL]{0,2})(?![\w.])")
CALL = re.compile(r"^(\t+)(\w+\([^;{}]*\);)$", re.M)
RETURN = re.compile(r"\breturn (true|false|FS_OK|[^;]+);")
RETURNED = {"true": "false", "false": "true", "FS_OK": "FS_EINVAL"}


def closing(text, at):
    """Where the bracket that opens before `at` is closed."""
    depth = 1
    while depth:
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return at - 1


def masked(text):
    """The text with blanks for what is left as it is, at the same offsets."""
    text = HIDDEN.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    for found in list(SPARED.finditer(text)):
        end = closing(text, found.end())
        text = text[:found.start()] + re.sub(r"[^\n]", " ", text[found.start():end + 1]) + text[end + 1:]
    return text


def off_by_one(number):
    digits = re.match(r"0x[0-9a-fA-F]+|\d+", number).group()
    if digits.startswith("0") and len(digits) > 1 and not digits.startswith("0x"):
        return number  # octal: a mode of a file
    return f"{int(digits, 0) + 1:{'#x' if digits.startswith('0x') else 'd'}}" + number[len(digits):]


def of_function(text, start, end):
    for found in OPERATOR.finditer(text, start, end):
        yield found.start(), len(found.group()), SWAPPED[found.group()], f"{found.group()} became {SWAPPED[found.group()]}"
    for found in CONDITION.finditer(text, start, end):
        until = closing(text, found.end())
        yield found.end(), until - found.end(), None, "the condition is negated"
    for found in NUMBER.finditer(text, start, end):
        if off_by_one(found.group()) != found.group():
            yield found.start(), len(found.group()), off_by_one(found.group()), f"{found.group()} became {off_by_one(found.group())}"
    for found in CALL.finditer(text, start, end):
        if text[:found.start()].rstrip().endswith((";", "{", "}")):
            yield found.start(2), len(found.group(2)), ";", f"the call of {found.group(2).partition('(')[0]} is dropped"
    for found in RETURN.finditer(text, start, end):
        value = found.group(1)
        if value in RETURNED:
            yield found.start(1), len(value), RETURNED[value], f"{RETURNED[value]} is returned"
        elif re.search(r" (?:&&|\|\||[<>=!]=|[<>]) |^!", value) and " ? " not in value:
            yield found.start(1), len(value), None, "the opposite is returned"


def changes(text):
    hidden, found = masked(text), []
    for function in FUNCTION.finditer(hidden):
        body = hidden.index("{", function.start())
        for offset, length, new, says in of_function(hidden, body, function.end()):
            found.append(Change(offset, length, f"!({text[offset:offset + length]})" if new is None else new, says))
    return sorted(set(found))


def draw(sources, count, seed):
    """`count` of (path, change), as many of each folder as of any other. `sources`: texts by path."""
    folders = collections.defaultdict(list)
    for path in sorted(sources):
        folders[path.rpartition("/")[0]] += [(path, change) for change in changes(sources[path])]
    for folder, there in folders.items():
        random.Random(f"{seed} {folder}").shuffle(there)
    drawn = [there[turn] for turn in range(count) for _, there in sorted(folders.items()) if turn < len(there)]
    return sorted(drawn[:count], key=lambda one: (one[0].rpartition("/")[0], one[0], one[1]))
