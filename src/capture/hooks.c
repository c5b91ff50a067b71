#include <limits.h>
#include <string.h>
#include <apr_strings.h>
#include <httpd.h>
#include <http_config.h>
#include <http_core.h>
#include <http_protocol.h>
#include <http_request.h>
#include <mod_auth.h>

#include "base/repeat.h"
#include "capture/hooks.h"
#include "capture/request.h"

/* What a link does besides being timed. */
enum {
    ROLE_NONE,
    ROLE_BEGIN,      /* the first create_request function: the stack is hung on the request before it */
    ROLE_FILTERS,    /* the last insert_filter function: the request's filters are complete */
    ROLE_LOG_CONFIG, /* mod_log_config's logging function */
};

typedef void function_t(void); /* any function; cast back to its own type before it is called */

/* How httpd runs a hook's functions: until one answers, all until one fails, or all. */
typedef enum {
    RUN_FIRST,
    RUN_ALL,
    RUN_VOID
} run_t;

typedef struct {
    function_t *original;
    apr_uint16_t span;
    apr_byte_t role;
    apr_byte_t is_last; /* of its hook */
    int goes_on; /* the answer, besides DECLINED, after which the hook's next function is called at once */
} link_t;

#define NEVER_GOES_ON INT_MAX

enum {
    REQUEST_SLOTS = 512,
    HANDLER_SLOTS = 256,
    VOID_SLOTS = 64,
    OTHER_SLOTS = 16
};

static link_t request_links[REQUEST_SLOTS];
static link_t handler_links[HANDLER_SLOTS];
static link_t create_links[VOID_SLOTS];
static link_t log_links[VOID_SLOTS];
static link_t void_links[VOID_SLOTS];
static link_t pre_read_links[OTHER_SLOTS];
static link_t quick_links[OTHER_SLOTS];
static link_t dirwalk_links[OTHER_SLOTS];
static link_t htaccess_links[OTHER_SLOTS];
static link_t note_links[OTHER_SLOTS];

static int logging_count;
static void (*filters_inserted)(request_rec *r);
static void (*logged)(request_rec *r);
static void (*finished)(request_rec *r, apr_uint64_t busy_ticks);
static void (*htaccess_opened)(request_rec *r, ap_configfile_t **file, const char *path);

int rp_hooks_logging_count(void)
{
    return logging_count;
}

void rp_hooks_on_filters_inserted(void (*inspect)(request_rec *r))
{
    filters_inserted = inspect;
}

void rp_hooks_on_logged(void (*note)(request_rec *r))
{
    logged = note;
}

void rp_hooks_on_finished(void (*note)(request_rec *r, apr_uint64_t busy_ticks))
{
    finished = note;
}

void rp_hooks_on_htaccess(void (*opened)(request_rec *r, ap_configfile_t **file, const char *path))
{
    htaccess_opened = opened;
}

/* A suspended handler waits for something: what passes until it is resumed is its own time. */
static void after_handler(rp_request_t *request, rp_frame_t frame, const link_t *link, int rv)
{
    if (rv == DECLINED || !rp_frame_was_lowest(frame)) {
        return;
    }
    request->handler_done = rv != SUSPENDED;
    rp_request_ground(request, rv == SUSPENDED ? link->span : RP_SPAN_OTHER);
}

static void after_log(rp_request_t *request, const link_t *link, request_rec *r, int rv)
{
    if (link->role == ROLE_LOG_CONFIG && logged) {
        logged(r);
    }
    if (link->is_last || (rv != OK && rv != DECLINED)) {
        apr_uint64_t busy_ticks = rp_request_finish(request);
        if (finished) {
            finished(r, busy_ticks);
        }
    }
}

/* The next function of the hook will read the clock: this one need not. */
static int another_follows(const link_t *link, int rv)
{
    return !link->is_last && (rv == DECLINED || rv == link->goes_on);
}

