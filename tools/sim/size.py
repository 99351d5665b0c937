# SPDX-License-Identifier: BSD-3-Clause
"""flashield-sim size: the cheapest memory and flash for a hit ratio, what they cost and write, and the sizes beside them."""
import dataclasses

import search
import table
import worker
from size_study import Interrupted, Study, Trouble

GIB = 1 << 30
BESIDE = 0.005  # below the hit ratio of a cache that holds everything, where no target is given
OBJECT_COSTS = 128  # bytes beside a value, for the most that is tried: key, header, table, the allocator's rounding
ROOM = 1.5
ENGINE_LEAST, ENGINE_FIXED = 8 << 20, 64 << 20
CHECKS = 3  # of the sample against all objects
NEIGHBOURS = 8
FOUND, UNREACHED, TROUBLE = 0, 1, 2

# The Flashield paper's table 1: a server with 256 GB of DRAM for 7,700 dollars, a drive of 1 TB (there 1,024 GB) for 1,200.
DRAM_PRICE, FLASH_PRICE = 7700 / 256, 1200 / 1024
SOURCE = ("Eisenman et al., \"Flashield: a Key-value Cache that Minimizes Writes to Flash\", table 1: a server with 256 GB of DRAM "
          "for $7,700, an enterprise SSD of 1 TB for $1,200, where a GB is taken as a GiB")


@dataclasses.dataclass
class Prices:
    dram: float
    flash: float

    def cost(self, pair):
        return (pair[0] * self.dram + pair[1] * self.flash) / GIB


def check_policy(name, policies):
    known = {policy["name"]: policy for policy in policies}
    policy = known.get(name.partition(":")[0])
    if policy is None:
        raise Trouble(f"--policy: \"{name}\" is none; \"flashield-sim policies\" lists them")
    if policy["textbook"]:
        raise Trouble(f"--policy: {name} has one tier, so there is nothing to divide between DRAM and flash")


def ranges(study):
    """(least, most) of memory and of flash: the most holds every object."""
    chosen, trace = study.chosen, study.trace
    everything = chosen.copies * (trace["working_set_bytes"] + OBJECT_COSTS * trace["keys"])
    fixed = ENGINE_FIXED * chosen.sample if study.is_engine else 0
    memory = search.tidy(ROOM * everything + fixed)
    memory = min(memory, chosen.most_dram) if chosen.most_dram else memory
    flash = search.tidy(ROOM * everything + (ENGINE_LEAST * chosen.sample if study.is_engine else 0))
    flash = flash if chosen.most_flash is None else min(flash, chosen.most_flash)
    least = max(memory / 256, ENGINE_LEAST * chosen.sample if study.is_engine else 1)
    return (min(search.tidy(least), memory), memory), (search.tidy(flash / 64), flash) if flash else None


class Finder:
    """A search on the sample, checked against runs with all objects until both agree."""

    def __init__(self, study, prices, memories, flashes, ceiling=1):
        self.study, self.memories, self.flashes = study, memories, flashes
        self.search = search.Search(study.evaluate, prices.cost, ceiling, max(4, study.chosen.jobs), study.expect)
        self.whole = {}  # outcomes with all objects, by pair

    def whole_of(self, pair):
        if self.study.chosen.sample == 1:
            return self.study.outcomes[pair]
        if pair not in self.whole:
            [self.whole[pair]] = self.study.try_all([pair], 1)
        return self.whole[pair]

    def error(self, pair):
        """By how much the sample's hit ratio is too high. None: it isn't known."""
        whole, part = self.whole_of(pair), self.study.outcomes[pair]
        return None if whole.hit_ratio is None or part.hit_ratio is None else part.hit_ratio - whole.hit_ratio

    def reaches(self, pair, target):
        whole = self.whole_of(pair)
        return not whole.why and self.search.enough(whole.hit_ratio, target)

    def cheapest(self, target, flashes):
        """The cheapest pair that reaches the target with all objects. Where the sample errs, the target for it is moved by that
        much, and it is searched again; what it knows already costs nothing. None: it can't be reached."""
        moved, good = 0, None
        for _ in range(CHECKS):
            pair = self.search.cheapest(min(target + moved, 1), self.memories, flashes)
            if pair is None:
                break
            if self.reaches(pair, target) and (good is None or self.search.cost(pair) < self.search.cost(good)):
                good = pair
            error = self.error(pair)
            if error is None or abs(error - moved) < 0.0005:
                break
            moved = error
        return good

    def best(self):
        """The highest hit ratio that was seen."""
        usable = [found for found in self.study.outcomes.values() if not found.why]
        return max(usable, key=lambda found: found.hit_ratio, default=None)


