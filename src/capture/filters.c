#include <ctype.h>
#include <strings.h>
#include <string.h>
#include <apr_strings.h>
#include <httpd.h>
#include <http_config.h>
#include <util_filter.h>

#include "base/repeat.h"
#include "capture/filters.h"
#include "capture/request.h"

enum {
    OUTPUT_SLOTS = 256,
    INPUT_SLOTS = 64
};

typedef struct {
    union {
        ap_out_filter_func output;
        ap_in_filter_func input;
    } original;
    apr_uint16_t span;
    apr_byte_t is_connection; /* works for a connection: f->r is NULL */
} slot_t;

static slot_t output_slots[OUTPUT_SLOTS];
static slot_t input_slots[INPUT_SLOTS];
static apr_uint32_t output_used, input_used;
static rp_segment_t *running; /* the segment to claim new spans in, while requests run */

/* A connection filter called without a running request (an idle connection) gives its time to nobody. */
static inline rp_request_t *request_for(const slot_t *slot, const ap_filter_t *f)
{
    if (slot->is_connection || !f->r) {
        return f->c ? rp_request_of_connection(f->c) : NULL;
    }
    return rp_request_started(f->r);
}

/* What is left between a network filter's calls, once the content is made, is waiting for the client. */
static inline void after_output(rp_frame_t frame, const slot_t *slot)
{
    rp_request_t *request = rp_frame_close(frame);

    if (request && slot->is_connection && request->handler_done && rp_frame_was_lowest(frame)) {
        rp_request_ground(request, RP_SPAN_DRAIN);
    }
}

static apr_status_t run_output(unsigned index, ap_filter_t *f, apr_bucket_brigade *brigade)
{
    const slot_t *slot = &output_slots[index];
    rp_frame_t frame;
    apr_status_t rv;

    frame = rp_frame_open(request_for(slot, f), slot->span);
    rv = slot->original.output(f, brigade);
    after_output(frame, slot);
    return rv;
}

static apr_status_t run_input(unsigned index, ap_filter_t *f, apr_bucket_brigade *brigade, ap_input_mode_t mode,
                              apr_read_type_e block, apr_off_t readbytes)
{
    const slot_t *slot = &input_slots[index];
    rp_frame_t frame;
    apr_status_t rv;

    frame = rp_frame_open(request_for(slot, f), slot->span);
    rv = slot->original.input(f, brigade, mode, block, readbytes);
    rp_frame_close(frame);
    return rv;
}

/* The wrappers lie in sections of their own, so that a function is known as one by its address. */
#define OUTPUT_WRAPPER(n)                                                                                              \
    __attribute__((section("rp_output"))) static apr_status_t output_wrapper_##n(ap_filter_t *f,                       \
                                                                                 apr_bucket_brigade *brigade)          \
    {                                                                                                                  \
        return run_output(n, f, brigade);                                                                              \
    }
#define INPUT_WRAPPER(n)                                                                                               \
    __attribute__((section("rp_input"))) static apr_status_t input_wrapper_##n(                                        \
        ap_filter_t *f, apr_bucket_brigade *brigade, ap_input_mode_t mode, apr_read_type_e block, apr_off_t readbytes) \
    {                                                                                                                  \
        return run_input(n, f, brigade, mode, block, readbytes);                                                       \
    }

RP_REPEAT_256(OUTPUT_WRAPPER)
RP_REPEAT_64(INPUT_WRAPPER)

#define OUTPUT_ENTRY(n) output_wrapper_##n,
#define INPUT_ENTRY(n) input_wrapper_##n,

static const ap_out_filter_func output_wrappers[] = {RP_REPEAT_256(OUTPUT_ENTRY)};
static const ap_in_filter_func input_wrappers[] = {RP_REPEAT_64(INPUT_ENTRY)};

extern const char __start_rp_output[] __attribute__((visibility("hidden")));
extern const char __stop_rp_output[] __attribute__((visibility("hidden")));
extern const char __start_rp_input[] __attribute__((visibility("hidden")));
extern const char __stop_rp_input[] __attribute__((visibility("hidden")));

static int is_output_wrapper(ap_out_filter_func function)
{
    return (const char *)function >= __start_rp_output && (const char *)function < __stop_rp_output;
}

static int is_input_wrapper(ap_in_filter_func function)
{
    return (const char *)function >= __start_rp_input && (const char *)function < __stop_rp_input;
}

static int is_compressor(const char *name)
{
    return !strcasecmp(name, "deflate") || !strcasecmp(name, "inflate") || !strcasecmp(name, "brotli_compress")
           || !strcasecmp(name, "zstd_compress");
}

static rp_phase_t phase_of(const ap_filter_rec_t *filter)
{
    if (is_compressor(filter->name)) {
        return RP_PHASE_DEFLATE;
    }
    return filter->ftype >= AP_FTYPE_CONNECTION ? RP_PHASE_NETWORK : RP_PHASE_FILTER;
}

/* mod_request compares the functions of these two. */
static int must_stay(const ap_filter_rec_t *filter)
{
    return !strcasecmp(filter->name, "keep_body") || !strcasecmp(filter->name, "kept_body");
}

