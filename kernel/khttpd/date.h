/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Dates as HTTP writes them (RFC 9110, section 5.6.7). Never asks the time. Freestanding.
 */
#ifndef KHTTPD_DATE_H
#define KHTTPD_DATE_H

#include "text.h"

enum khttpd_date_limit {
	KHTTPD_DATE_BYTES = 29, /* "Sun, 06 Nov 1994 08:49:37 GMT" */
};

struct khttpd_date {
	int year;
	u8 month, day, hour, minute, second,
		weekday; /* month and day from 1, weekday from Sunday, 0 */
};

/* The calendar's date of seconds since 1970, which must lie in the years 1970 to 9999. */
void khttpd_date_of(s64 seconds, struct khttpd_date *date);
/* Writes an IMF-fixdate, 29 bytes without NUL. */
void khttpd_date_write(s64 seconds, char *out);
/*
 * Reads any of the three forms that a recipient must take (section 5.6.7). A year in two digits
 * below 70 is one of this century. False where it is no date.
 */
bool khttpd_date_read(struct khttpd_text text, s64 *seconds);

#endif
