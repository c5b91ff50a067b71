#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "store/line_costs.h"

enum {
    RUNS_MIN = 3 /* replays of a line or group before its cost is told */
};

/* The module and hook whose live time a family shares. */
static const struct {
    const char *owner;
    const char *hook;
    rp_phase_t phase;
    unsigned baseline; /* family under which the empty configuration was measured */
} modules[RP_LINE_MODULES] = {
    {"mod_setenvif", "post_read_request", RP_PHASE_SETENVIF, RP_FAMILY_SETENVIF_DIR},
    {"mod_setenvif", "header_parser", RP_PHASE_SETENVIF, RP_FAMILY_SETENVIF_DIR},
    {"mod_access_compat", "access_checker", RP_PHASE_ACCESS, RP_FAMILY_DENY},
};

static unsigned module_of(unsigned family)
{
    return family == RP_FAMILY_SETENVIF_SERVER ? 0 : family == RP_FAMILY_SETENVIF_DIR ? 1 : 2;
}

typedef struct {
    apr_pool_t *pool;
    const rp_snapshot_t *snapshot;
    rp_lines_t *table;
    rp_line_costs_t *costs;
    double *reached;                     /* requests that reached each group */
    unsigned group_count;                /* those that were there when we began */
    double stands_for;                   /* requests for each that was counted by a replay */
    double predicted[RP_LINE_MODULES];   /* ticks, of all groups and the empty configuration */
    apr_uint64_t calls[RP_LINE_MODULES]; /* live */
} work_t;

static double mean(const rp_cost_t *cost)
{
    return cost->weight > 0 ? cost->ticks / cost->weight : 0;
}

/* Standard error of a weighted mean, with Kish's effective number of runs: (sum w)^2 / sum w^2. */
static double error_of(const rp_cost_t *cost)
{
    double average = mean(cost);
    double runs = cost->weight_squares > 0 ? cost->weight * cost->weight / cost->weight_squares : 0;
    double variance = runs > 1 ? (cost->tick_squares / cost->weight - average * average) / (runs - 1) : 0;

    return variance > 0 ? sqrt(variance) : 0;
}

static double above(double value, double floor)
{
    return value > floor ? value - floor : 0;
}

static void add_row(work_t *work, unsigned row)
{
    const rp_line_t *line = rp_lines_row(work->table, row);
    const char *nothing = "";
    int ready = __atomic_load_n(&line->ready, __ATOMIC_ACQUIRE) == 1;

    work->costs->lines[row] = (rp_line_cost_t){
        .file = ready ? rp_lines_text(work->table, line->file) : nothing,
        .number = line->number,
        .directive = ready ? rp_lines_text(work->table, line->directive) : nothing,
        .args = ready ? rp_lines_text(work->table, line->args) : nothing,
        .scope = ready ? rp_lines_text(work->table, line->scope) : nothing,
        .scope_count = line->scope_count,
        .depth = line->depth,
        .flags = line->flags,
        .phase = RP_PHASE_OTHER,
    };
}

/* ---- live ---- */

static void describe(rp_line_cost_t *cost, const rp_span_t *span)
{
    cost->source = RP_LINE_LIVE;
    cost->is_told = 1;
    cost->phase = (rp_phase_t)span->phase;
    cost->owner = span->owner;
    cost->hook = span->hook;
}

static void add_live(work_t *work)
{
    const apr_uint32_t *rows = rp_lines_of_spans(work->table);
    rp_segment_t *segment = (rp_segment_t *)work->snapshot->segment;

    for (unsigned id = 0; id < segment->span_max; id++) {
        if (rows[id]) {
            describe(&work->costs->lines[rows[id] - 1], rp_segment_span(segment, id));
        }
    }
    for (unsigned i = 0; i < work->snapshot->span_count; i++) {
        const rp_span_times_t *times = &work->snapshot->spans[i];
        rp_line_cost_t *cost;

        if (times->id < segment->span_max && rows[times->id]) {
            cost = &work->costs->lines[rows[times->id] - 1];
            describe(cost, times->span);
            cost->evaluated += times->calls + times->skipped;
            cost->matched += times->span->kind == RP_KIND_LOG ? times->calls : 0;
            cost->total_ns += times->self.sum_ns;
        }
    }
}

