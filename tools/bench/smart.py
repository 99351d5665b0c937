# SPDX-License-Identifier: BSD-3-Clause
"""The counts that a drive keeps itself: bytes that the host has written and bytes that went to its NAND, as smartctl
(and nvme, for the Open Compute log) tell them in JSON. Both programs are optional at run time."""
import contextlib
import json
import math
import os
import subprocess

NAN = math.nan
MIB, GIB = 1 << 20, 1 << 30
NVME_DATA_UNIT = 512000  # 1000 blocks of 512 bytes, whatever the format of the drive
BLOCK = 0  # a step: a logical block

# Attributes are found by the names of smartctl's drive database, not by their numbers, as a number means different
# things on different drives. Where a drive has several of a role, their sum counts (SLC cache and TLC), except for the
# host's writes, which some drives tell twice. Pages, those of the host and those of the drive itself, have a size that
# the drive doesn't tell.
ATTRIBUTES = {
    "Total_LBAs_Written": ("host", BLOCK), "Host_Writes_MiB": ("host", MIB), "Host_Writes_32MiB": ("host", 32 * MIB),
    "Host_Writes_GiB": ("host", GIB), "Lifetime_Writes_GiB": ("host", GIB), "Total_Writes_GiB": ("host", GIB),
    "Nand_Sectors_Written": ("nand", BLOCK), "Flash_Writes_LBAs": ("nand", BLOCK),
    "NAND_Writes_32MiB": ("nand", 32 * MIB), "Flash_Writes_32MiB": ("nand", 32 * MIB),
    "TLC_Writes_32MiB": ("nand", 32 * MIB), "SLC_Writes_32MiB": ("nand", 32 * MIB), "NAND_Writes_GiB": ("nand", GIB),
    "NAND_Writes_1GiB": ("nand", GIB), "Flash_Writes_GiB": ("nand", GIB), "Total_NAND_Writes_GiB": ("nand", GIB),
    "Total_NAND_Prog_Ct_GiB": ("nand", GIB), "Lifetime_NAND_Prg_GiB": ("nand", GIB), "NAND_GB_Written_TLC": ("nand", GIB),
    "NAND_GB_Written_SLC": ("nand", GIB), "Host_Program_Page_Count": ("host_pages", 1),
    "FTL_Program_Page_Count": ("own_pages", 1), "Bckgnd_Program_Page_Cnt": ("own_pages", 1)}


class Untold(Exception):
    """The drive can't be asked; the message tells the reason."""


class Counters:
    """The counts since the drive was made. NaN: the drive does not tell."""

    def __init__(self):
        self.host = self.nand = self.host_pages = self.own_pages = NAN
        self.step = 0  # the coarsest step in which these bytes are counted
        self.model, self.sources = "", []

    def add(self, role, value, step, source):
        before = getattr(self, role)
        setattr(self, role, value if math.isnan(before) else before + value)
        if role in ("host", "nand"):
            self.step = max(self.step, step)
        self.sources.append(source)

    def counts_bytes(self):
        return not math.isnan(self.host + self.nand)

    def counts_nand(self):
        """Returns whether it tells all that amplification() needs."""
        return self.counts_bytes() or not math.isnan(self.host_pages + self.own_pages)


