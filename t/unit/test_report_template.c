#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "report/template.c"

static char out[65536];

static void put_text(void *context, const char *text, apr_size_t bytes)
{
    apr_size_t used = strlen(out);

    (void)context;
    assert_true(used + bytes < sizeof(out));
    memcpy(out + used, text, bytes);
    out[used + bytes] = '\0';
}

static unsigned current;

static void put_digit(void *context)
{
    char digit[2] = {(char)('0' + current), '\0'};

    put_text(context, digit, 1);
}

static int three_rows(void *context, unsigned index)
{
    (void)context;
    current = index;
    return index < 3;
}

static int one_row(void *context, unsigned index)
{
    (void)context;
    return index < 1;
}

static int no_row(void *context, unsigned index)
{
    (void)context;
    (void)index;
    return 0;
}

static int fill(const char *text)
{
    static const rp_template_value_t values[] = {{"digit", put_digit}, {NULL, NULL}};
    static const rp_template_list_t lists[] = {{"three", three_rows}, {"one", one_row}, {"none", no_row}, {NULL, NULL}};

    out[0] = '\0';
    current = 7;
    return rp_template_run(&(rp_template_t){values, lists, put_text, NULL}, text);
}

static void text_without_tags_passes(void **state)
{
    (void)state;
    assert_true(fill("a { b } }} c"));
    assert_string_equal(out, "a { b } }} c");
    assert_true(fill(""));
    assert_string_equal(out, "");
}

static void values_are_filled_in(void **state)
{
    (void)state;
    assert_true(fill("{{digit}}-{{digit}}"));
    assert_string_equal(out, "7-7");
}

static void a_section_is_printed_for_each_row(void **state)
{
    (void)state;
    assert_true(fill("[{{#three}}<{{digit}}>{{/three}}]"));
    assert_string_equal(out, "[<0><1><2>]");
}

static void a_section_without_rows_is_left_out(void **state)
{
    (void)state;
    assert_true(fill("a{{#none}}{{digit}}{{/none}}b{{#one}}c{{/one}}"));
    assert_string_equal(out, "abc");
}

static void sections_nest(void **state)
{
    (void)state;
    assert_true(fill("{{#three}}{{#one}}{{digit}}{{/one}}{{#none}}x{{/none}},{{/three}}"));
    assert_string_equal(out, "0,1,2,");
}

static void unknown_names_and_open_sections_are_told(void **state)
{
    (void)state;
    assert_false(fill("a{{what}}b"));
    assert_string_equal(out, "ab");
    assert_false(fill("{{#what}}a{{/what}}b"));
    assert_string_equal(out, "b");
    assert_false(fill("{{#three}}a"));
    assert_false(fill("a{{/three}}"));
    assert_false(fill("{{#three}}{{what}}{{/three}}"));
}

/* ---- the page itself ---- */

static void put_nothing(void *context)
{
    (void)context;
}

static const rp_template_value_t page_values[] = {
#define RP_VALUE(name, statement) {#name, put_nothing},
#include "report/page_values.def"
#undef RP_VALUE
    {NULL, NULL}
};

static const rp_template_list_t page_lists[] = {
#define RP_LIST(name, there_is) {#name, one_row},
#include "report/page_lists.def"
#undef RP_LIST
    {NULL, NULL}
};

static char page[65536];

static int read_page(void **state)
{
    FILE *file = fopen(RP_ASSETS_DIR "/page.html", "r");

    (void)state;
    if (!file) {
        return -1;
    }
    page[fread(page, 1, sizeof(page) - 1, file)] = '\0';
    return fclose(file);
}

static void every_name_in_the_page_is_known(void **state)
{
    (void)state;
    out[0] = '\0';
    assert_non_null(strstr(page, "</html>"));
    assert_true(rp_template_run(&(rp_template_t){page_values, page_lists, put_text, NULL}, page));
    assert_null(strstr(out, "{{"));
}

static int is_in_page(const char *brace, const char *name)
{
    char tag[64];

    snprintf(tag, sizeof(tag), "%s%s}}", brace, name);
    return strstr(page, tag) != NULL;
}

static void every_known_name_is_in_the_page(void **state)
{
    (void)state;
    for (unsigned i = 0; page_values[i].name; i++) {
        assert_true(is_in_page("{{", page_values[i].name));
    }
    for (unsigned i = 0; page_lists[i].name; i++) {
        assert_true(is_in_page("{{#", page_lists[i].name));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_without_tags_passes),
        cmocka_unit_test(values_are_filled_in),
        cmocka_unit_test(a_section_is_printed_for_each_row),
        cmocka_unit_test(a_section_without_rows_is_left_out),
        cmocka_unit_test(sections_nest),
        cmocka_unit_test(unknown_names_and_open_sections_are_told),
        cmocka_unit_test(every_name_in_the_page_is_known),
        cmocka_unit_test(every_known_name_is_in_the_page),
    };
    return cmocka_run_group_tests(tests, read_page, NULL);
}
