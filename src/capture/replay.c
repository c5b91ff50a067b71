#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <apr_allocator.h>
#include <apr_strings.h>
#include <httpd.h>
#include <http_config.h>
#include <http_core.h>
#include <http_log.h>
#include <http_protocol.h>

#include "capture/compile.h"
#include "capture/replay.h"
#include "capture/server_conf.h"
#include "store/segment.h"

APLOG_USE_MODULE(reqprof);

enum {
    START_NS = 25000,       /* saved before a request is replayed, so that copying it is a small part */
    SAVED_MAX_NS = 20000000,
    SHORT_NS = 30000,       /* replays shorter than this are repeated, and the fastest counts */
    REPEATS = 3,
    GATHERED_MAX = 8,       /* requests of a thread before they are added to the child's */
    WAIT_MAX = 4,           /* requests between the one that pays for a replay and the replayed one */
    ALONE_GROUPS_MAX = 64,  /* groups of which a child replays each line alone: they cost memory */
    DRAWN_GROUPS = 24,      /* groups among which the dearest is looked for each time */
    SECTIONS_MAX = 48       /* sections of one request */
};

/* Fixed before the children start. */
static struct {
    double budget;
    server_rec *main_server;
    const rp_noted_line_t **group_lines; /* by group */
    void **configs;                      /* by group; NULL: refused by its module */
    void *empty[RP_FAMILY_COUNT];
    unsigned group_count;
} plan;

/* A child's own. */
static struct {
    rp_lines_t *lines;
    apr_pool_t *pool;    /* lines compiled alone */
    apr_pool_t *scratch; /* copies of a request; emptied after each */
    void ***alone;       /* by group: configurations of its lines */
    unsigned alone_count;
    apr_uint32_t in_use; /* one replay at a time; what follows belongs to whom it is set for, but for atomic sums */
    apr_int64_t saved_ns; /* sum: may be spent; below zero: was overspent, and is saved up again first */
    apr_int64_t since;    /* sum: requests since the last one that was replayed */
    apr_uint32_t wait;    /* requests to let pass, now that one can be afforded */
    apr_int64_t sure_ns;  /* saved_ns by processor time, when that was last looked at */
    apr_int64_t cpu_ns;   /* the child's processor time then */
    apr_uint64_t short_ticks;
    double ns_per_tick;
} here;

/* A thread's own, added to the child's sums now and then. */
static __thread struct {
    apr_int64_t saved_ns;
    apr_uint32_t since;
    apr_uint32_t cursor;
    apr_uint32_t random;
} mine;

/* One replay: the request's copy, and the groups that apply to it. */
typedef struct {
    request_rec copy;
    apr_uint64_t began;
    apr_int64_t may_take_ns;
    apr_uint64_t weight; /* requests that this one stands for */
    int may_look_closer; /* there is time for single lines */
    const rp_section_t *sections[SECTIONS_MAX];
    unsigned section_count;
    unsigned group_count;
} session_t;

/* ---- preparing ---- */

static void compile_group(apr_pool_t *pconf, apr_pool_t *temp, const rp_section_lines_t *section,
                          const rp_group_t *group, unsigned id, const rp_noted_line_t *lines)
{
    const char *error;
    apr_pool_t *scratch;

    if (plan.group_lines[id]) {
        return;
    }
    apr_pool_create(&scratch, temp);
    plan.group_lines[id] = lines;
    plan.configs[id] = rp_compile(pconf, scratch, section->server, group->family, lines, group->count, &error);
    if (error) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, section->server,
                     "RP020: the lines from %s:%d on are not measured line by line: %s", lines->directive->filename,
                     lines->directive->line_num, error);
    }
    apr_pool_destroy(scratch);
}

