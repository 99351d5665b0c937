/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file of a model. It is taken as a whole or refused with a reason; a model that is taken gives each object a finite
 * worth, and written and read again it is the same.
 */
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "classifier/classifier_internal.h"
#include "tests/fuzz/fuzz.h"

#define TRIES 8u
#define WORTH_MOST 72 /* octaves: 64 of a calibration, and some beyond it */

static char folder[64], copy_path[80];

static void remove_folder(void)
{
	unlink(copy_path);
	rmdir(folder);
}

static void make_folder(void)
{
	if (folder[0])
		return;
	snprintf(folder, sizeof(folder), "%s/flashield-fuzz-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	require(mkdtemp(folder));
	snprintf(copy_path, sizeof(copy_path), "%s/model", folder);
	atexit(remove_folder);
}

static int read_back(const char *text, size_t length, struct clf_model *model, struct model_terms *terms)
{
	int fd = memfd_create("model", MFD_CLOEXEC), code;
	char path[32], reason[256] = "";

	require(fd >= 0 && write(fd, text, length) == (ssize_t)length);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	code = model_read(path, model, terms, reason);
	close(fd);
	require((code == FS_OK) == (*reason == 0));
	return code;
}

/* Objects of all kinds, the same ones each time. */
static void require_finite(const struct clf_model *model)
{
	struct rng rng;

	rng_init(&rng, 1);
	for (unsigned i = 0; i < TRIES; i++) {
		struct clf_state state = { .count = (float)rng_below(&rng, 1000),
					   .idle_ms = (uint32_t)rng_next(&rng),
					   .record_bytes = (uint32_t)rng_next(&rng) >> rng_below(&rng, 32),
					   .ttl_seconds = (uint32_t)rng_next(&rng) };

		require(isfinite(model_decide(model, &state)) && isfinite(model_expect(model, &state)));
		require(fabs(model_expect(model, &state)) <= WORTH_MOST);
	}
}

/* What a program writes, it reads. */
static void require_same_again(const struct clf_model *model, const struct model_terms *terms)
{
	struct model_terms terms_again;
	struct clf_model again;
	char reason[256];

	make_folder();
	require(model_write(copy_path, model, terms) == FS_OK);
	require(model_read(copy_path, &again, &terms_again, reason) == FS_OK);
	terms_again.digest = terms->digest;
	require(memcmp(&again.weight, &model->weight, sizeof(again.weight)) == 0 &&
		memcmp(&again.mean, &model->mean, sizeof(again.mean)) == 0 &&
		memcmp(&again.scale, &model->scale, sizeof(again.scale)) == 0 &&
		memcmp(&again.bias, &model->bias, sizeof(again.bias)) == 0 && again.samples == model->samples);
	require(again.steps == model->steps &&
		memcmp(again.step_decision, model->step_decision, sizeof(again.step_decision)) == 0 &&
		memcmp(again.step_worth, model->step_worth, sizeof(again.step_worth)) == 0);
	require(terms_again.mode == terms->mode && terms_again.threshold == terms->threshold &&
		terms_again.horizon_ms == terms->horizon_ms && terms_again.trained_seconds == terms->trained_seconds &&
		memcmp(&terms_again.size_exponent, &terms->size_exponent, sizeof(double)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_copy(data, size);
	struct model_terms terms;
	struct clf_model model;

	if (read_back(text, size, &model, &terms) == FS_OK) {
		require_finite(&model);
		require_same_again(&model, &terms);
	}
	free(text);
	return 0;
}
