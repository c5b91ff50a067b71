#include <string.h>
#include <apr_lib.h>
#include <apr_strings.h>
#include <httpd.h>
#include <http_config.h>
#include <http_core.h>

#include "capture/lines.h"
#include "capture/server_conf.h"

enum {
    SCOPE_BYTES = 400, /* of all scopes of a line together; the rest is counted */
    DEPTH_MAX = 40
};

static struct {
    apr_pool_t *pool;
    apr_array_header_t *sections; /* of rp_section_lines_t * */
    apr_hash_t *rows;             /* "file:number" -> row; while post_config runs */
    apr_hash_t *names;            /* directive in any spelling -> as its module spells it */
} noted;

static __thread int notes_paused;

void rp_lines_config_begin(apr_pool_t *pconf)
{
    noted.pool = pconf;
    noted.sections = apr_array_make(pconf, 16, sizeof(rp_section_lines_t *));
}

void rp_lines_pause_notes(int paused)
{
    notes_paused = paused;
}

const apr_array_header_t *rp_lines_sections(void)
{
    return noted.sections;
}

const rp_line_chain_t *rp_line_chain_join(apr_pool_t *pool, const rp_line_chain_t *base, const rp_line_chain_t *own)
{
    rp_line_chain_t *joined;

    if (!own->own) {
        return own->base ? rp_line_chain_join(pool, base, own->base) : base;
    }
    joined = apr_palloc(pool, sizeof(*joined));
    joined->own = own->own;
    joined->base = own->base ? rp_line_chain_join(pool, base, own->base) : base;
    return joined;
}

/* ---- noting ---- */

static const struct {
    const char *name;
    const char *module;
    rp_replayed_t what;
} replayed[] = {
#define RP_REPLAYED(name, module, where, what) {name, module, RP_REPLAYED_##what},
#include "capture/replayed.def"
#undef RP_REPLAYED
};

static int place_of(const char *name)
{
    for (unsigned i = 0; i < sizeof(replayed) / sizeof(replayed[0]); i++) {
        if (!ap_cstr_casecmp(replayed[i].name, name)) {
            return (int)i;
        }
    }
    return 0;
}

static rp_section_lines_t *section_of(rp_section_lines_t **place, cmd_parms *cmd, int is_server)
{
    rp_section_lines_t *section = *place;

    if (!section) {
        section = *place = apr_pcalloc(cmd->pool, sizeof(*section));
        section->lines = apr_array_make(cmd->pool, 8, sizeof(rp_noted_line_t));
        section->server = cmd->server;
        section->is_server = is_server;
        section->setenvif = section->access = RP_LINE_NONE;
        if (noted.pool) {
            APR_ARRAY_PUSH(noted.sections, rp_section_lines_t *) = section;
        }
    }
    return section;
}

/* Without the module that owns the directive it stays as unknown as it would be without this one. */
static const char *unknown(cmd_parms *cmd)
{
    return apr_psprintf(cmd->pool, "Invalid command '%s', perhaps misspelled or defined by a module not "
                        "included in the server configuration", cmd->cmd->name);
}

const char *rp_lines_note(cmd_parms *cmd, void *dir_conf, const char *args)
{
    int place = place_of(cmd->cmd->name);
    rp_dir_conf_t *dir = dir_conf;
    rp_server_conf_t *server = ap_get_module_config(cmd->server->module_config, &reqprof_module);
    int is_server = !cmd->path && replayed[place].what == RP_REPLAYED_SETENVIF;
    rp_section_lines_t *section;

    (void)args;
    if (notes_paused) {
        return NULL;
    }
    if (!ap_find_linked_module(replayed[place].module)) {
        return unknown(cmd);
    }
    section = section_of(is_server ? &server->lines : &dir->lines.own, cmd, is_server);
    APR_ARRAY_PUSH(section->lines, rp_noted_line_t) =
        (rp_noted_line_t){(ap_directive_t *)cmd->directive, cmd->limited, replayed[place].what, RP_LINE_NONE};
    section->has_access |= replayed[place].what != RP_REPLAYED_SETENVIF;
    return NULL;
}

/* ---- rows ---- */

static const char *place_key(apr_pool_t *pool, const ap_directive_t *directive)
{
    return apr_pstrcat(pool, directive->filename ? directive->filename : "-", ":", apr_itoa(pool, directive->line_num),
                       NULL);
}

unsigned rp_lines_row_of(const ap_directive_t *directive)
{
    const unsigned *row = apr_hash_get(noted.rows, place_key(noted.pool, directive), APR_HASH_KEY_STRING);

    return row ? *row : RP_LINE_NONE;
}

