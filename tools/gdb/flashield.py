# SPDX-License-Identifier: BSD-3-Clause
"""Commands for gdb that show what the store holds. In gdb: source tools/gdb/flashield.py

    fs-item EXPRESSION        an item in DRAM: an expression of type struct item *, or an address
    fs-slot VALUE             a slot of the index, by its 32 bits
    fs-slot TABLE BUCKET      the 16 slots of a bucket
    fs-lookup KEY             the key's stripe, its item in DRAM, and every slot that may be its own

The store is that of the daemon's main thread. In another program name it first, for instance
"set $fs_store = h->store".

Works on a running daemon and on a core that has the heap (HACKING.md tells how to make one). A running daemon computes
a key's hash itself, in a call that allocates the key's few bytes. For a core the Python module xxhash does it; without the
module fs-lookup searches all of the DRAM table and says that it shows no slots.
"""
import gdb

MASK64 = (1 << 64) - 1
EMPTY_SEQUENCE = MASK64  # SEGMENT_CLOSED
BUCKET_SLOTS = 16
LINE_LINKS = 10
STATES = ("live, CLOCK 0", "ghost", "live, CLOCK 1", "live, CLOCK 1, read on flash", "live, CLOCK 2",
          "live, CLOCK 2, read on flash", "live, CLOCK 3", "live, CLOCK 3, read on flash")
FLAGS = ((1 << 2, "linked"), (1 << 3, "clean"), (1 << 4, "planned"), (1 << 5, "candidate"), (1 << 6, "fetched"), (1 << 7, "limited"))


def number(value):
    """A field's value, also of an _Atomic one."""
    return int(value.cast(value.type.strip_typedefs().unqualified()))


def pointer(value, target):
    """The address in a field, as a pointer to target."""
    return gdb.Value(int(value.cast(gdb.lookup_type("unsigned long")))).cast(gdb.lookup_type(target).pointer())


def store_in_frames():
    """The struct server is a variable of a function that main calls."""
    for thread in gdb.selected_inferior().threads():
        if thread.num != 1:
            continue
        thread.switch()
        frame = gdb.newest_frame()
        while frame is not None:
            try:
                found = frame.read_var("server")
            except ValueError:
                found = None
            if found is not None and found.type.strip_typedefs().code == gdb.TYPE_CODE_STRUCT:
                return found["store"]
            frame = frame.older()
    return None


def the_store():
    """The struct store that all commands look at."""
    named = gdb.convenience_variable("fs_store")
    if named is not None and named.type.code != gdb.TYPE_CODE_VOID:
        return named.dereference()
    selected, frame = gdb.selected_thread(), gdb.selected_frame()
    try:
        found = store_in_frames()
    finally:
        selected.switch()
        frame.select()
    if found is None or not number(found):
        raise gdb.GdbError('no store found: set $fs_store = ...')
    return found.dereference()


def the_index(store):
    """The struct fidx, or None without flash."""
    return store["index"].dereference() if number(store["index"]) else None


def bytes_at(address, length):
    return bytes(gdb.selected_inferior().read_memory(address, length)) if length else b""


def text(data, most=64):
    shown = "".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02x}" for b in data[:most])
    return f'"{shown}"' + (f" and {len(data) - most} bytes more" if len(data) > most else "")


# ---- items ---------------------------------------------------------------------------------------


def item_key(item):
    parts = number(gdb.parse_and_eval("item_parts_bytes")[number(item["shape"])])
    address = int(item.address) + item.type.sizeof + parts
    return address, bytes_at(address, number(item["key_length"]))


