# SPDX-License-Identifier: BSD-3-Clause
"""The contents of the dashboard, as a table: rows of panels, each with its queries and a description for an operator.

In a query {@ stands for the chosen daemons ({@,tier="dram"}), [%] for the range of a rate. Sums go over all chosen daemons;
what can't be summed has a line for each. A panel's width is in 24ths of the screen.
"""
import collections

Panel = collections.namedtuple("Panel", "title unit queries description kind width stack maximum colors log")


def graph(title, unit, queries, description, width=8, stack=False, maximum=None, colors=None, log=False):
    return Panel(title, unit, queries, description, "timeseries", width, stack, maximum, colors or {}, log)


def figure(title, unit, query, description, colors=None):
    """One number; colors: [(from which value, color)]."""
    return Panel(title, unit, {"": query}, description, "stat", 4, False, None, colors or [(None, "blue")], False)


DRAM, FLASH, BAD, LIMIT, FAINT = "blue", "orange", "red", "dark-red", "gray"
MISSES = ',result="miss"'
GETS = "(sum(rate(flashield_get_hits_total{@}[%])) + sum(rate(flashield_get_misses_total{@}[%])))"


def rate(name, labels=""):
    return f"sum(rate(flashield_{name}_total{{@{labels}}}[%]))"


def quantile(share, by="kind", metric="request_duration_seconds", labels=""):
    return f"histogram_quantile({share}, sum by ({by}, le) (rate(flashield_{metric}_bucket{{@{labels}}}[%])))"


def by_application(name, labels=""):
    return f"sum by (application) (rate(flashield_application_{name}_total{{@{labels}}}[%]))"


def of_the_ten(name, labels=""):
    """Restricts to the ten applications with most over the whole time shown, which are the same at each of its moments."""
    return (f"and on (application) topk(10, sum by (application) "
            f"(rate(flashield_application_{name}_total{{@{labels}}}[$__range] @ end())))")


KIND_COLORS = {"dram_hit": DRAM, "flash_hit": FLASH, "miss": BAD, "set": "green"}

