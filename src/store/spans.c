#include <string.h>
#include <apr_strings.h>

#include "store/spans.h"

static const char *const kind_names[RP_KIND_COUNT] = {"hook",     "filter",   "log", "require",
                                                      "password", "htaccess", "api"};

const char *rp_kind_name(unsigned kind)
{
    return kind_names[kind < RP_KIND_COUNT ? kind : RP_KIND_API];
}

static void fill(rp_span_t *span, const rp_span_key_t *key)
{
    span->phase = (apr_byte_t)key->phase;
    span->kind = (apr_byte_t)key->kind;
    apr_cpystrn(span->hook, key->hook, sizeof(span->hook));
    apr_cpystrn(span->owner, key->owner, sizeof(span->owner));
    apr_cpystrn(span->detail, key->detail ? key->detail : "", sizeof(span->detail));
}

static int matches(const rp_span_t *span, const rp_span_key_t *key)
{
    return span->kind == (apr_byte_t)key->kind && span->phase == (apr_byte_t)key->phase
           && !strncmp(span->hook, key->hook, sizeof(span->hook) - 1)
           && !strncmp(span->owner, key->owner, sizeof(span->owner) - 1)
           && !strncmp(span->detail, key->detail ? key->detail : "", sizeof(span->detail) - 1);
}

static rp_span_t *planned(const rp_span_plan_t *plan, int id)
{
    return &APR_ARRAY_IDX(plan->spans, id, rp_span_t);
}

static unsigned push(rp_span_plan_t *plan, const rp_span_key_t *key)
{
    rp_span_t *span;
    apr_uint16_t which = 0;

    if ((unsigned)plan->spans->nelts >= plan->settings->span_max) {
        plan->left_out++;
        return RP_SPAN_NONE;
    }
    for (int id = 0; id < plan->spans->nelts; id++) {
        which += matches(planned(plan, id), key);
    }
    span = apr_array_push(plan->spans);
    memset(span, 0, sizeof(*span));
    fill(span, key);
    span->which = which;
    span->ready = 1;
    return (unsigned)plan->spans->nelts - 1;
}

rp_span_plan_t *rp_span_plan_create(apr_pool_t *pool, const rp_settings_t *settings)
{
    static const rp_span_key_t ground[RP_SPAN_FIRST] = {
        [RP_SPAN_READ] = {RP_KIND_API, RP_PHASE_READ, "read", "httpd", NULL},
        [RP_SPAN_OTHER] = {RP_KIND_API, RP_PHASE_OTHER, "other", "httpd", NULL},
        [RP_SPAN_DRAIN] = {RP_KIND_API, RP_PHASE_DRAIN, "drain", "client", NULL},
    };
    rp_span_plan_t *plan = apr_pcalloc(pool, sizeof(*plan));

    plan->spans = apr_array_make(pool, 256, sizeof(rp_span_t));
    plan->settings = settings;
    for (int id = 0; id < RP_SPAN_FIRST; id++) {
        push(plan, &ground[id]);
    }
    return plan;
}

static int phases_only(const rp_span_plan_t *plan)
{
    return plan->settings->detail == RP_DETAIL_PHASES;
}

/* With phases only, the key of a span is its phase. */
static rp_span_key_t phase_key(const rp_span_key_t *key)
{
    return (rp_span_key_t){RP_KIND_API, key->phase, rp_phase_name(key->phase), "all", NULL};
}

unsigned rp_span_plan_add(rp_span_plan_t *plan, const rp_span_key_t *key)
{
    return phases_only(plan) ? rp_span_plan_share(plan, key) : push(plan, key);
}

unsigned rp_span_plan_share(rp_span_plan_t *plan, const rp_span_key_t *key)
{
    rp_span_key_t wanted = phases_only(plan) ? phase_key(key) : *key;

    for (int id = RP_SPAN_FIRST; id < plan->spans->nelts; id++) {
        if (matches(planned(plan, id), &wanted)) {
            return (unsigned)id;
        }
    }
    return push(plan, &wanted);
}

static unsigned find(rp_segment_t *segment, const rp_span_key_t *key)
{
    unsigned count = __atomic_load_n(&segment->span_count, __ATOMIC_ACQUIRE);

    for (unsigned id = RP_SPAN_FIRST; id < count; id++) {
        rp_span_t *span = rp_segment_span(segment, id);
        if (__atomic_load_n(&span->ready, __ATOMIC_ACQUIRE) && matches(span, key)) {
            return id;
        }
    }
    return RP_SPAN_NONE;
}

/* @return a fresh id, or RP_SPAN_NONE when the table is full */
static unsigned next_id(rp_segment_t *segment)
{
    apr_uint32_t id = __atomic_load_n(&segment->span_count, __ATOMIC_RELAXED);

    while (id < segment->span_max) {
        if (__atomic_compare_exchange_n(&segment->span_count, &id, id + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            return id;
        }
    }
    __atomic_fetch_add(&segment->unplanned_spans, 1, __ATOMIC_RELAXED);
    return RP_SPAN_NONE;
}

unsigned rp_spans_claim(rp_segment_t *segment, const rp_span_key_t *key)
{
    rp_span_key_t wanted = segment->detail == RP_DETAIL_PHASES ? phase_key(key) : *key;
    unsigned id = find(segment, &wanted);

    if (id == RP_SPAN_NONE) {
        /* Two children that meet the same new filter at once get a span each: harmless, both are shown. */
        id = next_id(segment);
        if (id != RP_SPAN_NONE) {
            rp_span_t *span = rp_segment_span(segment, id);
            fill(span, &wanted);
            rp_segment_span_phases(segment)[id] = span->phase;
            __atomic_store_n(&span->ready, 1, __ATOMIC_RELEASE);
        }
    }
    return id;
}