static void compile_section(apr_pool_t *pconf, apr_pool_t *temp, const rp_line_plan_t *lines,
                            const rp_section_lines_t *own, unsigned section)
{
    const rp_section_t *planned;
    int at = 0;

    if (section == RP_LINE_NONE) {
        return;
    }
    planned = &APR_ARRAY_IDX(lines->sections, section, rp_section_t);
    for (unsigned i = 0; i < planned->ref_count; i++) {
        unsigned id = APR_ARRAY_IDX(lines->refs, planned->first_ref + i, apr_uint32_t);
        const rp_group_t *group = &APR_ARRAY_IDX(lines->groups, id, rp_group_t);

        while (at < own->lines->nelts && APR_ARRAY_IDX(own->lines, at, rp_noted_line_t).row != group->first) {
            at++;
        }
        if (at + (int)group->count <= own->lines->nelts) {
            compile_group(pconf, temp, own, group, id, &APR_ARRAY_IDX(own->lines, at, rp_noted_line_t));
        }
    }
}

void rp_replay_prepare(apr_pool_t *pconf, apr_pool_t *temp, server_rec *main_server, const rp_line_plan_t *lines,
                       double budget)
{
    const apr_array_header_t *sections = rp_lines_sections();
    const char *error;

    plan.budget = budget;
    plan.main_server = main_server;
    plan.group_count = (unsigned)lines->groups->nelts;
    if (budget <= 0 || !plan.group_count) {
        plan.budget = 0;
        return;
    }
    rp_compile_begin();
    plan.group_lines = apr_pcalloc(pconf, plan.group_count * sizeof(*plan.group_lines));
    plan.configs = apr_pcalloc(pconf, plan.group_count * sizeof(*plan.configs));
    for (int family = RP_FAMILY_NONE + 1; family < RP_FAMILY_COUNT; family++) {
        plan.empty[family] = rp_compile(pconf, temp, main_server, (rp_family_t)family, NULL, 0, &error);
    }
    for (int i = 0; i < sections->nelts; i++) {
        const rp_section_lines_t *own = APR_ARRAY_IDX(sections, i, rp_section_lines_t *);
        compile_section(pconf, temp, lines, own, own->setenvif);
        compile_section(pconf, temp, lines, own, own->access);
    }
}

/* A pool with an allocator of its own: one thread at a time uses it, whatever others do with the parent's. */
static apr_pool_t *private_pool(apr_pool_t *parent)
{
    apr_allocator_t *allocator;
    apr_pool_t *pool = NULL;

    if (apr_allocator_create(&allocator) == APR_SUCCESS) {
        apr_allocator_max_free_set(allocator, 1 << 20);
        apr_pool_create_ex(&pool, parent, NULL, allocator);
        apr_allocator_owner_set(allocator, pool);
    }
    return pool;
}

void rp_replay_child_init(apr_pool_t *pchild, rp_lines_t *lines)
{
    const rp_clock_t *clock = &rp_segment_current()->clock;

    here.lines = NULL;
    if (!lines || plan.budget <= 0) {
        return;
    }
    here.pool = private_pool(pchild);
    here.scratch = private_pool(pchild);
    here.alone = apr_pcalloc(pchild, plan.group_count * sizeof(*here.alone));
    here.ns_per_tick = clock->ns_per_tick;
    here.short_ticks = rp_clock_ticks(clock, SHORT_NS);
    here.lines = here.pool && here.scratch ? lines : NULL;
}

/* ---- running ---- */

/* One run of the module's function with another configuration. @return its answer */
static int run_once(session_t *session, unsigned family, void *config, apr_uint64_t *ticks)
{
    const rp_replayed_module_t *replayed = rp_compile_module((rp_family_t)family);
    apr_uint64_t began;
    int answer;

    ap_set_module_config(session->copy.per_dir_config, replayed->owner, config);
    began = rp_clock_now();
    answer = replayed->function(&session->copy);
    *ticks = rp_clock_now() - began;
    return answer;
}

/* What others do on the processor meanwhile only adds: a long run is repeated when it is longer than is usual. */
static int is_doubtful(apr_uint64_t ticks, const rp_cost_t *known)
{
    return ticks < here.short_ticks || known->runs < REPEATS || (double)ticks > 2 * known->ticks / known->weight;
}