static int contains_any(const char *text, const char *const *words)
{
    for (; *words; words++) {
        if (ap_strcasestr(text, *words)) {
            return 1;
        }
    }
    return 0;
}

/* A URL with a password in it: scheme://user:password@host */
static int has_login(const char *args)
{
    const char *host = strstr(args, "://"), *at = host ? strchr(host, '@') : NULL;
    const char *end = host ? host + 3 + strcspn(host + 3, "/ \t\"") : NULL;

    return at && at < end;
}

/* A path to a file that holds passwords is no secret, and neither is a pattern that robots are known by. */
static int is_harmless(const char *name)
{
    return name[0] == '<' || !strncasecmp(name, "setenvif", 8) || !strncasecmp(name, "browsermatch", 12)
           || !ap_cstr_casecmp(name, "require") || !ap_cstr_casecmp(name, "deny") || ap_strcasestr(name, "file");
}

static int is_secret(const ap_directive_t *directive)
{
    static const char *const in_names[] = {
#define RP_SECRET_DIRECTIVE(word) word,
#define RP_SECRET_ARGUMENT(word)
#include "capture/secrets.def"
#undef RP_SECRET_DIRECTIVE
#undef RP_SECRET_ARGUMENT
        NULL};
    static const char *const in_args[] = {
#define RP_SECRET_DIRECTIVE(word)
#define RP_SECRET_ARGUMENT(word) word,
#include "capture/secrets.def"
#undef RP_SECRET_DIRECTIVE
#undef RP_SECRET_ARGUMENT
        NULL};

    if (has_login(directive->args) || contains_any(directive->directive, in_names)) {
        return 1;
    }
    return !is_harmless(directive->directive) && contains_any(directive->args, in_args);
}

static const char *spelled(const char *name)
{
    const char *known = apr_hash_get(noted.names, name, APR_HASH_KEY_STRING);
    module *owner = NULL;
    const command_rec *command;

    if (!known) {
        owner = ap_top_module;
        command = ap_find_command_in_modules(name, &owner);
        known = apr_pstrdup(noted.pool, command ? command->name : name);
        ((char *)known)[0] = (char)apr_toupper(known[0]);
        apr_hash_set(noted.names, name, APR_HASH_KEY_STRING, known);
    }
    return known;
}

static unsigned add_row(rp_line_plan_t *plan, const ap_directive_t *directive, unsigned depth)
{
    int is_section = directive->directive[0] == '<';
    int hidden = is_secret(directive);
    rp_line_key_t key = {directive->filename ? directive->filename : "-", (unsigned)directive->line_num,
                         spelled(directive->directive), hidden ? "..." : directive->args, depth,
                         (is_section ? RP_LINE_SECTION : 0) | (hidden ? RP_LINE_HIDDEN : 0)};

    return rp_line_plan_add(plan, &key);
}

/* What a line's scopes are gathered in, while the tree is walked. */
typedef struct {
    const char *text;
    unsigned count;
    unsigned unlisted;
} scopes_t;

typedef struct {
    rp_line_plan_t *plan;
    apr_pool_t *temp;
    apr_array_header_t *scopes; /* of scopes_t, by row */
    const char *joined;         /* of the text and scope that were joined last: neighbours have the same */
    const char *joined_text;
    const char *joined_scope;
} walk_t;

static const char *join(walk_t *walk, const char *text, const char *scope)
{
    if (text != walk->joined_text || scope != walk->joined_scope) {
        walk->joined_text = text;
        walk->joined_scope = scope;
        walk->joined = apr_pstrcat(walk->temp, text, ", ", scope, NULL);
    }
    return walk->joined;
}

static void add_scope(walk_t *walk, unsigned row, const char *scope)
{
    scopes_t *scopes;

    while ((unsigned)walk->scopes->nelts <= row) {
        APR_ARRAY_PUSH(walk->scopes, scopes_t) = (scopes_t){NULL, 0, 0};
    }
    scopes = &APR_ARRAY_IDX(walk->scopes, row, scopes_t);
    scopes->count++;
    if (!scopes->text) {
        scopes->text = scope;
    }
    else if (scopes->unlisted || strlen(scopes->text) + strlen(scope) > SCOPE_BYTES) {
        scopes->unlisted++;
    }
    else {
        scopes->text = join(walk, scopes->text, scope);
    }
}

