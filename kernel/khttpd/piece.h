/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The pieces in which an answer is sent to be compared: its head, and each of its lines. Freestanding: see
 * text.h.
 */
#ifndef KHTTPD_PIECE_H
#define KHTTPD_PIECE_H

#include "text.h"

/* How long the first piece of what is sent is. */
size_t khttpd_piece_length(const char *at, size_t length);

#endif
