/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/bench/index_model.h"

#include <math.h>

void index_model_add(struct index_model *model, uint64_t slots, double cost)
{
	double x = log2((double)slots);

	model->points++;
	model->sum_x += x;
	model->sum_xx += x * x;
	model->sum_y += cost;
	model->sum_xy += x * cost;
}

double index_model_slope(const struct index_model *model)
{
	double spread = model->points * model->sum_xx - model->sum_x * model->sum_x;

	/* Sizes that are all the same leave nothing but rounding errors. */
	if (model->points < 2 || spread < 1e-6)
		return NAN;
	return (model->points * model->sum_xy - model->sum_x * model->sum_y) / spread;
}

double index_model_predict(const struct index_model *model, uint64_t slots)
{
	double slope = index_model_slope(model);

	return (model->sum_y - slope * model->sum_x) / model->points + slope * log2((double)slots);
}