def number(value, *names):
    """Returns the number at value[name][name]...; NaN if there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else NAN


def parse_object(text):
    with contextlib.suppress(ValueError):
        if isinstance(root := json.loads(text), dict):
            return root
    return None


def add_smartctl(counters, text):
    """Adds the output of "smartctl --json -i -A"."""
    root = parse_object(text)
    if root is None:
        raise Untold("smartctl printed no JSON object")
    # Bits 0 and 1 of its status are "bad command line" and "could not open the drive". The others tell of its health,
    # or that some of the logs are missing.
    status = number(root, "smartctl", "exit_status")
    if status >= 0 and int(status) & 3:
        with contextlib.suppress(KeyError, IndexError, TypeError):
            raise Untold(f"smartctl: {root['smartctl']['messages'][0]['string']}")
        raise Untold("smartctl: the drive can't be asked")
    model = root.get("model_name")
    counters.model = model if isinstance(model, str) else ""
    units = number(root, "nvme_smart_health_information_log", "data_units_written")
    if units >= 0:
        counters.add("host", units * NVME_DATA_UNIT, NVME_DATA_UNIT, "NVMe data units written")
    block = number(root, "logical_block_size")
    block = block if block > 0 else 512
    table = root.get("ata_smart_attributes")
    rows = table.get("table") if isinstance(table, dict) else None
    for row in rows if isinstance(rows, list) else []:
        name, raw = row.get("name") if isinstance(row, dict) else None, number(row, "raw", "value")
        if not isinstance(name, str) or name not in ATTRIBUTES or not raw >= 0:
            continue
        role, step = ATTRIBUTES[name]
        if role != "host" or math.isnan(counters.host):
            counters.add(role, raw * (step or block), step or block, name)


def add_ocp(counters, text):
    """Adds the output of "nvme ocp smart-add-log -o json": 128 bits as {"hi", "lo"}, or as one number. Returns False if
    it has another form."""
    root = parse_object(text) or {}
    for name in ("Physical media units written", "physical_media_units_written"):
        for value in (number(root, name), number(root, name, "hi") * 2.0 ** 64 + number(root, name, "lo")):
            if value >= 0:
                counters.add("nand", value, 1, "OCP physical media units written")
                return True
    return False


def amplification(before, after):
    """Returns the bytes written to NAND per byte that the host wrote between two readings; NaN if they aren't told or
    nothing moved."""
    if before.counts_bytes() and after.counts_bytes():
        host, nand = after.host - before.host, after.nand - before.nand
    else:
        host = after.host_pages - before.host_pages
        nand = host + after.own_pages - before.own_pages
    return nand / host if host > 0 else NAN


def find_drive(device, sysfs="/sys"):
    """Returns the whole drive below a block device number: a partition's parent, the one device below a mapping. None
    if there is none, or more than one."""
    link = f"{sysfs}/dev/block/{os.major(device)}:{os.minor(device)}"
    for _ in range(8):  # of mappings on mappings
        if not os.path.exists(link):
            return None
        folder = os.path.realpath(link)
        if os.path.exists(f"{folder}/partition"):  # a partition's folder lies in its drive's
            folder = os.path.dirname(folder)
        # "slaves" lists the devices below a mapping (dm, md). Several drives have no common counters.
        below = os.listdir(f"{folder}/slaves") if os.path.isdir(f"{folder}/slaves") else []
        if not below:
            return os.path.basename(folder)
        if len(below) > 1:
            return None
        link = f"{sysfs}/class/block/{below[0]}"
    return None


def printed(*command):
    """Returns a program's output; None if it isn't there. smartctl is for root and lies where only root's PATH may
    lead."""
    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/usr/local/sbin:/sbin"
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              env=os.environ | {"PATH": path}, check=False).stdout.decode(errors="replace")
    except OSError:
        return None


def read(drive):
    """Returns the counters of /dev/<drive>, and the reason why there is no count of NAND writes, "" if that isn't
    known."""
    counters, path = Counters(), "/dev/" + drive.replace("!", "/")  # sysfs writes '/' in a name as '!'
    text = printed("smartctl", "--json", "-i", "-A", path)
    if text is None:
        raise Untold("smartctl isn't installed (package smartmontools)")
    add_smartctl(counters, text)
    # Plain NVMe counts the host's writes only.
    if drive.startswith("nvme"):
        text = printed("nvme", "ocp", "smart-add-log", path, "-o", "json")
        if text is not None and not add_ocp(counters, text):
            return counters, "the drive has no Open Compute log"
    return counters, ""