/* A row of its own for each .htaccess file: reading and executing it. */
static void add_htaccess(work_t *work)
{
    for (unsigned i = 0; i < work->snapshot->span_count; i++) {
        const rp_span_times_t *times = &work->snapshot->spans[i];
        rp_line_cost_t *cost = &work->costs->lines[work->costs->line_count];

        if (times->span->kind == RP_KIND_HTACCESS) {
            *cost = (rp_line_cost_t){.file = times->span->detail, .directive = ".htaccess", .scope_count = 1,
                                     .args = "read and executed again for each request", .scope = "its directory",
                                     .flags = RP_LINE_HTACCESS, .evaluated = times->calls,
                                     .total_ns = times->self.sum_ns};
            describe(cost, times->span);
            work->costs->line_count++;
        }
    }
}

/* ---- replayed ---- */

static void find_live(work_t *work)
{
    for (unsigned m = 0; m < RP_LINE_MODULES; m++) {
        rp_line_module_t *module = &work->costs->modules[m];

        *module = (rp_line_module_t){modules[m].owner, modules[m].hook, modules[m].phase, 0, 0};
        for (unsigned i = 0; i < work->snapshot->span_count; i++) {
            const rp_span_times_t *times = &work->snapshot->spans[i];
            if (times->span->kind == RP_KIND_HOOK && !strcmp(times->span->owner, module->owner)
                && !strcmp(times->span->hook, module->hook)) {
                module->live_ns += times->self.sum_ns;
                work->calls[m] += times->calls;
            }
        }
    }
}

static void find_reached(work_t *work)
{
    const apr_uint32_t *refs = rp_lines_refs(work->table);

    work->stands_for = work->table->replay_weight
                           ? (double)work->snapshot->requests / (double)work->table->replay_weight
                           : 0;
    for (unsigned i = 0; i < work->table->section_count; i++) {
        const rp_section_t *section = rp_lines_section(work->table, i);

        for (unsigned j = 0; j < section->ref_count; j++) {
            work->reached[refs[section->first_ref + j]] += (double)section->requests * work->stands_for;
        }
    }
    for (unsigned id = 0; id < work->group_count; id++) {
        work->reached[id] = above(work->reached[id],
                                  (double)rp_lines_group(work->table, id)->unreached * work->stands_for);
    }
}

static double baseline(const work_t *work, unsigned m)
{
    return mean(&work->table->baseline[modules[m].baseline]);
}

static int is_ready(const work_t *work, unsigned id)
{
    return __atomic_load_n(&rp_lines_group(work->table, id)->ready, __ATOMIC_ACQUIRE) == 1;
}

static double group_ticks(const work_t *work, unsigned id)
{
    const rp_group_t *group = rp_lines_group(work->table, id);

    if (!is_ready(work, id)) {
        return 0;
    }
    return above(mean(&group->cost), baseline(work, module_of(group->family))) * work->reached[id];
}

static void predict(work_t *work)
{
    for (unsigned m = 0; m < RP_LINE_MODULES; m++) {
        work->predicted[m] = baseline(work, m) * (double)work->calls[m];
    }
    for (unsigned id = 0; id < work->group_count; id++) {
        work->predicted[module_of(rp_lines_group(work->table, id)->family)] += group_ticks(work, id);
    }
}

/* What each line of a group costs by itself, as parts of 1. */
typedef struct {
    double part[RP_GROUP_LINES];
    double error[RP_GROUP_LINES]; /* standard error, as a part of the line's own cost */
} shares_t;

