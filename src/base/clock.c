#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#define CALIBRATION_NS 50000000u
#define READ_ROUNDS 1000

int rp_clock_is_tsc;

apr_uint64_t rp_clock_monotonic_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (apr_uint64_t)ts.tv_sec * 1000000000u + (apr_uint64_t)ts.tv_nsec;
}

static int kernel_uses_tsc(void)
{
    char line[32] = "";
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "r");

    if (!file) {
        return 0;
    }
    if (!fgets(line, sizeof(line), file)) {
        line[0] = '\0';
    }
    fclose(file);
    line[strcspn(line, "\n")] = '\0';
    return strcmp(line, "tsc") == 0;
}

/* @return 1 when the word stands in the list */
static int has_word(const char *list, const char *word)
{
    size_t length = strlen(word);

    for (const char *found = strstr(list, word); found; found = strstr(found + length, word)) {
        int begins = found > list && isspace((unsigned char)found[-1]);

        if (begins && (isspace((unsigned char)found[length]) || !found[length])) {
            return 1;
        }
    }
    return 0;
}

/*
 * As the kernel found it: a constant rate in all power states (Intel SDM vol. 3, "Invariant TSC"), which no sleep
 * stops.
 */
static int tsc_is_invariant(void)
{
    char line[4096];
    int invariant = 0;
    FILE *file = fopen("/proc/cpuinfo", "r");

    if (!file) {
        return 0;
    }
    while (fgets(line, sizeof(line), file)) {
        if (!strncmp(line, "flags", 5)) {
            invariant = has_word(line, "constant_tsc") && has_word(line, "nonstop_tsc");
            break;
        }
    }
    fclose(file);
    return invariant;
}

int rp_clock_tsc_usable(void)
{
#if defined(__x86_64__)
    return tsc_is_invariant() && kernel_uses_tsc();
#else
    return 0;
#endif
}

#if defined(__x86_64__)
/* A reading of both clocks at one moment: of several tries the one with the narrowest bracket. */
static void read_both(apr_uint64_t *ticks, apr_uint64_t *ns)
{
    apr_uint64_t narrowest = ~(apr_uint64_t)0;

    for (int i = 0; i < 50; i++) {
        apr_uint64_t before = __rdtsc();
        apr_uint64_t now_ns = rp_clock_monotonic_ns();
        apr_uint64_t after = __rdtsc();

        if (after - before < narrowest) {
            narrowest = after - before;
            *ticks = before + (after - before) / 2;
            *ns = now_ns;
        }
    }
}

static double measure_ns_per_tick(void)
{
    apr_uint64_t start_ticks = 0, start_ns = 0, end_ticks = 0, end_ns = 0;
    const struct timespec pause = {0, CALIBRATION_NS};

    read_both(&start_ticks, &start_ns);
    nanosleep(&pause, NULL);
    read_both(&end_ticks, &end_ns);
    return (double)(end_ns - start_ns) / (double)(end_ticks - start_ticks);
}
#endif

static apr_uint32_t measure_read_ticks(void)
{
    apr_uint64_t least = ~(apr_uint64_t)0;

    for (int round = 0; round < 20; round++) {
        apr_uint64_t start = rp_clock_now();
        apr_uint64_t now = start;

        for (int i = 0; i < READ_ROUNDS; i++) {
            now = rp_clock_now();
        }
        if ((now - start) / READ_ROUNDS < least) {
            least = (now - start) / READ_ROUNDS;
        }
    }
    return (apr_uint32_t)least;
}

int rp_clock_calibrate(rp_clock_t *clock, rp_clock_source_t wanted)
{
    int use_tsc = wanted != RP_CLOCK_MONOTONIC && rp_clock_tsc_usable();

    clock->source = RP_CLOCK_MONOTONIC;
    clock->ns_per_tick = 1.0;
#if defined(__x86_64__)
    if (use_tsc) {
        clock->source = RP_CLOCK_TSC;
        clock->ns_per_tick = measure_ns_per_tick();
    }
#endif
    rp_clock_use(clock);
    clock->read_ticks = measure_read_ticks();
    return use_tsc || wanted != RP_CLOCK_TSC;
}

void rp_clock_use(const rp_clock_t *clock)
{
    rp_clock_is_tsc = clock->source == RP_CLOCK_TSC;
}

const char *rp_clock_name(const rp_clock_t *clock)
{
    return clock->source == RP_CLOCK_TSC ? "tsc" : "monotonic";
}
