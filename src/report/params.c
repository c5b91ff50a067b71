#include <stdlib.h>
#include <string.h>
#include <apr_escape.h>
#include <apr_strings.h>

#include "base/escape.h"
#include "report/params.h"

static const char *const format_names[] = {
#define RP_FORMAT(id, name, content_type, renderer) name,
#include "report/formats.def"
#undef RP_FORMAT
    NULL
};
static const char *const window_names[] = {
#define RP_WINDOW(id, name, seconds) name,
#include "base/windows.def"
#undef RP_WINDOW
    NULL
};
static const char *const view_names[] = {"overview", "config", NULL};

/* @return the value's place in a list, or -1 */
static int place_in(const char *const *names, const char *value)
{
    for (int i = 0; names[i]; i++) {
        if (!strcmp(names[i], value)) {
            return i;
        }
    }
    return -1;
}

/* @return the number, or 0 when it is none or not in 1..max */
static apr_uint32_t number_up_to(const char *value, apr_int64_t max)
{
    char *end;
    apr_int64_t number = apr_strtoi64(value, &end, 10);

    if (value[0] < '0' || value[0] > '9' || *end || number < 1 || number > max) {
        return 0;
    }
    return (apr_uint32_t)number;
}

/* The setters return 0 when the value is not accepted; it is NULL for a name without "=". */

static int set_format(rp_params_t *params, const char *value)
{
    int place = value ? place_in(format_names, value) : -1;

    params->format = place < 0 ? params->format : (rp_format_t)place;
    return place >= 0;
}

static int set_auto(rp_params_t *params, const char *value)
{
    params->format = RP_FORMAT_TEXT;
    return !value;
}

static int set_refresh(rp_params_t *params, const char *value)
{
    params->refresh_s = value ? number_up_to(value, RP_REFRESH_MAX_S) : RP_REFRESH_DEFAULT_S;
    return params->refresh_s > 0;
}

static int set_window(rp_params_t *params, const char *value)
{
    int place = value ? place_in(window_names, value) : -1;

    params->window = place < 0 ? params->window : (rp_window_t)place;
    return place >= 0;
}

static int set_view(rp_params_t *params, const char *value)
{
    int place = value ? place_in(view_names, value) : -1;

    params->view = place < 0 ? params->view : (rp_view_t)place;
    return place >= 0;
}

static int set_child(rp_params_t *params, const char *value)
{
    params->child_pid = value ? number_up_to(value, APR_INT32_MAX) : 0;
    return params->child_pid > 0;
}

static const struct {
    const char *name;
    int (*set)(rp_params_t *params, const char *value);
    const char *const *names; /* what is accepted, as a list … */
    const char *accepted;     /* … or in words */
} parameters[] = {
    {"format", set_format, format_names, NULL},
    {"auto", set_auto, NULL, "the name alone, which means format=text"},
    {"refresh", set_refresh, NULL, "a number of seconds from 1 to " APR_STRINGIFY(RP_REFRESH_MAX_S)},
    {"window", set_window, window_names, NULL},
    {"view", set_view, view_names, NULL},
    {"child", set_child, NULL, "the process number of a running child"},
};

#define PARAMETER_COUNT (sizeof(parameters) / sizeof(parameters[0]))

/* @return "a, b or c" with one more name appended; `last` says that no other follows */
static const char *append_name(apr_pool_t *pool, const char *list, const char *name, int last)
{
    return list ? apr_pstrcat(pool, list, last ? " or " : ", ", name, NULL) : name;
}

static const char *accepted_values(apr_pool_t *pool, unsigned parameter)
{
    const char *list = NULL;

    if (parameters[parameter].accepted) {
        return parameters[parameter].accepted;
    }
    for (int i = 0; parameters[parameter].names[i]; i++) {
        list = append_name(pool, list, parameters[parameter].names[i], !parameters[parameter].names[i + 1]);
    }
    return list;
}

static const char *accepted_names(apr_pool_t *pool)
{
    const char *list = NULL;

    for (unsigned i = 0; i < PARAMETER_COUNT; i++) {
        list = append_name(pool, list, parameters[i].name, i + 1 == PARAMETER_COUNT);
    }
    return list;
}

static const char *set_parameter(rp_params_t *params, apr_pool_t *pool, const char *name, const char *value)
{
    for (unsigned i = 0; i < PARAMETER_COUNT; i++) {
        if (strcmp(parameters[i].name, name)) {
            continue;
        }
        if (parameters[i].set(params, value)) {
            return NULL;
        }
        return apr_pstrcat(pool, name, value ? " \"" : " without a value", value ? rp_escape_line(pool, value) : "",
                           value ? "\"" : "", ": accepted is ", accepted_values(pool, i), NULL);
    }
    return apr_psprintf(pool, "unknown parameter \"%s\": accepted is %s", rp_escape_line(pool, name),
                        accepted_names(pool));
}

static const char *decoded(apr_pool_t *pool, const char *text)
{
    return apr_punescape_url(pool, text, NULL, NULL, 1);
}

static const char *set_pair(rp_params_t *params, apr_pool_t *pool, char *pair)
{
    char *equals = strchr(pair, '=');
    const char *name, *value;

    if (equals) {
        *equals = '\0';
    }
    name = decoded(pool, pair);
    value = equals ? decoded(pool, equals + 1) : NULL;
    if (!name || (equals && !value)) {
        return apr_pstrcat(pool, "\"", rp_escape_line(pool, name ? equals + 1 : pair), "\" is not percent-encoded: ",
                           "accepted is % and two hexadecimal digits other than 00", NULL);
    }
    return set_parameter(params, pool, name, value);
}

const char *rp_params_parse(rp_params_t *params, apr_pool_t *pool, const char *query)
{
    char *rest = apr_pstrdup(pool, query ? query : ""), *pair, *state;
    const char *wrong = NULL;

    *params = (rp_params_t){RP_FORMAT_HTML, RP_WINDOW_EPOCH, RP_VIEW_OVERVIEW, 0, 0};
    for (pair = apr_strtok(rest, "&", &state); pair && !wrong; pair = apr_strtok(NULL, "&", &state)) {
        wrong = set_pair(params, pool, pair);
    }
    if (!wrong && params->child_pid && params->window != RP_WINDOW_EPOCH) {
        return apr_pstrcat(pool, "window \"", rp_window_name(params->window),
                           "\" with child: accepted is epoch, since windows are kept for all children together", NULL);
    }
    return wrong;
}
