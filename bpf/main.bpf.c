/* SPDX-License-Identifier: GPL-2.0-only */
#include <scx/common.bpf.h>
#include "intf.h"
char _license[] SEC("license") = "GPL";
UEI_DEFINE(uei);
