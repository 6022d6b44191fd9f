// SPDX-License-Identifier: GPL-2.0
/* Defines the trace points that trace.h declares. */
#define CREATE_TRACE_POINTS
#include "trace.h"
