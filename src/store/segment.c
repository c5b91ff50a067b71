#include <string.h>
#include <unistd.h>
#include <apr_shm.h>
#include <apr_strings.h>
#include <apr_time.h>

#include "store/marks.h"
#include "store/segment.h"

/* What outlives a restart, in the process pool: the module's code may be unloaded in between, so no code pointers. */
#define KEEP_KEY "mod_reqprof:segments:2"
#define KEEP_MAX RP_SEGMENTS_KNOWN_MAX

typedef struct {
    apr_pool_t *pool; /* NULL: free place */
    rp_segment_t *segment;
    int ended; /* its generation has ended: given back as soon as it is not the current one */
} kept_t;

typedef struct {
    apr_uint32_t epoch; /* of the newest segment */
    rp_clock_t clock;   /* calibrated once */
    apr_uint32_t clock_wanted;
    kept_t kept[KEEP_MAX];
} keep_t;

static rp_segment_t *current;
static keep_t *known; /* in a child: what there was when it was forked */

rp_segment_t *rp_segment_current(void)
{
    return current;
}

rp_segment_t *rp_segment_known(unsigned place)
{
    return known && place < KEEP_MAX && known->kept[place].pool ? known->kept[place].segment : NULL;
}

static keep_t *keep_of(apr_pool_t *process_pool)
{
    void *keep = NULL;

    apr_pool_userdata_get(&keep, KEEP_KEY, process_pool);
    if (!keep) {
        keep = apr_pcalloc(process_pool, sizeof(keep_t));
        apr_pool_userdata_set(keep, KEEP_KEY, apr_pool_cleanup_null, process_pool);
    }
    return keep;
}

static apr_uint64_t align(apr_uint64_t bytes)
{
    return (bytes + RP_CACHE_LINE - 1) / RP_CACHE_LINE * RP_CACHE_LINE;
}

/* The clock is calibrated at the first start and again only when ReqProfClock asks for another one. */
static const rp_clock_t *kept_clock(keep_t *keep, rp_clock_source_t wanted)
{
    if (keep->clock.ns_per_tick == 0.0 || keep->clock_wanted != (apr_uint32_t)wanted) {
        rp_clock_calibrate(&keep->clock, wanted);
        keep->clock_wanted = wanted;
    }
    rp_clock_use(&keep->clock);
    return &keep->clock;
}

static void give_back(kept_t *kept)
{
    apr_pool_destroy(kept->pool);
    *kept = (kept_t){0};
}

/* A hard restart ends a generation while its segment is still the current one. */
static void give_back_ended(keep_t *keep)
{
    for (int i = 0; i < KEEP_MAX; i++) {
        if (keep->kept[i].pool && keep->kept[i].ended) {
            give_back(&keep->kept[i]);
        }
    }
}

/* Where as many generations as there are places still serve, the oldest makes room. */
static kept_t *place_for_new(keep_t *keep)
{
    kept_t *oldest = &keep->kept[0];

    for (int i = 0; i < KEEP_MAX; i++) {
        if (!keep->kept[i].pool) {
            return &keep->kept[i];
        }
        if (keep->kept[i].segment->epoch < oldest->segment->epoch) {
            oldest = &keep->kept[i];
        }
    }
    give_back(oldest);
    return oldest;
}

/* One shard for each processor up to eight, but never more than threads: a power of two. */
static unsigned shard_count(unsigned threads)
{
    unsigned count = 1;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    while (count < 8 && (long)count < processors && count < threads) {
        count *= 2;
    }
    return count;
}