/* The path of most calls. */
static int run_request(unsigned slot, request_rec *r)
{
    const link_t *link = &request_links[slot];
    rp_request_t *request = rp_request_started(r);
    apr_uint32_t serial;
    unsigned below;
    int rv;

    if (!request) {
        return ((int (*)(request_rec *))link->original)(r);
    }
    serial = request->serial;
    below = rp_stack_enter(&request->stack, link->span, rp_clock_now());
    rv = ((int (*)(request_rec *))link->original)(r);
    if (request->serial != serial) {
        return rv;
    }
    if (another_follows(link, rv)) {
        rp_stack_leave_lazily(&request->stack, below);
    }
    else {
        rp_stack_leave(&request->stack, below, rp_clock_now());
    }
    return rv;
}

/* The stack is hung on the request before its first create_request function; a client's request has no time yet. */
static int run_create(unsigned slot, request_rec *r)
{
    const link_t *link = &create_links[slot];
    rp_frame_t frame;
    int rv;

    if (link->role == ROLE_BEGIN) {
        rp_request_begin(r);
    }
    frame = rp_frame_open(r->main || r->prev ? rp_request_started(r) : NULL, link->span);
    rv = ((int (*)(request_rec *))link->original)(r);
    rp_frame_close(frame);
    return rv;
}

static int run_handler(unsigned slot, request_rec *r)
{
    const link_t *link = &handler_links[slot];
    rp_request_t *request;
    rp_frame_t frame;
    int rv;

    frame = rp_frame_open(rp_request_started(r), link->span);
    rv = ((int (*)(request_rec *))link->original)(r);
    if (another_follows(link, rv)) {
        rp_frame_close_lazily(frame);
        return rv;
    }
    request = rp_frame_close(frame);
    if (request) {
        after_handler(request, frame, link, rv);
    }
    return rv;
}

/* May run for an older request than the connection's newest, inside one of that one's spans. */
static int run_log(unsigned slot, request_rec *r)
{
    const link_t *link = &log_links[slot];
    rp_request_t *request = rp_request_started(r);
    rp_frame_t waiting, frame;
    int rv;

    if (!request) {
        return ((int (*)(request_rec *))link->original)(r);
    }
    waiting = rp_request_pause_newest(request);
    frame = rp_frame_open(request, link->span);
    rv = ((int (*)(request_rec *))link->original)(r);
    rp_frame_close(frame);
    after_log(request, link, r, rv);
    rp_frame_close(waiting);
    return rv;
}

static void run_void(unsigned slot, request_rec *r)
{
    const link_t *link = &void_links[slot];
    rp_frame_t frame;

    frame = rp_frame_open(rp_request_started(r), link->span);
    ((void (*)(request_rec *))link->original)(r);
    if (!link->is_last) {
        rp_frame_close_lazily(frame);
    }
    else if (rp_frame_close(frame) && link->role == ROLE_FILTERS) {
        filters_inserted(r);
    }
}

/* Runs before a client's request has a time; that of a subrequest or redirect counts. */
static void run_pre_read(unsigned slot, request_rec *r, conn_rec *c)
{
    const link_t *link = &pre_read_links[slot];
    rp_frame_t frame;

    frame = rp_frame_open(r->main || r->prev ? rp_request_started(r) : NULL, link->span);
    ((void (*)(request_rec *, conn_rec *))link->original)(r, c);
    rp_frame_close(frame);
}

/* The body of the wrappers that only time a function: `call` uses `link` and sets rv. */
#define TIMED(links, slot, r, call)                                                                                    \
    const link_t *link = &(links)[slot];                                                                               \
    rp_frame_t frame;                                                                                                  \
    int rv;                                                                                                            \
    frame = rp_frame_open(rp_request_started(r), link->span);                                                          \
    call;                                                                                                              \
    rp_frame_close(frame)