def fields_of(found, prices, chosen):
    """An outcome as JSON."""
    if found is None:
        return None
    pair = found.memory_bytes, found.flash_bytes
    per_day = found.flash_bytes_per_day
    life = chosen.endurance.life_years(found.flash_bytes, per_day) if chosen.endurance and found.flash_bytes else None
    return {**dataclasses.asdict(found), "cost": prices.cost(pair), "drive_life_years": life,
            "drive_writes_per_day": per_day / found.flash_bytes if found.flash_bytes else None}


def answer_of(finder, prices, target, chosen_pair, alone):
    study = finder.study
    chosen = study.chosen
    show = lambda found: fields_of(found, prices, chosen)
    best = finder.best()
    centre = chosen_pair or (best and (best.memory_bytes, best.flash_bytes))
    beside = finder.search.neighbours(centre, NEIGHBOURS) if centre else []
    return {
        "trace": {"path": chosen.trace, **study.trace}, "policy": chosen.policy, "memory_is": "-m" if study.is_engine else "DRAM",
        "least_memory_bytes": finder.memories[0], "copies": chosen.copies, "sample": chosen.sample, "target_hit_ratio": target, "target_given": chosen.hit_ratio is not None,
        "write_budget": chosen.write_budget.text if chosen.write_budget else None,
        "endurance": chosen.endurance.text if chosen.endurance else None,
        "dram_price_per_gib": prices.dram, "flash_price_per_gib": prices.flash,
        "price_source": SOURCE if None in (chosen.dram_price, chosen.flash_price) else None,
        "chosen": show(finder.whole_of(chosen_pair)) if chosen_pair else None,
        "dram_only": show(finder.whole_of(alone)) if alone else None,
        "sample_error": finder.error(chosen_pair) if chosen_pair and chosen.sample > 1 else None,
        "best": show(best), "neighbours": [show(study.outcomes[pair]) for pair in beside],
        "tried": [show(study.outcomes[pair]) for pair in sorted(study.outcomes)],
    }


def find(chosen, policies):
    """The answer as JSON, None where there is none, and the exit status."""
    prices = Prices(DRAM_PRICE if chosen.dram_price is None else chosen.dram_price,
                    FLASH_PRICE if chosen.flash_price is None else chosen.flash_price)
    try:
        check_policy(chosen.policy, policies)
        study = Study(chosen)
        most = study.look()
        target = max(0, most - BESIDE) if chosen.hit_ratio is None else chosen.hit_ratio
        finder = Finder(study, prices, *ranges(study), most)
        pair = finder.cheapest(target, finder.flashes)
        alone = finder.cheapest(target, None)
        if all(found.why for found in study.outcomes.values()):
            raise Trouble(f"no size could be used; the last one: {list(study.outcomes.values())[-1].why}")
    except Interrupted:
        return None, TROUBLE
    except Trouble as trouble:
        if str(trouble):
            worker.tell(trouble)
        return None, TROUBLE
    if alone and (pair is None or prices.cost(alone) < prices.cost(pair)):
        pair = alone
    return answer_of(finder, prices, target, pair, alone), FOUND if pair else UNREACHED


# ---- as text ---------------------------------------------------------------------------------


def life_text(years):
    return "-" if years is None else f"{years:.1f} years" if years < 1000 else "over 1000 years"


def money(cost):
    return f"{cost:.3g}" if cost < 10 else f"{cost:,.2f}" if cost < 1000 else f"{cost:,.0f}"


