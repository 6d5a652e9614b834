/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rules as native code, and the names and helps of everything that is counted, so that Rust reads them from where
 * they are declared.
 */
#include "native.h"

#define REASON_NAME(name, grants, help) #name,
#define REASON_HELP(name, grants, help) help,
const char *const cosched_reason_names[] = { COSCHED_REASONS(REASON_NAME) };
const char *const cosched_reason_helps[] = { COSCHED_REASONS(REASON_HELP) };

#define COUNTER_NAME(name, help) #name,
#define COUNTER_HELP(name, help) help,
const char *const cosched_counter_names[] = { COSCHED_COUNTERS(COUNTER_NAME) };
const char *const cosched_counter_helps[] = { COSCHED_COUNTERS(COUNTER_HELP) };

#define ENDPOINT_NAME(name) #name,
const char *const cosched_endpoint_names[] = { COSCHED_ENDPOINTS(ENDPOINT_NAME) };
