/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of a drive from the JSON of smartctl and nvme. Numbers are read as reals: exact to 9 PB. */
#include "tools/bench/smart.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MIB 1048576.0
#define GIB 1073741824.0
#define NVME_DATA_UNIT 512000.0 /* 1000 blocks of 512 bytes, whatever the format of the drive */

enum role { HOST, NAND, HOST_PAGES, OWN_PAGES };

/* step 0: a logical block. Where a drive has several of a role, their sum counts (SLC cache and TLC). */
static const struct attribute {
	const char *name;
	enum role role;
	double step_bytes;
} attributes[] = {
	{ "Total_LBAs_Written", HOST, 0 },
	{ "Host_Writes_MiB", HOST, MIB },
	{ "Host_Writes_32MiB", HOST, 32 * MIB },
	{ "Host_Writes_GiB", HOST, GIB },
	{ "Lifetime_Writes_GiB", HOST, GIB },
	{ "Total_Writes_GiB", HOST, GIB },
	{ "Nand_Sectors_Written", NAND, 0 },
	{ "Flash_Writes_LBAs", NAND, 0 },
	{ "NAND_Writes_32MiB", NAND, 32 * MIB },
	{ "Flash_Writes_32MiB", NAND, 32 * MIB },
	{ "TLC_Writes_32MiB", NAND, 32 * MIB },
	{ "SLC_Writes_32MiB", NAND, 32 * MIB },
	{ "NAND_Writes_GiB", NAND, GIB },
	{ "NAND_Writes_1GiB", NAND, GIB },
	{ "Flash_Writes_GiB", NAND, GIB },
	{ "Total_NAND_Writes_GiB", NAND, GIB },
	{ "Total_NAND_Prog_Ct_GiB", NAND, GIB },
	{ "Lifetime_NAND_Prg_GiB", NAND, GIB },
	{ "NAND_GB_Written_TLC", NAND, GIB },
	{ "NAND_GB_Written_SLC", NAND, GIB },
	{ "Host_Program_Page_Count", HOST_PAGES, 0 },
	{ "FTL_Program_Page_Count", OWN_PAGES, 0 },
	{ "Bckgnd_Program_Page_Cnt", OWN_PAGES, 0 },
};

void smart_clear(struct smart_counters *counters)
{
	*counters =
		(struct smart_counters){ .host_bytes = NAN, .nand_bytes = NAN, .host_pages = NAN, .own_pages = NAN };
}

static double *counter_of(struct smart_counters *counters, enum role role)
{
	switch (role) {
	case HOST:
		return &counters->host_bytes;
	case NAND:
		return &counters->nand_bytes;
	case HOST_PAGES:
		return &counters->host_pages;
	case OWN_PAGES:
		break;
	}
	return &counters->own_pages;
}

static void note_source(struct smart_counters *counters, const char *name)
{
	size_t used = strlen(counters->source);

	snprintf(counters->source + used, sizeof(counters->source) - used, "%s%s", used ? ", " : "", name);
}

static void add(struct smart_counters *counters, enum role role, double value, double step_bytes, const char *name)
{
	double *counter = counter_of(counters, role);

	*counter = isnan(*counter) ? value : *counter + value;
	if ((role == HOST || role == NAND) && step_bytes > counters->step_bytes)
		counters->step_bytes = step_bytes;
	note_source(counters, name);
}

/* A number at object[name], NaN if there is none. */
static double number(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	return json_is_number(value) ? json_number_value(value) : NAN;
}

static void add_attribute(struct smart_counters *counters, const json_t *row, double block_bytes)
{
	const char *name = json_string_value(json_object_get(row, "name"));
	double raw = number(json_object_get(row, "raw"), "value");

	if (!name || !(raw >= 0))
		return;
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
		const struct attribute *attribute = &attributes[i];
		double step = attribute->step_bytes > 0 ? attribute->step_bytes : block_bytes;
		/* Some drives tell the host's writes twice, by two numbers. */
		bool is_second = attribute->role == HOST && !isnan(counters->host_bytes);

		if (strcmp(attribute->name, name) != 0 || is_second)
			continue;
		if (attribute->role == HOST || attribute->role == NAND)
			raw *= step;
		add(counters, attribute->role, raw, step, name);
	}
}