static unsigned row_for(walk_t *walk, const ap_directive_t *directive, unsigned depth)
{
    unsigned row = rp_lines_row_of(directive);

    if (row == RP_LINE_NONE) {
        row = add_row(walk->plan, directive, depth);
        if (row != RP_LINE_NONE) {
            apr_hash_set(noted.rows, place_key(noted.pool, directive), APR_HASH_KEY_STRING,
                         apr_pmemdup(noted.pool, &row, sizeof(row)));
        }
    }
    return row;
}

static const char *name_of_host(const ap_directive_t *vhost)
{
    for (const ap_directive_t *d = vhost->first_child; d; d = d->next) {
        if (!ap_cstr_casecmp(d->directive, "servername")) {
            return d->args;
        }
    }
    return vhost->args;
}

/*
 * Where the children of a section take effect: "www.example.com <Directory "/srv">", with the bracket that httpd leaves
 * in the arguments.
 */
static const char *scope_below(apr_pool_t *pool, const char *scope, const ap_directive_t *section)
{
    if (!ap_cstr_casecmp(section->directive, "<virtualhost")) {
        return name_of_host(section);
    }
    if (!strcmp(scope, "server")) {
        scope = "";
    }
    return apr_psprintf(pool, "%s%s%s%s%.120s", scope, *scope ? " " : "",
                        spelled(section->directive), *section->args == '>' ? "" : " ", section->args);
}

static void walk_level(walk_t *walk, const ap_directive_t *node, const char *scope, unsigned depth)
{
    for (; node && depth < DEPTH_MAX; node = node->next) {
        unsigned row = row_for(walk, node, depth);

        if (row != RP_LINE_NONE) {
            add_scope(walk, row, scope);
        }
        if (node->first_child) {
            walk_level(walk, node->first_child, scope_below(walk->temp, scope, node), depth + 1);
        }
    }
}

static void keep_scopes(walk_t *walk)
{
    for (int row = 0; row < walk->scopes->nelts; row++) {
        const scopes_t *scopes = &APR_ARRAY_IDX(walk->scopes, row, scopes_t);
        const char *text = scopes->text;

        if (scopes->unlisted) {
            text = apr_psprintf(walk->temp, "%s and %u more", text, scopes->unlisted);
        }
        rp_line_plan_scope(walk->plan, (unsigned)row, text, scopes->count);
    }
}

/* ---- groups ---- */

/* A line that asks for a host name, or for files, has effects outside of the request's copy: it is never replayed. */
static int has_effects(const rp_noted_line_t *line, apr_pool_t *temp)
{
    const char *args = line->directive->args, *word = ap_getword_conf(temp, &args);

    if (line->what == RP_REPLAYED_SETENVIF) {
        return !ap_cstr_casecmp(word, "Remote_Host")
               || (!ap_cstr_casecmp(line->directive->directive, "setenvifexpr")
                   && (ap_strcasestr(word, "remote_host") || strstr(word, " -") || *word == '-'
                       || ap_strcasestr(word, "file") || ap_strcasestr(word, "ldap")));
    }
    for (word = ap_getword_conf(temp, &args); *word; word = ap_getword_conf(temp, &args)) {
        if (strncasecmp(word, "env=", 4) && ap_cstr_casecmp(word, "all") && strspn(word, "0123456789./") != strlen(word)
            && !strchr(word, ':')) {
            return 1;
        }
    }
    return 0;
}

static rp_family_t family_of(const rp_section_lines_t *section, const rp_noted_line_t *line, apr_pool_t *temp)
{
    if (line->what == RP_REPLAYED_ORDER || has_effects(line, temp)) {
        return RP_FAMILY_NONE;
    }
    if (line->what == RP_REPLAYED_SETENVIF) {
        return section->is_server ? RP_FAMILY_SETENVIF_SERVER : RP_FAMILY_SETENVIF_DIR;
    }
    return line->what == RP_REPLAYED_ALLOW ? RP_FAMILY_ALLOW : RP_FAMILY_DENY;
}

/* mod_setenvif keeps one entry for consecutive lines with the same header and pattern. */
static int is_merged(const rp_noted_line_t *line, const rp_noted_line_t *before, apr_pool_t *temp)
{
    const char *args = line->directive->args, *args_before = before->directive->args;
    int is_browser = !strncasecmp(line->directive->directive, "browsermatch", 12);

    if (ap_cstr_casecmp(line->directive->directive, before->directive->directive)
        || !ap_cstr_casecmp(line->directive->directive, "setenvifexpr")
        || (!is_browser && ap_cstr_casecmp(ap_getword_conf(temp, &args), ap_getword_conf(temp, &args_before)))) {
        return 0;
    }
    return !strcmp(ap_getword_conf(temp, &args), ap_getword_conf(temp, &args_before));
}

