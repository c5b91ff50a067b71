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
    ROLE_BEGIN,        /* the first create_request function: the stack is hung on the request before it */
    ROLE_BEFORE,       /* runs before the request's time is known: never timed for a request of its own */
    ROLE_FILTERS,      /* the last insert_filter function */
    ROLE_HANDLER,      /* a handler: after it, the content is made */
    ROLE_LOG,          /* a logging function */
    ROLE_LOG_CONFIG,   /* mod_log_config's */
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
    SPECIAL_SLOTS = 256,
    VOID_SLOTS = 64,
    OTHER_SLOTS = 16
};

static link_t request_links[REQUEST_SLOTS];
static link_t special_links[SPECIAL_SLOTS];
static link_t void_links[VOID_SLOTS];
static link_t pre_read_links[OTHER_SLOTS];
static link_t quick_links[OTHER_SLOTS];
static link_t dirwalk_links[OTHER_SLOTS];
static link_t htaccess_links[OTHER_SLOTS];
static link_t note_links[OTHER_SLOTS];

static int logging_count;
static void (*filters_inserted)(request_rec *r);
static void (*logged)(request_rec *r);

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

/* The request to time a link for: one whose header is not read yet has no time to give. */
static rp_request_t *before_link(const link_t *link, request_rec *r)
{
    if (link->role == ROLE_BEGIN) {
        rp_request_begin(r);
    }
    if ((link->role == ROLE_BEGIN || link->role == ROLE_BEFORE) && !r->main && !r->prev) {
        return NULL;
    }
    return rp_request_started(r);
}

/* A suspended handler waits for something: what passes until it is resumed is its own time. */
static void after_handler(rp_request_t *request, const rp_frame_t *frame, const link_t *link, int rv)
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
        rp_request_finish(request);
    }
}

static void after_link(rp_frame_t *frame, const link_t *link, request_rec *r, int rv)
{
    rp_request_t *request = rp_frame_close(frame);

    if (!request || link->role == ROLE_NONE) {
        return;
    }
    switch (link->role) {
    case ROLE_HANDLER:
        after_handler(request, frame, link, rv);
        break;
    case ROLE_LOG:
    case ROLE_LOG_CONFIG:
        after_log(request, link, r, rv);
        break;
    case ROLE_FILTERS:
        filters_inserted(r);
        break;
    }
}

/*
 * The body of every wrapper: time the original function. `call` uses `link`, and sets rv where the function
 * returns something.
 */
#define TIMED(links, slot, r, call)                                                                                    \
    const link_t *link = &(links)[slot];                                                                               \
    rp_frame_t frame;                                                                                                  \
    int rv = OK;                                                                                                       \
    rp_frame_open(&frame, before_link(link, r), link->span);                                                           \
    call;                                                                                                              \
    after_link(&frame, link, r, rv)

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

/* Functions with a role, and those that may outlive their request or run for an older one. */
static int run_special(unsigned slot, request_rec *r)
{
    TIMED(special_links, slot, r, rv = ((int (*)(request_rec *))link->original)(r));
    return rv;
}

static void run_void(unsigned slot, request_rec *r)
{
    TIMED(void_links, slot, r, ((void (*)(request_rec *))link->original)(r));
}

static void run_pre_read(unsigned slot, request_rec *r, conn_rec *c)
{
    TIMED(pre_read_links, slot, r, ((void (*)(request_rec *, conn_rec *))link->original)(r, c));
}

static int run_quick(unsigned slot, request_rec *r, int lookup_uri)
{
    TIMED(quick_links, slot, r, rv = ((int (*)(request_rec *, int))link->original)(r, lookup_uri));
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
#define SPECIAL_WRAPPER(n)                                                                                             \
    static int special_wrapper_##n(request_rec *r)                                                                     \
    {                                                                                                                  \
        return run_special(n, r);                                                                                      \
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
RP_REPEAT_256(SPECIAL_WRAPPER)
RP_REPEAT_64(VOID_WRAPPER)
RP_REPEAT_16(PRE_READ_WRAPPER)
RP_REPEAT_16(QUICK_WRAPPER)
RP_REPEAT_16(DIRWALK_WRAPPER)
RP_REPEAT_16(HTACCESS_WRAPPER)
RP_REPEAT_16(NOTE_WRAPPER)

#define REQUEST_ENTRY(n) request_wrapper_##n,
#define SPECIAL_ENTRY(n) special_wrapper_##n,
#define VOID_ENTRY(n) void_wrapper_##n,
#define PRE_READ_ENTRY(n) pre_read_wrapper_##n,
#define QUICK_ENTRY(n) quick_wrapper_##n,
#define DIRWALK_ENTRY(n) dirwalk_wrapper_##n,
#define HTACCESS_ENTRY(n) htaccess_wrapper_##n,
#define NOTE_ENTRY(n) note_wrapper_##n,

static int (*const request_wrappers[])(request_rec *) = {RP_REPEAT_512(REQUEST_ENTRY)};
static int (*const special_wrappers[])(request_rec *) = {RP_REPEAT_256(SPECIAL_ENTRY)};
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
static slots_t special_slots = {special_links, SPECIAL_SLOTS, 0};
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
    int is_last = index == hook->link_count - 1;

    if (!strcmp(hook->name, "create_request")) {
        return index == 0 ? ROLE_BEGIN : ROLE_BEFORE;
    }
    if (!strcmp(hook->name, "pre_read_request")) {
        return ROLE_BEFORE;
    }
    if (!strcmp(hook->name, "insert_filter")) {
        return is_last && filters_inserted ? ROLE_FILTERS : ROLE_NONE;
    }
    if (!strcmp(hook->name, "handler") || !strcmp(hook->name, "quick_handler")) {
        return ROLE_HANDLER;
    }
    if (!strcmp(hook->name, "log_transaction")) {
        return !strcmp(owner, "mod_log_config") ? ROLE_LOG_CONFIG : ROLE_LOG;
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
    if (slots->used == slots->max || (span == RP_SPAN_NONE && role == ROLE_NONE)) {
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
