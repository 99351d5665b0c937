#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes a picture of what a program shows on a terminal: draw-terminal.py [OPTION]... PICTURE COMMAND...

    draw-terminal.py --rows 40 --columns 100 --seconds 10 top.svg build/flashield-top 127.0.0.1:11211

PICTURE ends in .svg, .png (by python3-pil and fonts-dejavu-core) or .txt. Needs python3-pexpect and python3-pyte.
"""
import argparse
import html
import os
import subprocess
import sys
import tempfile
import time

import pexpect
import pyte

TERM = "xterm-256color"
CELL_WIDTH, CELL_HEIGHT, FONT_SIZE = 9, 18, 15
BACK, FRONT = "#16181d", "#d5d8de"
COLOURS = {"black": "#3b4048", "red": "#ef5f6b", "green": "#7fc379", "brown": "#e0b45e", "blue": "#5fa8ef",
           "magenta": "#c678dd", "cyan": "#56bfc4", "white": "#d5d8de"}
HEAVY_LINES = {"\u2501": 1, "\u2578": .5}
EIGHTHS_UP = {chr(0x2581 + i): (i + 1) / 8 for i in range(8)}
SHADES = {"\u2591": .25, "\u2592": .5, "\u2593": .75}
FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSansMono%s.ttf"


class DimScreen(pyte.Screen):
    """pyte knows no faint text: it is kept as an underscore, which nothing here uses."""

    def select_graphic_rendition(self, *attributes, **keywords):
        super().select_graphic_rendition(*[{2: 4}.get(a, a) for a in attributes], **keywords)
        if 22 in attributes:
            super().select_graphic_rendition(24)


def describe_terminal(folder):
    """xterm without what pyte doesn't know: to repeat a character, to scroll by several lines."""
    rows = subprocess.run(["infocmp", "-1", TERM], check=True, capture_output=True, text=True).stdout.splitlines(True)
    rows = [row for row in rows if not row.strip().startswith(("rep=", "indn=", "rin="))]
    subprocess.run(["tic", "-o", folder, "-"], input="".join(rows), check=True, text=True, stderr=subprocess.DEVNULL)


def show(arguments):
    """The screen after the command has run for so long and has been given the keys."""
    screen = DimScreen(arguments.columns, arguments.rows)
    stream = pyte.ByteStream(screen)
    with tempfile.TemporaryDirectory() as terminfo:
        describe_terminal(terminfo)
        env = dict(os.environ, TERM=TERM, TERMINFO=terminfo, LC_ALL="C.UTF-8")
        return run(arguments, screen, stream, env)


def run(arguments, screen, stream, env):
    child = pexpect.spawn(arguments.command[0], arguments.command[1:], env=env, dimensions=(arguments.rows, arguments.columns))
    keys, end = list(arguments.keys), time.monotonic() + arguments.seconds
    next_key = time.monotonic() + 0.5
    while time.monotonic() < end:
        try:
            stream.feed(child.read_nonblocking(65536, timeout=0.1))
        except pexpect.TIMEOUT:
            pass
        except pexpect.EOF:
            break
        if keys and time.monotonic() >= next_key:
            child.send(keys.pop(0))
            next_key = time.monotonic() + 0.3
    child.close(force=True)
    return screen


def mix(first, second, share):
    one, two = ([int(c[i:i + 2], 16) for i in (1, 3, 5)] for c in (first, second))
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in zip(one, two))


def looks(char):
    """Its colours: (front, back)."""
    front = COLOURS.get(char.fg, "#" + char.fg if len(char.fg) == 6 else FRONT)
    back = COLOURS.get(char.bg, "#" + char.bg if len(char.bg) == 6 else BACK)
    if char.underscore:
        front = mix(front, back, .5)
    return (back, front) if char.reverse else (front, back)


def shapes(screen):
    """All there is to draw: ("box", x, y, width, height, colour) and ("text", column, row, text, colour, bold)."""
    for row in range(screen.lines):
        for column in range(screen.columns):
            char = screen.buffer[row][column]
            front, back = looks(char)
            x, y, sign = column * CELL_WIDTH, row * CELL_HEIGHT, char.data
            if back != BACK:
                yield "box", x, y, CELL_WIDTH, CELL_HEIGHT, back
            if sign == "\u2588":
                yield "box", x, y, CELL_WIDTH, CELL_HEIGHT, front
            elif sign in SHADES:
                yield "box", x, y, CELL_WIDTH, CELL_HEIGHT, mix(back, front, SHADES[sign])
            elif sign in EIGHTHS_UP:
                height = CELL_HEIGHT * EIGHTHS_UP[sign]
                yield "box", x, y + CELL_HEIGHT - height, CELL_WIDTH, height, front
            elif sign in HEAVY_LINES:
                yield "box", x, y + CELL_HEIGHT / 3, CELL_WIDTH * HEAVY_LINES[sign], CELL_HEIGHT / 3, front
            elif sign == "\u2500":
                yield "box", x, y + CELL_HEIGHT / 2, CELL_WIDTH, 1, front
            elif sign.strip():
                yield "text", x, y, sign, front, char.bold


def write_svg(screen, path):
    width, height = screen.columns * CELL_WIDTH, screen.lines * CELL_HEIGHT
    with open(path, "w", encoding="utf-8") as out:
        out.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                  f'font-family="DejaVu Sans Mono, monospace" font-size="{FONT_SIZE}" shape-rendering="crispEdges">\n'
                  f'<rect width="100%" height="100%" fill="{BACK}"/>\n')
        for kind, x, y, *rest in shapes(screen):
            if kind == "box":
                out.write(f'<rect x="{x:g}" y="{y:g}" width="{rest[0]:g}" height="{rest[1]:g}" fill="{rest[2]}"/>\n')
            else:
                bold = ' font-weight="bold"' if rest[2] else ""
                out.write(f'<text x="{x}" y="{y + CELL_HEIGHT - 4}" fill="{rest[1]}"{bold}>{html.escape(rest[0])}</text>\n')
        out.write("</svg>\n")


def write_png(screen, path):
    from PIL import Image, ImageDraw, ImageFont
    picture = Image.new("RGB", (screen.columns * CELL_WIDTH, screen.lines * CELL_HEIGHT), BACK)
    fonts = [ImageFont.truetype(FONT % name, FONT_SIZE) for name in ("", "-Bold")]
    draw = ImageDraw.Draw(picture)
    for kind, x, y, *rest in shapes(screen):
        if kind == "box":
            draw.rectangle((x, round(y), round(x + rest[0]) - 1, round(y + rest[1]) - 1), fill=rest[2])
        else:
            draw.text((x, y + 1), rest[0], fill=rest[1], font=fonts[bool(rest[2])])
    picture.save(path)


def write_text(screen, path):
    with open(path, "w", encoding="utf-8") as out:
        out.writelines(line.rstrip() + "\n" for line in screen.display)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=24)
    parser.add_argument("--columns", type=int, default=80)
    parser.add_argument("--seconds", type=float, default=5, help="how long the command runs")
    parser.add_argument("--keys", default="", help="characters that it is given, one after the other")
    parser.add_argument("picture")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    writers = {".svg": write_svg, ".png": write_png, ".txt": write_text}
    writer = writers.get(os.path.splitext(arguments.picture)[1])
    if not writer or not arguments.command:
        parser.error("PICTURE must end in .svg, .png or .txt, and a command must follow")
    writer(show(arguments), arguments.picture)


if __name__ == "__main__":
    sys.exit(main())
