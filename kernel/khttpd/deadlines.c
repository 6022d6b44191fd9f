// SPDX-License-Identifier: GPL-2.0
/* Deadlines of this module's connections: see ../include/deadlines.h. */
#include "../include/deadlines.c"
