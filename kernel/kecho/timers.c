// SPDX-License-Identifier: GPL-2.0
/* Deadlines of this module's connections: see ../include/timers.h. */
#include "../include/timers.c"
