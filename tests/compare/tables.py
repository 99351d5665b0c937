# SPDX-License-Identifier: BSD-3-Clause
"""The tables of commands, as the daemon's own headers have them: what sessions are generated from."""
import collections
import pathlib
import re

PROTO = pathlib.Path(__file__).resolve().parents[2] / "server" / "proto"

TextCommand = collections.namedtuple("TextCommand", "name id shape least most")
BinaryCommand = collections.namedtuple("BinaryCommand", "opcode id shape flags")


def rows(file, macro, count, row="COMMAND"):
    """The arguments of each row of a table in a header."""
    text = (PROTO / file).read_text()
    table = re.search(rf"#define {macro}\({row}\) \\\n((?:.*\\\n)*.*\n)", text).group(1)
    found = [[word.strip() for word in arguments.split(",")] for arguments in re.findall(rf"{row}\((.*)\)", table)]
    assert found and all(len(row) == count for row in found), f"{macro} in {file} looks otherwise than expected"
    return found


def text_commands():
    return [TextCommand(name.strip('"').encode(), id_, shape, int(least), most)
            for name, id_, shape, least, most in rows("proto.h", "TEXT_COMMAND_TABLE", 5)]


def binary_commands():
    return [BinaryCommand(int(opcode, 16), *rest) for opcode, *rest in rows("binary.h", "BINARY_COMMAND_TABLE", 4)]


def meta_flags():
    """The letters that the meta parser knows, each with its kind."""
    return {letter.strip("'").encode(): kind for letter, kind in rows("meta_parse.h", "META_FLAG_TABLE", 2, "FLAG")}