static void lay_out(rp_segment_t *head, const rp_settings_t *settings, const rp_span_plan_t *plan,
                    const rp_segment_size_t *size)
{
    unsigned planned = (unsigned)plan->spans->nelts;

    head->magic = RP_SEGMENT_MAGIC;
    head->version = RP_SEGMENT_VERSION;
    head->generation = size->generation;
    head->detail = settings->detail;
    head->span_count = planned;
    head->span_max = planned + size->spare_spans < settings->span_max ? planned + size->spare_spans
                                                                     : settings->span_max;
    head->child_max = size->child_max;
    head->shard_count = shard_count(size->thread_max);
    /* Event keeps up to three connections a thread, and HTTP/2 brings workers of its own. */
    head->flight_max = size->thread_max > 1 ? 3 * size->thread_max + 16 : 4;
    head->unplanned_spans = plan->left_out;
    head->spans_offset = align(sizeof(*head));
    head->span_phases_offset = align(head->spans_offset + head->span_max * sizeof(rp_span_t));
    head->children_offset = align(head->span_phases_offset + head->span_max);
    head->life_offset = align(sizeof(rp_child_t));
    head->shards_offset = align(head->life_offset + sizeof(rp_life_t));
    head->shard_bytes = align(sizeof(rp_shard_t) + head->span_max * sizeof(rp_cell_t));
    head->flights_offset = align(head->shards_offset + head->shard_count * head->shard_bytes);
    head->tallies_offset = align(head->flights_offset + head->flight_max * sizeof(rp_flight_t));
    head->tally_bytes = align(head->span_max * (sizeof(rp_tally_entry_t) + sizeof(apr_uint16_t)));
    head->child_bytes = align(head->tallies_offset + head->flight_max * head->tally_bytes);
    head->marks_offset = align(head->children_offset + (head->child_max + 1) * head->child_bytes);
    head->mark_bytes = align(sizeof(rp_mark_t) + head->shard_bytes);
    head->bytes = head->marks_offset + RP_MARK_COUNT * head->mark_bytes;
    if (size->lines) {
        head->lines_offset = head->bytes;
        head->bytes += rp_lines_bytes(size->lines, head->span_max);
    }
}


static void copy_spans(rp_segment_t *segment, const rp_span_plan_t *plan)
{
    memcpy(rp_segment_span(segment, 0), plan->spans->elts, (size_t)plan->spans->nelts * sizeof(rp_span_t));
    for (unsigned id = 0; id < (unsigned)plan->spans->nelts; id++) {
        rp_segment_span_phases(segment)[id] = rp_segment_span(segment, id)->phase;
    }
}

apr_status_t rp_segment_parent_create(apr_pool_t *process_pool, const rp_settings_t *settings,
                                      const rp_span_plan_t *plan, const rp_segment_size_t *size)
{
    keep_t *keep = keep_of(process_pool);
    kept_t *place;
    rp_segment_t head = {0};
    apr_shm_t *shm;
    apr_status_t rv;

    current = NULL;
    known = keep;
    give_back_ended(keep);
    place = place_for_new(keep);
    lay_out(&head, settings, plan, size);
    apr_pool_create(&place->pool, process_pool);
    rv = apr_shm_create(&shm, (apr_size_t)head.bytes, NULL, place->pool);
    if (rv != APR_SUCCESS) {
        give_back(place);
        return rv;
    }
    head.epoch = ++keep->epoch;
    head.clock = *kept_clock(keep, settings->clock);
    head.started_us = apr_time_now();
    head.started_ticks = rp_clock_now();
    apr_cpystrn(head.mpm, size->mpm, sizeof(head.mpm));
    place->segment = apr_shm_baseaddr_get(shm);
    *place->segment = head;
    copy_spans(place->segment, plan);
    if (size->lines) {
        rp_lines_place(rp_segment_lines(place->segment), size->lines, head.span_max);
    }
    __atomic_store_n(&place->segment->ready, 1, __ATOMIC_RELEASE);
    current = place->segment;
    return APR_SUCCESS;
}

rp_segment_t *rp_segment_of_generation(apr_pool_t *process_pool, unsigned generation)
{
    keep_t *keep = keep_of(process_pool);
    rp_segment_t *found = NULL;

    for (int i = 0; i < KEEP_MAX; i++) {
        kept_t *kept = &keep->kept[i];
        if (kept->pool && kept->segment->generation == generation && (!found || kept->segment->epoch > found->epoch)) {
            found = kept->segment;
        }
    }
    return found;
}

void rp_segment_parent_end(apr_pool_t *process_pool, unsigned generation)
{
    keep_t *keep = keep_of(process_pool);

    for (int i = 0; i < KEEP_MAX; i++) {
        kept_t *kept = &keep->kept[i];
        if (kept->pool && kept->segment->generation == generation) {
            kept->ended = 1;
            if (kept->segment != current) {
                give_back(kept);
            }
        }
    }
}
