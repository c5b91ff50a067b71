/**
 * @file findings.h
 * @brief What is wrong with the server right now, in sentences: the same ones in every format.
 */
#ifndef RP_REPORT_FINDINGS_H
#define RP_REPORT_FINDINGS_H

#include <apr_tables.h>

#include "store/snapshot.h"

/** @return an array of const char *, the most urgent first; empty when nothing is. They may hold foreign text. */
apr_array_header_t *rp_findings(apr_pool_t *pool, const rp_snapshot_t *snapshot);

#endif
