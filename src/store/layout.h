/**
 * @file layout.h
 * @brief The shared segment of one epoch, exactly as it lies in memory. doc/shm-layout.md draws it.
 *
 * Fixed-width fields and offsets, never pointers: every process maps the segment where it likes. All-zero memory is a
 * valid empty part, so untouched pages cost nothing.
 */
#ifndef RP_STORE_LAYOUT_H
#define RP_STORE_LAYOUT_H

#include <stddef.h>
#include <apr.h>

#include "base/clock.h"
#include "base/growth.h"
#include "base/hist.h"
#include "base/phases.h"

#define RP_SEGMENT_MAGIC 0x50515252u /* "RRQP" */
#define RP_SEGMENT_VERSION 1u
#define RP_CACHE_LINE 64

#define RP_STATUS_CLASSES 5 /* 1xx to 5xx */

/** What one request has collected for one span. All zero between requests. */
typedef struct {
    apr_uint64_t self_ticks;
    apr_uint32_t calls;
    apr_uint32_t skipped;
    apr_uint64_t bytes;
    apr_uint64_t spare;
} rp_tally_entry_t;

/* Spans that every table starts with: where time goes while no module's function runs. */
enum {
    RP_SPAN_READ,
    RP_SPAN_OTHER,
    RP_SPAN_DRAIN,
    RP_SPAN_FIRST /* the first id of a planned span */
};

#define RP_SPAN_NONE 0xffffu
#define RP_SPAN_LIMIT 4096u

typedef enum {
    RP_KIND_HOOK,
    RP_KIND_FILTER,
    RP_KIND_LOG,
    RP_KIND_REQUIRE,
    RP_KIND_PASSWORD,
    RP_KIND_HTACCESS,
    RP_KIND_API,
    RP_KIND_COUNT
} rp_kind_t;

/** Description of one span. Written once, before ready is set; the same id in every process. */
typedef struct {
    apr_uint32_t ready; /**< stored last: 1 when the description is whole */
    apr_byte_t phase;  /**< rp_phase_t */
    apr_byte_t kind;   /**< rp_kind_t */
    apr_uint16_t which; /**< the how-manieth of equal (kind, hook, owner), from 0 */
    char hook[32];      /**< hook, "output", "input", or the directive */
    char owner[88];     /**< module, filter name, provider */
    char detail[128];   /**< log target, or file:line of a directive; may be empty */
} rp_span_t;

/** What one span has counted in one shard. */
typedef struct {
    rp_hist_coarse_t self; /**< self time of a request in this span, ticks; count is requests that entered it */
    apr_uint64_t calls;    /**< how often it was entered */
    apr_uint64_t bytes;    /**< log targets: bytes written */
    apr_uint64_t skipped;  /**< log targets: requests that their condition left out */
    apr_uint64_t spare;
} rp_cell_t;

/** The counters of a child, or of the part of its threads that writes here. Cells of all spans follow it. */
typedef struct {
    apr_uint32_t sequence; /**< odd while a thread of the child writes */
    apr_uint32_t spare;
    apr_uint64_t requests;
    apr_uint64_t by_status[RP_STATUS_CLASSES];
    apr_uint64_t unbalanced; /**< requests whose spans did not add up to their total: always 0 */
    rp_hist_fine_t total;
    rp_hist_fine_t phases[RP_PHASE_COUNT];
    rp_hist_fine_t queue; /**< how long a new connection lay in the kernel; count is connections */
} rp_shard_t;

typedef enum {
    RP_FLIGHT_FREE,
    RP_FLIGHT_READING, /**< the header is being read, or the connection is idle: not a request yet */
    RP_FLIGHT_RUNNING
} rp_flight_state_t;

/** One request being served now, readable from any process while it runs. */
typedef struct {
    apr_uint64_t serial;    /**< counts the requests that used this slot; a reader that sees it change reads again */
    apr_uint32_t state;     /**< rp_flight_state_t */
    apr_uint32_t next_free; /**< index + 1 of the next free slot; 0 ends the list */
    apr_uint64_t start_ticks;
    apr_uint64_t last_ticks; /**< the last transition: since then `span` runs */
    apr_uint16_t span;       /**< the open span */
    apr_uint16_t spare[11];
    char method[16];
    char vhost[64];
    char uri[184]; /**< path without query string, cut at this length */
} rp_flight_t;

