# SPDX-License-Identifier: BSD-3-Clause
"""Budgets of flash writes and drives' endurance, as their texts on the command line. Rates and endurances are written as for the
daemon's --flash-write-limit (conf/units.h); a number alone is a CLWA here, so that bytes per second need "/s"."""
import argparse
import dataclasses
import re

DAY_S = 86400
YEAR_DAYS = 365
TB = 10**12
SUFFIXES = "kmgtp"
DWPD_LEAST, DWPD_MOST = 1e-6, 1000
NUMBER = r"(\d+(?:\.\d+)?)"
WANTED_BUDGET = ("a CLWA above 0 and up to 100, bytes per second as 20m/s, or an endurance: 1200TBW/5y (0.1 to 100 years), 1DWPD of the "
                 "flash or 1DWPD/1920g of a drive (0.000001 to 1000 DWPD); at least a byte per second")
WANTED_ENDURANCE = "an endurance as 1200TBW or 1DWPD/5y (above 0; years from 0.1 to 100)"


def refuse(text, wanted):
    raise argparse.ArgumentTypeError(f'"{text}" is not {wanted}')


def positive(text, whole, wanted, low=1e-9, high=1e18):
    value = float(text)
    return value if low <= value <= high else refuse(whole, wanted)


def years(text, whole, wanted):
    return positive(text, whole, wanted, 0.1, 100)


def multiple(suffix, base):
    return base ** (SUFFIXES.index(suffix.lower()) + 1) if suffix else 1


@dataclasses.dataclass
class Budget:
    """What may be written to flash: one of three is set. DWPD is of the flash size that is tried."""
    text: str
    clwa: float = 0
    bytes_per_s: float = 0
    dwpd: float = 0

    def most_per_s(self, flash_bytes):
        """Bytes per second; 0: CLWA counts."""
        return self.dwpd * flash_bytes / DAY_S if self.dwpd else self.bytes_per_s


@dataclasses.dataclass
class Endurance:
    text: str
    tbw: float = 0
    dwpd: float = 0
    years: float = 0

    def life_years(self, flash_bytes, bytes_per_day):
        """None: nothing is written."""
        total = self.tbw * TB if self.tbw else self.dwpd * flash_bytes * YEAR_DAYS * self.years
        return total / bytes_per_day / YEAR_DAYS if bytes_per_day > 0 else None


def rate_budget(text, bytes_per_s):
    return Budget(text, bytes_per_s=positive(bytes_per_s, text, WANTED_BUDGET, 1))


def budget(text):
    if re.fullmatch(NUMBER, text):
        return Budget(text, clwa=positive(text, text, WANTED_BUDGET, high=100))
    if found := re.fullmatch(NUMBER + "(?:([kmgtp])(?:i?b)?)?/s", text, re.I):
        return rate_budget(text, float(found[1]) * multiple(found[2], 1024))
    if found := re.fullmatch(NUMBER + "TBW/" + NUMBER + "y", text, re.I):
        return rate_budget(text, float(found[1]) * TB / (years(found[2], text, WANTED_BUDGET) * YEAR_DAYS * DAY_S))
    if found := re.fullmatch(NUMBER + "DWPD(?:/" + NUMBER + "(?:([kmgtp])b?)?)?", text, re.I):
        dwpd = positive(found[1], text, WANTED_BUDGET, DWPD_LEAST, DWPD_MOST)
        if found[2] is None:
            return Budget(text, dwpd=dwpd)
        return rate_budget(text, dwpd * float(found[2]) * multiple(found[3], 1000) / DAY_S)
    return refuse(text, WANTED_BUDGET)


def endurance(text):
    if found := re.fullmatch(NUMBER + "TBW", text, re.I):
        return Endurance(text, tbw=positive(found[1], text, WANTED_ENDURANCE))
    if found := re.fullmatch(NUMBER + "DWPD/" + NUMBER + "y", text, re.I):
        return Endurance(text, dwpd=positive(found[1], text, WANTED_ENDURANCE), years=years(found[2], text, WANTED_ENDURANCE))
    return refuse(text, WANTED_ENDURANCE)
