/**
 * @file lines.h
 * @brief Collects the configuration's lines, and which sections bring which of them to a request.
 *
 * SetEnvIf, Order and their like are directives of this module too (replayed.def), which only takes note of them. So
 * its per-directory configuration, merged by httpd like any other, says which sections apply to a request.
 */
#ifndef RP_CAPTURE_LINES_H
#define RP_CAPTURE_LINES_H

#include <httpd.h>
#include <http_config.h>

#include "store/lines.h"

typedef enum {
    RP_REPLAYED_SETENVIF,
    RP_REPLAYED_ORDER,
    RP_REPLAYED_ALLOW,
    RP_REPLAYED_DENY
} rp_replayed_t;

/** A line that was noted in a section. */
typedef struct {
    ap_directive_t *directive;
    apr_int64_t limited; /**< the methods of an enclosing <Limit>, as in cmd_parms */
    rp_replayed_t what;
    unsigned row; /**< in the line table; set by rp_lines_collect() */
} rp_noted_line_t;

/** A section's own lines, before anything is merged. */
typedef struct {
    apr_array_header_t *lines; /**< of rp_noted_line_t, in the order of execution */
    server_rec *server;
    int is_server;     /**< outside of any directory */
    unsigned setenvif; /**< its section in the line table; RP_LINE_NONE for none */
    unsigned access;
    int has_access;    /**< has Order, Allow, Deny or Satisfy, so those of sections before it do not count */
    int denies_last;   /**< Order allow,deny: a Deny line decides over an Allow line */
} rp_section_lines_t;

/** The sections that apply to a directory, most specific first. */
typedef struct rp_line_chain_t {
    rp_section_lines_t *own;
    const struct rp_line_chain_t *base;
} rp_line_chain_t;

/** @return the chain of a section that is merged over a base; new nodes are the pool's */
const rp_line_chain_t *rp_line_chain_join(apr_pool_t *pool, const rp_line_chain_t *base, const rp_line_chain_t *own);

/** Begin to take note. In pre_config. */
void rp_lines_config_begin(apr_pool_t *pconf);

/** What replayed.def's directives do here: note the line, apply nothing. */
const char *rp_lines_note(cmd_parms *cmd, void *dir_conf, const char *args);

/** While a line is executed again for its replay, it is not noted. The calling thread only. */
void rp_lines_pause_notes(int paused);

/** Fill the plan from the tree, and give each section its groups. The parent, in post_config. */
void rp_lines_collect(rp_line_plan_t *plan, apr_pool_t *temp, server_rec *main_server, ap_directive_t *tree);

/** Connect spans of logs, Require lines, filters and password providers with their lines. After rp_lines_collect(). */
void rp_lines_connect(rp_line_plan_t *plan, apr_pool_t *temp, const apr_array_header_t *spans, ap_directive_t *tree);

/** @return the sections that were noted, of rp_section_lines_t *; valid until the next configuration is read */
const apr_array_header_t *rp_lines_sections(void);

/** @return the row of a directive of the configuration, RP_LINE_NONE when it has none. The parent, in post_config. */
unsigned rp_lines_row_of(const ap_directive_t *directive);

#endif
