# SPDX-License-Identifier: BSD-3-Clause
"""Figures of the Flashield paper (Eisenman et al., NSDI 2019), by table, copied as they are printed there. Hit ratios are in
percent. Nothing here is ours."""

TABLE_2 = {  # section 2.2: the twenty applications with the most requests, one week
    "mean object, B": 257, "reads %": 90.0, "writes %": 9.5, "updates %": 0.5, "unread writes %": 60.6,
}
FIGURE_2_BELOW_1KB = 80.67  # section 2.2: the one point of the curve that the text gives, in percent of objects written

TABLE_3 = {"victim": (69.72, 4.00), "ripq": (70.59, 2.59)}  # section 2.2: the whole trace; hit %, CLWA

TABLE_4 = {1: (39.0, 100.0), 3: (92.2, 100.0), 19: (95.3, 100.0), 18: (96.9, 100.0), 20: (77.6, 100.0)}
# section 3.1: precision, which the paper calls accuracy, and recall of the SVM at a threshold of one read

TABLE_5_POLICIES = ("clock1", "clock2", "clock3", "lru")
TABLE_5 = {  # section 3.2: hit %
    1: (70.4, 70.57, 70.57, 70.99), 3: (99.97, 99.97, 99.97, 99.97), 19: (99.54, 99.55, 99.55, 99.55),
    18: (98.15, 98.15, 98.15, 98.21), 20: (99.18, 99.22, 99.22, 99.26),
}

TABLE_6_POLICIES = ("flashield", "ripq", "victim")
TABLE_6 = {  # section 5.1: hit %, CLWA of each policy, DRAM to flash 1:7
    2: ((98.8, 5.8), (98.5, 151.9), (99.3, 4536.3)), 7: ((98.6, 2.8), (98.8, 4.4), (98.9, 21.7)),
    10: ((83.1, 0.4), (83.1, 2.9), (93.3, 3.7)), 20: ((98.1, 0.2), (98.7, 12.4), (99.3, 34.0)),
    23: ((96.0, 0.8), (96.0, 1.6), (96.2, 1.3)), 29: ((90.1, 0.2), (91.3, 1.8), (94.4, 2.4)),
    31: ((97.3, 0.5), (97.3, 1.4), (97.4, 1.0)),
}
TABLE_6_MEDIAN_CLWA = {"flashield": 0.54, "ripq": 2.85, "victim": 3.67}  # section 5.1, text

TABLE_7_THRESHOLDS = (1, 10, 100)
TABLE_7 = {  # section 5.1: hit %, CLWA of Flashield at each threshold
    2: ((98.8, 5.8), (99.0, 9.2), (98.9, 5.0)), 7: ((98.6, 2.8), (98.6, 2.7), (95.2, 0.0)),
    10: ((83.1, 0.4), (83.1, 0.4), (83.0, 0.4)), 20: ((98.1, 0.2), (98.1, 0.2), (98.1, 0.2)),
    23: ((96.0, 0.8), (95.9, 0.7), (95.9, 0.7)), 29: ((90.1, 0.2), (85.5, 0.0), (85.2, 0.0)),
    31: ((97.3, 0.5), (97.3, 0.5), (97.3, 0.5)),
}

TABLE_8_RATIOS = (15, 7, 3)
TABLE_8 = {  # section 5.1: hit %, CLWA of Flashield with DRAM to flash 1:15, 1:7, 1:3 and segments of 2 MB
    2: ((99.0, 5.1), (99.0, 4.6), (99.0, 2.6)), 7: ((98.3, 3.1), (98.6, 4.1), (98.8, 4.9)),
    10: ((81.4, 0.4), (83.2, 0.4), (92.7, 0.8)), 20: ((97.6, 1.2), (98.4, 0.9), (98.9, 2.2)),
    23: ((95.7, 0.7), (96.0, 0.8), (96.2, 0.9)), 29: ((89.0, 0.2), (91.0, 0.3), (94.3, 0.4)),
    31: ((97.2, 0.5), (97.3, 0.5), (97.3, 0.5)),
}
TABLE_8_SEGMENT_BYTES = 2 << 20

CLWA_FACTORS = {"mean": 16, "median": 5}  # section 1: RIPQ's CLWA over Flashield's

FIGURE_4_APP, FIGURE_4_READS = 19, 10  # section 3.1: of objects that are read more often than that
FIGURE_4 = {  # our name of a feature, and the paper's
    "reads": "(a) past reads", "mean_gap": "(b) mean time between reads, s", "last_gap": "(c) time between the last two reads, s",
    "max_gap": "(d) longest time between reads, s", "first_gap": "(e) time to the first read, s",
}

FIGURE_8 = {"fill % at twice the bytes": 99, "hashes per object": 8.2}  # section 5.3: 512 MB segments, 16 functions, 1 GB of objects

# Published with the paper's own simulator and with Cliffhanger: bytes that Memcachier gave to each application.
ALLOCATIONS = {
    1: 701423104, 3: 19450368, 19: 51209600, 18: 6313216, 20: 70953344, 6: 7108608, 5: 35743872, 8: 10485760, 59: 1713664,
    227: 20237184, 29: 187378624, 10: 684898304, 13: 36647040, 94: 23238784, 7: 77842880, 23: 4542897472, 2: 118577408,
    53: 11044096, 31: 1409535488, 11: 7829952,
}

# Published with them: the mean size of each application's values, in bytes.
MEAN_VALUES = {
    1: 47.7, 3: 14.2, 19: 3468, 18: 15.8, 20: 1026, 6: 587, 5: 32.0, 8: 618, 59: 4619, 227: 261, 29: 1791, 10: 489, 13: 661, 94: 187,
    7: 6571, 23: 6012, 2: 141133, 53: 139, 31: 4709, 11: 19581,
}
