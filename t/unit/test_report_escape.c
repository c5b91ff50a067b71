#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <apr_general.h>

#include "base/escape.h"

static apr_pool_t *pool;

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

static void html_markup_becomes_text(void **state)
{
    (void)state;
    assert_string_equal(rp_escape_html(pool, "<a href=\"x\">'&'</a>\r"),
                        "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;\xEF\xBF\xBD");
}

static void json_strings_cannot_be_left(void **state)
{
    (void)state;
    assert_string_equal(rp_escape_json(pool, "a\"b\\c\n\t\x01\x7f"), "a\\\"b\\\\c\\n\\t\\u0001\\u007f");
}

static void labels_follow_prometheus(void **state)
{
    (void)state;
    assert_string_equal(rp_escape_label(pool, "a\"b\\c\nd\r"), "a\\\"b\\\\c\\nd\xEF\xBF\xBD");
}

static void a_line_stays_one_line(void **state)
{
    (void)state;
    assert_string_equal(rp_escape_line(pool, "a\nTotal: 1\\\x1b"), "a\\x0aTotal: 1\\x5c\\x1b");
}

static void text_without_specials_is_not_copied(void **state)
{
    static const char text[] = "/caf\xC3\xA9/\xE2\x82\xAC/\xF0\x9F\x98\x80";

    (void)state;
    assert_ptr_equal(rp_escape_html(pool, text), text);
    assert_ptr_equal(rp_escape_json(pool, text), text);
    assert_ptr_equal(rp_escape_label(pool, text), text);
    assert_ptr_equal(rp_escape_line(pool, text), text);
}

/* Stray, overlong, surrogate, beyond U+10FFFF, and cut off by the end. */
static void bytes_that_are_not_utf8_are_replaced(void **state)
{
#define BAD "\xEF\xBF\xBD"
    (void)state;
    assert_string_equal(rp_escape_json(pool, "a\x80z"), "a" BAD "z");
    assert_string_equal(rp_escape_json(pool, "\xC0\xAF"), BAD BAD);
    assert_string_equal(rp_escape_json(pool, "\xE0\x80\x80"), BAD BAD BAD);
    assert_string_equal(rp_escape_json(pool, "\xED\xA0\x80"), BAD BAD BAD);
    assert_string_equal(rp_escape_json(pool, "\xF4\x90\x80\x80"), BAD BAD BAD BAD);
    assert_string_equal(rp_escape_json(pool, "\xF5"), BAD);
    assert_string_equal(rp_escape_json(pool, "x\xE2\x82"), "x" BAD BAD);
    assert_string_equal(rp_escape_html(pool, "\xC3<"), BAD "&lt;");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(html_markup_becomes_text),
        cmocka_unit_test(json_strings_cannot_be_left),
        cmocka_unit_test(labels_follow_prometheus),
        cmocka_unit_test(a_line_stays_one_line),
        cmocka_unit_test(text_without_specials_is_not_copied),
        cmocka_unit_test(bytes_that_are_not_utf8_are_replaced),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
