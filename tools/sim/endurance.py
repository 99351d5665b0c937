# SPDX-License-Identifier: BSD-3-Clause
"""Budgets of flash writes and drives' endurance, as their texts on the command line."""
import argparse
import dataclasses
import re

DAY_S = 86400
YEAR_DAYS = 365
TB = 10**12
SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"
WANTED_BUDGET = ("a CLWA above 0 and up to 100, bytes per second as 20m/s, 1200TBW/5y, or 1DWPD "
                 "(each above 0; years from 0.1 to 100)")
WANTED_ENDURANCE = "an endurance as 1200TBW or 1DWPD/5y (above 0; years from 0.1 to 100)"


def refuse(text, wanted):
    raise argparse.ArgumentTypeError(f'"{text}" is not {wanted}')


def positive(text, whole, wanted, low=1e-9, high=1e12):
    value = float(text)
    return value if low <= value <= high else refuse(whole, wanted)


def years(text, whole, wanted):
    return positive(text, whole, wanted, 0.1, 100)


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


def budget(text):
    if re.fullmatch(NUMBER, text):
        return Budget(text, clwa=positive(text, text, WANTED_BUDGET, high=100))
    if found := re.fullmatch(NUMBER + "([kmgt]?)/s", text, re.I):
        return Budget(text, bytes_per_s=positive(found[1], text, WANTED_BUDGET) * SIZES[found[2].lower()])
    if found := re.fullmatch(NUMBER + "TBW/" + NUMBER + "y", text, re.I):
        total = positive(found[1], text, WANTED_BUDGET) * TB
        return Budget(text, bytes_per_s=total / (years(found[2], text, WANTED_BUDGET) * YEAR_DAYS * DAY_S))
    if found := re.fullmatch(NUMBER + "DWPD", text, re.I):
        return Budget(text, dwpd=positive(found[1], text, WANTED_BUDGET))
    return refuse(text, WANTED_BUDGET)


def endurance(text):
    if found := re.fullmatch(NUMBER + "TBW", text, re.I):
        return Endurance(text, tbw=positive(found[1], text, WANTED_ENDURANCE))
    if found := re.fullmatch(NUMBER + "DWPD/" + NUMBER + "y", text, re.I):
        return Endurance(text, dwpd=positive(found[1], text, WANTED_ENDURANCE), years=years(found[2], text, WANTED_ENDURANCE))
    return refuse(text, WANTED_ENDURANCE)
