/**
 * @file verdict.c
 * @brief Reads rounds of A and B from standard input, prints what differs. conf/compare.sh writes the rounds.
 *
 * A line is: ROUND SIDE COUNT SUM_NS NAME, with tabs between. SIDE is a, b, aa (A once more) or time (SUM_NS is then
 * how long the round took). NAME is "total", "phase: ..." or "span: ...". COUNT matters for the total only: means are
 * over all requests, also for parts that few of them entered.
 *
 *     verdict             the table
 *     verdict --progress  one short line
 *     verdict --brief     the sentences of the total and of each phase that changed
 *
 * Exit status: 0 the answer is sure, 3 more rounds are needed for that, 2 the input is wrong.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <apr_general.h>
#include <apr_pools.h>
#include <apr_strings.h>
#include <apr_tables.h>

#include "base/interleaved.h"

#define ROUNDS_MAX 1000
#define EXIT_BAD_INPUT 2
#define EXIT_NOT_SURE 3

typedef struct {
    const char *name; /* without its kind */
    char kind;        /* t, p, s */
    rp_stats_round_t rounds[ROUNDS_MAX];
    rp_verdict_t verdict;
    int sure;
    int in_use; /* some request entered it; what none did is not compared, and does not widen the others' intervals */
} part_t;

typedef struct {
    apr_pool_t *pool;
    apr_array_header_t *parts; /* of part_t *, in the order of their first line */
    apr_uint64_t duration_ns[ROUNDS_MAX];
    apr_size_t round_count;
    double scratch[ROUNDS_MAX];
} input_t;

static part_t *part_at(const input_t *in, int index)
{
    return APR_ARRAY_IDX(in->parts, index, part_t *);
}

static void die(unsigned line, const char *what)
{
    fprintf(stderr, "verdict: line %u of the input: %s\n", line, what);
    exit(EXIT_BAD_INPUT);
}

/* ---- reading */

static part_t *find_part(input_t *in, const char *name, char kind)
{
    part_t *part;

    for (int i = 0; i < in->parts->nelts; i++) {
        if (part_at(in, i)->kind == kind && !strcmp(part_at(in, i)->name, name)) {
            return part_at(in, i);
        }
    }
    part = apr_pcalloc(in->pool, sizeof(*part));
    part->name = apr_pstrdup(in->pool, name);
    part->kind = kind;
    APR_ARRAY_PUSH(in->parts, part_t *) = part;
    return part;
}

static part_t *part_of(input_t *in, const char *name, unsigned line)
{
    if (!strcmp(name, "total")) {
        return find_part(in, name, 't');
    }
    if (!strncmp(name, "phase: ", 7)) {
        return find_part(in, name + 7, 'p');
    }
    if (!strncmp(name, "span: ", 6)) {
        return find_part(in, name + 6, 's');
    }
    die(line, "the name is neither total nor a phase nor a span");
    return NULL;
}

static rp_stats_sample_t *sample_of(rp_stats_round_t *round, const char *side, unsigned line)
{
    if (!strcmp(side, "a")) {
        return &round->a;
    }
    if (!strcmp(side, "b")) {
        return &round->b;
    }
    if (strcmp(side, "aa")) {
        die(line, "the side is neither a nor b nor aa nor time");
    }
    return &round->aa;
}

static void read_line(input_t *in, char *text, unsigned line)
{
    unsigned long round;
    unsigned long long count, sum_ns;
    char side[8];
    int name_at = 0;

    text[strcspn(text, "\r\n")] = '\0';
    if (sscanf(text, "%lu\t%7s\t%llu\t%llu\t%n", &round, side, &count, &sum_ns, &name_at) < 4 || !name_at) {
        die(line, "not ROUND SIDE COUNT SUM_NS NAME");
    }
    if (round < 1 || round > ROUNDS_MAX) {
        die(line, "the round is not from 1 to 1000");
    }
    if (round > in->round_count) {
        in->round_count = round;
    }
    if (!strcmp(side, "time")) {
        in->duration_ns[round - 1] = sum_ns;
    }
    else {
        part_t *part = part_of(in, text + name_at, line);
        *sample_of(&part->rounds[round - 1], side, line) = (rp_stats_sample_t){count, sum_ns};
        part->in_use |= sum_ns > 0;
    }
}

static part_t *read_all(input_t *in)
{
    char text[1024];
    unsigned line = 0;

    while (fgets(text, sizeof(text), stdin)) {
        read_line(in, text, ++line);
    }
    if (!in->parts->nelts || part_at(in, 0)->kind != 't') {
        die(line, "there is no total before the parts");
    }
    return part_at(in, 0);
}

/* ---- judging */

/* A part's mean is over all requests of the round, so it takes the count from the total. */
static void judge(input_t *in, part_t *part, const part_t *total, const rp_compare_options_t *options)
{
    for (apr_size_t i = 0; i < in->round_count; i++) {
        rp_stats_round_t *round = &part->rounds[i];
        round->a.count = total->rounds[i].a.count;
        round->b.count = total->rounds[i].b.count;
        round->aa.count = total->rounds[i].aa.count;
        round->duration_ns = in->duration_ns[i];
    }
    part->sure = rp_stats_interleaved(&part->verdict, part->rounds, in->round_count, in->scratch, options);
}

