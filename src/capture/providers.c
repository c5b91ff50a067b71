#include <apr_strings.h>
#include <httpd.h>
#include <http_config.h>
#include <http_core.h>
#include <http_request.h>
#include <ap_provider.h>
#include <mod_auth.h>

#include "base/repeat.h"
#include "capture/providers.h"
#include "capture/request.h"

enum {
    SLOTS = 64
};

/* A Require line works in the access phase or, when it needs the user, in the auth phase: a span for each. */
typedef struct {
    unsigned access;
    unsigned auth;
} spans_t;

typedef struct {
    const authz_provider *original;
    const char *name;
    spans_t shared; /* of lines that have no span of their own */
} authz_slot_t;

typedef struct {
    const authn_provider *original;
    const char *name;
    unsigned span;
} authn_slot_t;

/* What our parser returns to mod_authz_core: the provider's own result, and who is asking. */
typedef struct {
    const void *parsed;
    spans_t spans; /* RP_SPAN_NONE: the provider's shared ones */
} line_t;

static authz_slot_t authz_slots[SLOTS];
static authn_slot_t authn_slots[SLOTS];
static unsigned authz_used, authn_used;
static rp_span_plan_t *planning; /* NULL once the configuration is read */

static spans_t plan_spans(rp_span_plan_t *plan, const char *provider, const char *where)
{
    rp_span_key_t key = {RP_KIND_REQUIRE, RP_PHASE_ACCESS, "Require", provider, where};
    spans_t spans;

    spans.access = rp_span_plan_share(plan, &key);
    key.phase = RP_PHASE_AUTH;
    spans.auth = rp_span_plan_share(plan, &key);
    return spans;
}

/* A line of the server's configuration has spans of its own; one in .htaccess is read while requests run. */
static spans_t spans_of_line(const authz_slot_t *slot, const cmd_parms *cmd, const char *args)
{
    if (!planning || !cmd->directive || !cmd->directive->filename) {
        return (spans_t){RP_SPAN_NONE, RP_SPAN_NONE};
    }
    return plan_spans(planning, apr_pstrcat(cmd->temp_pool, slot->name, *args ? " " : "", args, NULL),
                      apr_psprintf(cmd->temp_pool, "%s:%d", cmd->directive->filename, cmd->directive->line_num));
}

static const char *parse_line(unsigned index, cmd_parms *cmd, const char *args, const void **parsed)
{
    const authz_slot_t *slot = &authz_slots[index];
    line_t *line = apr_pcalloc(cmd->pool, sizeof(*line));
    const char *error = NULL;

    if (slot->original->parse_require_line) {
        error = slot->original->parse_require_line(cmd, args, &line->parsed);
    }
    line->spans = spans_of_line(slot, cmd, args);
    *parsed = line;
    return error;
}

/* The phase that the enclosing hook has put the request in. */
static unsigned span_for(const rp_request_t *request, const spans_t *spans)
{
    unsigned enclosing = request->stack.flight->span;

    return rp_segment_span_phases(rp_here.segment)[enclosing] == RP_PHASE_AUTH ? spans->auth : spans->access;
}

static authz_status check_line(unsigned index, request_rec *r, const char *args, const void *parsed)
{
    const authz_slot_t *slot = &authz_slots[index];
    const line_t *line = parsed;
    const spans_t *spans = line && line->spans.auth != RP_SPAN_NONE ? &line->spans : &slot->shared;
    rp_request_t *request = rp_request_started(r);
    rp_frame_t frame;
    authz_status status;

    frame = rp_frame_open(request, request ? span_for(request, spans) : RP_SPAN_NONE);
    status = slot->original->check_authorization(r, args, line ? line->parsed : NULL);
    rp_frame_close(frame);
    return status;
}

static authn_status check_password(unsigned index, request_rec *r, const char *user, const char *password)
{
    const authn_slot_t *slot = &authn_slots[index];
    rp_frame_t frame;
    authn_status status;

    frame = rp_frame_open(rp_request_started(r), slot->span);
    status = slot->original->check_password(r, user, password);
    rp_frame_close(frame);
    return status;
}

static authn_status get_realm_hash(unsigned index, request_rec *r, const char *user, const char *realm, char **hash)
{
    const authn_slot_t *slot = &authn_slots[index];
    rp_frame_t frame;
    authn_status status;

    frame = rp_frame_open(rp_request_started(r), slot->span);
    status = slot->original->get_realm_hash(r, user, realm, hash);
    rp_frame_close(frame);
    return status;
}

