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
# Where both sides are equal, a swap of < and <= gives the same: the smaller of two, the larger, a difference that stops at zero.
# An operand may be a macro of one argument, and twice, half or the like of another.
OPERAND = r"(?:\([a-z_0-9 ]+\))?(?:[A-Z_]+\([\w.\->]+\)|[\w.\->\[\]]+)(?: (?:<<|/|\*) [\w.\->]+)?"
CAST = re.compile(r"^\([a-z_0-9 ]+\)")
TIES = (re.compile(rf"(?:(?<=[(\[])|(?<=[=,:?] )|(?<=\breturn ))(?P<a>{OPERAND}) (?P<operator>[<>]=?) (?P<b>{OPERAND}) \? "
                   rf"(?P<x>{OPERAND}(?: - {OPERAND})?) : (?P<y>{OPERAND}(?: - {OPERAND})?)(?=[\]);,\n])"),
        re.compile(rf"\bif \((?P<a>{OPERAND}) (?P<operator>[<>]=?) (?P<b>{OPERAND})\)\n\t+(?P<x>{OPERAND}) = (?P<y>{OPERAND});"))
# What a comparator says of equals: qsort may put them in any order.
TIES_OF_ORDER = (re.compile(rf"(?P<a>{OPERAND}) (?P<first><) (?P<b>{OPERAND}) \? -?1 : (?P=a) (?P<second>>) (?P=b)"),
                 re.compile(rf"\((?P<a>{OPERAND}) (?P<first>[<>]) (?P<b>{OPERAND})\) - \((?P=a) (?P<second>[<>]) (?P=b)\)"))
# 0, 1 and 2 are open before any other file is, so that no other descriptor is 0.
DESCRIPTOR = re.compile(r"\b\w*fd (?P<operator><|>=) (?P<zero>0)\b")
# One more element than needed is memory alone.
ALLOCATION = re.compile(r"\bmem_(?:\w+_)?(?:z?alloc|realloc|aligned|map)\(")
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


def hints(text):
    """Offsets of what a branch is expected to do: it decides the speed alone."""
    hidden = masked(text)
    return {closing(hidden, hint.end()) - 1 for hint in re.finditer(r"\b__builtin_expect\(", hidden)}


def equal_ones(text):
    """Offsets of what no test can tell, by the rules above."""
    hidden, found = masked(text), set()
    for tie in (tie for pattern in TIES for tie in pattern.finditer(hidden)):
        a, b, x, y = (CAST.sub("", tie.group(name)) for name in "abxy")
        if {x, y} == {a, b} or {x, y} == {f"{a} - {b}", "0"} or {x, y} == {f"{b} - {a}", "0"}:
            found.add(tie.start("operator"))
    for order in (order for pattern in TIES_OF_ORDER for order in pattern.finditer(hidden)):
        found |= {order.start("first"), order.start("second")}
    for compared in DESCRIPTOR.finditer(hidden):
        found |= {compared.start("operator"), compared.start("zero")}
    for call in ALLOCATION.finditer(hidden):
        found |= {more.start(1) for more in re.compile(r" \+ (\d+)\b").finditer(hidden, call.end(), closing(hidden, call.end()))}
    return found


def draw(sources, count, seed):
    """`count` of (path, change), as many of each folder as of any other. `sources`: texts by path."""
    folders, spared = collections.defaultdict(list), {path: hints(text) | equal_ones(text) for path, text in sources.items()}
    for path in sorted(sources):
        folders[path.rpartition("/")[0]] += [(path, change) for change in changes(sources[path])]
    for folder, there in folders.items():
        random.Random(f"{seed} {folder}").shuffle(there)
        there[:] = [(path, change) for path, change in there if change.offset not in spared[path]]
    drawn = [there[turn] for turn in range(count) for _, there in sorted(folders.items()) if turn < len(there)]
    return sorted(drawn[:count], key=lambda one: (one[0].rpartition("/")[0], one[0], one[1]))


# ---- all in one build ----------------------------------------------------------------------------

# What the program has of it: which change is made, and which functions with one were entered. CHANGE_SEEN names a file of 64 KiB.
CHOSEN = """\
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int change_chosen;
unsigned char change_seen[65536] __attribute__((aligned(4096)));

__attribute__((constructor(101))) static void change_choose(void)
{
	const char *number = getenv("CHANGE"), *seen = getenv("CHANGE_SEEN");

	if (number)
		change_chosen = atoi(number);
	if (seen) {
		int fd = open(seen, O_RDWR | O_CLOEXEC);

		mmap(change_seen, sizeof(change_seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
		close(fd); /* the daemon may look for sockets where it would be */
	}
}
"""
DECLARED = "extern int change_chosen; extern unsigned char change_seen[]; "  # on a line of the source, which keep their numbers
MOST = 65535
GOTO = re.compile(r"\bgoto (\w+);")


def is_void(header):
    """Of the text up to the brace: it ends with the bracket of the arguments."""
    depth, at = 1, header.rstrip().rindex(")")
    while depth:
        at -= 1
        depth += {")": 1, "(": -1}.get(header[at], 0)
    return re.search(r"\bvoid \w+$", header[:at]) is not None


def with_all(text, numbered):
    """(the text with each (number, change), {line: number}). A function has a copy of its body for each of its changes, which
    the program enters where that number is chosen. The lines are those of the copies: an error there is the change's."""
    hidden, pieces, at = masked(text), [DECLARED], 0
    for function in FUNCTION.finditer(hidden):
        body, end = hidden.index("{", function.start()) + 1, function.end() - 1
        here = [(number, change) for number, change in numbered if body <= change.offset < end]
        if not here:
            continue
        labels = sorted(set(GOTO.findall(hidden, body, end)))
        last = "return;" if is_void(hidden[function.start():body - 1]) else "__builtin_unreachable();"
        pieces.append(text[at:body])
        for number, change in here:
            changed = text[body:change.offset] + change.new + text[change.offset + change.length:end]
            local = f"__label__ {', '.join(labels)};" if labels else ""
            pieces.append((number, f"\nif (change_seen[{number}] = 1, change_chosen == {number}) {{ {local}{changed}{last}\n}}"))
        at = body
    pieces.append(text[at:])
    whole, lines = "", {}
    for piece in pieces:
        if isinstance(piece, tuple):
            first = whole.count("\n") + 1
            whole += piece[1]
            lines.update({line: piece[0] for line in range(first + 1, whole.count("\n") + 2)})
        else:
            whole += piece
    return whole, lines
