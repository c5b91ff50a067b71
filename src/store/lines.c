#include <string.h>
#include <apr_strings.h>

#include "store/lines.h"

enum {
    SPARE_LINES = 2048,
    SPARE_GROUPS = 128,
    SPARE_SECTIONS = 64,
    SPARE_REFS = 128,
    SPARE_TEXT = 160 << 10
};

static apr_uint32_t add_text(rp_line_plan_t *plan, const char *string)
{
    apr_size_t bytes = strlen(string) + 1;
    const apr_uint32_t *known = apr_hash_get(plan->texts, string, APR_HASH_KEY_STRING);
    apr_uint32_t offset = (apr_uint32_t)plan->text->nelts;

    if (known) {
        return *known;
    }
    if (offset + bytes > RP_LINE_TEXT_LIMIT) {
        return 0;
    }
    for (apr_size_t i = 0; i < bytes; i++) {
        APR_ARRAY_PUSH(plan->text, char) = string[i];
    }
    apr_hash_set(plan->texts, apr_pstrdup(plan->pool, string), APR_HASH_KEY_STRING,
                 apr_pmemdup(plan->pool, &offset, sizeof(offset)));
    return offset;
}

rp_line_plan_t *rp_line_plan_create(apr_pool_t *pool)
{
    rp_line_plan_t *plan = apr_pcalloc(pool, sizeof(*plan));

    plan->pool = pool;
    plan->lines = apr_array_make(pool, 1024, sizeof(rp_line_t));
    plan->groups = apr_array_make(pool, 64, sizeof(rp_group_t));
    plan->sections = apr_array_make(pool, 16, sizeof(rp_section_t));
    plan->refs = apr_array_make(pool, 64, sizeof(apr_uint32_t));
    plan->text = apr_array_make(pool, 65536, sizeof(char));
    plan->texts = apr_hash_make(pool);
    plan->shared_groups = apr_hash_make(pool);
    plan->span_lines = apr_array_make(pool, 256, sizeof(apr_uint32_t));
    add_text(plan, "");
    return plan;
}

/* Cut in the middle of a UTF-8 sequence is harmless: the reports show such bytes escaped. */
static apr_uint32_t add_args(rp_line_plan_t *plan, const char *args)
{
    apr_size_t length = strlen(args);

    if (length > RP_LINE_ARGS_MAX) {
        args = apr_pstrcat(plan->pool, apr_pstrmemdup(plan->pool, args, RP_LINE_ARGS_MAX), "...", NULL);
    }
    return add_text(plan, args);
}

unsigned rp_line_plan_add(rp_line_plan_t *plan, const rp_line_key_t *key)
{
    rp_line_t *line;

    if (plan->lines->nelts >= RP_LINE_LIMIT || plan->text->nelts + 2 * RP_LINE_ARGS_MAX > RP_LINE_TEXT_LIMIT) {
        plan->left_out++;
        return RP_LINE_NONE;
    }
    line = apr_array_push(plan->lines);
    memset(line, 0, sizeof(*line));
    line->number = key->number;
    line->file = add_text(plan, key->file);
    line->directive = add_text(plan, key->directive);
    line->args = add_args(plan, key->args);
    line->depth = (apr_byte_t)(key->depth < 255 ? key->depth : 255);
    line->flags = (apr_byte_t)key->flags;
    line->ready = 1;
    return (unsigned)plan->lines->nelts - 1;
}

void rp_line_plan_scope(rp_line_plan_t *plan, unsigned row, const char *scope, unsigned scope_count)
{
    rp_line_t *line = &APR_ARRAY_IDX(plan->lines, row, rp_line_t);

    line->scope = add_text(plan, scope);
    line->scope_count = (apr_uint16_t)(scope_count < 0xffff ? scope_count : 0xffff);
}

unsigned rp_line_plan_group(rp_line_plan_t *plan, unsigned first, unsigned count, rp_family_t family)
{
    const char *key = apr_psprintf(plan->pool, "%u.%u.%d", first, count, family);
    const unsigned *known = apr_hash_get(plan->shared_groups, key, APR_HASH_KEY_STRING);
    unsigned id = (unsigned)plan->groups->nelts;
    rp_group_t *group;

    if (known) {
        return *known;
    }
    group = apr_array_push(plan->groups);
    memset(group, 0, sizeof(*group));
    group->first = first;
    group->count = (apr_uint16_t)count;
    group->family = (apr_byte_t)family;
    group->ready = 1;
    for (unsigned i = 0; i < count; i++) {
        APR_ARRAY_IDX(plan->lines, first + i, rp_line_t).family = family;
    }
    apr_hash_set(plan->shared_groups, key, APR_HASH_KEY_STRING, apr_pmemdup(plan->pool, &id, sizeof(id)));
    return id;
}