static int run_quick(unsigned slot, request_rec *r, int lookup_uri)
{
    const link_t *link = &quick_links[slot];
    rp_request_t *request;
    rp_frame_t frame;
    int rv;

    frame = rp_frame_open(rp_request_started(r), link->span);
    rv = ((int (*)(request_rec *, int))link->original)(r, lookup_uri);
    request = rp_frame_close(frame);
    if (request) {
        after_handler(request, frame, link, rv);
    }
    return rv;
}

static apr_status_t run_dirwalk(unsigned slot, apr_finfo_t *finfo, request_rec *r, apr_int32_t wanted)
{
    TIMED(dirwalk_links, slot, r,
          rv = ((apr_status_t(*)(apr_finfo_t *, request_rec *, apr_int32_t))link->original)(finfo, r, wanted));
    return rv;
}

static apr_status_t run_htaccess(unsigned slot, request_rec *r, const char *dir_name, const char *access_name,
                                 ap_configfile_t **conffile, const char **full_name)
{
    TIMED(htaccess_links, slot, r,
          rv = ((apr_status_t(*)(request_rec *, const char *, const char *, ap_configfile_t **,
                                 const char **))link->original)(r, dir_name, access_name, conffile, full_name));
    if (rv == APR_SUCCESS && htaccess_opened) {
        htaccess_opened(r, conffile, *full_name);
    }
    return rv;
}

static int run_note(unsigned slot, request_rec *r, const char *auth_type)
{
    TIMED(note_links, slot, r, rv = ((int (*)(request_rec *, const char *))link->original)(r, auth_type));
    return rv;
}

/* One wrapper for each slot, and the table of them. */
#define REQUEST_WRAPPER(n)                                                                                             \
    static int request_wrapper_##n(request_rec *r)                                                                     \
    {                                                                                                                  \
        return run_request(n, r);                                                                                      \
    }
#define HANDLER_WRAPPER(n)                                                                                             \
    static int handler_wrapper_##n(request_rec *r)                                                                     \
    {                                                                                                                  \
        return run_handler(n, r);                                                                                      \
    }
#define CREATE_WRAPPER(n)                                                                                              \
    static int create_wrapper_##n(request_rec *r)                                                                      \
    {                                                                                                                  \
        return run_create(n, r);                                                                                       \
    }
#define LOG_WRAPPER(n)                                                                                                 \
    static int log_wrapper_##n(request_rec *r)                                                                         \
    {                                                                                                                  \
        return run_log(n, r);                                                                                          \
    }
#define VOID_WRAPPER(n)                                                                                                \
    static void void_wrapper_##n(request_rec *r)                                                                       \
    {                                                                                                                  \
        run_void(n, r);                                                                                                \
    }
#define PRE_READ_WRAPPER(n)                                                                                            \
    static void pre_read_wrapper_##n(request_rec *r, conn_rec *c)                                                      \
    {                                                                                                                  \
        run_pre_read(n, r, c);                                                                                         \
    }
#define QUICK_WRAPPER(n)                                                                                               \
    static int quick_wrapper_##n(request_rec *r, int lookup_uri)                                                       \
    {                                                                                                                  \
        return run_quick(n, r, lookup_uri);                                                                            \
    }
#define DIRWALK_WRAPPER(n)                                                                                             \
    static apr_status_t dirwalk_wrapper_##n(apr_finfo_t *finfo, request_rec *r, apr_int32_t wanted)                    \
    {                                                                                                                  \
        return run_dirwalk(n, finfo, r, wanted);                                                                       \
    }
#define HTACCESS_WRAPPER(n)                                                                                            \
    static apr_status_t htaccess_wrapper_##n(request_rec *r, const char *dir_name, const char *access_name,            \
                                             ap_configfile_t **conffile, const char **full_name)                       \
    {                                                                                                                  \
        return run_htaccess(n, r, dir_name, access_name, conffile, full_name);                                         \
    }
