// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Range requests for bytes: see range.h. Never gives a range that is empty or not within the
 * length.
 */
#include "range.h"

/*
 * A number; one too large to be held is as good as the largest. False where there are other
 * letters than digits.
 */
static bool khttpd_range_number(struct khttpd_text digits, u64 *number)
{
	size_t i;

	for (i = 0; i < digits.length; i++)
		if (digits.at[i] < '0' || digits.at[i] > '9')
			return false;
	if (!khttpd_text_decimal(digits, number))
		*number = ~0ULL;
	return digits.length;
}

/* `first-last`, `first-` or `-suffix` (RFC 9110, section 14.1.2). */
static enum khttpd_range_answer khttpd_range_one(struct khttpd_text element, u64 length, u64 *start,
						 u64 *end)
{
	size_t dash = khttpd_text_find(element, '-');
	struct khttpd_text first = khttpd_text_until(element, dash), last;
	bool has_first, has_last;
	u64 from = 0, to = 0;

	if (dash == element.length)
		return KHTTPD_RANGE_IGNORE;
	last = khttpd_text_from(element, dash + 1);
	has_first = khttpd_range_number(first, &from);
	has_last = khttpd_range_number(last, &to);
	if (has_first && has_last && from <= to) {
		*start = from;
		*end = to < length ? to + 1 : length;
	} else if (has_first && !last.length) {
		*start = from;
		*end = length;
	} else if (!first.length && has_last) {
		*start = to < length ? length - to : 0;
		*end = length;
	} else {
		return KHTTPD_RANGE_IGNORE;
	}
	return *start < *end ? KHTTPD_RANGE_ONE : KHTTPD_RANGE_UNSATISFIABLE;
}

enum khttpd_range_answer khttpd_range_parse(struct khttpd_text field, u64 length, u64 *start,
					    u64 *end)
{
	struct khttpd_text member, one = {};
	bool more = true;

	if (!length || field.length < 6 ||
	    !khttpd_text_is_word(khttpd_text_until(field, 6), "bytes="))
		return KHTTPD_RANGE_IGNORE;
	field = khttpd_text_from(field, 6);
	while (khttpd_text_member(&field, &more, &member)) {
		if (member.length && one.length)
			return KHTTPD_RANGE_IGNORE;
		if (member.length)
			one = member;
	}
	return one.length ? khttpd_range_one(one, length, start, end) : KHTTPD_RANGE_IGNORE;
}