static void add_ata(struct smart_counters *counters, const json_t *root)
{
	const json_t *table = json_object_get(json_object_get(root, "ata_smart_attributes"), "table");
	double block_bytes = number(root, "logical_block_size");
	const json_t *row;
	size_t i;

	if (!(block_bytes > 0))
		block_bytes = 512;
	for (i = 0; i < json_array_size(table); i++) {
		row = json_array_get(table, i);
		add_attribute(counters, row, block_bytes);
	}
}

/* smartctl's exit status: bits 0 and 1 are "bad command line" and "could not open the drive"; the others
   tell of its health, or that some of the logs could not be had. */
static int check_status(const json_t *root, char *why)
{
	const json_t *smartctl = json_object_get(root, "smartctl");
	const json_t *message = json_array_get(json_object_get(smartctl, "messages"), 0);
	const char *text = json_string_value(json_object_get(message, "string"));
	double status = number(smartctl, "exit_status");

	if (!(status >= 0 && status <= 255) || ((unsigned)status & 3u) == 0)
		return FS_OK;
	snprintf(why, SMART_WHY_BYTES, "smartctl: %s", text ? text : "the drive can't be asked");
	return FS_EOFFLINE;
}

static json_t *parse(const char *text)
{
	json_error_t error;
	json_t *root = json_loads(text, JSON_DECODE_INT_AS_REAL, &error);

	if (json_is_object(root))
		return root;
	json_decref(root);
	return NULL;
}

int smart_parse_smartctl(const char *json, struct smart_counters *counters, char *why)
{
	json_t *root = parse(json);
	const char *model;
	double units;
	int rc;

	if (!root) {
		snprintf(why, SMART_WHY_BYTES, "smartctl printed no JSON object");
		return FS_ECORRUPT;
	}
	rc = check_status(root, why);
	if (rc != FS_OK)
		goto out;
	model = json_string_value(json_object_get(root, "model_name"));
	if (model)
		snprintf(counters->model, sizeof(counters->model), "%s", model);
	units = number(json_object_get(root, "nvme_smart_health_information_log"), "data_units_written");
	if (units >= 0)
		add(counters, HOST, units * NVME_DATA_UNIT, NVME_DATA_UNIT, "NVMe data units written");
	add_ata(counters, root);
out:
	json_decref(root);
	return rc;
}

/* 128 bits as {"hi", "lo"}, or as one number. NaN if neither. */
static double wide_number(const json_t *value)
{
	if (json_is_number(value))
		return json_number_value(value);
	return number(value, "hi") * 0x1p64 + number(value, "lo");
}

int smart_parse_ocp(const char *json, struct smart_counters *counters)
{
	static const char *const names[] = { "Physical media units written", "physical_media_units_written" };
	json_t *root = parse(json);
	double bytes = NAN;

	for (size_t i = 0; root && i < sizeof(names) / sizeof(names[0]) && isnan(bytes); i++)
		bytes = wide_number(json_object_get(root, names[i]));
	json_decref(root);
	if (!(bytes >= 0))
		return FS_ECORRUPT;
	add(counters, NAND, bytes, 1, "OCP physical media units written");
	return FS_OK;
}

static bool counts_bytes(const struct smart_counters *counters)
{
	return !isnan(counters->host_bytes) && !isnan(counters->nand_bytes);
}

bool smart_counts_nand(const struct smart_counters *counters)
{
	return counts_bytes(counters) || (!isnan(counters->host_pages) && !isnan(counters->own_pages));
}

double smart_amplification(const struct smart_counters *before, const struct smart_counters *after)
{
	double host, nand;

	if (counts_bytes(before) && counts_bytes(after)) {
		host = after->host_bytes - before->host_bytes;
		nand = after->nand_bytes - before->nand_bytes;
	} else {
		host = after->host_pages - before->host_pages;
		nand = host + after->own_pages - before->own_pages;
	}
	return host > 0 ? nand / host : NAN;
}

double smart_host_bytes(const struct smart_counters *before, const struct smart_counters *after)
{
	return after->host_bytes - before->host_bytes;
}
