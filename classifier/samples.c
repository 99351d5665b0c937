/* SPDX-License-Identifier: BSD-3-Clause */
/* Labelled samples for those who want to see what they say: a calibration, features against labels. */
#include <math.h>

#include "base/alloc.h"
#include "classifier/classifier_internal.h"

static struct clf_labelled labelled_of(const struct clf_model *model, const struct clf_sample *sample, double exponent)
{
	uint32_t bytes = sample->state.record_bytes;
	struct clf_labelled out = {
		.by_count = worth_of_count((double)sample->state.count),
		.by_model = model ? model_expect(model, &sample->state) : NAN,
		.accesses = sample->reads,
		.size_octaves = bytes ? exponent * log2(bytes) : 0,
		.held_out = sample_held_out(sample),
		.id = mix64(sample->key + mix64(sample->complete_ms)),
	};

	state_vector(&sample->state, out.feature);
	return out;
}

long clf_get_samples(struct clf *clf, struct clf_labelled **out)
{
	struct clf_sample *samples = NULL;
	const struct clf_model *model;
	long count;

	*out = NULL;
	count = sampler_collect(&clf->sampler, 0, &samples);
	if (count < 0)
		return count;
	*out = mem_alloc(((size_t)count + 1) * sizeof(**out));
	if (!*out)
		count = FS_ENOMEM;
	model = clf_get_admission(clf) == CLF_ADMIT_SVM ? clf_model_now(clf) : NULL;
	for (long i = 0; i < count; i++)
		(*out)[i] = labelled_of(model, &samples[i], clf->config.size_exponent);
	mem_free(samples);
	return count;
}
