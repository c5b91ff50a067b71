#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <apr_general.h>

#include "report/params.h"

static apr_pool_t *pool;
static rp_params_t params;

static int set_up(void **state)
{
    (void)state;
    apr_initialize();
    return apr_pool_create(&pool, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    apr_pool_destroy(pool);
    apr_terminate();
    return 0;
}

static const char *parse(const char *query)
{
    memset(&params, 0xee, sizeof(params));
    return rp_params_parse(&params, pool, query);
}

static void no_query_means_the_whole_epoch_as_html(void **state)
{
    static const char *const queries[] = {NULL, "", "&", "&&"};

    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_null(parse(queries[i]));
        assert_int_equal(params.format, RP_FORMAT_HTML);
        assert_int_equal(params.window, RP_WINDOW_EPOCH);
        assert_int_equal(params.view, RP_VIEW_OVERVIEW);
        assert_int_equal(params.refresh_s, 0);
        assert_int_equal(params.child_pid, 0);
    }
}

static void formats_go_by_their_names(void **state)
{
    (void)state;
    assert_null(parse("format=html"));
    assert_int_equal(params.format, RP_FORMAT_HTML);
    assert_null(parse("format=json"));
    assert_int_equal(params.format, RP_FORMAT_JSON);
    assert_null(parse("format=text"));
    assert_int_equal(params.format, RP_FORMAT_TEXT);
    assert_null(parse("format=folded"));
    assert_int_equal(params.format, RP_FORMAT_FOLDED);
}

static void auto_means_text_as_in_mod_status(void **state)
{
    (void)state;
    assert_null(parse("auto"));
    assert_int_equal(params.format, RP_FORMAT_TEXT);
    assert_non_null(parse("auto=1"));
}

static void refresh_takes_seconds_or_none(void **state)
{
    (void)state;
    assert_null(parse("refresh"));
    assert_int_equal(params.refresh_s, RP_REFRESH_DEFAULT_S);
    assert_null(parse("refresh=1"));
    assert_int_equal(params.refresh_s, 1);
    assert_null(parse("refresh=3600"));
    assert_int_equal(params.refresh_s, 3600);
}

static void numbers_out_of_range_or_with_anything_else_are_refused(void **state)
{
    static const char *const queries[] = {"refresh=0",    "refresh=3601",  "refresh=-1", "refresh=5x", "refresh=",
                                          "refresh=%205", "refresh=+5",    "child=0",    "child=-1",   "child=",
                                          "child",        "child=1.5",     "child=4294967297",
                                          "child=99999999999999999999999"};

    (void)state;
    for (unsigned i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
        assert_non_null(parse(queries[i]));
    }
}

static void several_parameters_are_all_read(void **state)
{
    (void)state;
    assert_null(parse("format=json&child=4321&window=epoch&view=overview&refresh=7"));
    assert_int_equal(params.format, RP_FORMAT_JSON);
    assert_int_equal(params.child_pid, 4321);
    assert_int_equal(params.refresh_s, 7);
}

static void percent_encoding_is_decoded(void **state)
{
    (void)state;
    assert_null(parse("%66ormat=%6a%73on"));
    assert_int_equal(params.format, RP_FORMAT_JSON);
}

static void a_wrong_value_is_answered_with_what_is_accepted(void **state)
{
    (void)state;
    assert_string_equal(parse("window=5x"), "window \"5x\": accepted is 10s, 1m, 5m, 1h, 24h or epoch");
    assert_string_equal(parse("format=xml"), "format \"xml\": accepted is html, json, text or folded");
    assert_string_equal(parse("format"), "format without a value: accepted is html, json, text or folded");
    assert_string_equal(parse("refresh=x"), "refresh \"x\": accepted is a number of seconds from 1 to 3600");
}

static void an_unknown_name_is_answered_with_the_known_ones(void **state)
{
    (void)state;
    assert_string_equal(parse("Format=json"),
                        "unknown parameter \"Format\": accepted is format, auto, refresh, window, view or child");
    assert_non_null(parse("=json"));
    assert_non_null(parse("format=json&bogus=1"));
    assert_non_null(parse("bogus=1&format=json"));
}

static void broken_encoding_is_refused(void **state)
{
    static const char *const queries[] = {"format=%zz", "format=js%6", "format=%", "format=json%00", "%zz=1", "%zz"};

    (void)state;
    for (unsigned i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
        assert_non_null(strstr(parse(queries[i]), "percent-encoded"));
    }
}

static void a_sentence_is_one_line_whatever_was_sent(void **state)
{
    (void)state;
    assert_null(strchr(parse("format=a%0ab"), '\n'));
    assert_null(strchr(parse("a%0d%0ab"), '\r'));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_query_means_the_whole_epoch_as_html),
        cmocka_unit_test(formats_go_by_their_names),
        cmocka_unit_test(auto_means_text_as_in_mod_status),
        cmocka_unit_test(refresh_takes_seconds_or_none),
        cmocka_unit_test(numbers_out_of_range_or_with_anything_else_are_refused),
        cmocka_unit_test(several_parameters_are_all_read),
        cmocka_unit_test(percent_encoding_is_decoded),
        cmocka_unit_test(a_wrong_value_is_answered_with_what_is_accepted),
        cmocka_unit_test(an_unknown_name_is_answered_with_the_known_ones),
        cmocka_unit_test(broken_encoding_is_refused),
        cmocka_unit_test(a_sentence_is_one_line_whatever_was_sent),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
