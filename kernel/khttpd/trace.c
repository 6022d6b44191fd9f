// SPDX-License-Identifier: GPL-2.0
/* The trace points of trace.h, made. */
#define CREATE_TRACE_POINTS
#include "trace.h"
