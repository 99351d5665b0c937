# SPDX-License-Identifier: BSD-3-Clause
"""What sessions are made of: kinds of objects that a key may have before, numbers and what is none, and a look at what
is there in the end."""

# What a key may be before. "stale" and "won" are the meta commands' marks.
STATES = {
    "absent": b"",
    "plain": b"set %k 5 0 5\r\nhello\r\n",
    "number": b"set %k 0 0 2\r\n10\r\n",
    "padded": b"set %k 0 0 3\r\n100\r\ndecr %k 1\r\n",
    "greatest": b"set %k 7 0 20\r\n18446744073709551615\r\n",
    "flags": b"set %k 4294967295 0 1\r\n5\r\n",
    "empty": b"set %k 1 0 0\r\n\r\n",
    "expiring": b"set %k 3 500 2\r\n42\r\n",
    "expired": b"set %k 3 -1 2\r\n42\r\n",
    "fetched": b"set %k 0 0 2\r\n77\r\nget %k\r\n",
    "stale": b"set %k 0 0 2\r\n10\r\nmd %k I T300\r\n",
    "won": b"set %k 0 0 2\r\n10\r\nmd %k I\r\nmg %k v\r\n",
    "vivified": b"mg %k N300\r\n",
    "large": b"set %k 2 0 5000\r\n" + b"v" * 5000 + b"\r\n",
    "deleted": b"set %k 0 0 2\r\n10\r\ndelete %k\r\n",
    "replaced": b"set %k 9 50 3\r\nold\r\nset %k 0 0 2\r\n12\r\n",
}
FEW = ("absent", "number")

# All flags that tell something, with and without having been read; then the value, its id, and whether it is still there.
LOOK = b"me %k\r\nmg %k h l t f s c k v u O7\r\ngets %k\r\nmg %k h t f s v\r\n"
LOOK_SHORT = b"mg %k t f s c v\r\n"

# Numbers at the ends of their ranges, and what strtoul and its kin could take for some.
NUMBERS = [b"0", b"1", b"2", b"010", b"+1", b"-1", b"-0", b"+0", b"--1", b"+-1", b"+", b"-", b"x", b"1x", b"x1", b"0x10", b"1.5", b"1e3",
           b"2147483646", b"2147483647", b"2147483648", b"4294967295", b"4294967296", b"9223372036854775806",
           b"9223372036854775807", b"9223372036854775808", b"18446744073709551614", b"18446744073709551615",
           b"18446744073709551616", b"99999999999999999999999", b"-2147483648", b"-2147483649", b"-4294967295",
           b"-9223372036854775808", b"-9223372036854775809", b"-18446744073709551615", b"0" * 30 + b"1",
           b"\t1", b"1\t", b"1\t2", b"\v1", b"\f1", b"1\f", b"\r1", b"1\r", b"1\r2", b"1\v\x01", b"1\x001", b"\x001", b"1\x00", b"\xb2",
           b"1,000", b"noreply", b"9223372036854775808\t-", b"5\t-"]
# Of each kind of fault one, for pairs of them.
FAULTS = [b"x", b"-1", b"1x", b"99999999999999999999999", b"2147483648"]

# Line ends and blanks around a line.
LINE_ENDS = [b"\n", b" \r\n", b"\r\r\n", b" \n", b"\t\r\n", b"\0\r\n", b"\r \r\n", b"   \r\n"]
LINE_STARTS = [b" ", b"   ", b"\t", b"\r", b"\0", b"\v"]
BETWEEN = [b"  ", b"\t", b" \t", b"\t ", b"\r ", b" \r", b"\0", b"\v", b"     "]
KEYS = [b"%L", b"%K", b"%Kx", b"%k\tx", b"%k\rx", b"%k\0x", b"%k\x01", b"\xff%k\xfe", b"%k\x7f", b"\"%k\"", b"\0%k"]
EXTRA = [b"x", b"0", b"1", b"noreply x", b"x noreply", b"noreply noreply", b"noreplyx", b"NOREPLY", b"noreply\t", b"norepl",
         b"x x", b"0 noreply", b"0 0", b"\0", b"x " * 22 + b"x", b"x " * 30 + b"noreply"]
