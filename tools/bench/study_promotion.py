# SPDX-License-Identifier: BSD-3-Clause
"""Study "promotion": hot objects on a flash ten times as large as DRAM, with and without copies in DRAM."""
from figures import ratio
from flash_fill import EXTSTORE_THREADED, OBJECT_EXTRA_BYTES, fill_as_written
from server import EXTSTORE, FLASHIELD, MIB
from study import study
from study_flash import cold_load
from study_stress import has_drive

MEMORY_MB, LEAST_MEMORY_MB = 64, 8
TIMES = 10  # DRAM, is the flash
SHARE = 0.65  # of the flash that the objects fill: extstore keeps a quarter of its pages free
EXPONENTS = [0.9, 0.99, 1.1, 1.2]
CONNECTIONS = 50
SECONDS, SETTLE_SECONDS = 2.0, 6.0
FIRST_SECONDS = 60.0  # before the first measurement, in which a share that moves finds its place

# Values of 257 B are what flash caches hold by the million; extstore's headers, 120 B for each, then leave room for a part
# of the objects. With values of 2 KiB they leave room for all.
SIZES = {"257 B": 257, "2 KiB": 2048}
DRIVE_READS = 10000  # a second, of the emulated drive
# Of each: the bytes of a value, and the reads a second of the drive; 0: the real drive.
CASES = {size: (value_bytes, 0) for size, value_bytes in SIZES.items()} | {
    f"{size}, {DRIVE_READS // 1000}k reads/s": (value_bytes, DRIVE_READS) for size, value_bytes in SIZES.items()}
# All lie on flash; and a drive that is slow for a while is waited for, as a miss would be no work.
OURS = ["--admission", "all", "--flash-read-timeout", "30s"]
OFF, AUTO, EXT = "off", "second, auto", "extstore"
CONTENDERS = {
    OFF: (FLASHIELD, [*OURS, "--promote=off"]),
    "sketch, 0.02": (FLASHIELD, [*OURS, "--promote=sketch", "--promote-share=0.02"]),
    "lru, 0.02": (FLASHIELD, [*OURS, "--promote=lru", "--promote-share=0.02"]),
    AUTO: (FLASHIELD, [*OURS, "--promote=second", "--promote-share=auto"]),
    EXT: (EXTSTORE, EXTSTORE_THREADED),
}


def memory_mb(s):
    return s.scaled(MEMORY_MB, LEAST_MEMORY_MB)


def start_filled(s, value_bytes, reads_per_second):
    """Returns the servers by name, and the number of keys, each of which was set once. reads_per_second: of the emulated
    drive that they have; 0: they have the real one."""
    flash_bytes = TIMES * memory_mb(s) * MIB
    keys = int(SHARE * flash_bytes / (value_bytes + OBJECT_EXTRA_BYTES))
    servers = {}
    for name, (kind, extra) in CONTENDERS.items():
        s.progress(f"promotion: filling {name} with {keys} objects of {value_bytes} B")
        server = s.start(kind, memory_mb=memory_mb(s), flash_bytes=flash_bytes, extra=extra,
                         slow_drive=reads_per_second > 0)
        if not server:
            continue
        fill_as_written(s, server, keys, value_bytes=value_bytes)
        if server.drive:
            server.drive.reads.per_second = reads_per_second
        servers[name] = server
    return servers, keys


def zipf_gets(keys, value_bytes, exponent):
    return {"kind": "get", "order": "zipf", "connections": CONNECTIONS, "keys": keys, "value_bytes": value_bytes,
            "zipf_exponent": exponent}