/* Measure, and add the fastest of some runs to the cost. @return the module's answer */
static int run(session_t *session, unsigned family, void *config, rp_cost_t *cost)
{
    apr_uint64_t ticks, fastest;
    int answer = run_once(session, family, config, &fastest);

    for (int i = 1; i < REPEATS && is_doubtful(fastest, cost); i++) {
        run_once(session, family, config, &ticks);
        fastest = ticks < fastest ? ticks : fastest;
    }
    rp_cost_add(cost, fastest, session->weight);
    return answer;
}

static int has_time(const session_t *session)
{
    return (apr_int64_t)((double)(rp_clock_now() - session->began) * here.ns_per_tick) < session->may_take_ns;
}

/* Count the lines whose variable was set, and take the variables away again. */
static void count_matches(session_t *session, const rp_group_t *group, int known_entries)
{
    apr_table_t *env = session->copy.subprocess_env;
    const apr_array_header_t *entries = apr_table_elts(env);

    while (entries->nelts > known_entries) {
        const char *name = APR_ARRAY_IDX(entries, entries->nelts - 1, apr_table_entry_t).key;
        unsigned place = (unsigned)atoi(name + sizeof(RP_REPLAY_VARIABLE) - 1);

        if (place < group->count) {
            rp_line_t *line = rp_lines_row(here.lines, group->first + place);
            __atomic_fetch_add(&line->matched, session->weight, __ATOMIC_RELAXED);
        }
        apr_table_unset(env, name);
    }
}

static void measure_setenvif(session_t *session, unsigned id)
{
    rp_group_t *group = rp_lines_group(here.lines, id);
    int known_entries = apr_table_elts(session->copy.subprocess_env)->nelts;

    if (plan.configs[id]) {
        run(session, group->family, plan.configs[id], &group->cost);
        count_matches(session, group, known_entries);
    }
}

static void *alone(unsigned id, unsigned place)
{
    const rp_group_t *group = rp_lines_group(here.lines, id);
    const char *error;

    if (!here.alone[id]) {
        if (here.alone_count == ALONE_GROUPS_MAX) {
            return NULL;
        }
        here.alone_count++;
        here.alone[id] = apr_pcalloc(here.pool, group->count * sizeof(void *));
    }
    if (!here.alone[id][place]) {
        here.alone[id][place] = rp_compile(here.pool, here.scratch, plan.main_server, group->family,
                                           plan.group_lines[id] + place, 1, &error);
    }
    return here.alone[id][place];
}

/* Each line of a group by itself. A line that its neighbour is merged with has no cost of its own. */
static void measure_lines(session_t *session, unsigned id)
{
    const rp_group_t *group = rp_lines_group(here.lines, id);
    int known_entries = apr_table_elts(session->copy.subprocess_env)->nelts;

    for (unsigned place = 0; place < group->count; place++) {
        rp_line_t *line = rp_lines_row(here.lines, group->first + place);
        void *config = line->flags & RP_LINE_MERGED ? NULL : alone(id, place);

        if (config) {
            run(session, group->family, config, &line->cost);
            count_matches(session, &(rp_group_t){0}, known_entries);
        }
    }
}

static void measure_empty(session_t *session, unsigned family)
{
    run(session, family, plan.empty[family], &here.lines->baseline[family]);
}

/* ---- Allow and Deny: in order, to the first line that matches, as the module does it ---- */

static unsigned matching_line(session_t *session, unsigned id, int wanted)
{
    const rp_group_t *group = rp_lines_group(here.lines, id);

    for (unsigned place = 0; group->count > 1 && place < group->count; place++) {
        void *config = alone(id, place);
        apr_uint64_t ticks;

        if (config && run_once(session, group->family, config, &ticks) == wanted) {
            return group->first + place;
        }
    }
    return group->first;
}

