/**
 * @file mod_reqprof.h
 * @brief Public: the module's version.
 */
#ifndef MOD_REQPROF_H
#define MOD_REQPROF_H

#define REQPROF_VERSION "0.1.0"

#endif