static unsigned count_kind(const input_t *in, char kind, int sure_only)
{
    unsigned count = 0;

    for (int i = 0; i < in->parts->nelts; i++) {
        const part_t *part = part_at(in, i);
        count += part->kind == kind && part->in_use && (!sure_only || part->sure);
    }
    return count;
}

static void judge_all(input_t *in, const part_t *total)
{
    rp_compare_options_t options;

    rp_compare_options_init(&options);
    for (int i = 0; i < in->parts->nelts; i++) {
        if (part_at(in, i)->in_use) {
            options.comparisons = count_kind(in, part_at(in, i)->kind, 0);
            judge(in, part_at(in, i), total, &options);
        }
    }
}

static int is_sure(const input_t *in)
{
    return count_kind(in, 't', 1) + count_kind(in, 'p', 1) == count_kind(in, 't', 0) + count_kind(in, 'p', 0);
}

static int has_changed(const part_t *part)
{
    return part->verdict.kind == RP_VERDICT_SLOWER || part->verdict.kind == RP_VERDICT_FASTER;
}

/* ---- printing */

static void print_row(const part_t *part)
{
    const rp_verdict_t *v = &part->verdict;
    char interval[48] = "unknown", percent[16] = "", percent_interval[48] = "";
    int known = isfinite(v->low_ns) && isfinite(v->high_ns);

    if (known) {
        snprintf(interval, sizeof(interval), "%+.3f to %+.3f", v->low_ns / 1000, v->high_ns / 1000);
    }
    if (v->has_ratio) {
        snprintf(percent, sizeof(percent), "%+.2f", v->ratio * 100);
    }
    if (v->has_ratio && known) {
        snprintf(percent_interval, sizeof(percent_interval), "%+.2f to %+.2f", v->ratio_low * 100,
                 v->ratio_high * 100);
    }
    printf("%-10s %9.3f %9.3f %+9.3f %22s %9s %22s  %s\n", part->name, v->a_mean_ns / 1000, v->b_mean_ns / 1000,
           v->diff_ns / 1000, interval, percent, percent_interval, rp_verdict_name(v->kind));
}

static void print_sentence(const part_t *part)
{
    apr_size_t size = strlen(part->name) + RP_SENTENCE_BYTES;
    char *sentence = malloc(size);

    if (sentence) {
        rp_compare_sentence(sentence, size, part->name, &part->verdict);
        puts(sentence);
        free(sentence);
    }
}

static unsigned print_sentences(const input_t *in, char kind)
{
    unsigned printed = 0;

    for (int i = 0; i < in->parts->nelts; i++) {
        if (part_at(in, i)->kind == kind && has_changed(part_at(in, i))) {
            print_sentence(part_at(in, i));
            printed++;
        }
    }
    return printed;
}

static void print_changed(const input_t *in, const char *what, char kind)
{
    printf("\n%s that changed for certain:\n", what);
    if (!print_sentences(in, kind)) {
        printf("none\n");
    }
}

static void print_brief(const input_t *in, const part_t *total)
{
    print_sentence(total);
    print_sentences(in, 'p');
}

static void print_table(const input_t *in, const part_t *total)
{
    /* The sign of micro has two bytes, so these fields are one wider. */
    printf("%-10s %10s %10s %10s %23s %9s %22s  verdict\n", "", "A µs", "B µs", "B-A µs", "95 % CI µs", "B-A %",
           "95 % CI %");
    for (int i = 0; i < in->parts->nelts; i++) {
        if (part_at(in, i)->kind != 's' && part_at(in, i)->in_use) {
            print_row(part_at(in, i));
        }
    }
    putchar('\n');
    print_sentence(total);
    print_changed(in, "Phases", 'p');
    print_changed(in, "Spans", 's');
    printf("\nA differed from itself by %.3f µs on average, in the total.\n", total->verdict.drift_ns / 1000);
}

static void print_progress(const input_t *in, const part_t *total)
{
    const rp_verdict_t *v = &total->verdict;

    if (v->a_blocks >= 2) {
        printf("total %+.2f µs", v->diff_ns / 1000);
    }
    else {
        printf("total unknown yet");
    }
    if (v->a_blocks >= RP_ROUNDS_MIN) {
        printf(" (%+.2f to %+.2f), %s", v->low_ns / 1000, v->high_ns / 1000, rp_verdict_name(v->kind));
    }
    printf("; sure of %u of %u phases\n", count_kind(in, 'p', 1), count_kind(in, 'p', 0));
}

static void print_as(const char *mode, const input_t *in, const part_t *total)
{
    if (!strcmp(mode, "--brief")) {
        print_brief(in, total);
    }
    else if (!strcmp(mode, "--progress")) {
        print_progress(in, total);
    }
    else {
        print_table(in, total);
    }
}

int main(int argc, char **argv)
{
    input_t in = {0};
    part_t *total;

    apr_initialize();
    atexit(apr_terminate);
    apr_pool_create(&in.pool, NULL);
    in.parts = apr_array_make(in.pool, 64, sizeof(part_t *));
    total = read_all(&in);
    judge_all(&in, total);
    print_as(argc > 1 ? argv[1] : "", &in, total);
    return is_sure(&in) ? EXIT_SUCCESS : EXIT_NOT_SURE;
}