#define WRAPPERS(n)                                                                                                    \
    static authz_status check_line_##n(request_rec *r, const char *args, const void *parsed)                           \
    {                                                                                                                  \
        return check_line(n, r, args, parsed);                                                                         \
    }                                                                                                                  \
    static const char *parse_line_##n(cmd_parms *cmd, const char *args, const void **parsed)                           \
    {                                                                                                                  \
        return parse_line(n, cmd, args, parsed);                                                                       \
    }                                                                                                                  \
    static authn_status check_password_##n(request_rec *r, const char *user, const char *password)                     \
    {                                                                                                                  \
        return check_password(n, r, user, password);                                                                   \
    }                                                                                                                  \
    static authn_status get_realm_hash_##n(request_rec *r, const char *user, const char *realm, char **hash)           \
    {                                                                                                                  \
        return get_realm_hash(n, r, user, realm, hash);                                                                \
    }
RP_REPEAT_64(WRAPPERS)

#define AUTHZ_ENTRY(n) {check_line_##n, parse_line_##n},
#define AUTHN_ENTRY(n) {check_password_##n, get_realm_hash_##n},

static const authz_provider authz_wrappers[] = {RP_REPEAT_64(AUTHZ_ENTRY)};
static const authn_provider authn_wrappers[] = {RP_REPEAT_64(AUTHN_ENTRY)};

static void wrap_authz(apr_pool_t *pool, const char *name, const char *version)
{
    const authz_provider *original = ap_lookup_provider(AUTHZ_PROVIDER_GROUP, name, version);

    if (!original || !original->check_authorization || authz_used == SLOTS) {
        return;
    }
    authz_slots[authz_used] = (authz_slot_t){original, apr_pstrdup(pool, name), {RP_SPAN_NONE, RP_SPAN_NONE}};
    ap_register_provider(pool, AUTHZ_PROVIDER_GROUP, name, version, &authz_wrappers[authz_used++]);
}

/* A function that a provider does not have stays NULL: its absence means something. */
static void wrap_authn(apr_pool_t *pool, const char *name, const char *version)
{
    const authn_provider *original = ap_lookup_provider(AUTHN_PROVIDER_GROUP, name, version);
    authn_provider *wrapper;

    if (!original || authn_used == SLOTS) {
        return;
    }
    wrapper = apr_pmemdup(pool, &authn_wrappers[authn_used], sizeof(*wrapper));
    wrapper->check_password = original->check_password ? wrapper->check_password : NULL;
    wrapper->get_realm_hash = original->get_realm_hash ? wrapper->get_realm_hash : NULL;
    authn_slots[authn_used++] = (authn_slot_t){original, apr_pstrdup(pool, name), RP_SPAN_NONE};
    ap_register_provider(pool, AUTHN_PROVIDER_GROUP, name, version, wrapper);
}

static void wrap_group(apr_pool_t *pool, const char *group, const char *version,
                       void (*wrap)(apr_pool_t *, const char *, const char *))
{
    apr_array_header_t *names = ap_list_provider_names(pool, group, version);

    for (int i = 0; i < names->nelts; i++) {
        wrap(pool, APR_ARRAY_IDX(names, i, ap_list_provider_names_t).provider_name, version);
    }
}

void rp_providers_wrap(rp_span_plan_t *plan, apr_pool_t *pool)
{
    planning = plan;
    wrap_group(pool, AUTHZ_PROVIDER_GROUP, AUTHZ_PROVIDER_VERSION, wrap_authz);
    wrap_group(pool, AUTHN_PROVIDER_GROUP, AUTHN_PROVIDER_VERSION, wrap_authn);
}

void rp_providers_config_done(void)
{
    for (unsigned i = 0; i < authz_used; i++) {
        authz_slots[i].shared = plan_spans(planning, authz_slots[i].name, NULL);
    }
    for (unsigned i = 0; i < authn_used; i++) {
        rp_span_key_t key = {RP_KIND_PASSWORD, RP_PHASE_AUTH, "check_user_id", authn_slots[i].name, NULL};
        authn_slots[i].span = rp_span_plan_share(planning, &key);
    }
    planning = NULL;
}