def measure(s, server, row, number, **load):
    """Adds the row's cells, and returns them. Before it counts, the load runs until copies have settled."""
    s.run(server, judge=False, seconds=s.seconds(SETTLE_SECONDS), seed=2 * number + 1, **load)
    done = server.drive.reads.done if server.drive else 0
    result, counted = cold_load(s, server, seconds=s.seconds(SECONDS), seed=2 * number + 2, **load)
    s.judge(result)
    gets = max(counted["gets"], 1)
    if server.drive:
        reads = server.drive.reads.done - done
    else:
        reads = counted["flash_reads"] if server.kind == FLASHIELD else counted["flash_hits"]
    cells = {"ops_s": result.operations / result.seconds, "p50_us": result.get_latency.us(0.5),
             "p99_us": result.get_latency.us(0.99), "cpu_us": result.cpu_us(), "reads_get": ratio(reads, gets),
             "hit_percent": 100 * ratio(result.hits, result.gets)}
    s.add(row, **cells, server_percent=result.server_cpu_ns / 1e7 / result.seconds,
          load_percent=result.load_cpu_ns / 1e7 / result.seconds)
    if server.kind == FLASHIELD:
        s.add(row, copies_percent=100 * server.flash_stat("flash_copy_bytes") / (memory_mb(s) * MIB))
    if result.errors:
        s.note(f"{row}: {result.errors} gets failed, the first with: {result.first_error}")
    return cells


def compare(s, row, cells):
    """Adds the ratios of a round to the promoted rows: over no promotion, and over extstore."""
    for name, ours in cells.items():
        if name in (OFF, EXT):
            continue
        s.add(f"{row} {name}", ops_over_off=ratio(ours["ops_s"], cells[OFF]["ops_s"]),
              p99_over_off=ratio(ours["p99_us"], cells[OFF]["p99_us"]),
              cpu_over_off=ratio(ours["cpu_us"], cells[OFF]["cpu_us"]))
    for name, ours in cells.items():
        if EXT in cells and name != EXT:
            s.add(f"{row} {name}", ops_over_ext=ratio(ours["ops_s"], cells[EXT]["ops_s"]),
                  p99_over_ext=ratio(ours["p99_us"], cells[EXT]["p99_us"]))


@study("promotion", "hot objects on flash: copies in DRAM by each rule, extstore beside")
def promotion(s):
    """Gets of a Zipf distribution over objects that all lie on flash."""
    s.describe("copies in DRAM of hot objects on flash, extstore beside",
               f"Gets of a Zipf distribution by {CONNECTIONS} connections, one get each, over objects that were set once and lie on "
               f"flash but for the last ones. -t 1, -m {memory_mb(s)}, a flash {TIMES} times as large, of which they fill {SHARE}. "
               "Rows: value size, exponent, --promote and its share; extstore with 16 I/O threads. Each load runs for a while "
               "before it is measured. reads: of the drive for each get, of extstore on the real drive the hits from its flash; copies: "
               f"their share of -m. {DRIVE_READS // 1000}k reads/s: the drive is emulated (tools/slowdrive), which costs about 5 us of CPU "
               "for each read; hit: extstore has lost the others for want of memory for their headers.",
               {"reads_get": ("reads /get", 3), "hit_percent": ("hit %", 2), "copies_percent": ("copies %", 1),
                "ops_over_off": ("ops/s over off", 2), "p99_over_off": ("p99 over off", 2), "cpu_over_off": ("CPU over off", 2),
                "ops_over_ext": ("ops/s over extstore", 2), "p99_over_ext": ("p99 over extstore", 2)})
    for size, (value_bytes, reads_per_second) in CASES.items():
        if reads_per_second and not has_drive(s):
            continue
        servers, keys = start_filled(s, value_bytes, reads_per_second)
        if AUTO in servers:
            s.progress(f"promotion: {size}, the share of {AUTO} finds its place")
            s.run(servers[AUTO], judge=False, seconds=s.seconds(FIRST_SECONDS), **zipf_gets(keys, value_bytes, EXPONENTS[0]))
        for number in s.rounds(size):
            for exponent in EXPONENTS:
                row, cells = f"{size} zipf {exponent}", {}
                for name in list(servers)[::-1] if number % 2 else servers:
                    cells[name] = measure(s, servers[name], f"{row} {name}", number,
                                          **zipf_gets(keys, value_bytes, exponent))
                compare(s, row, cells)
        for server in servers.values():
            s.stop(server)
    for size in CASES:
        for exponent in EXPONENTS:
            row = f"{size} zipf {exponent} {AUTO}"
            s.target(f"{row}: gets per second over no promotion", s.median(row, "ops_over_off"), "x", at_least=1)
            s.beside("  p99 over no promotion", s.median(row, "p99_over_off"), "x")
            s.beside("  gets per second over extstore", s.median(row, "ops_over_ext"), "x")
