# SPDX-License-Identifier: BSD-3-Clause
"""Scripted sessions of the meta commands, as sessions.py has them for the classic ones: answers must not
depend on what other sessions left, so each deletes (in silence) the keys a, b and n before it starts. %k is a key of
250 bytes, %K one of 251, %O an opaque token of 32, %X a value of 2000000 bytes."""

# ---- lines -------------------------------------------------------------------------------------
# What is no line of a meta command, and which of its faults is told.

LINES = [b"mg", b"mg ", b"md", b"ma ", b"ms", b"ms  ", b"me", b"me ", b"mx", b"m", b"mga", b"MG a", b"mn x",
b"mn" + b" x" * 100]

KEYS = [b"mg %K", b"mg %K v", b"mg %K z z", b"mg %K" + b" x" * 30, b"md %K", b"ma %K", b"me %K", b"me %K b", b"ms %K 1\r\nx",
        b"ms %K 1 q\r\nx", b"ms %K x", b"ms %K", b"ms %K 3000000", b"mg %k v k", b"md %k", b"ma %k", b"me %k", b"mg  a  v ",
        b" mg a v", b"mg a" + b" " * 30 + b"k", b"md  a  q ", b"mg " + b"a" * 2030, b"mg -k", b"mg a\tv", b"mg a v\rk"]

# The flags of 1.6.18 in the order of the alphabet; E and x came later.
FLAGS = b"C1 D1 F1 I J1 L N0 O1 P R1 T0 c f h k l q t u v".split()  # and b, M and s
BAD = [b"%c" % c for c in range(33, 256) if b"%c" % c not in b"ILPquvcfhklstOxE"]
TOKENS = [b"C", b"C-1", b"Cx", b"C1x", b"C18446744073709551615", b"C18446744073709551616", b"C+1", b"D", b"Dx", b"D-1", b"D+1",
          b"D18446744073709551615", b"D18446744073709551616", b"F", b"F-1", b"F1.5", b"F0x1", b"F+1", b"F4294967296",
          b"F18446744073709551615", b"F18446744073709551616", b"J", b"Jx", b"J-1", b"J18446744073709551616", b"M", b"MX",
          b"Mx", b"MSS", b"N", b"Nx", b"N1x", b"N99999999999999999999", b"R", b"Rx", b"R-1", b"R+5", b"R99999999999999999999",
          b"T", b"Tx", b"T1x", b"T+5", b"T99999999999999999999", b"O", b"O1234567890123456789012345678901"]
FAULTS = [b"v v", b"v z", b"z z", b"k q k", b"b z", b"z b", b"b b", b"b Tx", b"Tx b", b"Tx z", b"Dx z", b"Mxx Tx", b"T1 Tx",
b"Tx T1",
          b"%O z", b"MX Tx", b"Tx MX", b"Tx %O", b"vv", b"v1 k2", b"q z", b"k O1 z", b"k O1 MX"]
OPAQUE = [b"mg a %O\r\nmd a %O q\r\nma a %O\r\n",
b"ms a 1\r\n5\r\nmg a q %O v\r\nmd a %O\r\nms a 2 %O\r\n12\r\nms a 2 MX %O\r\n12\r\nma a %O MX\r\nmg a v\r\n"]
MANY = [b" ".join(FLAGS[:count]) for count in range(14, 21)] + [b"z " * 30, b"v " * 17, b"v " * 18]


def everywhere(flags, value=b"5"):
    """A flag, or some, with each of the commands, on an object and on a key that isn't there."""
    for present in (b"", b"set a 7 0 %d\r\n%s\r\n" % (len(value), value)):
        for line in (b"mg a %s\r\n", b"ms a 2 %s\r\n12\r\n", b"md a %s\r\n", b"ma a %s\r\n"):
            yield present + line % flags + b"mg a v f t s k\r\n"


# ---- keys in base64 ----------------------------------------------------------------------------