typedef enum {
    RP_CHILD_FREE,
    RP_CHILD_LIVE,
    RP_CHILD_ENDED /**< left in order; its counters wait to be added to the sums of the departed */
} rp_child_state_t;

/** The part of one child process. Shards and flights follow at the offsets that the header names. */
typedef struct {
    apr_uint32_t state; /**< rp_child_state_t */
    apr_uint32_t pid;
    apr_int64_t started_us;
    apr_uint64_t free_flights; /**< low half: index + 1 of the first free flight; high half counts changes */
    apr_uint64_t dropped_busy; /**< requests not counted because no shard could be had in time */
    apr_uint64_t pool_flights; /**< requests that ran without a slot: counted, but not visible while they run */
} rp_child_t;

/** What a child says about itself, at most once a second, at the end of a request. It follows the child's own words. */
typedef struct {
    apr_uint64_t due_ticks;      /**< when the next sample is due; the thread that moves it on takes the sample */
    apr_uint64_t connections;    /**< connections served */
    apr_int64_t sampled_us;      /**< 0: not yet */
    apr_uint64_t rss_bytes;      /**< resident, shared pages included */
    apr_uint64_t private_bytes;  /**< resident pages that no other process has */
    apr_uint64_t heap_used_bytes; /**< handed out by malloc */
    apr_uint64_t heap_held_bytes; /**< kept by malloc, handed out or free */
    apr_uint64_t cpu_user_us;
    apr_uint64_t cpu_system_us;
    apr_uint64_t spare[7];
    rp_growth_record_t private_growth;
    rp_growth_record_t heap_growth;
} rp_life_t;

/** Start of the segment. */
typedef struct {
    apr_uint32_t magic;
    apr_uint32_t version;
    apr_uint32_t ready; /**< stored last: a reader that sees it also sees a full header */
    apr_uint32_t epoch;
    apr_uint64_t bytes;
    apr_int64_t started_us;
    apr_uint64_t started_ticks;
    rp_clock_t clock;
    apr_uint32_t generation;
    apr_uint32_t detail; /**< rp_detail_t */
    apr_uint32_t span_max;
    apr_uint32_t span_count; /**< grows while requests find new filters */
    apr_uint32_t child_max;  /**< parts for children; one more at the end holds the sums of the departed */
    apr_uint32_t shard_count;
    apr_uint32_t flight_max; /**< a child */
    apr_uint32_t unwrapped_links;   /**< hook functions that no slot was left for */
    apr_uint32_t unplanned_spans;   /**< spans that did not fit in the table: their time is the enclosing span's */
    apr_uint32_t damaged_flights;   /**< children found dead in the middle of a write */
    apr_uint32_t fold_sequence;     /**< odd while the parent moves a departed child's counters */
    apr_uint32_t lost_flights;      /**< requests that died with their child */
    apr_uint64_t spans_offset;
    apr_uint64_t span_phases_offset; /**< a byte for each span: its phase, all of them together */
    apr_uint64_t children_offset;
    apr_uint64_t child_bytes;
    apr_uint64_t shards_offset;  /**< from the start of a child's part */
    apr_uint64_t shard_bytes;
    apr_uint64_t flights_offset; /**< from the start of a child's part */
    apr_uint64_t tallies_offset; /**< from the start of a child's part: one tally a flight */
    apr_uint64_t tally_bytes;    /**< span_max entries, then span_max ids of touched ones */
    apr_uint64_t departed_flights_dropped; /**< pool_flights, of the departed */
    apr_uint64_t departed_dropped_busy;
    apr_uint64_t life_offset; /**< from the start of a child's part */
    apr_uint64_t marks_offset; /**< sums of earlier times, for windows: see marks.h */
    apr_uint64_t mark_bytes;
    char mpm[16];
    apr_uint64_t lines_offset; /**< rp_lines_t; 0: no configuration lines are kept */
} rp_segment_t;

