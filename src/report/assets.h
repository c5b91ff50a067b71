/**
 * @file assets.h
 * @brief The page's files of assets/, embedded at build time. Each ends with a zero byte.
 */
#ifndef RP_REPORT_ASSETS_H
#define RP_REPORT_ASSETS_H

extern const char rp_asset_page_html[] __attribute__((visibility("hidden")));
extern const char rp_asset_page_css[] __attribute__((visibility("hidden")));
extern const char rp_asset_config_html[] __attribute__((visibility("hidden")));
extern const char rp_asset_config_css[] __attribute__((visibility("hidden")));

#endif
