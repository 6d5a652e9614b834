/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rules for the tests, the simulator and the loader: functions that other files may call, and not inline ones.
 * bindgen reads their names and types from here. The BPF build has the integer types from vmlinux.h.
 */
#ifndef COSCHED_NATIVE_H
#define COSCHED_NATIVE_H

#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#define static
#define inline
#include "gate.h"
#include "surplus.h"
#include "wait.h"
#include "../bpf/intf.h"
#undef static
#undef inline

#endif
