#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <apr_time.h>

#include "store/life.h"

/* @return bytes read, ended by a zero byte; 0 when the file is not there */
static size_t read_file(const char *path, char *text, size_t room)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    size_t bytes = 0;
    ssize_t got;

    while (file >= 0 && bytes + 1 < room && (got = read(file, text + bytes, room - 1 - bytes)) > 0) {
        bytes += (size_t)got;
    }
    if (file >= 0) {
        close(file);
    }
    text[bytes] = '\0';
    return bytes;
}

/* @return the bytes behind "Key:" in smaps_rollup, which counts in kB; 0 when it is not there */
static apr_uint64_t bytes_of(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    return at ? strtoull(at + strlen(key), NULL, 10) * 1024 : 0;
}

/* Kernels without smaps_rollup: pages that are not backed by a file, which forked processes may share all the same. */
static void read_statm(rp_life_t *life)
{
    char text[128], *at = text;
    apr_uint64_t page_bytes = (apr_uint64_t)sysconf(_SC_PAGESIZE), resident, shared;

    if (read_file("/proc/self/statm", text, sizeof(text))) {
        strtoull(at, &at, 10);
        resident = strtoull(at, &at, 10);
        shared = strtoull(at, &at, 10);
        life->rss_bytes = resident * page_bytes;
        life->private_bytes = resident > shared ? (resident - shared) * page_bytes : 0;
    }
}

/*
 * Shared memory that only this process has touched, such as the collector's blocks, is private to the kernel. The own
 * part of all other pages is an upper bound without it; where it says less than the kernel's figure, it is nearer.
 */
static apr_uint64_t private_bytes(const char *text)
{
    apr_uint64_t bytes = bytes_of(text, "\nPrivate_Clean:") + bytes_of(text, "\nPrivate_Dirty:");
    apr_uint64_t part = bytes_of(text, "\nPss_Anon:") + bytes_of(text, "\nPss_File:");

    return part && part < bytes ? part : bytes;
}

static void read_memory(rp_life_t *life)
{
    char text[2048];

    if (read_file("/proc/self/smaps_rollup", text, sizeof(text))) {
        life->rss_bytes = bytes_of(text, "\nRss:");
        life->private_bytes = private_bytes(text);
    }
    else {
        read_statm(life);
    }
}

static void read_heap(rp_life_t *life)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    struct mallinfo2 info = mallinfo2();

    life->heap_used_bytes = info.uordblks + info.hblkhd;
    life->heap_held_bytes = info.arena + info.hblkhd;
#else
    (void)life;
#endif
}

static apr_uint64_t us_of(const struct timeval *time)
{
    return (apr_uint64_t)time->tv_sec * 1000000 + (apr_uint64_t)time->tv_usec;
}

static void read_cpu(rp_life_t *life)
{
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        life->cpu_user_us = us_of(&usage.ru_utime);
        life->cpu_system_us = us_of(&usage.ru_stime);
    }
}

static apr_uint64_t requests_of(rp_segment_t *segment, rp_child_t *child)
{
    apr_uint64_t requests = 0;

    for (unsigned i = 0; i < segment->shard_count; i++) {
        requests += __atomic_load_n(&rp_child_shard(segment, child, i)->requests, __ATOMIC_RELAXED);
    }
    return requests;
}

void rp_life_sample(rp_segment_t *segment, rp_child_t *child)
{
    rp_life_t *life = rp_child_life(segment, child);
    apr_uint64_t requests = requests_of(segment, child);

    read_memory(life);
    read_heap(life);
    read_cpu(life);
    rp_growth_add(&life->private_growth, requests, life->private_bytes);
    rp_growth_add(&life->heap_growth, requests, life->heap_used_bytes);
    life->sampled_us = apr_time_now();
}

void rp_life_growth(rp_growth_t *growth, const rp_life_t *life)
{
    unsigned private_count = life->private_growth.count, heap_count = life->heap_growth.count;
    rp_growth_t heap;

    rp_growth_estimate(growth, life->private_growth.points,
                       private_count < RP_GROWTH_ROOM ? private_count : RP_GROWTH_ROOM);
    rp_growth_estimate(&heap, life->heap_growth.points, heap_count < RP_GROWTH_ROOM ? heap_count : RP_GROWTH_ROOM);
    if (growth->word == heap.word) {
        *growth = heap;
    }
}
