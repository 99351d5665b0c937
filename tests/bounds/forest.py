# SPDX-License-Identifier: BSD-3-Clause
"""The rule "trees": expected accesses within the horizon, by LightGBM trained on the past, over the object's bytes."""
import ctypes

import lightgbm
import numpy as np

from cache import Freq
from tracefile import Labels

TRAININGS = 14  # over the trace
SAMPLES_MOST, SAMPLES_LEAST = 300000, 1000  # the latest ones are trained with
ACCESSES_MOST = 64  # of a sample
OWN_FEATURES = 3  # idle, reads in this stay, on flash: beside those of the trace
PARAMETERS = {"objective": "poisson", "num_leaves": 31, "learning_rate": 0.1, "min_data_in_leaf": 100, "num_threads": 1, "seed": 1,
              "deterministic": True, "verbosity": -1}
ROUNDS = 80
FLOAT32, NORMAL = 0, 0  # of LightGBM's C interface


class Predictor:
    """A model for one row at a time, by LightGBM's C interface: Python's own takes longer than the tree."""

    def __init__(self, booster, columns):
        self.booster = booster  # owns the model
        self.row = np.zeros(columns, dtype=np.float32)
        self.lightgbm, self.config = lightgbm.basic._LIB, ctypes.c_void_p()
        self.length, self.result = ctypes.c_int64(), ctypes.c_double()
        code = self.lightgbm.LGBM_BoosterPredictForMatSingleRowFastInit(
            booster._handle, ctypes.c_int(NORMAL), ctypes.c_int(0), ctypes.c_int(-1), ctypes.c_int(FLOAT32), ctypes.c_int32(columns),
            ctypes.c_char_p(b"num_threads=1"), ctypes.byref(self.config))
        if code:
            raise RuntimeError("LightGBM refuses the model")
        self.arguments = (self.config, self.row.ctypes.data_as(ctypes.c_void_p), ctypes.byref(self.length), ctypes.byref(self.result))

    def __del__(self):
        self.lightgbm.LGBM_FastConfigFree(self.config)

    def predict(self):
        self.lightgbm.LGBM_BoosterPredictForMatSingleRowFast(*self.arguments)
        return self.result.value


class Trees:
    """Until the first model, and for the moment of a sample, everything is as with freq."""

    def __init__(self, trace, horizon_share):
        self.trace, self.horizon_share, self.freq = trace, horizon_share, Freq(trace.keys)
        self.known, self.labels = trace.features(), Labels(trace)
        self.times, self.last = trace.time_us.tolist(), [0] * trace.keys  # an object's latest request
        self.next_training, self.model, self.trained = trace.span_us // TRAININGS, None, 0
        self.samples = []  # (object, latest request, now, reads, on flash) of each offer

    def note(self, number, request, cache):
        self.freq.note(number, request, cache)
        self.last[number] = request
        if cache.now >= self.next_training:
            self.next_training += self.trace.span_us // TRAININGS
            self.train(cache)

    def rows(self, samples):
        requests, now = samples[:, 1], samples[:, 2]
        idle = np.log2(1 + (now - self.trace.time_us[requests]) / 1e6)
        return np.column_stack([self.known[requests], idle, samples[:, 3], samples[:, 4]]).astype(np.float32)

    def train(self, cache):
        """With samples whose horizon is over, as they could have been labelled by now."""
        horizon = int((cache.residence_us or self.trace.span_us / TRAININGS) * self.horizon_share)
        self.samples = self.samples[-2 * SAMPLES_MOST:]
        samples = np.array(self.samples, dtype=np.int64).reshape(-1, 5)
        samples = samples[samples[:, 2] + horizon <= cache.now][-SAMPLES_MOST:]
        if len(samples) < SAMPLES_LEAST or horizon == 0:
            return
        accesses = np.minimum(self.labels.accesses(samples[:, 0], samples[:, 2], horizon), ACCESSES_MOST)
        if not accesses.any():
            return
        rows = self.rows(samples)
        booster = lightgbm.train(PARAMETERS, lightgbm.Dataset(rows, accesses), ROUNDS)
        self.model = Predictor(booster, rows.shape[1])
        self.trained += 1

    def worth(self, number, size, on_flash, cache):
        request, reads = self.last[number], cache.reads[number]
        self.samples.append((number, request, cache.now, reads, on_flash))
        if not self.model:
            return self.freq.worth(number, size, on_flash, cache)
        row = self.model.row
        row[:-OWN_FEATURES] = self.known[request]
        row[-3], row[-2], row[-1] = np.log2(1 + (cache.now - self.times[request]) / 1e6), reads, on_flash
        return self.model.predict() / size

    def figures(self):
        return {"trainings": self.trained}