/* Filter names are written in capitals in configurations; httpd keeps them in small letters. */
static unsigned span_of(rp_span_plan_t *plan, const ap_filter_rec_t *filter, const char *direction)
{
    char owner[sizeof(((rp_span_t *)0)->owner)];
    rp_span_key_t key = {RP_KIND_FILTER, phase_of(filter), direction, owner, NULL};

    apr_cpystrn(owner, filter->name, sizeof(owner));
    for (char *c = owner; *c; c++) {
        *c = (char)toupper((unsigned char)*c);
    }
    if (plan) {
        return rp_span_plan_share(plan, &key);
    }
    return running ? rp_spans_claim(running, &key) : RP_SPAN_NONE;
}

/* @return a slot of one's own, or NULL when none is left: threads may ask at once */
static slot_t *take(slot_t *slots, apr_uint32_t *used, apr_uint32_t max, apr_uint32_t *index)
{
    *index = __atomic_load_n(used, __ATOMIC_RELAXED);
    while (*index < max) {
        if (__atomic_compare_exchange_n(used, index, *index + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            return &slots[*index];
        }
    }
    return NULL;
}

/*
 * Threads may wrap one filter at once: the exchange decides who has done it, and the others' slots stay
 * unused. The slot is complete before it can be called.
 */
static void wrap_output(rp_span_plan_t *plan, ap_filter_rec_t *filter)
{
    ap_out_filter_func original = filter->filter_func.out_func;
    apr_uint32_t index;
    slot_t *slot;

    if (!original || is_output_wrapper(original) || must_stay(filter)
        || !(slot = take(output_slots, &output_used, OUTPUT_SLOTS, &index))) {
        return;
    }
    slot->original.output = original;
    slot->is_connection = filter->ftype >= AP_FTYPE_CONNECTION;
    slot->span = (apr_uint16_t)span_of(plan, filter, "output");
    __atomic_compare_exchange_n(&filter->filter_func.out_func, &original, output_wrappers[index], 0, __ATOMIC_ACQ_REL,
                                __ATOMIC_RELAXED);
}

static void wrap_input(rp_span_plan_t *plan, ap_filter_rec_t *filter)
{
    ap_in_filter_func original = filter->filter_func.in_func;
    apr_uint32_t index;
    slot_t *slot;

    if (!original || is_input_wrapper(original) || must_stay(filter)
        || !(slot = take(input_slots, &input_used, INPUT_SLOTS, &index))) {
        return;
    }
    slot->original.input = original;
    slot->is_connection = filter->ftype >= AP_FTYPE_CONNECTION;
    slot->span = (apr_uint16_t)span_of(plan, filter, "input");
    __atomic_compare_exchange_n(&filter->filter_func.in_func, &original, input_wrappers[index], 0, __ATOMIC_ACQ_REL,
                                __ATOMIC_RELAXED);
}

static void wrap_output_named(rp_span_plan_t *plan, const char *name)
{
    ap_filter_rec_t *filter = ap_get_output_filter_handle(name);

    if (filter) {
        wrap_output(plan, filter);
    }
}

static void wrap_input_named(rp_span_plan_t *plan, const char *name)
{
    ap_filter_rec_t *filter = ap_get_input_filter_handle(name);

    if (filter) {
        wrap_input(plan, filter);
    }
}

/* The words of a directive's arguments, and the names in a;list;like;this, tried as filters of either direction. */
static void wrap_named_in(rp_span_plan_t *plan, apr_pool_t *pool, const char *args)
{
    while (*args) {
        char *state, *word = ap_getword_conf(pool, &args);

        for (char *name = apr_strtok(word, ";", &state); name; name = apr_strtok(NULL, ";", &state)) {
            wrap_output_named(plan, name);
            wrap_input_named(plan, name);
        }
    }
}

static void wrap_configured(rp_span_plan_t *plan, apr_pool_t *pool, const ap_directive_t *node)
{
    for (; node; node = node->next) {
        if (ap_strcasestr(node->directive, "filter")) {
            wrap_named_in(plan, pool, node->args);
        }
        wrap_configured(plan, pool, node->first_child);
    }
}

void rp_filters_wrap(rp_span_plan_t *plan, apr_pool_t *pool, const ap_directive_t *tree)
{
#define RP_FILTER(name, direction) wrap_##direction##_named(plan, name);
#include "capture/filters.def"
#undef RP_FILTER
    wrap_configured(plan, pool, tree);
}

void rp_filters_child_init(rp_segment_t *segment)
{
    running = segment;
}

void rp_filters_inspect(request_rec *r)
{
    for (ap_filter_t *f = r->output_filters; f; f = f->next) {
        if (!is_output_wrapper(f->frec->filter_func.out_func)) {
            wrap_output(NULL, f->frec);
        }
    }
    for (ap_filter_t *f = r->input_filters; f; f = f->next) {
        if (!is_input_wrapper(f->frec->filter_func.in_func)) {
            wrap_input(NULL, f->frec);
        }
    }
}