def show_item(item):
    address, key = item_key(item)
    state = number(item["state"])
    shape = str(item["shape"].cast(gdb.lookup_type("enum item_shape")))
    has_extra, has_flags = shape.endswith("EXTRA"), shape.endswith(("FLAGS", "EXTRA"))
    flags = int.from_bytes(bytes_at(address - 4, 4), "little") if has_flags else 0
    value = bytes_at(address + len(key), min(number(item["value_length"]), 256))
    print(f"item {int(item.address):#x}: key {text(key, 250)}")
    print(f"  value   {number(item['value_length'])} bytes: {text(value)}")
    print(f"  cas {number(item['cas'])}, client flags {flags}, expiry {number(item['expiry'])} s of the store's, "
          f"references {number(item['refs'])}")
    print(f"  state   CLOCK {state & 3}" + "".join(f", {name}" for bit, name in FLAGS if state & bit))
    if has_extra:
        extra = gdb.Value(address - 13).cast(gdb.lookup_type("struct item_extra").pointer()).dereference()
        print(f"  extra   shown cas {number(extra['shown_cas'])}, marks {number(extra['marks'])}")


def line_items(lines, at):
    """The items of a line."""
    line = lines[at]
    for link in range(LINE_LINKS):
        window = number(line["window"][link])
        if not window:
            continue
        address = number(gdb.parse_and_eval("address_base")[window]) + (number(line["low"][link]) << 4)
        yield gdb.Value(address).cast(gdb.lookup_type("struct item").pointer()).dereference()


def find_item(stripe, key, hash_value):
    """The item of a key in a stripe; without a hash in all lines."""
    lines, shape = pointer(stripe["lines"], "struct link_line"), number(stripe["shape"])
    if not int(lines):
        return None
    m, shift = shape & 255, shape >> 8
    count = m << 24 - shift
    if hash_value is None:
        wanted = range(count)
    else:
        upper = (hash_value * 0x9e3779b97f4a7c15 & MASK64) >> 32
        own, tag = (upper >> shift) * m >> 8, upper >> shift & 255
        other = (((tag + 1) * 0x9e3779b1 & 0xffffffff) * count >> 32) - own
        wanted = dict.fromkeys((own, other % count))
    for line in wanted:
        for item in line_items(lines, line):
            if item_key(item)[1] == key:
                return item
    return None


# ---- slots ---------------------------------------------------------------------------------------


def mix64(x):
    x ^= x >> 30
    x = x * 0xbf58476d1ce4e5b9 & MASK64
    x ^= x >> 27
    x = x * 0x94d049bb133111eb & MASK64
    return x ^ x >> 31


def slot_tag(index, slot):
    return (slot & number(index["layout"]["tag_mask"])) >> 7


def slot_text(index, slot):
    layout = index["layout"]
    if not slot & number(layout["segment_mask"]):
        return f"{slot:#010x} empty"
    segment = (slot >> number(layout["segment_shift"])) - 1
    if segment >= number(index["segments"]):
        return f"{slot:#010x} names segment {segment}, which there isn't"
    entry = index["segment_field"][segment + 1]
    sequence = number(entry["sequence"])
    state = "closed: counts as empty" if sequence == EMPTY_SEQUENCE else f"sequence {sequence}"
    return (f"{slot:#010x} segment {segment} ({state}), tag {slot_tag(index, slot):#x}, function {slot >> 3 & 15}, "
            f"{STATES[slot & 7]}")


def live_tables(index):
    epoch = number(index["epoch"])  # the number of changes lies above a bit for each table
    first, last = index["table"].type.range()
    return [t for t in range(first, last + 1) if epoch >> t & 1]


def bucket_slots(index, table, bucket):
    address = int(index["table"][table]["bucket"]) + 64 * bucket
    data = bytes_at(address, 4 * BUCKET_SLOTS)
    return [int.from_bytes(data[4 * i:4 * i + 4], "little") for i in range(BUCKET_SLOTS)]


