/* SPDX-License-Identifier: BSD-3-Clause */
/* The words in front of an address of -l: each is read, in their order, and a wrong one is named. */
#include <string.h>

#include "conf/listen.h"
#include "tests/unit/conf/conf_test.h"

static char authorities[] = "ca.pem", users[] = "users";

static struct conf with_tls(void)
{
	return (struct conf){ .enable_ssl = true, .ssl_ca_cert = authorities };
}

static struct conf_listen expect_listen(const struct conf *conf, const char *text, const char *address)
{
	char why[CONF_LISTEN_WHY_BYTES];
	struct conf_listen listen;

	assert_int_equal(conf_listen_read(conf, text, strlen(text), &listen, why), FS_OK);
	assert_string_equal(listen.address, address);
	return listen;
}

static void expect_why(const struct conf *conf, const char *text, const char *expected)
{
	char why[CONF_LISTEN_WHY_BYTES];
	struct conf_listen listen;

	assert_int_equal(conf_listen_read(conf, text, strlen(text), &listen, why), FS_EINVAL);
	assert_string_equal(why, expected);
}

static void an_address_alone_leaves_all_to_the_options(void **state)
{
	static const char *const addresses[] = { "127.0.0.1",    "*",        "[::1]:11211", "::1",
						 "localhost:1",  "protocol", "proto:11211", "",
						 "mtls.example", "tags:112", "tag.example", "notls" };
	const struct conf conf = { .binding_protocol = CONF_PROTOCOL_BINARY };

	(void)state;
	for (unsigned i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		struct conf_listen listen = expect_listen(&conf, addresses[i], addresses[i]);

		assert_int_equal(listen.tls, CONF_LISTEN_TLS_BY_Z);
		assert_int_equal(listen.protocol, CONF_PROTOCOL_BINARY);
	}
}

static void each_word_is_read(void **state)
{
	const struct conf conf = with_tls();

	(void)state;
	assert_int_equal(expect_listen(&conf, "notls:*:1", "*:1").tls, CONF_LISTEN_TLS_OFF);
	assert_int_equal(expect_listen(&conf, "btls:*:1", "*:1").tls, CONF_LISTEN_TLS_NO_PEER);
	assert_int_equal(expect_listen(&conf, "mtls:[::1]", "[::1]").tls, CONF_LISTEN_TLS_PEER);
	assert_int_equal(expect_listen(&conf, "proto[ascii]:*", "*").protocol, CONF_PROTOCOL_ASCII);
	assert_int_equal(expect_listen(&conf, "proto[binary]:*", "*").protocol, CONF_PROTOCOL_BINARY);
	assert_int_equal(expect_listen(&conf, "proto[negotiating]:*", "*").protocol, CONF_PROTOCOL_AUTO);
	(void)expect_listen(&conf, "tag_tools_:127.0.0.1:11212", "127.0.0.1:11212");
	(void)expect_listen(&conf, "tag[12345678]:a", "a");
}

static void the_words_of_one_address_follow_each_other(void **state)
{
	const struct conf conf = with_tls();
	struct conf_listen listen =
		expect_listen(&conf, "mtls:proto[ascii]:tag_tools_:127.0.0.1:11212", "127.0.0.1:11212");

	(void)state;
	assert_int_equal(listen.tls, CONF_LISTEN_TLS_PEER);
	assert_int_equal(listen.protocol, CONF_PROTOCOL_ASCII);
}

/* The list goes on behind an address. */
static void nothing_behind_the_length_is_read(void **state)
{
	const struct conf conf = with_tls();
	const char *text = "proto[ascii]:a,proto[binary]:b";
	char why[CONF_LISTEN_WHY_BYTES];
	struct conf_listen listen;

	(void)state;
	assert_int_equal(conf_listen_read(&conf, text, 14, &listen, why), FS_OK);
	assert_ptr_equal(listen.address, text + 13);
	assert_int_equal(conf_listen_read(&conf, text, 10, &listen, why), FS_EINVAL);
	assert_string_equal(why, "Invalid protocol spec: \"proto[asci\"");
	assert_int_equal(conf_listen_read(&conf, "tag_abc_:", 7, &listen, why), FS_EINVAL);
	assert_string_equal(why, "Invalid tag in socket config: \"tag_abc\"");
}

static void a_wrong_word_is_named(void **state)
{
	const struct conf plain = { 0 }, alone = { .enable_ssl = true }, sasl = { .enable_sasl = true },
			  login = { .auth_file = users };

	(void)state;
	expect_why(&plain, "notls:a", "'notls' option is valid only when SSL is enabled");
	expect_why(&plain, "btls:a", "'btls' option is valid only when SSL is enabled");
	expect_why(&plain, "mtls:a", "'mtls' option is valid only when SSL is enabled");
	expect_why(&alone, "mtls:a", "'mtls' needs -o ssl_ca_cert, which vouches for the clients");
	expect_why(&plain, "proto[udp]:a", "\"udp\" is none of proto[ascii], proto[binary], proto[negotiating]");
	expect_why(&plain, "proto[]:a", "\"\" is none of proto[ascii], proto[binary], proto[negotiating]");
	expect_why(&plain, "proto[ascii", "Invalid protocol spec: \"proto[ascii\"");
	expect_why(&plain, "proto[ascii]a", "Invalid protocol spec: \"proto[ascii]a\"");
	expect_why(&plain, "tag_a", "Invalid tag in socket config: \"tag_a\"");
	expect_why(&plain, "tag_a_b", "Invalid tag in socket config: \"tag_a_b\"");
	expect_why(&plain, "tag__:a", "Listener tags must be between 1 and 8 characters: \"\"");
	expect_why(&plain, "tag[123456789]:a", "Listener tags must be between 1 and 8 characters: \"123456789\"");
	expect_why(&sasl, "proto[ascii]:a", "Cannot use the ascii protocol when SASL is enabled");
	expect_why(&login, "proto[binary]:a", "Cannot use binary protocol when ascii authentication enabled");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_alone_leaves_all_to_the_options),
		cmocka_unit_test(each_word_is_read),
		cmocka_unit_test(the_words_of_one_address_follow_each_other),
		cmocka_unit_test(nothing_behind_the_length_is_read),
		cmocka_unit_test(a_wrong_word_is_named),
	};

	return cmocka_run_group_tests_name("conf: addresses of -l", tests, NULL, NULL);
}