BASE64 = [b"a", b"YQ", b"YQ==", b"YQ==YQ==", b"YQ=a", b"YR==", b"=", b"====", b"Y===", b"!!!!", b"YW!Jj", b"YW-_", b"YW+/",
b"YWFh",
          b"YWFhY", b"AAECIAo=", b"a2tr" * 62, b"a2tr" * 62 + b"a", b"a2tr" * 63, b"a2tr" * 84]
BINARY = [b"ms %b 1 b k c\r\nx\r\n", b"ms %b 1 b\r\nx\r\nmg %b b k v O1\r\nmg %b k v b\r\nmg %b b v\r\n",
          b"ms %b 1 b\r\n5\r\nma %b b k v\r\nma %b b k\r\nme %b b\r\nmd %b b k\r\nmg %b b k v\r\nmd %b k b\r\n",
          b"mg %b b k\r\nmd %b b k O1\r\nma %b k b\r\nme %b b\r\n", b"ms %b 1 b MR k\r\nx\r\nms %b 1 b C5 k\r\nx\r\n",
          b"me %b b k\r\nme %b k b\r\nme %b bk\r\n"]

# ---- sessions ----------------------------------------------------------------------------------

GET = [
    b"ms a 5 F9 T60\r\nhello\r\nmg a\r\nmg a v\r\nmg a k\r\nmg a f\r\nmg a s\r\nmg a t\r\nmg a Oopaque\r\nmg a h\r\nmg a l\r\nmg a u\r\n",
    b"ms a 5 F9 T60\r\nhello\r\nmg a s v f k t Oqq h l\r\n",
    b"ms a 5 F9\r\nhello\r\nmg a l h Oqq t k f v s\r\nmg a v q s k\r\n",
    b"mg a k Oqq\r\nmg a Oqq v k f t\r\nmg a q\r\nmg a k q\r\nmg a q O1 v\r\n",
    b"ms a 0\r\n\r\nmg a v s\r\nmg a q\r\nmg a q k\r\n",
    b"ms a 1\r\nx\r\nmg a q v\r\nmg b q v\r\nmn\r\nmg b v q k O5\r\nmg a v q k O5\r\nmn\r\n",
    b"ms a 1\r\nx\r\nmg a h\r\nmg a h\r\nget a\r\nmg a h\r\n", b"ms a 1\r\nx\r\nmg a u h\r\nmg a h\r\nmg a h u\r\n",
    b"ms a 1\r\nx\r\nget a\r\nmg a h\r\n", b"ms a 1\r\nx\r\ntouch a 0\r\nmg a h\r\n",
    b"ms a 1\r\nx\r\nms a 1\r\ny\r\nmg a h l\r\n",
    b"ms a 1\r\nx\r\nmg a T30 t\r\nmg a t\r\n", b"ms a 1\r\nx\r\nmg a t T30\r\nmg a t\r\nmg a t T0\r\nmg a t\r\n",
    b"ms a 1\r\nx\r\nmg a T0 t v k\r\nmg a T-1 v\r\nmg a v\r\n", b"ms a 1\r\nx\r\nmg a T2592001 v\r\nmg a v\r\n",
    b"ms a 1 T100\r\nx\r\nmg a T0 t\r\nmg a t\r\ngat 50 a\r\nmg a t\r\ntouch a 60\r\nmg a t\r\n",
    b"ms a 1\r\nx\r\nmg a C0 v\r\nmg a C77 v\r\nmg a F5 I J6 D7 MZ v f\r\n",
    b"mg a L1 P2 k\r\nms a 1 L1 P2\r\nx\r\nmg a Lx Px v\r\n",
    b"ms a 2000\r\n" + b"y" * 2000 + b"\r\nmg a s v k\r\nmg a s\r\nmg a q s\r\n",
    b"ms a 1\r\nx\r\n" + b"mg a v k\r\nmg b v k\r\n" * 50,
    b"ms %k 1\r\nx\r\nmg %k k O1234567890123456789012345678901 f s t h l v\r\n",
    b"ms a 1\r\nx\r\nmg a v\nmg a\n", b"ms a 1\nx\r\nmg a v\r\n",
]
RECACHE = [
    b"ms a 1 T30\r\nx\r\nmg a R60 v t\r\nmg a R60 v t\r\nmg a v\r\nmg a k O1 v\r\n",
    b"ms a 1 T30\r\nx\r\nmg a R10 v t\r\nmg a R29\r\nmg a R40\r\nmg a R40\r\n",
    b"ms a 1\r\nx\r\nmg a R10 v t\r\nmg a R0\r\nmg a R-1\r\n", b"ms a 1 T30\r\nx\r\nmg a R90 T100 t\r\nmg a R90 T100 t\r\n",
    b"ms a 1 T3600\r\nx\r\nmg a R2592001 v\r\nmg a R1000000000 v\r\nmg a R2592000 v\r\n",
    b"ms a 1 T60\r\nx\r\nmg a T100 R90 t\r\nmg a T10 R90 t\r\n",
    b"ms a 1 T60\r\nx\r\nmg a R90\r\ntouch a 100\r\nmg a R90\r\nset a 0 0 1\r\nx\r\nmg a\r\n",
    b"ms a 1 T60\r\nx\r\nmg a R90 q\r\nmg a R90 q\r\nms a 1\r\ny\r\nmg a R90 v\r\n",
    b"mg a N30 v t f s k h l\r\nmg a N30 v t\r\nmg a v\r\nms a 1 T10\r\ny\r\nmg a v t\r\n", b"mg a N30\r\nmg a\r\nmg a q\r\n",
    b"mg a N30 q\r\nmg a N30 q\r\n", b"mg a N30 q v\r\nget a\r\nadd a 0 0 1\r\nx\r\n", b"mg a N-1\r\nmg a v\r\n",
    b"mg a N0 T30 t\r\nmg a t\r\n",
    b"mg a N30 O1 k\r\nmd a\r\nmg a N30\r\n", b"mg a N30\r\nms a 1 ME\r\nx\r\nmg a v\r\n",
    b"mg a N30\r\nms a 1 MR\r\nx\r\nmg a v\r\n",
    b"mg a N30 R60\r\nmg a N30 R60\r\n", b"ms a 1 T90\r\nx\r\nmg a N30 R60 v t\r\n", b"mg a N30 u\r\nmg a u\r\n",
]
STALE = [
    b"ms a 1 F3\r\nx\r\nmd a I T30\r\nmg a t v s f\r\nmg a t v\r\nmd a I\r\nmg a v\r\nmg a v\r\n",
    b"ms a 1\r\nx\r\nmd a I\r\nget a\r\nmg a\r\nget a\r\nmg a\r\n",
    b"ms a 1\r\nx\r\nmd a I\r\ngat 0 a\r\ntouch a 0\r\nmg a v\r\n",
    b"ms a 2\r\n10\r\nmd a I\r\nappend a 0 0 1\r\n0\r\nmg a v\r\n",
    b"ms a 2\r\n10\r\nmd a I\r\nset a 0 0 1\r\nx\r\nmg a v\r\n",
    b"ms a 2\r\n10\r\nmd a I\r\nreplace a 0 0 1\r\nx\r\nmg a v\r\n",
    b"ms a 1\r\nx\r\nmd a I\r\nadd a 0 0 1\r\ny\r\nmg a v\r\n", b"ms a 1\r\nx\r\nmd a I\r\nmg a u v\r\nmg a v\r\n",
    b"ms a 1\r\nx\r\nmd a I T-1\r\nmg a v\r\n",
    b"ms a 1\r\nx\r\nmd a I\r\nms a 1 MA\r\ny\r\nmg a v\r\n", b"ms a 1\r\nx\r\nmd a I\r\nmg a R30 N30 v\r\nmg a R30 N30 v\r\n",
    b"ms a 1 T60\r\nx\r\nmd a I T30 q\r\nmd a I T90 q\r\nmg a t\r\n",
    b"mg a N30\r\nmd a I\r\nmg a v\r\nmg a v\r\nmg a R60\r\nmg a T0\r\n",
    b"ms a 1\r\nx\r\nms a 1 C1 I\r\nz\r\nmg a v\r\nmg a v\r\nms a 1 C2 I\r\ny\r\nmg a v\r\nms a 1\r\nw\r\nmg a v\r\n",
    b"ms a 1 I\r\nx\r\nmg a v\r\nms a 1 I\r\ny\r\nmg a v\r\n",
    b"ms a 1\r\nx\r\nms a 1 C1 I MR\r\nz\r\nmg a v\r\nmg a v\r\n", b"ms a 1\r\nx\r\nms a 1 C1 I MA\r\nz\r\nmg a v\r\n",
    b"ms a 1\r\nx\r\nms a 1 C1 I ME\r\nz\r\nmg a v\r\n",
    b"ms a 1\r\nx\r\nms a 1 C18446744073709551615 I\r\nz\r\nmg a v\r\n",
    b"ms a 1\r\nx\r\nmd a I C1\r\nmg a\r\nmd a I C1 k\r\n", b"md a I\r\nmd a I k O1\r\nmd a I q\r\n",
    b"ms a 1\r\nx\r\nmd a I\r\nme a\r\nmg a\r\nme a\r\n", b"ms a 1\r\nx\r\nmd a I\r\nmd a\r\nmg a\r\n",
]
SET = [
    b"ms a 1 k Oaa\r\nx\r\nms a 1 q\r\ny\r\nmg a v\r\nms a 1 ME q k\r\nz\r\nms a 1 ME k Oz c\r\nz\r\n",
    b"ms a 1 MR k\r\nx\r\nms a 1 MA\r\nx\r\nms a 1 MP\r\nx\r\nms a 1 MS\r\nx\r\nms a 1 MA\r\ny\r\nms a 1 MP\r\nz\r\nmg a v\r\nms a 2 MR\r\nrr\r\nmg a v\r\n",
    b"ms a 1 MA c T0\r\nx\r\nms a 1 MP c q\r\nx\r\nms a 1 MR c q\r\nx\r\n",
    b"set a 5 60 1\r\nx\r\nms a 1 MA F9 T90\r\ny\r\nmg a f v t\r\nms a 1 MR\r\ny\r\nmg a f v t\r\n",
    b"set a 5 60 1\r\nx\r\nms a 1\r\ny\r\nmg a f v t\r\n",
    b"ms a 1 C0\r\nx\r\nms a 1 C5 k Oa c\r\nx\r\nms a 1 C5 q\r\nx\r\nms a 1 C5 MR c\r\nx\r\nms a 1 C5 MA c\r\nx\r\nms a 1 C5 MP q\r\nx\r\nms a 1 C5 ME\r\nx\r\nmg a v\r\n",
    b"ms a 1\r\nx\r\nms a 1 C1\r\ny\r\nms a 1 C1 q k c\r\ny\r\nms a 1 C1 MA c\r\ny\r\nms a 1 C1 MP\r\ny\r\nms a 1 C1 MR\r\ny\r\nms a 1 C1 ME\r\ny\r\nmg a v\r\n",
    b"ms a 1\r\nx\r\nms a 1 C0\r\ny\r\nms a 1 C0 MR\r\ny\r\nmg a v\r\n",
    b"ms a 1\r\nx\r\nms a 1 C0 MA\r\ny\r\nms a 1 C0 MP\r\nz\r\nmg a v\r\n",
    b"ms a 3\r\nabcde\r\nmg a v\r\n", b"ms a 3\r\nab\r\n\r\nmg a v\r\n", b"ms a 3 q\r\nabcde\r\nmg a v\r\n",
    b"ms a 3 k Oa\r\nabcXYversion\r\n", b"ms a 1\r\nx\r\nms a 3\r\nabcXYversion\r\nmg a v\r\n",
    b"ms a x\r\nmg a v\r\n", b"ms a\r\nxx\r\n", b"ms a 2147483647\r\n", b"ms a 2147483646\r\n",
    b"ms a 99999999999999999999\r\n", b"ms a -1\r\nx\r\n", b"ms a 1x\r\nx\r\n", b"ms a 0x1\r\nx\r\n",
    b"ms a +2\r\nhi\r\nmg a v\r\n", b"ms a 02\r\nhi\r\nmg a v\r\n", b"ms a S2\r\nhi\r\n", b"ms a q 2\r\nhi\r\n",
    b"ms a 0 q\r\n\r\nmg a v\r\n", b"ms a 1 T-1\r\nx\r\nmg a v\r\n", b"ms a 1 T2592001\r\nx\r\nmg a v\r\n",
    b"ms a 1\r\ny\r\nms a 2000000\r\n%X\r\nmg a v\r\n", b"ms a 1\r\ny\r\nms a 2000000 q\r\n%X\r\nmg a v\r\n",
    b"ms a 1\r\ny\r\nms a 2000000 ME k O1\r\n%X\r\nmg a v\r\n", b"ms a 1\r\ny\r\nms a 2000000 MA\r\n%X\r\nmg a v\r\n",
    b"ms a 1\r\ny\r\nms a 2000000 C1\r\n%X\r\nmg a v\r\n", b"ms a 1\r\ny\r\nms a 2000000 z\r\n%X\r\nmg a v\r\n",
    b"ms a 1\r\ny\r\nms a 2000000 MX\r\n%X\r\nmg a v\r\n", b"ms a 1\r\ny\r\nms a 2000000 %O\r\n%X\r\nmg a v\r\n",
    b"ms a 600000\r\n" + b"x" * 600000 + b"\r\nms a 600000 MA k c\r\n" + b"y" * 600000 + b"\r\nmg a s\r\nms a 600000 MP q\r\n" + b"y" * 600000 + b"\r\n",
]
DELETE = [
    b"md a\r\nmd a q\r\nmd a k Oabc\r\nmd a Oabc k\r\n", b"ms a 1\r\nx\r\nmd a\r\nmg a\r\n",
    b"ms a 1\r\nx\r\nmd a q\r\nmg a\r\nmd a q\r\n", b"ms a 1\r\nx\r\nmd a k Oabc\r\n",
    b"ms a 1\r\nx\r\nmd a C1\r\nmd a C1 q\r\nmd a C0 k\r\nmg a v\r\n", b"md a C1\r\nmd a C1 q k\r\n",
    b"ms a 1\r\nx\r\nmd a v t f s c h l k u\r\n", b"md a T5\r\nms a 1\r\nx\r\nmd a T-1\r\nmg a\r\n",
]
ARITHMETIC = [
    b"ma n\r\nma n q\r\nma n k Oa\r\nma n v t c\r\nma n J5\r\nma n T5\r\nma n MD\r\nma n C1\r\n",
    b"ms n 2\r\n10\r\nma n\r\nma n v\r\nma n D5 v\r\nma n MD D3 v\r\nma n M- v\r\nma n M+ v\r\nma n MI v\r\nmg n v\r\n",
    b"ms n 2\r\n10\r\nma n MX\r\nma n Mi\r\nma n M\r\nma n MDD\r\nma n Dx\r\nmg n v\r\n",
    b"ms n 2\r\n10\r\nma n q\r\nma n q v\r\nma n k Oa\r\nma n v k t Oa\r\nma n s f h l v\r\n",
    b"ms n 2\r\n10\r\nma n T30 t v\r\nma n t\r\nma n T0 t\r\nma n t T30\r\nma n t v\r\n",
    b"ms n 1\r\nx\r\nma n\r\nma n q\r\nma n k v\r\nma n C1\r\nmg n v\r\n", b"ma n N30 v t\r\nma n v t\r\nma n N60 t v\r\n",
    b"ma n N30 J13 q\r\nma n N30 J13 q v\r\nma n v\r\n", b"ma n N0 J10 D5 MD v\r\nma n MD D5 v\r\nma n MD D7 v\r\n",
    b"ma n N0 C5 v\r\nma n C1 v k\r\nma n C1 q\r\nma n C0 v\r\n", b"ma n N-1 v\r\nma n v\r\n",
    b"ms n 20\r\n18446744073709551615\r\nma n v\r\nma n MD v\r\nma n D18446744073709551615 v\r\nma n D1 v\r\n",
    b"ma n N0 J18446744073709551615 v\r\nma n v\r\n", b"ma n N0 J18446744073709551616 v\r\n",
    b"ma n N0 T30 t\r\nmg n t v\r\n", b"ma n N30 k O1 t v\r\nmg n f s t v\r\n",
    b"ms n 2\r\n10\r\nma n MD\r\nmg n v s\r\nget n\r\n", b"ms n 0\r\n\r\nma n v\r\n", b"mg n N30\r\nma n v\r\n",
    b"ms n 3 F7 T30\r\n999\r\nma n v t\r\nmg n f s v t\r\n",
]
DEBUG = [
    b"me a\r\nme a k\r\nme a b\r\nme a x y z\r\nme aaaa b\r\n",
    b"ms a 1\r\nx\r\nme a\r\nmg a\r\nme a\r\nme a\r\nmg a T30\r\nme a\r\n",
    b"ms a 5 F1\r\nhello\r\nme a\r\nme a q\r\nme  a  k\r\n",
    b"ms a 100 T60\r\n" + b"x" * 100 + b"\r\nme a\r\n", b"me a " + b"x " * 40 + b"\r\n", b"ms %k 1\r\nx\r\nme %k\r\n",
]
MIXED = [
    b"set a 3 0 1\r\n5\r\nmg a v f\r\nma a v\r\nget a\r\nms a 2 MA\r\n00\r\nget a\r\nincr a 1\r\nmd a\r\nget a\r\n",
    b"ms a 1 F3 T60\r\n5\r\nget a\r\ngat 0 a\r\nmg a t f v\r\ndelete a\r\nmg a\r\n",
    b"ms a 1 q\r\n1\r\nma a q\r\nma a q D5\r\nmg a q v\r\nmd b q\r\nmd a q\r\nmg a q v\r\nmn\r\n",
    b"".join(b"ms a %d q\r\n%s\r\nmg a v s\r\n" % (n, b"z" * n) for n in (0, 1, 9, 10, 99, 100, 1023, 1024, 1025, 5000)),
    b"ms a 1 q\r\nx\r\nmg a v q O1\r\nmg b v q O2\r\nmg a q k O3\r\nmd b q O4\r\nma b q O5\r\nms b 1 q C1 O6\r\nx\r\nmn\r\n",
]

SESSIONS = {
    "lines": [line + b"\r\n" for line in LINES + KEYS],
    "flags": [session for flag in FLAGS for session in everywhere(flag)],
    "tokens": [session for flags in TOKENS for session in everywhere(flags)],
    "faults": [session for flags in FAULTS + MANY for session in everywhere(flags)],
    "unknown flags": [line % flag + b"\r\n" for flag in BAD for line in (b"mg a %s", b"ms a 1 %s\r\nx", b"md a %s",
    b"ma a %s")],
    "base64": [session.replace(b"%b", key) for key in BASE64 for session in BINARY],
    "opaque": OPAQUE, "get": GET, "recache": RECACHE, "stale": STALE, "set": SET, "delete": DELETE, "arithmetic": ARITHMETIC, "debug": DEBUG,
    "mixed": MIXED,
}