def row_of(name, found):
    flash = found["flash_bytes"]
    written = found["flash_bytes_per_day"]
    per_day = found["drive_writes_per_day"]
    return [name, table.size(found["memory_bytes"]), table.size(flash) if flash else "-", table.percent(found["hit_ratio"]),
            table.decimal(found["clwa"]) if flash else "-", table.size(written) if flash else "-",
            "-" if per_day is None else f"{per_day:.3g}", life_text(found["drive_life_years"]) if flash else "-",
            money(found["cost"])]


def aligned(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(text.rjust(width) if i else text.ljust(width)
                        for i, (text, width) in enumerate(zip(row, widths, strict=True))).rstrip()


def verdict(found, target):
    return found["why"] or ("reaches it" if found["hit_ratio"] >= target - search.ENOUGH else "too low")


def target_text(answer):
    given = "" if answer["target_given"] else ", half a point less than a cache in DRAM that holds everything"
    budget = f"; flash writes within {answer['write_budget']}" if answer["write_budget"] else ""
    return f"Target: a hit ratio of {table.percent(answer['target_hit_ratio'])} %{given}{budget}."


def sample_lines(answer):
    if answer["sample"] == 1:
        return
    if answer["chosen"] and answer["chosen"]["memory_bytes"] == answer["least_memory_bytes"]:
        yield "This is the least memory that was tried; a larger sample may try less."
    yield f"The search played one object of {answer['sample']}."
    if answer["sample_error"] is not None:
        error = 100 * answer["sample_error"]
        yield (f"The rows \"cheapest\" and \"DRAM only\" are runs with all objects. At the cheapest sizes the sample's hit ratio is "
               f"{abs(error):.2f} points too {'high' if error > 0 else 'low'}; the search made up for that.")
    elif answer["chosen"] is None:
        yield "No run with all objects was made: what can be reached is told by the sample, whose error is not known."


def reading_lines(answer):
    chosen, alone = answer["chosen"], answer["dram_only"]
    if chosen is None:
        best = answer["best"]
        yield (f"No size that was tried reaches the target. The best is {table.percent(best['hit_ratio'])} %, with "
               f"{table.size(best['memory_bytes'])} of memory and {table.size(best['flash_bytes'])} of flash.")
    elif not chosen["flash_bytes"]:
        yield "DRAM alone is the cheapest."
    elif alone is None:
        yield "DRAM alone does not reach the target at any size that was tried."
    elif alone["cost"]:
        yield f"It costs {100 * chosen['cost'] / alone['cost']:.0f} % of what DRAM alone costs."
    if chosen and chosen["flash_bytes"] and chosen["clwa_budget"]:
        yield f"It was played with a CLWA budget of {chosen['clwa_budget']:.3g}: the daemon's --flash-write-ratio."


def lines_of(answer):
    """What is printed."""
    yield target_text(answer)
    yield ""
    head = ["", answer["memory_is"], "flash", "hit %", "CLWA", "flash/day", "DWPD", "drive life", "cost"]
    rows = [head]
    if answer["chosen"]:
        rows.append(row_of("cheapest", answer["chosen"]))
    if answer["dram_only"]:
        rows.append(row_of("DRAM only", answer["dram_only"]))
    if not answer["chosen"] and answer["best"]:
        rows.append(row_of("best", answer["best"]))
    yield from aligned(rows)
    yield ""
    yield from reading_lines(answer)
    yield from sample_lines(answer)
    if answer["neighbours"]:
        yield ""
        yield "Sizes beside it" + (", by the sample:" if answer["sample"] > 1 else ":")
        yield from aligned([head] + [row_of(verdict(found, answer["target_hit_ratio"]), found) for found in answer["neighbours"]])
    yield ""
    yield f"Prices: {answer['dram_price_per_gib']:.2f} for a GiB of DRAM, {answer['flash_price_per_gib']:.2f} for a GiB of flash."
    if answer["price_source"]:
        yield f"Default prices, in dollars: {answer['price_source']}."
    if answer["memory_is"] != "-m":
        yield "DRAM is bytes of objects; what a cache keeps beside them is not counted."