#define NOTE_WRAPPER(n)                                                                                                \
    static int note_wrapper_##n(request_rec *r, const char *auth_type)                                                 \
    {                                                                                                                  \
        return run_note(n, r, auth_type);                                                                              \
    }

RP_REPEAT_512(REQUEST_WRAPPER)
RP_REPEAT_256(HANDLER_WRAPPER)
RP_REPEAT_64(CREATE_WRAPPER)
RP_REPEAT_64(LOG_WRAPPER)
RP_REPEAT_64(VOID_WRAPPER)
RP_REPEAT_16(PRE_READ_WRAPPER)
RP_REPEAT_16(QUICK_WRAPPER)
RP_REPEAT_16(DIRWALK_WRAPPER)
RP_REPEAT_16(HTACCESS_WRAPPER)
RP_REPEAT_16(NOTE_WRAPPER)

#define REQUEST_ENTRY(n) request_wrapper_##n,
#define HANDLER_ENTRY(n) handler_wrapper_##n,
#define CREATE_ENTRY(n) create_wrapper_##n,
#define LOG_ENTRY(n) log_wrapper_##n,
#define VOID_ENTRY(n) void_wrapper_##n,
#define PRE_READ_ENTRY(n) pre_read_wrapper_##n,
#define QUICK_ENTRY(n) quick_wrapper_##n,
#define DIRWALK_ENTRY(n) dirwalk_wrapper_##n,
#define HTACCESS_ENTRY(n) htaccess_wrapper_##n,
#define NOTE_ENTRY(n) note_wrapper_##n,

static int (*const request_wrappers[])(request_rec *) = {RP_REPEAT_512(REQUEST_ENTRY)};
static int (*const handler_wrappers[])(request_rec *) = {RP_REPEAT_256(HANDLER_ENTRY)};
static int (*const create_wrappers[])(request_rec *) = {RP_REPEAT_64(CREATE_ENTRY)};
static int (*const log_wrappers[])(request_rec *) = {RP_REPEAT_64(LOG_ENTRY)};
static void (*const void_wrappers[])(request_rec *) = {RP_REPEAT_64(VOID_ENTRY)};
static void (*const pre_read_wrappers[])(request_rec *, conn_rec *) = {RP_REPEAT_16(PRE_READ_ENTRY)};
static int (*const quick_wrappers[])(request_rec *, int) = {RP_REPEAT_16(QUICK_ENTRY)};
static apr_status_t (*const dirwalk_wrappers[])(apr_finfo_t *, request_rec *, apr_int32_t) = {
    RP_REPEAT_16(DIRWALK_ENTRY)};
static apr_status_t (*const htaccess_wrappers[])(request_rec *, const char *, const char *, ap_configfile_t **,
                                                 const char **) = {RP_REPEAT_16(HTACCESS_ENTRY)};
static int (*const note_wrappers[])(request_rec *, const char *) = {RP_REPEAT_16(NOTE_ENTRY)};

/* Slots of one signature, and how many are taken. */
typedef struct {
    link_t *links;
    unsigned max;
    unsigned used;
} slots_t;

static slots_t request_slots = {request_links, REQUEST_SLOTS, 0};
static slots_t handler_slots = {handler_links, HANDLER_SLOTS, 0};
static slots_t create_slots = {create_links, VOID_SLOTS, 0};
static slots_t log_slots = {log_links, VOID_SLOTS, 0};
static slots_t void_slots = {void_links, VOID_SLOTS, 0};
static slots_t pre_read_slots = {pre_read_links, OTHER_SLOTS, 0};
static slots_t quick_slots = {quick_links, OTHER_SLOTS, 0};
static slots_t dirwalk_slots = {dirwalk_links, OTHER_SLOTS, 0};
static slots_t htaccess_slots = {htaccess_links, OTHER_SLOTS, 0};
static slots_t note_slots = {note_links, OTHER_SLOTS, 0};

/* A hook whose links are being wrapped. */
typedef struct {
    rp_span_plan_t *plan;
    const char *name;
    rp_phase_t phase;
    run_t runs;
    int link_count;
    unsigned unwrapped;
} hook_t;