/* @return the first line of the family that matched, RP_LINE_NONE when none did */
static unsigned measure_access(session_t *session, const rp_section_t *section, rp_family_t family)
{
    unsigned matched = RP_LINE_NONE;
    int wanted = family == RP_FAMILY_ALLOW ? OK : HTTP_FORBIDDEN;

    for (unsigned i = 0; i < section->ref_count; i++) {
        unsigned id = rp_lines_refs(here.lines)[section->first_ref + i];
        rp_group_t *group = rp_lines_group(here.lines, id);

        if (group->family != family || !plan.configs[id]) {
            continue;
        }
        if (matched != RP_LINE_NONE) {
            __atomic_fetch_add(&group->unreached, session->weight, __ATOMIC_RELAXED);
            continue;
        }
        if (run(session, family, plan.configs[id], &group->cost) == wanted) {
            matched = matching_line(session, id, wanted);
            __atomic_fetch_add(&rp_lines_row(here.lines, matched)->matched, session->weight, __ATOMIC_RELAXED);
        }
    }
    return matched;
}

static void replay_access(session_t *session, const rp_section_lines_t *own, rp_section_t *section)
{
    unsigned allowed = measure_access(session, section, RP_FAMILY_ALLOW);
    unsigned denied = measure_access(session, section, RP_FAMILY_DENY);
    unsigned decides = own->denies_last ? denied : allowed;

    decides = decides != RP_LINE_NONE ? decides : own->denies_last ? allowed : denied;
    if (decides != RP_LINE_NONE) {
        __atomic_fetch_add(&rp_lines_row(here.lines, decides)->decided, session->weight, __ATOMIC_RELAXED);
    }
    __atomic_fetch_add(&section->requests, session->weight, __ATOMIC_RELAXED);
    measure_empty(session, RP_FAMILY_DENY);
}

/* ---- SetEnvIf: groups by turns, and the lines of the dearest ones ---- */

static void add_section(session_t *session, unsigned id)
{
    rp_section_t *section;

    if (id == RP_LINE_NONE || session->section_count == SECTIONS_MAX) {
        return;
    }
    section = rp_lines_section(here.lines, id);
    __atomic_fetch_add(&section->requests, session->weight, __ATOMIC_RELAXED);
    session->sections[session->section_count++] = section;
    session->group_count += section->ref_count;
}

static unsigned group_at(const session_t *session, unsigned index)
{
    for (unsigned i = 0; i < session->section_count; i++) {
        if (index < session->sections[i]->ref_count) {
            return rp_lines_refs(here.lines)[session->sections[i]->first_ref + index];
        }
        index -= session->sections[i]->ref_count;
    }
    return 0;
}

static unsigned draw(void)
{
    mine.random ^= mine.random << 13;
    mine.random ^= mine.random >> 17;
    mine.random ^= mine.random << 5;
    return mine.random;
}

/* What there is to learn about the lines of a group: more for a dear one, less when it was looked at often. */
static double worth(unsigned id)
{
    const rp_group_t *group = rp_lines_group(here.lines, id);
    apr_uint64_t looked = rp_lines_row(here.lines, group->first)->cost.runs;

    if (group->count < 2 || !group->cost.runs || (!here.alone[id] && here.alone_count == ALONE_GROUPS_MAX)) {
        return 0;
    }
    return group->cost.ticks / group->cost.weight / (double)(1 + looked);
}

static void measure_dearest_lines(session_t *session)
{
    unsigned few = session->group_count < DRAWN_GROUPS ? session->group_count : DRAWN_GROUPS;
    unsigned best = 0;
    double best_worth = 0;

    for (unsigned i = 0; i < few; i++) {
        unsigned id = group_at(session, few < DRAWN_GROUPS ? i : draw() % session->group_count);
        double found = worth(id);

        if (found > best_worth) {
            best_worth = found;
            best = id;
        }
    }
    if (best_worth > 0) {
        measure_lines(session, best);
    }
}

static void measure_groups(session_t *session)
{
    for (unsigned i = 0; i < session->group_count; i++) {
        measure_setenvif(session, group_at(session, mine.cursor++ % session->group_count));
        if (!has_time(session)) {
            return;
        }
    }
}