def hash_of(store, key):
    """hash64 of a key, or None where neither a process nor the module can compute it; the reason is printed."""
    seed = number(store["hash_seed"])
    try:
        import xxhash  # pylint: disable=import-outside-toplevel
        return xxhash.xxh3_64_intdigest(key, seed)
    except ImportError:
        pass
    quoted = "".join(f"\\{b:03o}" for b in key)
    locking = gdb.parameter("scheduler-locking")
    try:
        gdb.execute("set scheduler-locking on", to_string=True)
        return int(gdb.parse_and_eval(f'(unsigned long)hash64("{quoted}", {len(key)}UL, {seed}UL)')) & MASK64
    except gdb.error as error:
        print(f"hash64 can't be called: {error}")
        return None
    finally:
        try:
            gdb.execute(f"set scheduler-locking {locking}", to_string=True)
        except gdb.error:
            pass


# ---- commands ------------------------------------------------------------------------------------


class Item(gdb.Command):
    """fs-item EXPRESSION: shows an item in DRAM, by an expression of type struct item * or an address."""

    def __init__(self):
        super().__init__("fs-item", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        if not argument:
            raise gdb.GdbError(self.__doc__)
        show_item(pointer(gdb.parse_and_eval(argument), "struct item").dereference())


class Slot(gdb.Command):
    """fs-slot VALUE: what a slot of 32 bits means. fs-slot TABLE BUCKET: the 16 slots of a bucket."""

    def __init__(self):
        super().__init__("fs-slot", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        words = [int(gdb.parse_and_eval(word)) for word in gdb.string_to_argv(argument)]
        index = the_index(the_store())
        if len(words) not in (1, 2):
            raise gdb.GdbError(self.__doc__)
        if index is None:
            raise gdb.GdbError("there is no index without flash")
        if len(words) == 1:
            print(slot_text(index, words[0] & 0xffffffff))
            return
        table, bucket = words
        if table not in live_tables(index):
            raise gdb.GdbError(f"live tables are {live_tables(index)}")
        if not 0 <= bucket < number(index["table"][table]["buckets"]):
            raise gdb.GdbError(f"table {table} has {number(index['table'][table]['buckets'])} buckets")
        for way, slot in enumerate(bucket_slots(index, table, bucket)):
            print(f"  {way:2} {slot_text(index, slot)}")


class Lookup(gdb.Command):
    """fs-lookup KEY: the key's stripe, its item in DRAM, and the slots that may be its own."""

    def __init__(self):
        super().__init__("fs-lookup", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        if not argument:
            raise gdb.GdbError(self.__doc__)
        key = argument.encode()
        store = the_store()
        index = the_index(store)
        hashed = hash_of(store, key)
        count = number(store["stripe_count"])
        if hashed is None:
            print("no hash: neither a running process nor the module xxhash; the index is not looked at")
            stripes = range(count)
        else:
            own = mix64(hashed ^ number(index["seed"])) if index is not None else hashed
            tag = own & (1 << number(index["layout"]["tag_bits"])) - 1 if index is not None else hashed
            stripes = [tag & count - 1]
            print(f"key {text(key, 250)}: hash {hashed:#018x}, stripe {stripes[0]}"
                  + (f", tag {tag:#x}" if index is not None else ""))
        found = next((item for item in (find_item(store["stripes"][i], key, hashed) for i in stripes)
                      if item is not None), None)
        if found is None:
            print("not in DRAM")
        else:
            show_item(found)
        if index is None or hashed is None:
            return
        matches = 0
        for table in live_tables(index):
            buckets = number(index["table"][table]["buckets"])
            first = own * buckets >> 64
            total = mix64(tag ^ number(index["tag_seed"])) * buckets >> 64
            for bucket in dict.fromkeys((first, (total - first) % buckets)):
                for way, slot in enumerate(bucket_slots(index, table, bucket)):
                    if slot & number(index["layout"]["segment_mask"]) and slot_tag(index, slot) == tag:
                        matches += 1
                        print(f"  table {table}, bucket {bucket}, way {way}: {slot_text(index, slot)}")
        print(f"slots with its tag: {matches} (filter, known collisions and extents are not asked)")


Item()
Slot()
Lookup()