const char *rp_hooks_owner(apr_pool_t *pool, const char *source_name)
{
    apr_size_t length = strlen(source_name);

    if (length > 2 && !strcmp(source_name + length - 2, ".c")) {
        length -= 2;
    }
    return apr_pstrmemdup(pool, source_name, length);
}

/* Some modules are a phase of their own in every hook: they are what administrators ask for. */
static rp_phase_t phase_of(const hook_t *hook, const char *owner)
{
    if (!strcmp(owner, "mod_setenvif")) {
        return RP_PHASE_SETENVIF;
    }
    return strcmp(owner, "mod_rewrite") ? hook->phase : RP_PHASE_REWRITE;
}

static int role_of(const hook_t *hook, const char *owner, int index)
{
    if (!strcmp(hook->name, "create_request") && index == 0) {
        return ROLE_BEGIN;
    }
    if (!strcmp(hook->name, "insert_filter") && index == hook->link_count - 1 && filters_inserted) {
        return ROLE_FILTERS;
    }
    if (!strcmp(hook->name, "log_transaction") && !strcmp(owner, "mod_log_config")) {
        return ROLE_LOG_CONFIG;
    }
    return ROLE_NONE;
}

/* @return the slot to wrap this link with, or -1 when no slot or no span is left */
static int take_slot(hook_t *hook, slots_t *slots, const char *source_name, function_t *original, int index)
{
    const char *owner = rp_hooks_owner(hook->plan->spans->pool, source_name ? source_name : "unknown");
    rp_span_key_t key = {RP_KIND_HOOK, phase_of(hook, owner), hook->name, owner, NULL};
    int role = role_of(hook, owner, index);
    unsigned span = slots->used < slots->max ? rp_span_plan_add(hook->plan, &key) : RP_SPAN_NONE;

    hook->unwrapped += span == RP_SPAN_NONE;
    /* Without a span of its own a function that begins or ends a request still has its wrapper. */
    if (slots->used == slots->max || (span == RP_SPAN_NONE && slots == &request_slots)) {
        return -1;
    }
    slots->links[slots->used] = (link_t){original, (apr_uint16_t)span, (apr_byte_t)role, index == hook->link_count - 1,
                                         hook->runs == RUN_ALL ? OK : NEVER_GOES_ON};
    return (int)slots->used++;
}

#define RP_HOOK(hook_name, signature, runs, phase_id)                                                                  \
    static unsigned wrap_##hook_name(rp_span_plan_t *plan)                                                             \
    {                                                                                                                  \
        apr_array_header_t *links = ap_hook_get_##hook_name();                                                         \
        hook_t hook = {plan, #hook_name, RP_PHASE_##phase_id, RUN_##runs, links ? links->nelts : 0, 0};                \
        for (int i = 0; i < hook.link_count; i++) {                                                                    \
            ap_LINK_##hook_name##_t *link = &APR_ARRAY_IDX(links, i, ap_LINK_##hook_name##_t);                         \
            int slot = take_slot(&hook, &signature##_slots, link->szName, (function_t *)link->pFunc, i);               \
            if (slot >= 0) {                                                                                           \
                link->pFunc = signature##_wrappers[slot];                                                              \
            }                                                                                                          \
        }                                                                                                              \
        return hook.unwrapped;                                                                                         \
    }
#include "capture/hooks.def"
#undef RP_HOOK

unsigned rp_hooks_wrap(rp_span_plan_t *plan)
{
    apr_array_header_t *logging = ap_hook_get_log_transaction();
    unsigned unwrapped = 0;

    logging_count = logging ? logging->nelts : 0;
#define RP_HOOK(hook_name, signature, runs, phase_id) unwrapped += wrap_##hook_name(plan);
#include "capture/hooks.def"
#undef RP_HOOK
    return unwrapped;
}