/** How a line is replayed: which module's function, and with what around the line. */
typedef enum {
    RP_FAMILY_NONE,            /**< not replayed */
    RP_FAMILY_SETENVIF_SERVER, /**< SetEnvIf and BrowserMatch outside of directories: run in post_read_request */
    RP_FAMILY_SETENVIF_DIR,    /**< the same in directories: run in header_parser */
    RP_FAMILY_ALLOW,
    RP_FAMILY_DENY,
    RP_FAMILY_COUNT
} rp_family_t;

#define RP_LINE_NONE 0xffffffffu
#define RP_GROUP_LINES 32u

/**
 * Measured times of one thing, in ticks. Each stands for a number of requests, its weight. Any child adds with
 * atomic operations.
 */
typedef struct {
    apr_uint64_t runs;
    double weight;         /**< sum of weights */
    double weight_squares; /**< sum of squared weights */
    double ticks;          /**< sum of weight * ticks */
    double tick_squares;   /**< sum of weight * ticks * ticks */
} rp_cost_t;

enum {
    RP_LINE_SECTION = 1, /**< opens a section, such as <Directory> */
    RP_LINE_MERGED = 2,  /**< mod_setenvif merges it with the line before */
    RP_LINE_HIDDEN = 4,  /**< its arguments hold a secret and are not kept */
    RP_LINE_HTACCESS = 8 /**< found in an .htaccess file while requests ran */
};

/** One directive of the configuration: a place in a file, wherever that file is included. Strings are offsets. */
typedef struct {
    apr_uint32_t ready; /**< stored last */
    apr_uint32_t number; /**< in its file */
    apr_uint32_t file;
    apr_uint32_t directive;
    apr_uint32_t args;
    apr_uint32_t scope;
    apr_uint16_t scope_count; /**< in how many places the line takes effect */
    apr_byte_t depth;         /**< enclosing sections */
    apr_byte_t flags;
    apr_uint32_t family;
    rp_cost_t cost;       /**< of the line replayed alone */
    apr_uint64_t matched; /**< weights of the replays of its group in which it matched */
    apr_uint64_t decided; /**< requests that it allowed or denied, estimated */
} rp_line_t;

/** Neighbouring lines of one family that are replayed as one. */
typedef struct {
    apr_uint32_t first; /**< line */
    apr_uint16_t count; /**< 1..RP_GROUP_LINES */
    apr_byte_t family;
    apr_byte_t ready;
    rp_cost_t cost;
    apr_uint64_t unreached; /**< requests that an earlier line decided, estimated */
} rp_group_t;

/** The groups that one section of the configuration brings to a request. */
typedef struct {
    apr_uint32_t first_ref; /**< in the list of group ids */
    apr_uint32_t ref_count;
    apr_uint64_t requests; /**< requests that it applied to, estimated from the replayed ones */
} rp_section_t;

/** Head of the line table. Offsets count from here. */
typedef struct {
    apr_uint32_t line_count; /**< grows while .htaccess files are found */
    apr_uint32_t line_max;
    apr_uint32_t group_count;
    apr_uint32_t group_max;
    apr_uint32_t section_count;
    apr_uint32_t section_max;
    apr_uint32_t ref_count;
    apr_uint32_t ref_max;
    apr_uint32_t text_used;
    apr_uint32_t text_max;
    apr_uint32_t lines_left_out; /**< lines that did not fit */
    apr_uint32_t spare;
    apr_uint64_t rows_offset;
    apr_uint64_t groups_offset;
    apr_uint64_t sections_offset;
    apr_uint64_t refs_offset;
    apr_uint64_t span_lines_offset; /**< for each span: its line + 1, 0 for none */
    apr_uint64_t text_offset;       /**< strings, each ended by a zero byte; the first one is empty */
    apr_uint64_t bytes;
    apr_uint64_t replay_ns;       /**< processor time that replaying has cost */
    apr_uint64_t replay_requests; /**< requests that were replayed */
    apr_uint64_t replay_weight;   /**< requests that these stand for */
    rp_cost_t baseline[RP_FAMILY_COUNT]; /**< the module's function without any line */
} rp_lines_t;

