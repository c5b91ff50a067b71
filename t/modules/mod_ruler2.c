/* The same as mod_ruler under a second name, so that a test can tell "here" from "elsewhere"; see ruler.inc. */
#define RULER_ID ruler2
#define RULER_NAME "ruler2"
#define RULER_UPPER "RULER2"
#define RULER_HEADER "X-Ruler2"
#define RULER_DIRECTIVE "Ruler2"
#include "ruler.inc"

AP_DECLARE_MODULE(ruler2) = {STANDARD20_MODULE_STUFF, create_dir_config, merge_dir_config, NULL, NULL, directives,
                             register_hooks, AP_MODULE_FLAG_NONE};
