/**
 * @file lines.h
 * @brief The configuration's lines in each format: JSON rows, the costliest as text.
 */
#ifndef RP_REPORT_LINES_H
#define RP_REPORT_LINES_H

#include <httpd.h>

#include "store/line_costs.h"
#include "store/snapshot.h"

/** The members "lines" and "lines_not_attributed" of the JSON object. */
void rp_lines_put_json(request_rec *r, const rp_snapshot_t *snapshot);

/** The twenty costliest lines, and what no line accounts for. */
void rp_lines_put_text(request_rec *r, const rp_snapshot_t *snapshot);

/** @return 1 when a span's time is shared out among replayed lines */
int rp_lines_share(const rp_line_costs_t *costs, const rp_span_t *span);

/** Folded stacks of the replayed lines, and of what no line accounts for. */
void rp_lines_put_folded(request_rec *r, const rp_line_costs_t *costs);

#endif
