/* SPDX-License-Identifier: BSD-3-Clause */
/* A file of objects: what is cut off or changed at any byte is told, and what was handed out before is right. */
#include "tests/unit/tools/tools_test.h"

#include "tools/common/warm_file.h"

#define OBJECTS 12u
#define VALUE_BYTES 400000u /* three objects are more than a part */

static char *bytes;
static size_t length;
static char value[VALUE_BYTES];

static struct warm_object object_of(unsigned number)
{
	static char key[16];
	int key_bytes = snprintf(key, sizeof(key), "key %u", number);

	return (struct warm_object){ .key = key,
				     .value = value,
				     .client_flags = (uint64_t)number << 33,
				     .expires = (int64_t)number - 1,
				     .value_bytes = number % 2 ? VALUE_BYTES : number,
				     .key_bytes = (uint16_t)key_bytes };
}

static int write_file(void **state)
{
	struct warm_writer writer;
	FILE *file = open_memstream(&bytes, &length);

	(void)state;
	for (size_t i = 0; i < sizeof(value); i++)
		value[i] = (char)(i * 7);
	assert_int_equal(warm_writer_init(&writer, file, 1795000000), FS_OK);
	for (unsigned i = 0; i < OBJECTS; i++) {
		struct warm_object object = object_of(i);

		assert_int_equal(warm_writer_add(&writer, &object), FS_OK);
	}
	assert_int_equal(warm_writer_end(&writer), FS_OK);
	assert_true(writer.parts >= 3);
	warm_writer_fini(&writer);
	fclose(file);
	return 0;
}

static int free_file(void **state)
{
	(void)state;
	free(bytes);
	return 0;
}

/* Reads the first bytes of the file. Sets *code to the last code, and returns the objects, each of which is right. */
static unsigned read_objects(size_t first_bytes, int *code, char error[WARM_ERROR_BYTES])
{
	struct warm_reader reader;
	struct warm_object object;
	FILE *file = fmemopen(bytes, first_bytes, "r");
	unsigned count = 0;

	assert_non_null(file);
	*code = warm_reader_init(&reader, file);
	while (*code == FS_OK && (*code = warm_reader_next(&reader, &object)) == FS_OK) {
		struct warm_object wanted = object_of(count++);

		assert_int_equal(object.key_bytes, wanted.key_bytes);
		assert_memory_equal(object.key, wanted.key, wanted.key_bytes);
		assert_int_equal(object.value_bytes, wanted.value_bytes);
		assert_memory_equal(object.value, wanted.value, wanted.value_bytes);
		assert_true(object.client_flags == wanted.client_flags && object.expires == wanted.expires);
	}
	snprintf(error, WARM_ERROR_BYTES, "%s", reader.error);
	warm_reader_fini(&reader);
	fclose(file);
	return count;
}

static void a_file_that_is_cut_off_anywhere_is_told(void **state)
{
	char error[WARM_ERROR_BYTES], offset[32];
	int code;

	(void)state;
	for (size_t kept = 1; kept < length; kept += kept < 100 || length - kept < 100 ? 1 : 9973) {
		unsigned count = read_objects(kept, &code, error);

		assert_int_equal(code, kept < 8 ? FS_EFOREIGN : FS_ECORRUPT);
		assert_true(count <= OBJECTS);
		snprintf(offset, sizeof(offset), "at offset %zu", kept);
		if (kept >= 8)
			assert_non_null(strstr(error, offset));
	}
}

static void a_byte_that_is_changed_anywhere_is_found(void **state)
{
	char error[WARM_ERROR_BYTES];
	int code;

	(void)state;
	for (size_t at = 0; at < length; at += at < 200 || length - at < 200 ? 1 : 4999) {
		bytes[at] ^= 0x10;
		assert_true(read_objects(length, &code, error) < OBJECTS || length - at <= 32);
		assert_int_equal(code, at < 8 ? FS_EFOREIGN : FS_ECORRUPT);
		assert_true(error[0] != 0);
		bytes[at] ^= 0x10;
	}
}

static void a_whole_file_gives_all_objects(void **state)
{
	char error[WARM_ERROR_BYTES];
	int code;

	(void)state;
	assert_int_equal(read_objects(length, &code, error), OBJECTS);
	assert_int_equal(code, FS_ENOTFOUND);
	assert_string_equal(error, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_that_is_cut_off_anywhere_is_told),
		cmocka_unit_test(a_byte_that_is_changed_anywhere_is_found),
		cmocka_unit_test(a_whole_file_gives_all_objects),
	};

	return cmocka_run_group_tests(tests, write_file, free_file);
}