/* Every other time, what is left after a look at the groups goes to the lines of the dearest. */
static void replay_setenvif(session_t *session)
{
    module *owner = rp_compile_module(RP_FAMILY_SETENVIF_DIR)->owner;

    if (!session->group_count || !owner) {
        return;
    }
    ap_set_module_config(session->copy.request_config, owner, (void *)"reqprof");
    measure_empty(session, RP_FAMILY_SETENVIF_DIR);
    if (session->may_look_closer && draw() % 2) {
        measure_dearest_lines(session);
    }
    measure_groups(session);
}

/* ---- a request's turn ---- */

static ap_conf_vector_t *copy_vector(apr_pool_t *pool, ap_conf_vector_t *vector)
{
    return ap_merge_per_dir_configs(pool, vector, ap_create_per_dir_config(pool));
}

static void copy_request(request_rec *copy, const request_rec *r)
{
    static const struct ap_logconf silent = {NULL, -1};

    *copy = *r;
    copy->pool = here.scratch;
    copy->log = &silent;
    copy->per_dir_config = copy_vector(here.scratch, r->per_dir_config);
    copy->request_config = copy_vector(here.scratch, r->request_config);
    copy->headers_in = apr_table_copy(here.scratch, r->headers_in);
    copy->headers_out = apr_table_copy(here.scratch, r->headers_out);
    copy->err_headers_out = apr_table_copy(here.scratch, r->err_headers_out);
    copy->subprocess_env = apr_table_copy(here.scratch, r->subprocess_env);
    copy->notes = apr_table_copy(here.scratch, r->notes);
}

static const rp_line_chain_t *chain_of(const request_rec *r)
{
    const rp_dir_conf_t *dir = ap_get_module_config(r->per_dir_config, &reqprof_module);

    return dir ? &dir->lines : NULL;
}

static unsigned server_section(const server_rec *server)
{
    const rp_section_lines_t *own = rp_server_conf(server)->lines;

    return own ? own->setenvif : RP_LINE_NONE;
}

static void add_setenvif_sections(session_t *session, const request_rec *r)
{
    add_section(session, server_section(plan.main_server));
    if (r->server != plan.main_server) {
        add_section(session, server_section(r->server));
    }
    for (const rp_line_chain_t *chain = chain_of(r); chain; chain = chain->base) {
        add_section(session, chain->own ? chain->own->setenvif : RP_LINE_NONE);
    }
}

/* Only the most specific section with Allow, Deny or Order counts: httpd does not merge them. */
static const rp_section_lines_t *access_section(const request_rec *r)
{
    for (const rp_line_chain_t *chain = chain_of(r); chain; chain = chain->base) {
        if (chain->own && chain->own->has_access) {
            return chain->own->access != RP_LINE_NONE ? chain->own : NULL;
        }
    }
    return NULL;
}