ROWS = [
    ("Overview", [
        figure("Hit ratio", "percentunit", f"{rate('get_hits')} / {GETS}",
               "Share of the keys asked for that were found, in DRAM or on flash."),
        figure("Hits from flash", "percentunit", f"{rate('flash_hits')} / {GETS}",
               "Share of the keys asked for that were found on flash: what the drive adds to the hit ratio.", [(None, FLASH)]),
        figure("Keys asked for", "ops", rate("cmd_get"), "Keys of get commands per second."),
        figure("Written to flash", "Bps", rate("flash_bytes_written"),
               "Bytes per second that go to the drive, everything included. Compare with the budget in the row Flash.", [(None, FLASH)]),
        figure("CLWA, one hour", "none", 'max(flashield_clwa_ratio{@,window="1h"})',
               "Cache-level write amplification: bytes written to the drive for each byte that applications have written. "
               "Below 1 is good; of several daemons, the highest.", [(None, "green"), (1, "orange"), (2, "red")]),
        figure("Alerts", "none", 'count(ALERTS{@,alertstate="firing",alertname=~"Flashield.*"}) or vector(0)',
               "Alerts of flashield.rules.yml that fire now. Prometheus' page Alerts tells which and what to do.",
               [(None, "green"), (1, "red")]),
        graph("Hit ratio by tier", "percentunit", {
            "from DRAM": f"{rate('dram_hits')} / {GETS}",
            "from flash": f"{rate('flash_hits')} / {GETS}",
        }, "Share of the keys asked for that DRAM and flash answer; the rest are misses. After a start both grow for hours: flash gets "
           "objects only when DRAM is nearly full. A sudden drop is a restart, flush_all, other traffic, or a flash offline.",
              stack=True, maximum=1, colors={"from DRAM": DRAM, "from flash": FLASH}),
        graph("Requests by kind", "ops", {
            "get hits": rate("get_hits"), "get misses": rate("get_misses"), "sets": rate("cmd_set"),
            "deletes": f"{rate('delete_hits')} + {rate('delete_misses')}", "touches": rate("cmd_touch"),
        }, "Keys and commands per second. With look-aside clients sets follow misses.",
              colors={"get hits": DRAM, "get misses": BAD, "sets": "green", "deletes": "purple", "touches": FAINT}),
        graph("Latency: median", "s", {"{{kind}}": quantile(0.5)},
              "From a request's arrival to its answer: half of them are faster. DRAM hits, misses and sets take microseconds, flash hits "
              "what the drive takes. All rising together is a lack of CPU time; flash hits alone, the drive.", colors=KIND_COLORS, log=True),
        graph("Latency: 99th percentile", "s", {"{{kind}}": quantile(0.99)},
              "One request in a hundred takes longer. Flash hits wait for segments being written: they rise with the bytes written.",
              colors=KIND_COLORS, log=True),
        graph("Latency: 99.9th percentile", "s", {"{{kind}}": quantile(0.999)},
              "One request in a thousand takes longer. A level of --flash-read-timeout means that the drive stalls.", colors=KIND_COLORS, log=True),
        graph("Slow requests", "ops", {"{{instance}}": "rate(flashield_slow_requests_total{@}[%])"},
              "Requests per second that took --slow-log-threshold or longer; nothing while that is 0. stats slow tells which, and where their time went."),
        graph("Uptime", "s", {"{{instance}}": "time() - flashield_start_time_seconds{@}"},
              "A fall to zero is a restart; after each the cache is cold, and its hit ratio grows again."),
    ]),
    ("Flash", [
        graph("Write rate against budget", "Bps", {
            "written": rate("flash_bytes_written"),
            "written, one hour": 'sum(flashield_flash_write_rate_bytes_per_second{@,window="1h"})',
            "budget": "sum(flashield_flash_write_limit_bytes_per_second{@})",
        }, "Bytes per second to the drive, and --flash-write-limit (0: none). Segments are written whole, so seconds show peaks; the "
           "hour has to stay below.", colors={"written": FLASH, "written, one hour": "yellow", "budget": LIMIT}),
        graph("Budget used", "percentunit", {"{{instance}} {{window}}": "flashield_flash_write_budget_used_ratio{@}"},
              "The write rate's share of --flash-write-limit by window; 0 without a budget. Near 1 the budget binds: the classifier's threshold "
              "rises and only the best objects go to flash."),
        graph("CLWA by window", "none", {"{{instance}} {{window}}": "flashield_clwa_ratio{@}"},
              "Bytes written to the drive for each byte that applications have written. Around 0.5 the classifier does its work; "
              "above 1 objects are written that nobody reads, or are taken back and written again."),
        graph("Traffic of the device", "Bps", {
            "written": rate("flash_bytes_written"), "read": rate("flash_bytes_read"),
        }, "All bytes to and from the drive, headers, padding and reclaim included.", colors={"written": FLASH, "read": DRAM}),
        graph("Reads per flash hit and per miss", "none", {
            "per hit": f"{rate('flash_reads_on_hit')} / {rate('flash_lookups_hit')}",
            "per miss": f"{rate('flash_reads_on_miss')} / {rate('flash_lookups_miss')}",
        }, "Requests to the drive for a key that is found there, and for one that isn't. 1 and nearly 0 are normal; more says "
           "that many keys share their tag: a fuller index, or filters switched off.", colors={"per hit": FLASH, "per miss": BAD}),
        graph("Errors", "ops", {
            "reads failed": rate("flash_read_errors"), "writes failed": rate("flash_write_errors"),
            "checks failed": rate("flash_checksum_errors"), "reads too late": rate("flash_read_timeouts"),
            "not made, drive too busy": rate("flash_reads_shed"), "offline": "sum(flashield_flash_offline{@})",
        }, "Per second; all are 0 on a healthy drive, and all are misses for clients. Not made are reads that the drive could not "
           "answer in time: it is asked for more than it does. offline: how many daemons have given their drive up for now.", colors={"offline": LIMIT}),
        graph("I/O latency", "s", {
            "{{operation}}, median": quantile(0.5, "operation", "flash_io_duration_seconds"),
            "{{operation}}, 99th percentile": quantile(0.99, "operation", "flash_io_duration_seconds"),
        }, "What the drive takes for a request. A read is one object, a write up to a megabyte. Slow reads beside fast requests "
           "of other kinds: the drive is busy, or old.", log=True),
        graph("Objects to and from flash", "ops", {
            "moved to flash": rate("flash_objects_written"), "taken back into DRAM": rate("flash_objects_reinserted"),
            "given up when reclaimed": rate("flash_objects_dropped"), "changed while written": rate("flash_dead_on_commit"),
        }, "Objects per second. Taken back are those that were read on flash, once their segment is reclaimed. Many changed while "
           "written: applications rewrite what the classifier admits."),
        graph("Drive's endurance used", "percentunit", {
            "{{instance}}, one day": "instance:flashield_flash_written_bytes:rate1d{@} "
                                     "/ on () group_left () flashield:drive_endurance_bytes_per_second",
            "{{instance}}, one hour": "instance:flashield_flash_written_bytes:rate1h{@} "
                                      "/ on () group_left () flashield:drive_endurance_bytes_per_second",
        }, "The write rate's share of what the drive endures over its lifetime, by the two constants that you edit in "
           "flashield.rules.yml. Below 100 % over a day the drive lasts as long as it should, at 200 % half as long."),
    ]),
    ("Memory", [
        graph("Cache memory by part", "bytes", {"{{part}}": "sum by (part) (flashield_memory_part_bytes{@})"},
              "What -m is used for. items is what objects in DRAM get; index and filters follow from how many objects are on flash; plan and "
              "staging come and go with the writing of a segment.", stack=True),
        graph("Resident memory against limit", "bytes", {
            "resident {{instance}}": "flashield_resident_memory_bytes{@}",
            "limit {{instance}}": "flashield_memory_limit_bytes{@}",
            "target {{instance}}": "1.1 * flashield_memory_limit_bytes{@} + 24 * 1024 * 1024",
        }, "The process's memory stays below -m and a tenth and 24 MiB. More is an alert: buffers of many connections, or a fault."),
        graph("DRAM bytes per flash object", "bytes", {"{{instance}}": "flashield_dram_bytes_per_flash_item{@}"},
              "Memory of index, filters and tables for each object on flash. High while the flash fills, as a table has its size from the start; "
              "then a few bytes, and for a turn of the flash more while one table takes the place of another.", log=True),
        graph("Bytes of objects by tier", "bytes", {"{{tier}}": "sum by (tier) (flashield_item_bytes{@})"},
              "Key and value bytes with their heads; of flash an estimate. DRAM is full most of the time; flash fills once and then "
              "stays.", stack=True, colors={"dram": DRAM, "flash": FLASH}),
        graph("Objects by tier", "short", {"{{tier}}": "sum by (tier) (flashield_items{@})"},
              "Objects that can be read, ghosts left out.", stack=True, colors={"dram": DRAM, "flash": FLASH}),
        graph("Evictions and expiries", "ops", {
            "evicted": rate("evictions"), "of these never read": rate("evicted_unfetched"),
            "of these read lately": rate("evicted_active"), "expired and reused": f"{rate('reclaimed')} + {rate('crawler_reclaimed')}",
            "evicted by a worker": rate("direct_reclaims"),
        }, "Objects per second that leave DRAM other than by delete or for flash. Many that were read lately: DRAM is too small, "
           "or objects come faster than segments can be written.",
              colors={"of these read lately": BAD, "expired and reused": FAINT, "evicted by a worker": "purple"}),
    ]),
    ("Index and segments", [
        graph("Index load", "percentunit", {"{{instance}}": "flashield_index_load_ratio{@}"},
              "Share of the index's slots in use. Up to 0.98 is fine: a table is added where more is needed. Full, and segments "
              "stay free: the index has its half of -m.", maximum=1),
        graph("Objects and ghosts on flash", "short", {
            "objects": 'sum(flashield_items{@,tier="flash"})', "ghosts": "sum(flashield_ghosts{@})",
        }, "Ghosts can be read, but go with their segment unless they are read before. Under the default rule and freq there are none; "
           "under rules that ask at reads a third of all on a full flash is normal.",
              stack=True, colors={"objects": FLASH, "ghosts": FAINT}),
        graph("Hot data against threshold", "bytes", {
            "hot data": "sum(flashield_hot_bytes{@})", "threshold (HDT)": "sum(flashield_hot_threshold_bytes{@})",
        }, "Hot data is what lies in DRAM, and on flash without ghosts. Under rules that ask at reads cold objects on flash become ghosts "
           "beyond the threshold (DRAM and --hot-fraction of the flash), and a full cache stays near it. Under the default rule and "
           "freq the threshold has no effect, and a full flash exceeds it.", colors={"threshold (HDT)": LIMIT}),
        graph("Segments by state", "short", {"{{state}}": "sum by (state) (flashield_segments{@})"},
              "live holds objects, free has never been written or was just reclaimed; retired could not be written, and where a bad one lay pages can't be read: both are faults of the drive.",
              stack=True, colors={"live": FLASH, "free": FAINT, "retired": BAD, "bad": BAD, "other": "yellow"}),
        graph("Fill of segments", "percentunit", {"{{instance}}": "flashield_segment_fill_ratio{@}"},
              "Mean share of a live segment that records take. Below nine tenths, space and endurance are wasted: too few candidates "
              "were there when segments were made.", maximum=1),
        graph("Residence on flash", "s", {"{{instance}}": "flashield_segment_residence_seconds{@}"},
              "How long a segment stays from its write to its reclaim; 0 until the flash has been filled once. Short: the flash is small for "
              "what is written, or too much is written."),
        graph("Segments written and reclaimed", "ops", {
            "written": rate("segments_written"), "reclaimed": rate("segments_reclaimed"), "swept": rate("segments_swept"),
        }, "Per second. Once the flash is full both are the same. Swept are those whose header could not be read or was not right.",
              colors={"written": FLASH, "reclaimed": DRAM, "swept": BAD}),
        graph("Slots that were not read", "ops", {
            "by tag": rate("tag_rejects"), "by filter": rate("filter_rejects"), "known collisions": rate("exact_rejects"),
            "read in vain": rate("false_matches"),
        }, "What kept lookups from reading other keys' objects, and how often nothing did (read in vain: each was a request to the drive).",
              colors={"read in vain": BAD}),
        graph("Index moves and drops", "ops", {
            "inserted": rate("index_inserts"), "moved": rate("index_moves"), "dropped": rate("index_drops"),
            "cleared by commands": rate("index_slots_cleared"),
        }, "Slots per second. Moves rise as the index gets full; drops are objects lost to a full index, and an alert.",
              colors={"dropped": BAD}),
    ]),
    ("Classifier", [
        graph("Model in use", "none", {"{{instance}} {{model}}": "flashield_model_in_use{@}"},
              "1 while a trained model decides what goes to flash, 0 while a simple rule does: in the first two days, "
              "or while models lose against the rule.", maximum=1),
        graph("Age of the model", "s", {"{{instance}} {{model}}": "flashield_model_age_seconds{@}"},
              "Models are trained four times in a training window (a day): a line that only rises means that trainings fail or are rejected. "
              "Without a model, nothing."),
        graph("Precision and recall", "percentunit", {
            "precision {{instance}}": "flashield_model_precision_ratio{@}",
            "recall {{instance}}": "flashield_model_recall_ratio{@}",
            "worth flash {{instance}}": "flashield_model_positive_ratio{@}",
        }, "On samples held out: how much of what is admitted is read on flash, and how much of what would be read is admitted. "
           "Precision has to be well above the share that is worth flash, which is what chance would give.", maximum=1),
        graph("Threshold", "none", {"{{instance}} {{model}}": "flashield_model_threshold{@}"},
              "The decision value from which objects qualify. 0 without need; it rises while the write budget binds."),
        graph("Share admitted", "percentunit", {
            "of samples {{instance}}": "flashield_model_admitted_ratio{@}",
            "of objects scored": f"{rate('objects_admitted')} / {rate('objects_scored')}",
        }, "How much qualifies for flash, of the model's own samples and of all that is scored now.", maximum=1),
        graph("Candidates in DRAM", "bytes", {
            "candidates": "sum(flashield_candidate_bytes{@})", 'items in DRAM': 'sum(flashield_item_bytes{@,tier="dram"})',
        }, "Bytes in DRAM that qualify for flash. Hardly any: segments are not made, and DRAM evicts instead.",
              colors={"candidates": FLASH, "items in DRAM": DRAM}),
        graph("Samples", "ops", {
            "labelled": rate("samples_taken"), "dropped": rate("samples_dropped"),
        }, "Samples per second that the next model is trained on. Dropped: more keys are followed than there is room for.",
              colors={"dropped": BAD}),
        graph("Keys followed", "short", {
            "keys": "sum(flashield_sampled_keys{@})", "samples waiting": "sum(flashield_samples_waiting{@})",
        }, "Keys that the sampler follows, and samples whose time is not over: both level off after a horizon."),
        graph("Trainings", "short", {
            "trained": "sum(flashield_trainings_total{@})", "rejected": "sum(flashield_models_rejected_total{@})",
        }, "Models trained since the start, and those that lost against the simple rules and are not used.", colors={"rejected": BAD}),
    ]),
    ("Applications", [
        graph("Hit ratio by application", "percentunit", {
            "{{application}}":
                by_application("gets", ',result=~"dram_hit|flash_hit"') + " / " + by_application("gets") + " " + of_the_ten("gets"),
        }, "Of the ten applications that ask for most. An application is what stands before the first \":\" of a key, at most 64 of them.",
              maximum=1),
        graph("Hits from flash by application", "percentunit", {
            "{{application}}":
                by_application("gets", ',result="flash_hit"') + " / " + by_application("gets") + " " + of_the_ten("gets"),
        }, "Share of its keys that an application finds on flash: who profits from the drive.", maximum=1),
        graph("Keys asked for by application", "ops", {"{{application}}": by_application("gets") + " " + of_the_ten("gets")},
              "Keys per second, the ten applications with most.", stack=True),
        graph("Sets by application", "ops", {"{{application}}": by_application("sets") + " " + of_the_ten("sets")},
              "Storage commands per second, the ten applications with most.", stack=True),
        graph("Bytes set by application", "Bps", {"{{application}}": by_application("written_bytes") + " " + of_the_ten("written_bytes")},
              "Key and value bytes of accepted storage commands per second, the ten applications with most: who fills the cache. "
              "Whether they go on to flash is the classifier's choice.", stack=True),
        graph("Misses by application", "ops", {
            "{{application}}": by_application("gets", MISSES) + " " + of_the_ten("gets", MISSES),
        }, "Keys per second that were not found: who would profit from a larger cache, or asks for what nobody stores.", stack=True),
        graph("Share of the hottest keys", "percentunit", {
            "{{instance}}, the hottest by {{by}}": 'flashield_hotkeys_share_ratio{@,keys="1"}',
            "{{instance}}, the ten hottest by {{by}}": 'flashield_hotkeys_share_ratio{@,keys="10"}',
        }, "Share of the last minute's requests, value bytes and flash reads that one key has, and ten. One key with a large share is the limit of "
           "its node, however many nodes there are: stats hotkeys names it.", maximum=1),
        graph("Bytes of objects by application", "bytes", {
            "{{application}}": "sum by (application) (flashield_application_item_bytes{@}) and on (application) "
                               "topk(10, sum by (application) (flashield_application_item_bytes{@} @ end()))",
        }, "What the ten applications with most have in DRAM and on flash together, estimated from samples: who the cache is full of.", stack=True),
        graph("Memory of applications with limits", "bytes", {
            "{{application}}": "sum by (application) (flashield_application_dram_bytes{@})",
            "{{application}} floor": "sum by (application) (flashield_application_dram_floor_held_bytes{@}) > 0",
            "{{application}} ceiling": "sum by (application) (flashield_application_dram_ceiling_bytes{@})",
        }, "What applications with --app-limit have in DRAM, the floor that is held for them, and their ceiling; empty without limits."),
        graph("Flash of applications with limits", "bytes", {
            "{{application}}": "sum by (application) (flashield_application_flash_bytes{@})",
            "{{application}} floor": "sum by (application) (flashield_application_flash_floor_held_bytes{@}) > 0",
            "{{application}} ceiling": "sum by (application) (flashield_application_flash_ceiling_bytes{@})",
        }, "What applications with --app-limit have on flash, the floor that is held for them, and their ceiling: estimated, and too low until each "
           "segment was written anew after a start."),
        graph("Writes of applications with limits", "Bps", {
            "{{application}}": by_application("flash_written_bytes"),
            "{{application}} limit": "sum by (application) (flashield_application_flash_write_limit_bytes_per_second{@})",
        }, "Bytes per second of their objects that go to flash, and their limit on writes. A segment is written at once, so look at the mean of some minutes."),
        graph("What limits of applications do", "ops", {
            "{{application}} evicted": by_application("ceiling_evictions"),
            "{{application}} kept off flash": by_application("flash_write_refusals"),
        }, "Objects per second that went because of a ceiling in DRAM, and that a limit on writes or a ceiling on flash kept off it. Hits "
           "of the application that fall with it say that the limit is too low."),
        graph("Objects in DRAM by value size", "short", {
            "up to {{up_to}}": 'sum by (up_to) (flashield_contents_items{@,tier="dram",measure="size"}) > 0',
        }, "Objects in DRAM by the bytes of their values, estimated from samples; a bucket lacks what is in lower ones.", stack=True),
        graph("Objects in DRAM by idle time", "short", {
            "up to {{up_to}}": 'sum by (up_to) (flashield_contents_items{@,tier="dram",measure="idle"}) > 0',
        }, "Objects in DRAM by the time since their last access, estimated from samples. Most of them idle for long: DRAM holds more than is used.",
              stack=True),
    ]),
    ("Connections", [
        graph("Connections", "short", {
            "open": "sum(flashield_connections{@})", "limit": "sum(flashield_connections_limit{@})",
        }, "Connections open, and -c. At the limit clients are refused or wait.", colors={"limit": LIMIT}),
        graph("Connections accepted and refused", "ops", {
            "accepted": rate("connections"), "refused": rate("rejected_connections"), "closed as idle": rate("idle_kicks"),
            "stopped accepting": rate("listen_disabled"),
        }, "Per second. Many accepted: clients that don't keep their connections, which costs both sides more than the request.",
              colors={"refused": BAD}),
        graph("Network", "Bps", {"received": rate("bytes_read"), "sent": rate("bytes_written")},
              "Bytes per second from and to clients.", colors={"received": "green", "sent": DRAM}),
        graph("CPU", "percentunit", {"{{mode}}": "sum by (mode) (rate(flashield_cpu_seconds_total{@}[%]))"},
              "CPU time per second: 100 % is one core. As many cores as workers (-t) is as much as requests can take; writing to flash "
              "and training take some beside.", stack=True),
        graph("Turns given up", "ops", {"yields": rate("conn_yields")},
              "How often a connection with more than -R requests at once let others go first. High: a client sends large batches."),
        graph("Refused logins and TLS errors", "ops", {
            "logins refused": rate("auth_errors"), "TLS handshakes failed": rate("ssl_handshake_errors"),
        }, "Per second; 0 unless a client has the wrong password or certificate, or somebody tries."),
    ]),
]
