/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Units of time, which vmlinux.h does not have: they are macros in the kernel.
 */
#ifndef COSCHED_UNITS_H
#define COSCHED_UNITS_H

#define NSEC_PER_USEC	1000ULL
#define NSEC_PER_MSEC	1000000ULL
#define NSEC_PER_SEC	1000000000ULL

#endif