/* Lines of Allow and Deny groups do the same test; of others it is not known yet who has which part. */
static void share_equally(shares_t *shares, const rp_group_t *group)
{
    for (unsigned i = 0; i < group->count; i++) {
        shares->part[i] = 1.0 / group->count;
        shares->error[i] = group->count == 1 || module_of(group->family) == 2 ? 0 : 1;
    }
}

static int was_replayed_alone(const rp_line_t *line)
{
    return line->cost.runs >= RUNS_MIN || (line->flags & RP_LINE_MERGED);
}

/*
 * A line replayed alone takes c + h, a group of n lines sum(c) + h, where h is what one call and one look at
 * the header take. So h follows from both, and is not the lines'.
 */
static double call_ticks(const rp_group_t *group, const rp_line_t *lines)
{
    double sum = 0;
    unsigned alone = 0;

    for (unsigned i = 0; i < group->count; i++) {
        if (!(lines[i].flags & RP_LINE_MERGED)) {
            sum += mean(&lines[i].cost);
            alone++;
        }
    }
    return alone > 1 ? above(sum, mean(&group->cost)) / (alone - 1) : 0;
}

/* Lines that mod_setenvif has merged share one entry, and its cost. */
static void share_among_merged(shares_t *shares, const rp_group_t *group, const rp_line_t *lines)
{
    for (unsigned i = 0; i < group->count;) {
        unsigned end = i + 1;

        while (end < group->count && (lines[end].flags & RP_LINE_MERGED)) {
            end++;
        }
        for (unsigned j = i + 1; j < end; j++) {
            shares->part[j] = shares->part[i] / (end - i);
            shares->error[j] = shares->error[i];
        }
        shares->part[i] /= end - i;
        i = end;
    }
}

static void share_group(shares_t *shares, const rp_group_t *group, const rp_line_t *lines)
{
    double call, sum = 0;

    share_equally(shares, group);
    for (unsigned i = 0; i < group->count; i++) {
        if (!was_replayed_alone(&lines[i])) {
            return;
        }
    }
    call = call_ticks(group, lines);
    for (unsigned i = 0; i < group->count; i++) {
        shares->part[i] = lines[i].flags & RP_LINE_MERGED ? 0 : above(mean(&lines[i].cost), call);
        shares->error[i] = shares->part[i] > 0 ? error_of(&lines[i].cost) / shares->part[i] : 1;
        sum += shares->part[i];
    }
    if (sum <= 0) {
        share_equally(shares, group);
        return;
    }
    for (unsigned i = 0; i < group->count; i++) {
        shares->part[i] /= sum;
    }
    share_among_merged(shares, group, lines);
}

/* Allow and Deny stop at the first match, so a line is not reached by requests that a line before it has decided. */
static double missed_before(const work_t *work, const rp_group_t *group, const rp_line_t *lines, unsigned id,
                            unsigned place)
{
    double matched = 0;

    if (module_of(group->family) != 2 || group->cost.weight <= 0) {
        return 0;
    }
    for (unsigned i = 0; i < place; i++) {
        matched += (double)lines[i].matched;
    }
    return matched / group->cost.weight * work->reached[id];
}

static void add_counts(const work_t *work, rp_line_cost_t *cost, const rp_group_t *group, const rp_line_t *lines,
                       unsigned id, unsigned place)
{
    double reached = above(work->reached[id], missed_before(work, group, lines, id, place));
    double matched = group->cost.weight > 0 ? (double)lines[place].matched / group->cost.weight * work->reached[id] : 0;

    cost->evaluated += (apr_uint64_t)(reached + 0.5);
    cost->matched += (apr_uint64_t)(matched + 0.5);
    cost->decided = (apr_uint64_t)((double)lines[place].decided * work->stands_for + 0.5);
}