unsigned rp_line_plan_section(rp_line_plan_t *plan, const apr_array_header_t *groups)
{
    rp_section_t *section;

    if (plan->refs->nelts + groups->nelts > RP_LINE_REF_LIMIT) {
        return RP_LINE_NONE;
    }
    section = apr_array_push(plan->sections);
    *section = (rp_section_t){(apr_uint32_t)plan->refs->nelts, (apr_uint32_t)groups->nelts, 0};
    apr_array_cat(plan->refs, groups);
    return (unsigned)plan->sections->nelts - 1;
}

void rp_line_plan_span(rp_line_plan_t *plan, unsigned span, unsigned row)
{
    while ((unsigned)plan->span_lines->nelts <= span) {
        APR_ARRAY_PUSH(plan->span_lines, apr_uint32_t) = 0;
    }
    APR_ARRAY_IDX(plan->span_lines, span, apr_uint32_t) = row + 1;
}

static apr_uint64_t after(apr_uint64_t offset, apr_uint64_t count, apr_uint64_t bytes)
{
    return (offset + count * bytes + RP_CACHE_LINE - 1) / RP_CACHE_LINE * RP_CACHE_LINE;
}

static rp_lines_t laid_out(const rp_line_plan_t *plan, unsigned span_max)
{
    rp_lines_t head = {0};

    head.line_count = (apr_uint32_t)plan->lines->nelts;
    head.line_max = head.line_count + SPARE_LINES;
    head.group_count = (apr_uint32_t)plan->groups->nelts;
    head.group_max = head.group_count + SPARE_GROUPS;
    head.section_count = (apr_uint32_t)plan->sections->nelts;
    head.section_max = head.section_count + SPARE_SECTIONS;
    head.ref_count = (apr_uint32_t)plan->refs->nelts;
    head.ref_max = head.ref_count + SPARE_REFS;
    head.text_used = (apr_uint32_t)plan->text->nelts;
    head.text_max = head.text_used + SPARE_TEXT;
    head.lines_left_out = plan->left_out;
    head.rows_offset = after(0, 1, sizeof(head));
    head.groups_offset = after(head.rows_offset, head.line_max, sizeof(rp_line_t));
    head.sections_offset = after(head.groups_offset, head.group_max, sizeof(rp_group_t));
    head.refs_offset = after(head.sections_offset, head.section_max, sizeof(rp_section_t));
    head.span_lines_offset = after(head.refs_offset, head.ref_max, sizeof(apr_uint32_t));
    head.text_offset = after(head.span_lines_offset, span_max, sizeof(apr_uint32_t));
    head.bytes = after(head.text_offset, head.text_max, 1);
    return head;
}

apr_uint64_t rp_lines_bytes(const rp_line_plan_t *plan, unsigned span_max)
{
    return laid_out(plan, span_max).bytes;
}

static void put_array(rp_lines_t *lines, apr_uint64_t offset, const apr_array_header_t *array)
{
    memcpy((char *)lines + offset, array->elts, (size_t)array->nelts * (size_t)array->elt_size);
}

void rp_lines_place(rp_lines_t *lines, const rp_line_plan_t *plan, unsigned span_max)
{
    *lines = laid_out(plan, span_max);
    put_array(lines, lines->rows_offset, plan->lines);
    put_array(lines, lines->groups_offset, plan->groups);
    put_array(lines, lines->sections_offset, plan->sections);
    put_array(lines, lines->refs_offset, plan->refs);
    put_array(lines, lines->span_lines_offset, plan->span_lines);
    put_array(lines, lines->text_offset, plan->text);
}

static void add_double(double *into, double value)
{
    double old, sum;

    __atomic_load(into, &old, __ATOMIC_RELAXED);
    do {
        sum = old + value;
    } while (!__atomic_compare_exchange(into, &old, &sum, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

void rp_cost_add(rp_cost_t *cost, apr_uint64_t ticks, apr_uint64_t weight)
{
    double w = (double)weight, t = (double)ticks;

    add_double(&cost->weight, w);
    add_double(&cost->weight_squares, w * w);
    add_double(&cost->ticks, w * t);
    add_double(&cost->tick_squares, w * t * t);
    __atomic_fetch_add(&cost->runs, 1, __ATOMIC_RELAXED);
}