static apr_int64_t cpu_now_ns(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (apr_int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/*
 * The time that requests took is more than the processor's when it is shared, and so is what may be saved from it.
 * Before anything is spent, the processor's time decides.
 */
static void look_at_savings(void)
{
    apr_int64_t now_ns = cpu_now_ns(CLOCK_PROCESS_CPUTIME_ID);

    here.sure_ns += (apr_int64_t)((double)(now_ns - here.cpu_ns) * plan.budget);
    here.sure_ns = here.sure_ns < SAVED_MAX_NS ? here.sure_ns : SAVED_MAX_NS;
    here.cpu_ns = now_ns;
    __atomic_store_n(&here.saved_ns, here.sure_ns, __ATOMIC_RELAXED);
}

static void pay(apr_int64_t spent_ns)
{
    __atomic_fetch_add(&here.lines->replay_ns, (apr_uint64_t)spent_ns, __ATOMIC_RELAXED);
    here.sure_ns -= spent_ns;
    __atomic_store_n(&here.saved_ns, here.sure_ns, __ATOMIC_RELAXED);
}

static void replay(const request_rec *r, apr_uint64_t weight)
{
    apr_int64_t began_ns = cpu_now_ns(CLOCK_THREAD_CPUTIME_ID);
    session_t session = {.began = rp_clock_now(), .weight = weight, .may_take_ns = here.sure_ns,
                         .may_look_closer = here.sure_ns >= START_NS};
    const rp_section_lines_t *access = access_section(r);

    copy_request(&session.copy, r);
    add_setenvif_sections(&session, r);
    if (access && rp_compile_module(RP_FAMILY_DENY)->owner) {
        replay_access(&session, access, rp_lines_section(here.lines, access->access));
    }
    replay_setenvif(&session);
    apr_pool_clear(here.scratch);
    __atomic_fetch_add(&here.lines->replay_requests, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&here.lines->replay_weight, weight, __ATOMIC_RELAXED);
    pay(cpu_now_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns);
}

static int is_new(unsigned section)
{
    return section != RP_LINE_NONE
           && !__atomic_load_n(&rp_lines_section(here.lines, section)->requests, __ATOMIC_RELAXED);
}

/* A section that no replayed request has shown yet has its turn at once, so that a quiet virtual host is seen. */
static int shows_new_section(const request_rec *r)
{
    const rp_section_lines_t *access = access_section(r);

    if (is_new(server_section(r->server)) || (access && is_new(access->access))) {
        return 1;
    }
    for (const rp_line_chain_t *chain = chain_of(r); chain; chain = chain->base) {
        if (chain->own && is_new(chain->own->setenvif)) {
            return 1;
        }
    }
    return 0;
}

static void save(apr_uint64_t busy_ticks)
{
    mine.since++;
    mine.saved_ns += (apr_int64_t)((double)busy_ticks * here.ns_per_tick * plan.budget);
    if (mine.since >= GATHERED_MAX || mine.saved_ns > START_NS / GATHERED_MAX) {
        __atomic_fetch_add(&here.since, mine.since, __ATOMIC_RELAXED);
        __atomic_fetch_add(&here.saved_ns, mine.saved_ns, __ATOMIC_RELAXED);
        mine.since = 0;
        mine.saved_ns = 0;
    }
}

/* Whether it is worth asking further: most requests end here. */
static int may_have_turn(const request_rec *r)
{
    return !__atomic_load_n(&here.in_use, __ATOMIC_RELAXED)
           && (__atomic_load_n(&here.saved_ns, __ATOMIC_RELAXED) >= START_NS
               || __atomic_load_n(&here.wait, __ATOMIC_RELAXED) || shows_new_section(r));
}

/* Dear requests bring a turn about, so it goes to a later one: else they would be seen too often. */
static int has_turn(void)
{
    if (here.wait) {
        here.wait--;
        return !here.wait;
    }
    if (here.sure_ns >= START_NS) {
        here.wait = 1 + draw() % WAIT_MAX;
    }
    return 0;
}

/* Begins the replay of a request that has its turn. in_use is set for us. */
static void take_turn(const request_rec *r)
{
    look_at_savings();
    if (has_turn()) {
        replay(r, (apr_uint64_t)__atomic_exchange_n(&here.since, 0, __ATOMIC_RELAXED));
    }
    else if (here.sure_ns > -START_NS && shows_new_section(r)) {
        __atomic_fetch_sub(&here.since, 1, __ATOMIC_RELAXED);
        replay(r, 1);
    }
}

static void begin_thread(void)
{
    mine.random = (apr_uint32_t)rp_clock_now() | 1;
    mine.cursor = draw() >> 8;
}

void rp_replay_after(request_rec *r, apr_uint64_t busy_ticks)
{
    if (!here.lines) {
        return;
    }
    while (r->next) {
        r = r->next;
    }
    if (!mine.random) {
        begin_thread();
    }
    save(busy_ticks);
    if (may_have_turn(r) && !__atomic_exchange_n(&here.in_use, 1, __ATOMIC_ACQUIRE)) {
        take_turn(r);
        __atomic_store_n(&here.in_use, 0, __ATOMIC_RELEASE);
    }
}
