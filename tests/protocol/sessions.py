# SPDX-License-Identifier: BSD-3-Clause
"""Scripted sessions: what a client sends on a new connection. Answers must not depend on state left
by other sessions, so each writes the keys that it reads. %k is a key of 250 bytes, %K one of 251."""

SESSIONS = [
    # lines that are no command
    b"\r\n", b"\n", b" \r\n", b"nonsense\r\n", b"GET a\r\n", b"getx a\r\n", b"get\ta\r\n", b"\x00\x01\x02\r\n",
    b"x" * 2047 + b"\r\n", b"x" * 8000 + b"\r\n",
    # keys
    b"get\r\n", b"get \r\n", b"gets\r\n", b"bget none\r\n", b"get %k\r\n", b"get %K\r\n", b"get none none %K none\r\n",
    b"get  none  none \r\n", b" get none\r\n", b"get none\n", b"set %k 0 0 1\r\nx\r\nget %k\r\n", b"set %K 0 0 1\r\nx\r\n",
    b"set %K 0 0 1 noreply\r\nx\r\n", b"incr %K 1\r\n", b"delete %K\r\n", b"touch %K 0\r\n", b"gat 0 %K\r\n",
    # storage lines
    b"set\r\n", b"set a\r\n", b"set a 0\r\n", b"set a 0 0\r\n", b"set a 0 0 x\r\n", b"set a 0 0 -1\r\nabc\r\n",
    b"set a x 0 1\r\nx\r\n", b"set a -1 0 1\r\nx\r\n", b"set a 0 x 1\r\nx\r\n", b"set a 1x 0 1\r\nx\r\n",
    b"set a 0 1x 1\r\nx\r\n", b"set a 0 0 1x\r\nx\r\n", b"set a 0x1 0 1\r\nx\r\n", b"set a +1 +0 +1\r\nx\r\nget a\r\n",
    b"set a 4294967295 0 1\r\nx\r\nget a\r\n", b"set a 0 0 2147483647\r\n", b"set a 0 0 2147483646\r\n",
    b"set a 0 0 99999999999999999999999\r\n", b"set a 0 0 1 other\r\nx\r\nget a\r\n",
    b"set a 0 0 1 noreply other\r\nx\r\n", b"set a 0 0 1 " + b"x " * 40 + b"\r\nx\r\n", b"set  a  0 0 1 \r\nz\r\nget a\r\n",
    b"cas a 0 0 1\r\nx\r\n", b"cas a 0 0 1 x\r\nx\r\n", b"cas a 0 0 1 -1\r\nx\r\n", b"cas none 0 0 1 1\r\nx\r\n",
    b"cas none 0 0 1 1 noreply\r\nx\r\n", b"cas none 0 0 1 99999999999999999999999\r\nx\r\n",
    b"cas a 0 0 1 0x1\r\nx\r\n", b"cas none 0 0 1 1 other\r\nx\r\n", b"cas none 0 0 1 1 noreply other\r\nx\r\n",
    # empty lines
    b"\n", b"\r\n", b"get a\r\n\nversion\r\n", b"set a 0 0 1\r\nx\r\n\nget a\r\n", b"\n\n\nversion\r\n",
    # data blocks
    b"set a 0 0 0\r\n\r\nget a\r\n", b"set a 0 0 3\r\nabcd\r\n", b"set a 0 0 3\r\nabcde\r\n", b"set a 0 0 3\r\nab\r\n\r\n",
    b"set a 0 0 3\r\nabc\nversion\r\n", b"set a 0 0 3\nabc\r\nget a\r\n", b"set a 0 0 3\r\nabcXYversion\r\n",
    b"set a 0 0 3 noreply\r\nabcXYversion\r\n", b"set a 0 0 1\r\ny\r\nset a 0 0 3\r\nabcXYversion\r\nget a\r\n",
    b"set a 0 0 1\r\ny\r\nset a 0 0 -5\r\nget a\r\n", b"set a 0 0 1\r\ny\r\nset a 0 zz 1\r\nget a\r\n",
    # too large
    b"set a 0 0 1\r\ny\r\nset a 0 0 2000000\r\n" + b"x" * 2000000 + b"\r\nget a\r\n",
    b"set a 0 0 2000000 noreply\r\n" + b"x" * 2000000 + b"\r\n",
    b"set a 0 0 1\r\ny\r\nadd a 0 0 2000000\r\n" + b"x" * 2000000 + b"\r\nget a\r\n",
    b"set a 0 0 1\r\ny\r\nappend a 0 0 2000000\r\n" + b"x" * 2000000 + b"\r\nget a\r\n",
    b"cas a 0 0 2000000 1\r\n" + b"x" * 2000000 + b"\r\n",
    b"set a 0 0 600000\r\n" + b"x" * 600000 + b"\r\nappend a 0 0 600000\r\n" + b"y" * 600000 + b"\r\nget a\r\n",
    # conditions
    b"delete b\r\nadd b 0 0 1\r\nx\r\nadd b 0 0 1\r\ny\r\ndelete b\r\ndelete b\r\n",
    b"replace none 0 0 1\r\nx\r\nappend none 0 0 1\r\nx\r\nprepend none 0 0 1\r\nx\r\n",
    b"set a 5 0 1\r\nx\r\nappend a 7 0 2\r\nyz\r\nprepend a 9 0 2\r\nuv\r\nget a\r\n",
    # expiry
    b"set a 0 -1 1\r\nx\r\nget a\r\n", b"set a 0 100 1\r\nx\r\nget a\r\n", b"set a 0 2592001 1\r\nx\r\nget a\r\n",
    b"set a 0 1000000000 1\r\nx\r\nget a\r\n", b"set a 0 2000000000 1\r\nx\r\nget a\r\n",
    # numbers
    b"incr\r\n", b"incr a\r\n", b"incr none 1\r\n", b"decr none 1\r\n", b"incr a x\r\n", b"incr a -1\r\n", b"incr a 1 2 3\r\n",
    b"incr none 1 noreply\r\n", b"incr none x noreply\r\n", b"incr none 99999999999999999999\r\n",
    b"set n 0 0 1\r\n5\r\nincr n 1 2\r\nincr n 1 noreply\r\nget n\r\n",
    b"set n 0 0 1\r\nx\r\nincr n 1\r\nget n\r\n", b"set n 0 0 0\r\n\r\nincr n 1\r\n", b"set n 0 0 2\r\n-5\r\nincr n 1\r\n",
    b"set n 0 0 2\r\n10\r\ndecr n 1\r\nget n\r\ndecr n 100\r\nget n\r\nincr n 5\r\nget n\r\nincr n 1000\r\nget n\r\n",
    b"set n 0 0 20\r\n18446744073709551615\r\nincr n 1\r\nget n\r\nincr n 12\r\nget n\r\n",
    b"set n 0 0 20\r\n18446744073709551616\r\nincr n 1\r\n", b"set n 0 0 21\r\n118446744073709551615\r\nincr n 1\r\n",
    b"set n 0 0 3\r\n005\r\nincr n 1\r\nget n\r\n", b"set n 0 0 2\r\n5 \r\nincr n 1\r\nget n\r\n",
    b"set n 0 0 2\r\n 5\r\nincr n 1\r\nget n\r\n", b"set n 0 0 3\r\n5 x\r\nincr n 1\r\nget n\r\n",
    b"set n 0 0 2\r\n+5\r\nincr n 1\r\nget n\r\n", b"set n 0 0 3\r\n5ab\r\nincr n 1\r\nget n\r\n",
    b"set n 0 0 30\r\n000000000000000000000000000005\r\nincr n 1\r\n",
    b"set n 0 0 1\r\n5\r\nincr n 18446744073709551615\r\nincr n 18446744073709551616\r\nincr n +1\r\nincr n 1x\r\n",
    # delete
    b"delete\r\n", b"set a 0 0 1\r\nx\r\ndelete a 0\r\n", b"delete a 1\r\n", b"delete a 00\r\n", b"delete a other\r\n",
    b"delete a 0 other\r\n", b"delete a 0 0 0\r\n", b"delete a noreply\r\n", b"delete a 0 noreply\r\n",
    b"delete a other noreply\r\n", b"delete a " + b"x " * 40 + b"\r\n",
    # touch, gat
    b"touch\r\n", b"touch a\r\n", b"touch a x\r\n", b"touch none 0\r\n", b"touch none x noreply\r\n",
    b"set a 0 0 1\r\nx\r\ntouch a 0\r\ntouch a 0 noreply\r\ntouch a 0 other\r\ntouch a 0 0 0\r\n",
    b"set a 0 0 1\r\nx\r\ntouch a -1\r\nget a\r\n", b"gat\r\n", b"gats\r\n", b"gat 0\r\n", b"gats 0\r\n", b"gat x a\r\n",
    b"gat a\r\n", b"gat 0 none none\r\n", b"set a 0 0 1\r\nx\r\ngat 0 a a\r\ngat -1 a\r\nget a\r\n",
    # the rest
    b"version\r\n", b"version other\r\n", b"version \r\n", b"verbosity\r\n", b"verbosity 0\r\n", b"verbosity x\r\n",
    b"verbosity 0 noreply\r\n", b"verbosity noreply\r\n", b"verbosity 0 0\r\n", b"verbosity 0 0 0\r\n", b"verbosity -1\r\n",
    b"flush_all x\r\n", b"flush_all x noreply\r\n", b"flush_all 0 0 0\r\n", b"flush_all 99999999999999999999\r\n",
    b"set a 0 0 1\r\nx\r\nflush_all\r\nget a\r\n", b"set a 0 0 1\r\nx\r\nflush_all noreply\r\nget a\r\n",
    b"set a 0 0 1\r\nx\r\nflush_all 0\r\nget a\r\n", b"set a 0 0 1\r\nx\r\nflush_all -1\r\nget a\r\n",
    b"set a 0 0 1\r\nx\r\nflush_all 0 0\r\nget a\r\n", b"set a 0 0 1\r\nx\r\nflush_all 0 noreply\r\nget a\r\n",
    b"stats other\r\n", b"stats noreply\r\n", b"stats reset\r\n", b"stats reset other\r\n", b"stats sizes\r\n",
    b"stats detail\r\n", b"stats detail other\r\n", b"stats detail dump\r\n", b"stats cachedump\r\n", b"stats cachedump 1\r\n",
    b"shutdown\r\n", b"shutdown other\r\n", b"mn\r\n",
    b"set a 0 0 1\r\nx\r\nset b 0 0 1\r\ny\r\nget a none b\r\ngets none\r\n",
    b"set a 0 0 1\r\nx\r\nget" + b" a" * 100 + b"\r\n",
    b"set a 0 0 1 noreply\r\nx\r\nappend a 0 0 1 noreply\r\ny\r\nget a\r\ndelete a noreply\r\nget a\r\n",
    # strtoull takes these for numbers: signs, spaces before, what follows a space.
    b"set n 0 0 2\r\n 5\r\nincr n 1\r\nget n\r\n", b"set n 0 0 3\r\n5 x\r\nincr n 1\r\nget n\r\n",
    b"set n 0 0 2\r\n+5\r\nincr n 1\r\nget n\r\n", b"set n 0 0 30\r\n000000000000000000000000000005\r\nincr n 1\r\n",
]
