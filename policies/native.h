/* SPDX-License-Identifier: GPL-2.0-only */
/* Integer types for the native build of the rules; the BPF build has them from vmlinux.h. */
#ifndef COSCHED_NATIVE_H
#define COSCHED_NATIVE_H

#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#endif
