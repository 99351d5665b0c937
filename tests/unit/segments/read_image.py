#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reads a flash image by segments/FORMAT.md alone and prints every record of every whole segment.

    read_image.py IMAGE
    read_image.py --position PLACE FUNCTION SEQUENCE DATA_BYTES GRANULE FUNCTIONS

A line per segment and per record; damage is told on a line that begins with "bad". Shares no code with
the daemon, XXH3 included, so that format page and daemon are checked against each other.
"""

import struct
import sys

MASK = (1 << 64) - 1
PAGE = 4096
HOMES = 1 << 2  # an incompatible feature of superblocks
SUM_SEED = 0x464C534849454C44

# ---- XXH3, 64 bits ----------------------------------------------------------------------------

P32_1, P32_2, P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
P64_1, P64_2, P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P64_4, P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
MX1, MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25
DEFAULT_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)


def u32(data, at):
    return struct.unpack_from("<I", data, at)[0]


def u64(data, at):
    return struct.unpack_from("<Q", data, at)[0]


def swap64(x):
    return int.from_bytes(x.to_bytes(8, "little"), "big")


def rotl(x, n):
    return ((x << n) | (x >> (64 - n))) & MASK


def fold(a, b):
    product = a * b
    return (product & MASK) ^ (product >> 64)


def avalanche3(h):
    h ^= h >> 37
    h = h * MX1 & MASK
    return h ^ (h >> 32)


def avalanche64(h):
    h ^= h >> 33
    h = h * P64_2 & MASK
    h ^= h >> 29
    h = h * P64_3 & MASK
    return h ^ (h >> 32)


def mix16(data, at, secret, sat, seed):
    low = u64(data, at) ^ (u64(secret, sat) + seed & MASK)
    high = u64(data, at + 8) ^ (u64(secret, sat + 8) - seed & MASK)
    return fold(low, high)


def short_hash(data, secret, seed):
    n = len(data)
    if n == 0:
        return avalanche64(seed ^ u64(secret, 56) ^ u64(secret, 64))
    if n <= 3:
        combined = data[0] << 16 | data[n >> 1] << 24 | data[n - 1] | n << 8
        return avalanche64(combined ^ ((u32(secret, 0) ^ u32(secret, 4)) + seed & MASK))
    if n <= 8:
        seed ^= int.from_bytes((seed & 0xFFFFFFFF).to_bytes(4, "little"), "big") << 32
        flip = (u64(secret, 8) ^ u64(secret, 16)) - seed & MASK
        h = (u32(data, n - 4) + (u32(data, 0) << 32)) ^ flip
        h ^= rotl(h, 49) ^ rotl(h, 24)
        h = h * MX2 & MASK
        h ^= (h >> 35) + n
        h = h * MX2 & MASK
        return h ^ (h >> 28)
    low = u64(data, 0) ^ ((u64(secret, 24) ^ u64(secret, 32)) + seed & MASK)
    high = u64(data, n - 8) ^ ((u64(secret, 40) ^ u64(secret, 48)) - seed & MASK)
    return avalanche3(n + swap64(low) + high + fold(low, high) & MASK)


def middle_hash(data, secret, seed):
    n = len(data)
    acc = n * P64_1 & MASK
    if n <= 128:
        for i in reversed(range((n - 1) // 32 + 1)):
            acc += mix16(data, 16 * i, secret, 32 * i, seed)
            acc += mix16(data, n - 16 * (i + 1), secret, 32 * i + 16, seed)
        return avalanche3(acc & MASK)
    for i in range(8):
        acc += mix16(data, 16 * i, secret, 16 * i, seed)
    acc = avalanche3(acc & MASK)
    for i in range(8, n // 16):
        acc += mix16(data, 16 * i, secret, 16 * (i - 8) + 3, seed)
    acc += mix16(data, n - 16, secret, 136 - 17, seed)
    return avalanche3(acc & MASK)


def accumulate(acc, data, at, secret, sat):
    values = struct.unpack_from("<8Q", data, at)
    keys = struct.unpack_from("<8Q", secret, sat)
    for i in range(8):
        key = values[i] ^ keys[i]
        acc[i ^ 1] = acc[i ^ 1] + values[i] & MASK
        acc[i] = acc[i] + (key & 0xFFFFFFFF) * (key >> 32) & MASK


def long_hash(data, secret):
    n = len(data)
    acc = [P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1]
    per_block = (len(secret) - 64) // 8
    blocks = (n - 1) // (64 * per_block)
    last = len(secret) - 64
    for block in range(blocks):
        for i in range(per_block):
            accumulate(acc, data, (block * per_block + i) * 64, secret, i * 8)
        for i in range(8):
            acc[i] = (acc[i] ^ (acc[i] >> 47) ^ u64(secret, last + 8 * i)) * P32_1 & MASK
    for i in range((n - 1 - blocks * 64 * per_block) // 64):
        accumulate(acc, data, (blocks * per_block + i) * 64, secret, i * 8)
    accumulate(acc, data, n - 64, secret, last - 7)
    result = n * P64_1 & MASK
    for i in range(4):
        result += fold(acc[2 * i] ^ u64(secret, 11 + 16 * i), acc[2 * i + 1] ^ u64(secret, 19 + 16 * i))
    return avalanche3(result & MASK)


def keyed(data, secret):
    if len(data) <= 16:
        return short_hash(data, secret, 0)
    return middle_hash(data, secret, 0) if len(data) <= 240 else long_hash(data, secret)


def seeded(data, seed):
    if len(data) <= 16:
        return short_hash(data, DEFAULT_SECRET, seed)
    if len(data) <= 240:
        return middle_hash(data, DEFAULT_SECRET, seed)
    secret = b""
    for i in range(0, 192, 16):
        secret += struct.pack("<Q", u64(DEFAULT_SECRET, i) + seed & MASK)
        secret += struct.pack("<Q", u64(DEFAULT_SECRET, i + 8) - seed & MASK)
    return long_hash(data, secret)


def checksum(data):
    return seeded(data, SUM_SEED)


# ---- the format -------------------------------------------------------------------------------


def mix(x):
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & MASK
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & MASK
    return x ^ (x >> 31)


def reduce(x, n):
    return x * n >> 64


def position(place, function, sequence, data_bytes, granule, functions):
    positions = data_bytes // granule
    parts = min(functions, positions)
    golden = 0x9E3779B97F4A7C15
    key = mix(place ^ mix(sequence + golden & MASK))
    part = (function + reduce(key, parts)) % parts
    start, end = positions * part // parts, positions * (part + 1) // parts
    return start + reduce(mix(key + (function + 1) * golden & MASK), end - start)


BINS, CHAIN = 1, 2


def valid(page, magic, size, features=(0,), known=0):
    return (
        page[:8] == magic
        and u32(page, 8) == 1
        and u32(page, 12) == size
        and u64(page, 32) & ~known in features
        and u64(page, size - 8) == checksum(page[: size - 8])
    )


def numbers_are_sound(page):
    generation, epoch, cas, sequence = (u64(page, at) for at in (40, 280, 296, 304))
    return max(generation, epoch, sequence) < 1 << 62 and min(cas, sequence) >= 1


def homes(page):
    """The homes of the segments that are listed, and the segments whose home is bad."""
    entries = [struct.unpack_from("<HH", page, 360 + 4 * n) for n in range(min(u32(page, 344), 512))]
    return {segment: home & 0x3FFF for segment, home in entries}, {segment for segment, home in entries if home >> 15}


def homes_are_sound(page):
    count, listed = u32(page, 344), homes(page)[0]
    if count > 512 or (count > 0) != (u64(page, 32) == HOMES):
        return False
    return (len(listed) == count and list(listed) == sorted(listed) == sorted(listed.values())
            and all(segment < u32(page, 272) for segment in listed))


def superblock(image):
    copies = [image[at : at + PAGE] for at in (0, 32768)]
    copies = [copy for copy in copies if valid(copy, b"FLSHSUPR", PAGE, known=HOMES) and numbers_are_sound(copy) and homes_are_sound(copy)]
    return max(copies, key=lambda copy: u64(copy, 40), default=None)


def offsets(listing, count, extents, data_offset, granule):
    at = 0
    previous = PAGE
    for n in range(count):
        step = shift = 0
        while True:
            byte = listing[at]
            at += 1
            step |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
        if n == extents:
            previous = data_offset
        previous += step * (8 if n < extents else granule)
        yield previous
    if at != len(listing):
        print("bad list: %d bytes too many" % (len(listing) - at))


def print_record(segment, offset, sequence, secret, extent):
    check, lengths, cas, client_flags, expiry, key_length = struct.unpack_from("<IIQIIB", segment, offset)
    value_length = lengths & 0x7FFFFFF
    key = segment[offset + 32 : offset + 32 + key_length]
    value = segment[offset + 32 + key_length : offset + 32 + key_length + value_length]
    head = segment[offset + 4 : offset + 32] + key
    whole = struct.pack("<4Q", sequence, offset, keyed(head, secret), keyed(value, secret))
    if keyed(whole, secret) & 0xFFFFFFFF != check:
        print("bad record %d" % offset)
        return None
    if key[:4] in (b"FLCO", b"FLCH"):
        return key, value
    print(
        "%s %d %s %d %016x cas %d flags %d expiry %d item %d features %s"
        % ("extent" if extent else "record", offset, key.decode("latin-1"), value_length,
           checksum(value), cas, client_flags, expiry, lengths >> 27 & 15,
           segment[offset + 25 : offset + 32].hex())
    )
    return key, value


def record_end(segment, offset):
    return offset + 32 + segment[offset + 24] + (u32(segment, offset + 4) & 0x7FFFFFF)


def check_bins(segment, found, data_offset, bin_bytes, bins, granule, hash_seed):
    """Is each record in its key's bin, behind the one before, with the last one marked, and zeros up to the end?"""
    per_bin = [[] for _ in range(bins)]
    for offset, key in found:
        x = mix(seeded(key, hash_seed) ^ 0xB10057E0E5A11BA5)
        if (offset - data_offset) // bin_bytes != reduce(x, bins):
            print("bad bin of record %d" % offset)
        per_bin[(offset - data_offset) // bin_bytes].append(offset)
    for number, records in enumerate(per_bin):
        at = data_offset + number * bin_bytes
        end = at + bin_bytes
        for offset in records:
            if offset != (at + granule - 1) // granule * granule:
                print("bad gap before record %d" % offset)
            at = record_end(segment, offset)
            if at > end or u32(segment, offset + 4) >> 31 != (offset == records[-1]):
                print("bad end or mark of record %d" % offset)
        if any(segment[at:end]):
            print("bad bytes behind the records of bin %d" % number)


def print_columns(offset, key, value):
    if len(value) != 24 * u32(key, 4):
        print("bad columns %d" % offset)
        return
    columns = (struct.unpack_from("<QIIQ", value, at) for at in range(0, len(value), 24))
    print("columns %d: %s" % (offset, ", ".join(
        "sequence %d segment %d records %d bytes %d" % column for column in columns)))


def print_partition(offset, key, value):
    version, columns, fingerprints, kills = struct.unpack_from("<4I", value)
    words = (fingerprints + columns + 63) // 64
    bits = int.from_bytes(value[16 : 16 + 8 * words], "little")
    at = 16 + 8 * words
    lists = [[]]
    for bit in range(fingerprints + columns):
        if bits >> bit & 1:
            lists.append([])
        else:
            lists[-1].append(struct.unpack_from("<H", value, at)[0])
            at += 2
    at = (at + 7) // 8 * 8
    who = struct.unpack_from("<%dI" % kills, value, at)
    where = struct.unpack_from("<%dH" % kills, value, at + 4 * kills)
    if version != 1 or len(lists) != columns + 1 or lists[-1] or at + 6 * kills != len(value):
        print("bad partition %d" % offset)
        return
    print("partition %d %d: %s kills %s" % (offset, u32(key, 4), lists[:-1], list(zip(who, where))))


def print_segment(segment, number, uuid, secret, hash_seed):
    header, tail = segment[:PAGE], segment[-128:]
    if not valid(header, b"FLSHSEGM", PAGE, (0, BINS, CHAIN)) or header[40:56] != uuid or u32(header, 64) != number:
        print("bad header of segment %d" % number)
        return
    sequence = u64(header, 56)
    if (not valid(tail, b"FLSHFOOT", 128) or tail[40:56] != uuid or u64(tail, 56) != sequence
            or u64(tail, 72) != u64(header, 4088)):
        print("bad footer of segment %d" % number)
        return
    granule, longest = u32(header, 72), u32(header, 76)
    data_offset, footer_offset = u64(header, 96), u64(header, 112)
    count, extents = u32(header, 128), u32(header, 132)
    listing = segment[footer_offset : footer_offset + u64(tail, 80)]
    filter_at = (footer_offset + len(listing) + 7) // 8 * 8
    blooms = segment[filter_at : filter_at + u64(tail, 96)]
    if checksum(listing) != u64(tail, 88) or checksum(blooms) != u64(tail, 104):
        print("bad list or filter of segment %d" % number)
        return
    feature, bin_bytes = u64(header, 32), u32(header, 164)
    bins = u64(header, 104) // bin_bytes if feature == BINS else 0
    print(
        "segment %d sequence %d objects %d extents %d granule %d L %d filter %d%s"
        % (number, sequence, count, extents, granule, longest, len(blooms),
           (" bins %d of %d" % (bins, bin_bytes)) if feature == BINS else " chain" if feature == CHAIN else "")
    )
    found = []
    for n, offset in enumerate(offsets(listing, count, extents, data_offset, granule)):
        record = print_record(segment, offset, sequence, secret, n < extents)
        if record is None:
            continue
        found.append((offset, record[0]))
        if feature == CHAIN:
            (print_columns if record[0][:4] == b"FLCO" else print_partition)(offset, *record)
    if feature == BINS:
        check_bins(segment, found, data_offset, bin_bytes, bins, granule, hash_seed)


def main():
    if sys.argv[1] == "--position":
        print(position(*(int(word, 0) for word in sys.argv[2:8])))
        return
    with open(sys.argv[1], "rb") as file:
        image = file.read()
    sup = superblock(image)
    if sup is None:
        sys.exit("bad superblock")
    size, count = u64(sup, 264), u32(sup, 272)
    print("flash %s segments %d of %d" % (sup[48:64].hex(), count, size))
    listed, bad = homes(sup)
    for number in range(count):
        home = listed.get(number, number)
        segment = image[65536 + home * size : 65536 + (home + 1) * size]
        if number in bad or segment.count(0) == len(segment):
            continue
        print_segment(segment, number, sup[48:64], sup[64:256], u64(sup, 256))


if __name__ == "__main__":
    main()
