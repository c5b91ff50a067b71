/**
 * @file lines.h
 * @brief The line table: planned in the parent from the configuration, then fixed in the shared segment.
 *
 * A row is a directive at a place in a file. Groups are runs of rows that are replayed as one; sections are what
 * brings groups to a request. Costs in rows and groups are added to by every child.
 */
#ifndef RP_STORE_LINES_H
#define RP_STORE_LINES_H

#include <apr_hash.h>
#include <apr_pools.h>
#include <apr_tables.h>

#include "store/layout.h"

enum {
    RP_LINE_LIMIT = 32768,          /* rows; lines beyond are counted, not kept */
    RP_LINE_TEXT_LIMIT = 4 << 20,   /* bytes of all their strings */
    RP_LINE_ARGS_MAX = 240,         /* longer arguments are cut */
    RP_LINE_REF_LIMIT = 1 << 20
};

/** What a row says. Strings are copied. */
typedef struct {
    const char *file;
    unsigned number;
    const char *directive;
    const char *args; /**< without secrets: the caller has hidden them */
    unsigned depth;
    unsigned flags; /**< RP_LINE_… */
} rp_line_key_t;

/** The table to be, in the parent, before the segment exists. */
typedef struct {
    apr_pool_t *pool;
    apr_array_header_t *lines;    /**< of rp_line_t */
    apr_array_header_t *groups;   /**< of rp_group_t */
    apr_array_header_t *sections; /**< of rp_section_t */
    apr_array_header_t *refs;     /**< of apr_uint32_t: group ids */
    apr_array_header_t *text;     /**< of char */
    apr_hash_t *texts;            /**< string -> offset */
    apr_hash_t *shared_groups;
    apr_array_header_t *span_lines; /**< of apr_uint32_t, by span */
    unsigned left_out;
} rp_line_plan_t;

/** An empty plan. The parent, while it starts; so for all rp_line_plan_ functions. */
rp_line_plan_t *rp_line_plan_create(apr_pool_t *pool);

/** @return the row of a new line; RP_LINE_NONE when a limit is reached */
unsigned rp_line_plan_add(rp_line_plan_t *plan, const rp_line_key_t *key);

/** Say where a line takes effect, and in how many places. */
void rp_line_plan_scope(rp_line_plan_t *plan, unsigned row, const char *scope, unsigned scope_count);

/** @return the group of these rows; the same one for every section that brings the same rows. RP_LINE_NONE: no room */
unsigned rp_line_plan_group(rp_line_plan_t *plan, unsigned first, unsigned count, rp_family_t family);

/** @return a new section with these groups, in this order; RP_LINE_NONE when there is no room */
unsigned rp_line_plan_section(rp_line_plan_t *plan, const apr_array_header_t *groups);

/** The time of a span is the cost of a row. */
void rp_line_plan_span(rp_line_plan_t *plan, unsigned span, unsigned row);

/** @return the size of the table with the plan's content and some room for lines found while requests run */
apr_uint64_t rp_lines_bytes(const rp_line_plan_t *plan, unsigned span_max);

/** Write the table into fresh shared memory of rp_lines_bytes(). */
void rp_lines_place(rp_lines_t *lines, const rp_line_plan_t *plan, unsigned span_max);

/** Add one measured time that stands for a number of requests. Any thread of any child; lock-free. */
void rp_cost_add(rp_cost_t *cost, apr_uint64_t ticks, apr_uint64_t weight);

#endif