_Static_assert(sizeof(rp_span_t) == 256, "doc/shm-layout.md draws a span as 256 bytes");
_Static_assert(offsetof(rp_shard_t, total) == 64, "the counters of a shard fill one cache line");
_Static_assert(sizeof(rp_cell_t) % 8 == 0 && sizeof(rp_shard_t) % 8 == 0, "cells follow a shard without padding");
_Static_assert(sizeof(rp_flight_t) == 320, "doc/shm-layout.md draws a flight as 320 bytes");
_Static_assert(offsetof(rp_life_t, private_growth) == 128, "what a child samples fills two cache lines");
_Static_assert(sizeof(rp_child_t) <= RP_CACHE_LINE, "a child's own words fill one cache line");

_Static_assert(sizeof(rp_line_t) == 88, "doc/shm-layout.md draws a line as 88 bytes");

static inline rp_lines_t *rp_segment_lines(rp_segment_t *segment)
{
    return segment->lines_offset ? (rp_lines_t *)((char *)segment + segment->lines_offset) : NULL;
}

static inline rp_line_t *rp_lines_row(rp_lines_t *lines, unsigned row)
{
    return (rp_line_t *)((char *)lines + lines->rows_offset) + row;
}

static inline rp_group_t *rp_lines_group(rp_lines_t *lines, unsigned group)
{
    return (rp_group_t *)((char *)lines + lines->groups_offset) + group;
}

static inline rp_section_t *rp_lines_section(rp_lines_t *lines, unsigned section)
{
    return (rp_section_t *)((char *)lines + lines->sections_offset) + section;
}

static inline apr_uint32_t *rp_lines_refs(rp_lines_t *lines)
{
    return (apr_uint32_t *)((char *)lines + lines->refs_offset);
}

static inline apr_uint32_t *rp_lines_of_spans(rp_lines_t *lines)
{
    return (apr_uint32_t *)((char *)lines + lines->span_lines_offset);
}

static inline const char *rp_lines_text(const rp_lines_t *lines, apr_uint32_t offset)
{
    return (const char *)lines + lines->text_offset + offset;
}

static inline rp_span_t *rp_segment_span(rp_segment_t *segment, unsigned id)
{
    return (rp_span_t *)((char *)segment + segment->spans_offset) + id;
}

/** @return the phases of all spans, by id */
static inline apr_byte_t *rp_segment_span_phases(rp_segment_t *segment)
{
    return (apr_byte_t *)segment + segment->span_phases_offset;
}

/** @param index 0..child_max; child_max is the part of the departed */
static inline rp_child_t *rp_segment_child(rp_segment_t *segment, unsigned index)
{
    return (rp_child_t *)((char *)segment + segment->children_offset + index * segment->child_bytes);
}

/** @return of the part of the departed: connections and CPU time added up, the rest 0 */
static inline rp_life_t *rp_child_life(const rp_segment_t *segment, rp_child_t *child)
{
    return (rp_life_t *)((char *)child + segment->life_offset);
}

static inline rp_shard_t *rp_child_shard(const rp_segment_t *segment, rp_child_t *child, unsigned index)
{
    return (rp_shard_t *)((char *)child + segment->shards_offset + index * segment->shard_bytes);
}

static inline rp_cell_t *rp_shard_cell(rp_shard_t *shard, unsigned span)
{
    return (rp_cell_t *)(shard + 1) + span;
}

static inline rp_flight_t *rp_child_flight(const rp_segment_t *segment, rp_child_t *child, unsigned index)
{
    return (rp_flight_t *)((char *)child + segment->flights_offset) + index;
}

/** @return the entries of a flight's tally; span_max 16-bit ids follow them */
static inline rp_tally_entry_t *rp_child_tally(const rp_segment_t *segment, rp_child_t *child, unsigned index)
{
    return (rp_tally_entry_t *)((char *)child + segment->tallies_offset + index * segment->tally_bytes);
}

#endif