/* A run of lines that is about to become a group. */
typedef struct {
    unsigned first;
    unsigned count;
    rp_family_t family;
    apr_int64_t limited;
    int test; /* what an Allow or Deny line compares */
} run_t;

/* Comparing addresses costs a tenth of looking for a variable, so the lines of a group do one or the other. */
static int test_of(const rp_noted_line_t *line, apr_pool_t *temp)
{
    const char *args = line->directive->args;

    if (line->what == RP_REPLAYED_SETENVIF) {
        return 0;
    }
    ap_getword_conf(temp, &args);
    return !strncasecmp(args, "env=", 4) ? 'e' : !strncasecmp(args, "all", 3) ? 'a' : 'i';
}

static void end_run(rp_line_plan_t *plan, run_t *run, apr_array_header_t *groups)
{
    if (run->count) {
        APR_ARRAY_PUSH(groups, apr_uint32_t) = rp_line_plan_group(plan, run->first, run->count, run->family);
    }
    run->count = 0;
}

static void extend_run(rp_line_plan_t *plan, run_t *run, const rp_section_lines_t *section, int index,
                       apr_array_header_t *groups, apr_pool_t *temp)
{
    rp_noted_line_t *line = &APR_ARRAY_IDX(section->lines, index, rp_noted_line_t);
    unsigned row = line->row = rp_lines_row_of(line->directive);
    rp_family_t family = row == RP_LINE_NONE ? RP_FAMILY_NONE : family_of(section, line, temp);
    int merged = family != RP_FAMILY_NONE && run->count && line->what == RP_REPLAYED_SETENVIF
                 && is_merged(line, line - 1, temp);

    if (run->count && (family != run->family || line->limited != run->limited || test_of(line, temp) != run->test
                       || row != run->first + run->count
                       || run->count == RP_GROUP_LINES)) {
        end_run(plan, run, groups);
    }
    if (family == RP_FAMILY_NONE) {
        return;
    }
    if (!run->count) {
        *run = (run_t){row, 0, family, line->limited, test_of(line, temp)};
    }
    else if (merged) {
        APR_ARRAY_IDX(plan->lines, row, rp_line_t).flags |= RP_LINE_MERGED;
    }
    run->count++;
}

static unsigned plan_groups(rp_line_plan_t *plan, const rp_section_lines_t *section, int of_setenvif, apr_pool_t *temp)
{
    apr_array_header_t *groups = apr_array_make(temp, 16, sizeof(apr_uint32_t));
    run_t run = {0};

    for (int i = 0; i < section->lines->nelts; i++) {
        if ((APR_ARRAY_IDX(section->lines, i, rp_noted_line_t).what == RP_REPLAYED_SETENVIF) == of_setenvif) {
            extend_run(plan, &run, section, i, groups, temp);
        }
    }
    end_run(plan, &run, groups);
    return groups->nelts ? rp_line_plan_section(plan, groups) : RP_LINE_NONE;
}

static int denies_last(const rp_section_lines_t *section)
{
    int last = 0;

    for (int i = 0; i < section->lines->nelts; i++) {
        const rp_noted_line_t *line = &APR_ARRAY_IDX(section->lines, i, rp_noted_line_t);
        if (!ap_cstr_casecmp(line->directive->directive, "order")) {
            last = !ap_cstr_casecmp(line->directive->args, "allow,deny");
        }
    }
    return last;
}

static void plan_section(rp_line_plan_t *plan, rp_section_lines_t *section, apr_pool_t *temp)
{
    section->setenvif = plan_groups(plan, section, 1, temp);
    section->access = section->is_server ? RP_LINE_NONE : plan_groups(plan, section, 0, temp);
    section->denies_last = denies_last(section);
}

void rp_lines_collect(rp_line_plan_t *plan, apr_pool_t *temp, server_rec *main_server, ap_directive_t *tree)
{
    walk_t walk = {.plan = plan, .temp = temp, .scopes = apr_array_make(temp, 1024, sizeof(scopes_t))};

    (void)main_server;
    noted.pool = temp;
    noted.rows = apr_hash_make(temp);
    noted.names = apr_hash_make(temp);
    walk_level(&walk, tree, "server", 0);
    keep_scopes(&walk);
    for (int i = 0; i < noted.sections->nelts; i++) {
        plan_section(plan, APR_ARRAY_IDX(noted.sections, i, rp_section_lines_t *), temp);
    }
    noted.pool = NULL;
}

