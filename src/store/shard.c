#include "store/shard.h"

static void add_hist(rp_hist_fine_t *into, rp_hist_fine_t *from)
{
    rp_hist_merge(rp_hist_fine(into), rp_hist_fine(from));
}

static void subtract_hist(rp_hist_fine_t *from, rp_hist_fine_t *earlier)
{
    rp_hist_subtract(rp_hist_fine(from), rp_hist_fine(earlier));
}

/* A child that died in the middle of a write can leave a recorded time without its call. */
static int cell_is_empty(const rp_cell_t *cell)
{
    return !cell->self.head.count && !cell->calls && !cell->skipped;
}

static void add_cell(rp_cell_t *into, rp_cell_t *from)
{
    if (cell_is_empty(from)) {
        return;
    }
    rp_hist_merge(rp_hist_coarse(&into->self), rp_hist_coarse(&from->self));
    into->calls += from->calls;
    into->bytes += from->bytes;
    into->skipped += from->skipped;
}

static void subtract_cell(rp_cell_t *from, rp_cell_t *earlier)
{
    if (cell_is_empty(earlier)) {
        return;
    }
    rp_hist_subtract(rp_hist_coarse(&from->self), rp_hist_coarse(&earlier->self));
    from->calls -= earlier->calls;
    from->bytes -= earlier->bytes;
    from->skipped -= earlier->skipped;
}

static void clear_cell(rp_cell_t *cell)
{
    if (cell_is_empty(cell)) {
        return;
    }
    rp_hist_clear(rp_hist_coarse(&cell->self));
    cell->calls = cell->bytes = cell->skipped = 0;
}

void rp_shard_add(rp_shard_t *into, rp_shard_t *from, unsigned span_count)
{
    into->requests += from->requests;
    into->unbalanced += from->unbalanced;
    for (int i = 0; i < RP_STATUS_CLASSES; i++) {
        into->by_status[i] += from->by_status[i];
    }
    add_hist(&into->total, &from->total);
    add_hist(&into->queue, &from->queue);
    for (int i = 0; i < RP_PHASE_COUNT; i++) {
        add_hist(&into->phases[i], &from->phases[i]);
    }
    for (unsigned i = 0; i < span_count; i++) {
        add_cell(rp_shard_cell(into, i), rp_shard_cell(from, i));
    }
}

void rp_shard_subtract(rp_shard_t *from, rp_shard_t *earlier, unsigned span_count)
{
    from->requests -= earlier->requests;
    from->unbalanced -= earlier->unbalanced;
    for (int i = 0; i < RP_STATUS_CLASSES; i++) {
        from->by_status[i] -= earlier->by_status[i];
    }
    subtract_hist(&from->total, &earlier->total);
    subtract_hist(&from->queue, &earlier->queue);
    for (int i = 0; i < RP_PHASE_COUNT; i++) {
        subtract_hist(&from->phases[i], &earlier->phases[i]);
    }
    for (unsigned i = 0; i < span_count; i++) {
        subtract_cell(rp_shard_cell(from, i), rp_shard_cell(earlier, i));
    }
}

void rp_shard_clear(rp_shard_t *shard, unsigned span_count)
{
    shard->requests = shard->unbalanced = 0;
    for (int i = 0; i < RP_STATUS_CLASSES; i++) {
        shard->by_status[i] = 0;
    }
    rp_hist_clear(rp_hist_fine(&shard->total));
    rp_hist_clear(rp_hist_fine(&shard->queue));
    for (int i = 0; i < RP_PHASE_COUNT; i++) {
        rp_hist_clear(rp_hist_fine(&shard->phases[i]));
    }
    for (unsigned i = 0; i < span_count; i++) {
        clear_cell(rp_shard_cell(shard, i));
    }
}