static void add_group(work_t *work, unsigned id)
{
    const rp_group_t *group = rp_lines_group(work->table, id);
    const rp_line_t *lines = rp_lines_row(work->table, group->first);
    unsigned m = module_of(group->family);
    rp_line_module_t *module = &work->costs->modules[m];
    double scale = work->predicted[m] > 0 ? (double)module->live_ns / work->predicted[m] : 0;
    double group_ns = group_ticks(work, id) * scale;
    double net = above(mean(&group->cost), baseline(work, m));
    double group_error = net > 0 ? error_of(&group->cost) / net : 0;
    shares_t shares;

    share_group(&shares, group, lines);
    for (unsigned i = 0; i < group->count; i++) {
        rp_line_cost_t *cost = &work->costs->lines[group->first + i];
        apr_uint64_t ns = (apr_uint64_t)(group_ns * shares.part[i]);
        double error = sqrt(group_error * group_error + shares.error[i] * shares.error[i]);

        cost->source = RP_LINE_REPLAY;
        cost->phase = module->phase;
        cost->owner = module->owner;
        cost->hook = module->hook;
        cost->total_ns += ns;
        cost->ci95_ns += (apr_uint64_t)(1.96 * error * (double)ns);
        cost->is_told = group->cost.runs >= RUNS_MIN && cost->total_ns > cost->ci95_ns;
        module->attributed_ns += ns;
        add_counts(work, cost, group, lines, id, i);
    }
}

static void add_replayed(work_t *work)
{
    work->reached = apr_pcalloc(work->pool, (work->table->group_max + 1) * sizeof(*work->reached));
    find_live(work);
    find_reached(work);
    predict(work);
    for (unsigned id = 0; id < work->group_count; id++) {
        if (is_ready(work, id)) {
            add_group(work, id);
        }
    }
}

const rp_line_costs_t *rp_line_costs_take(apr_pool_t *pool, const rp_snapshot_t *snapshot)
{
    work_t work = {.pool = pool, .snapshot = snapshot, .table = rp_segment_lines((rp_segment_t *)snapshot->segment)};

    work.costs = apr_pcalloc(pool, sizeof(*work.costs));
    if (!work.table) {
        return work.costs;
    }
    work.group_count = work.table->group_count;
    work.costs->line_count = work.table->line_count;
    work.costs->left_out = work.table->lines_left_out;
    work.costs->lines = apr_pcalloc(pool, (work.table->line_max + snapshot->span_count + 1)
                                              * sizeof(*work.costs->lines));
    for (unsigned row = 0; row < work.costs->line_count; row++) {
        add_row(&work, row);
    }
    add_live(&work);
    add_replayed(&work);
    add_htaccess(&work);
    work.costs->replay_ns = work.table->replay_ns;
    work.costs->replay_requests = work.table->replay_requests;
    return work.costs;
}

apr_uint64_t rp_line_mean_ns(const rp_line_cost_t *line)
{
    return line->evaluated ? (line->total_ns + line->evaluated / 2) / line->evaluated : 0;
}

static int costliest_first(const void *a, const void *b)
{
    const rp_line_cost_t *x = *(const rp_line_cost_t *const *)a, *y = *(const rp_line_cost_t *const *)b;

    if (x->total_ns != y->total_ns) {
        return x->total_ns < y->total_ns ? 1 : -1;
    }
    return x < y ? -1 : x > y;
}

unsigned rp_line_costliest(apr_pool_t *pool, const rp_line_costs_t *costs, const rp_line_cost_t **costliest,
                           unsigned max)
{
    const rp_line_cost_t **measured = apr_palloc(pool, (costs->line_count + 1) * sizeof(*measured));
    unsigned count = 0;

    for (unsigned i = 0; i < costs->line_count; i++) {
        if (costs->lines[i].source != RP_LINE_UNMEASURED && costs->lines[i].total_ns) {
            measured[count++] = &costs->lines[i];
        }
    }
    qsort(measured, count, sizeof(*measured), costliest_first);
    count = count < max ? count : max;
    memcpy(costliest, measured, count * sizeof(*measured));
    return count;
}