/* ---- live lines ---- */

/* Directives whose argument names what a span measures: how often each name is given tells whether one line owns it. */
typedef struct {
    rp_line_plan_t *plan;
    apr_pool_t *temp;
    apr_hash_t *owners; /* "kind name" -> row, or RP_LINE_NONE when several lines give it */
} connect_t;

static void own(connect_t *connect, const char *kind, const char *name, unsigned row)
{
    char *key = apr_psprintf(connect->temp, "%s %.*s", kind, (int)sizeof(((rp_span_t *)0)->detail) - 1, name);
    unsigned *known;

    for (char *c = key; *c && strcmp(kind, "log"); c++) {
        *c = apr_tolower(*c);
    }
    known = apr_hash_get(connect->owners, key, APR_HASH_KEY_STRING);
    if (!known) {
        apr_hash_set(connect->owners, key, APR_HASH_KEY_STRING, apr_pmemdup(connect->temp, &row, sizeof(row)));
    }
    else if (*known != row) {
        *known = RP_LINE_NONE;
    }
}

static void own_words(connect_t *connect, const char *kind, const char *args, unsigned row)
{
    while (*args) {
        char *state, *word = ap_getword_conf(connect->temp, &args);

        for (char *name = apr_strtok(word, ";", &state); name; name = apr_strtok(NULL, ";", &state)) {
            own(connect, kind, name, row);
        }
    }
}

static void own_of_line(connect_t *connect, const ap_directive_t *directive, unsigned row)
{
    const char *name = directive->directive, *args = directive->args;

    if (!ap_cstr_casecmp(name, "customlog") || !ap_cstr_casecmp(name, "transferlog")
        || !ap_cstr_casecmp(name, "globallog")) {
        own(connect, "log", ap_getword_conf(connect->temp, &args), row);
    }
    else if (!ap_cstr_casecmp(name, "authbasicprovider") || !ap_cstr_casecmp(name, "authdigestprovider")) {
        own_words(connect, "password", args, row);
    }
    else if (ap_strcasestr(name, "outputfilter") || ap_strcasestr(name, "inputfilter")
             || !ap_cstr_casecmp(name, "filterprovider")) {
        own_words(connect, "filter", args, row);
    }
    else if (!ap_cstr_casecmp(name, "require")) {
        own(connect, "require", place_key(connect->temp, directive), row);
    }
}

static void own_of_level(connect_t *connect, const ap_directive_t *node, unsigned depth)
{
    for (; node && depth < DEPTH_MAX; node = node->next) {
        unsigned row = rp_lines_row_of(node);

        if (row != RP_LINE_NONE) {
            own_of_line(connect, node, row);
        }
        own_of_level(connect, node->first_child, depth + 1);
    }
}

static void connect_span(connect_t *connect, const rp_span_t *span, unsigned id)
{
    const char *name = span->kind == RP_KIND_LOG || span->kind == RP_KIND_REQUIRE ? span->detail : span->owner;
    const char *kinds[RP_KIND_COUNT] = {
        [RP_KIND_LOG] = "log", [RP_KIND_REQUIRE] = "require", [RP_KIND_PASSWORD] = "password",
        [RP_KIND_FILTER] = "filter"};
    const char *kind = span->kind < RP_KIND_COUNT ? kinds[span->kind] : NULL;
    char *key = apr_pstrcat(connect->temp, kind ? kind : "-", " ", name, NULL);
    const unsigned *row;

    for (char *c = key; *c && span->kind != RP_KIND_LOG; c++) {
        *c = apr_tolower(*c);
    }
    row = kind ? apr_hash_get(connect->owners, key, APR_HASH_KEY_STRING) : NULL;
    if (row && *row != RP_LINE_NONE) {
        rp_line_plan_span(connect->plan, id, *row);
    }
}

void rp_lines_connect(rp_line_plan_t *plan, apr_pool_t *temp, const apr_array_header_t *spans, ap_directive_t *tree)
{
    connect_t connect = {plan, temp, apr_hash_make(temp)};

    noted.pool = temp;
    own_of_level(&connect, tree, 0);
    for (int id = 0; id < spans->nelts; id++) {
        connect_span(&connect, &APR_ARRAY_IDX(spans, id, rp_span_t), (unsigned)id);
    }
    noted.pool = NULL;
    noted.rows = NULL;
}
