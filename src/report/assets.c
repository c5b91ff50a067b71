#include "report/assets.h"

/* RP_ASSETS_DIR is the absolute path of assets/, set by the Makefile. */
#define EMBED(symbol, file)                                                                                            \
    __asm__(".pushsection .rodata\n"                                                                                   \
            ".global " #symbol "\n"                                                                                    \
            ".hidden " #symbol "\n"                                                                                    \
            ".type " #symbol ", @object\n"                                                                             \
            #symbol ":\n"                                                                                              \
            ".incbin \"" RP_ASSETS_DIR "/" file "\"\n"                                                                 \
            ".byte 0\n"                                                                                                \
            ".size " #symbol ", . - " #symbol "\n"                                                                     \
            ".popsection\n")

EMBED(rp_asset_page_html, "page.html");
EMBED(rp_asset_page_css, "page.css");
EMBED(rp_asset_config_html, "config.html");
EMBED(rp_asset_config_css, "config.css");
