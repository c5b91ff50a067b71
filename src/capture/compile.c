#include <string.h>
#include <apr_strings.h>
#include <httpd.h>
#include <http_config.h>
#include <http_core.h>
#include <http_protocol.h>
#include <http_request.h>

#include "capture/compile.h"

static rp_replayed_module_t setenvif, access_compat;

static int is_named(const char *name, const char *wanted)
{
    return name && !strcmp(name, wanted);
}

void rp_compile_begin(void)
{
    apr_array_header_t *parsers = ap_hook_get_header_parser(), *checkers = ap_hook_get_access_checker();

    setenvif = access_compat = (rp_replayed_module_t){NULL, NULL};
    for (int i = 0; parsers && i < parsers->nelts; i++) {
        const ap_LINK_header_parser_t *link = &APR_ARRAY_IDX(parsers, i, ap_LINK_header_parser_t);
        if (is_named(link->szName, "mod_setenvif.c")) {
            setenvif = (rp_replayed_module_t){ap_find_linked_module(link->szName), link->pFunc};
        }
    }
    for (int i = 0; checkers && i < checkers->nelts; i++) {
        const ap_LINK_access_checker_t *link = &APR_ARRAY_IDX(checkers, i, ap_LINK_access_checker_t);
        if (is_named(link->szName, "mod_access_compat.c")) {
            access_compat = (rp_replayed_module_t){ap_find_linked_module(link->szName), link->pFunc};
        }
    }
}

const rp_replayed_module_t *rp_compile_module(rp_family_t family)
{
    return family == RP_FAMILY_SETENVIF_SERVER || family == RP_FAMILY_SETENVIF_DIR ? &setenvif : &access_compat;
}

/* The header and pattern as they are written, then a variable of our own: once set, it says which line matched. */
static const char *with_own_variable(apr_pool_t *temp, const ap_directive_t *directive, unsigned place)
{
    const char *rest = directive->args;

    if (!ap_cstr_casecmp(directive->directive, "setenvif")
        || !ap_cstr_casecmp(directive->directive, "setenvifnocase")) {
        ap_getword_conf(temp, &rest);
    }
    ap_getword_conf(temp, &rest);
    return apr_psprintf(temp, "%.*s " RP_REPLAY_VARIABLE "%u", (int)(rest - directive->args), directive->args, place);
}

static ap_directive_t *node(apr_pool_t *temp, const ap_directive_t *model, const char *name, const char *args)
{
    ap_directive_t *copy = apr_pmemdup(temp, model, sizeof(*model));

    copy->directive = name;
    copy->args = args;
    copy->next = copy->first_child = copy->parent = copy->last = NULL;
    return copy;
}

static ap_directive_t *tree_of(apr_pool_t *temp, rp_family_t family, const rp_noted_line_t *lines, unsigned line_count)
{
    ap_directive_t *first = NULL, **next = &first;

    /* Allow lines are tried in any case with this order, and a request that none allows is denied. */
    if (family == RP_FAMILY_ALLOW && line_count) {
        first = node(temp, lines[0].directive, "order", "allow,deny");
        next = &first->next;
    }
    for (unsigned i = 0; i < line_count; i++) {
        const ap_directive_t *model = lines[i].directive;
        const char *args = lines[i].what == RP_REPLAYED_SETENVIF ? with_own_variable(temp, model, i) : model->args;

        *next = node(temp, model, model->directive, args);
        next = &(*next)->next;
    }
    return first;
}

void *rp_compile(apr_pool_t *pool, apr_pool_t *temp, server_rec *server, rp_family_t family,
                 const rp_noted_line_t *lines, unsigned line_count, const char **error)
{
    module *owner = rp_compile_module(family)->owner;
    ap_conf_vector_t *vector;
    cmd_parms parms = {.pool = pool, .temp_pool = temp, .server = server, .path = (char *)"/",
                       .override = OR_ALL | RSRC_CONF | ACCESS_CONF, .override_opts = OPT_ALL, .limited = -1};

    *error = NULL;
    if (!owner || !owner->create_dir_config) {
        return NULL;
    }
    if (!line_count) {
        return owner->create_dir_config(pool, (char *)"/");
    }
    parms.limited = lines[0].limited;
    vector = ap_create_per_dir_config(temp);
    rp_lines_pause_notes(1);
    *error = ap_walk_config(tree_of(temp, family, lines, line_count), &parms, vector);
    rp_lines_pause_notes(0);
    return *error ? NULL : ap_get_module_config(vector, owner);
}
