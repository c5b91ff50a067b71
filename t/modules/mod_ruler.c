/* A module that spends a known time at a known place; see ruler.inc. */
#define RULER_ID ruler
#define RULER_NAME "ruler"
#define RULER_UPPER "RULER"
#define RULER_HEADER "X-Ruler"
#define RULER_DIRECTIVE "Ruler"
#include "ruler.inc"

AP_DECLARE_MODULE(ruler) = {STANDARD20_MODULE_STUFF, create_dir_config, merge_dir_config, NULL, NULL, directives,
                            register_hooks, AP_MODULE_FLAG_NONE};
