#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <apr_strings.h>

#include "report/line_findings.h"

enum {
    REQUESTS_MIN = 100 /* before anything is said to never happen */
};

typedef struct {
    apr_pool_t *pool;
    const rp_line_costs_t *costs;
    apr_uint64_t worth_ns; /* what is cheaper is not worth a sentence: a thousandth of all time */
    rp_line_finding_t *found;
    unsigned count;
    unsigned room;
} work_t;

static void add(work_t *work, const rp_line_cost_t *line, unsigned line_count, apr_uint64_t cost_ns, const char *text)
{
    if (work->count < work->room && cost_ns > work->worth_ns) {
        work->found[work->count++] = (rp_line_finding_t){line, line_count, cost_ns, text};
    }
}

static int is_pattern_line(const rp_line_cost_t *line)
{
    return line->source == RP_LINE_REPLAY
           && (!strncasecmp(line->directive, "SetEnvIf", 8) || !strncasecmp(line->directive, "BrowserMatch", 12));
}

/* The pattern as it is written, without quotes; "" when there is none. */
static const char *pattern_of(apr_pool_t *pool, const rp_line_cost_t *line)
{
    const char *at = line->args + strspn(line->args, " \t");
    char quote;

    if (!strncasecmp(line->directive, "SetEnvIf", 8)) {
        at += strcspn(at, " \t");
        at += strspn(at, " \t");
    }
    quote = *at == '"' || *at == '\'' ? *at++ : 0;
    return apr_pstrmemdup(pool, at, quote ? strcspn(at, quote == '"' ? "\"" : "'") : strcspn(at, " \t"));
}

/*
 * mod_setenvif searches for a text when each special character of the pattern is escaped and nothing else is; one bare
 * dot or one needless backslash makes it a regular expression. What makes this one so?
 */
static const char *why_expression(const char *pattern)
{
    const char *why = NULL;

    for (const char *c = pattern; *c; c++) {
        if (*c == '\\') {
            if (!c[1] || !strchr("^.$|()[]*+?{}\\", c[1])) {
                if (strchr("-_/ :;,#%&=@!~\"'<>", c[1])) {
                    why = "a needless backslash";
                    c++;
                    continue;
                }
                return NULL; /* \b, \d and their like: meant as an expression */
            }
            c++;
        }
        else if (*c == '.' && c[1] != '*' && c[1] != '+' && c[1] != '?' && c[1] != '{') {
            why = why ? why : "a bare dot";
        }
        else if (strchr("^$|()[]*+?{}", *c)) {
            return NULL;
        }
    }
    return why;
}

static int same_list(const rp_line_cost_t *line, const rp_line_cost_t *next)
{
    return next->file == line->file && next->directive == line->directive && next->source == line->source
           && next->scope == line->scope;
}

/* One sentence for a run of such lines, since lists have hundreds. */
static unsigned find_bare_patterns(work_t *work, unsigned from)
{
    const rp_line_cost_t *lines = work->costs->lines;
    const char *why = is_pattern_line(&lines[from]) ? why_expression(pattern_of(work->pool, &lines[from])) : NULL;
    apr_uint64_t cost_ns = 0;
    unsigned end = from;

    while (why && end < work->costs->line_count && same_list(&lines[from], &lines[end])
           && why_expression(pattern_of(work->pool, &lines[end]))) {
        cost_ns += lines[end++].total_ns;
    }
    if (!why) {
        return from + 1;
    }
    add(work, &lines[from], end - from, cost_ns,
        apr_psprintf(work->pool, "%u %s a regular expression because of %s; write \\. for a dot and no other "
                     "backslash, and mod_setenvif searches for a plain text instead:", end - from,
                     end - from == 1 ? "pattern is" : "patterns are each", why));
    return end;
}

static int never_matched(const rp_line_cost_t *line)
{
    return line->source == RP_LINE_REPLAY && line->evaluated >= REQUESTS_MIN && !line->matched;
}

static unsigned find_never_matched(work_t *work, unsigned from)
{
    const rp_line_cost_t *lines = work->costs->lines;
    apr_uint64_t cost_ns = 0;
    unsigned end = from;

    while (end < work->costs->line_count && never_matched(&lines[end]) && same_list(&lines[from], &lines[end])) {
        cost_ns += lines[end++].total_ns;
    }
    if (end > from) {
        add(work, &lines[from], end - from, cost_ns,
            apr_psprintf(work->pool, "%u %s matched none of the replayed requests; drop what nobody sends any more:",
                         end - from, end - from == 1 ? "line has" : "lines in a row have"));
    }
    return end > from ? end : from + 1;
}

static void find_blocking_log(work_t *work, const rp_line_cost_t *line)
{
    apr_uint64_t mean_ns = line->matched ? line->total_ns / line->matched : 0;

    if (line->source == RP_LINE_LIVE && line->phase == RP_PHASE_LOG && mean_ns >= 200000) {
        add(work, line, 1, line->total_ns,
            apr_psprintf(work->pool, "each write of this log takes %.1f ms on average, while its worker waits; a "
                         "reader that keeps up, a file instead of a pipe, or BufferedLogs On avoid that:",
                         (double)mean_ns / 1e6));
    }
}

static void find_htaccess(work_t *work, const rp_line_cost_t *line)
{
    if (line->flags & RP_LINE_HTACCESS && line->evaluated) {
        add(work, line, 1, line->total_ns,
            apr_psprintf(work->pool, "this file is read and executed again for each request below its directory, "
                         "%.3f ms each time; the same lines in <Directory>, with AllowOverride None, are read once at "
                         "start:", (double)rp_line_mean_ns(line) / 1e6));
    }
}

static int costliest_first(const void *a, const void *b)
{
    const rp_line_finding_t *x = a, *y = b;

    return x->cost_ns < y->cost_ns ? 1 : x->cost_ns > y->cost_ns ? -1 : 0;
}

static void look(work_t *work)
{
    for (unsigned i = 0; i < work->costs->line_count;) {
        i = find_bare_patterns(work, i);
    }
    for (unsigned i = 0; i < work->costs->line_count;) {
        i = find_never_matched(work, i);
    }
    for (unsigned i = 0; i < work->costs->line_count; i++) {
        find_blocking_log(work, &work->costs->lines[i]);
        find_htaccess(work, &work->costs->lines[i]);
    }
}

unsigned rp_line_findings(apr_pool_t *pool, const rp_line_costs_t *costs, const rp_snapshot_t *snapshot,
                     rp_line_finding_t findings[RP_LINE_FINDINGS_MAX])
{
    work_t work = {.pool = pool, .costs = costs, .worth_ns = snapshot->total.sum_ns / 1000, .room = 256};

    work.found = apr_palloc(pool, work.room * sizeof(*work.found));
    look(&work);
    qsort(work.found, work.count, sizeof(*work.found), costliest_first);
    work.count = work.count < RP_LINE_FINDINGS_MAX ? work.count : RP_LINE_FINDINGS_MAX;
    memcpy(findings, work.found, work.count * sizeof(*work.found));
    return work.count;
}
