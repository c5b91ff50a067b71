#include <string.h>

#include "capture/htaccess.h"
#include "capture/request.h"

enum {
    FILES_MAX = 32, /* files of a child with a span of their own */
    PLACES = 64     /* of the table that finds them again: a power of two */
};

typedef struct {
    apr_uint64_t hash; /* of the path; 0: free */
    apr_uint32_t span; /* id + 1; 0 while it is being claimed */
} place_t;

static struct {
    rp_segment_t *segment;
    unsigned shared;
    place_t places[PLACES];
    apr_uint32_t used;
} files;

/* What the opened file's functions are called with. */
typedef struct {
    ap_configfile_t original;
    rp_frame_t frame;
} open_file_t;

static rp_span_key_t key_of(const char *detail)
{
    return (rp_span_key_t){RP_KIND_HTACCESS, RP_PHASE_MAP, "open_htaccess", "htaccess", detail};
}

void rp_htaccess_plan(rp_span_plan_t *plan)
{
    rp_span_key_t key = key_of("other files");

    files.shared = rp_span_plan_share(plan, &key);
}

void rp_htaccess_child_init(rp_segment_t *segment)
{
    files.segment = segment;
}

/* FNV-1a */
static apr_uint64_t hash_of(const char *path)
{
    apr_uint64_t hash = 0xcbf29ce484222325u;

    for (; *path; path++) {
        hash = (hash ^ (unsigned char)*path) * 0x100000001b3u;
    }
    return hash ? hash : 1;
}

/* The end of a path says more than its beginning. */
static unsigned claim(const char *path)
{
    apr_size_t length = strlen(path), room = sizeof(((rp_span_t *)0)->detail) - 1;
    rp_span_key_t key = key_of(length > room ? path + length - room : path);

    if (__atomic_fetch_add(&files.used, 1, __ATOMIC_RELAXED) >= FILES_MAX) {
        return files.shared;
    }
    return rp_spans_claim(files.segment, &key);
}

/* Threads may meet a new file at once: one claims its span, the others' time goes to the shared one. */
static unsigned span_of(const char *path)
{
    apr_uint64_t hash = hash_of(path);

    for (unsigned i = 0; i < PLACES; i++) {
        place_t *place = &files.places[(hash + i) & (PLACES - 1)];
        apr_uint64_t found = 0;

        if (__atomic_compare_exchange_n(&place->hash, &found, hash, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            unsigned span = claim(path);
            __atomic_store_n(&place->span, span + 1, __ATOMIC_RELEASE);
            return span;
        }
        if (found == hash) {
            unsigned known = __atomic_load_n(&place->span, __ATOMIC_ACQUIRE);
            return known ? known - 1 : files.shared;
        }
    }
    return files.shared;
}

static apr_status_t get_character(char *character, void *data)
{
    open_file_t *file = data;

    return file->original.getch(character, file->original.param);
}

static apr_status_t get_string(void *buffer, apr_size_t bytes, void *data)
{
    open_file_t *file = data;

    return file->original.getstr(buffer, bytes, file->original.param);
}

static apr_status_t close_file(void *data)
{
    open_file_t *file = data;
    apr_status_t rv = file->original.close ? file->original.close(file->original.param) : APR_SUCCESS;

    rp_frame_close(file->frame);
    return rv;
}

void rp_htaccess_opened(request_rec *r, ap_configfile_t **config_file, const char *path)
{
    rp_request_t *request = files.segment ? rp_request_started(r) : NULL;
    open_file_t *file;

    if (!request || !path) {
        return;
    }
    file = apr_palloc(r->pool, sizeof(*file));
    file->original = **config_file;
    (*config_file)->param = file;
    (*config_file)->getch = file->original.getch ? get_character : NULL;
    (*config_file)->getstr = file->original.getstr ? get_string : NULL;
    (*config_file)->close = close_file;
    file->frame = rp_frame_open(request, span_of(path));
}
