// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Dates as HTTP writes them: see date.h. The calendar is Gregorian; leap seconds do not exist, as
 * in Unix time.
 */
#include "date.h"

static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
static const char weekdays[] = "SunMonTueWedThuFriSat";

/*
 * Days since 1970-01-01 of a day in the Gregorian calendar. The year is counted from March, so
 * that the leap day is its last one; 153 days are five months from there on, 146097 days are 400
 * years.
 */
static s64 khttpd_date_days(int year, unsigned int month, unsigned int day)
{
	s64 y = month > 2 ? year : year - 1;
	s64 in_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return y * 365 + y / 4 - y / 100 + y / 400 + in_year - 719468;
}

void khttpd_date_of(s64 seconds, struct khttpd_date *date)
{
	u32 days = (u64)seconds / 86400, rest = (u64)seconds % 86400;
	u32 shifted = days + 719468, era = shifted / 146097, of_era = shifted % 146097;
	u32 year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	u32 of_year = of_era - (365 * year + year / 4 - year / 100);
	u32 month = (5 * of_year + 2) / 153;

	date->day = of_year - (153 * month + 2) / 5 + 1;
	date->month = month < 10 ? month + 3 : month - 9;
	date->year = year + era * 400 + (date->month <= 2);
	date->hour = rest / 3600;
	date->minute = rest / 60 % 60;
	date->second = rest % 60;
	date->weekday = (days + 4) % 7;
}

static void khttpd_date_digits(char *out, unsigned int number, unsigned int count)
{
	while (count--) {
		out[count] = '0' + number % 10;
		number /= 10;
	}
}

void khttpd_date_write(s64 seconds, char *out)
{
	struct khttpd_date date;

	khttpd_date_of(seconds, &date);
	memcpy(out, "Sun, 06 Nov 1994 08:49:37 GMT", KHTTPD_DATE_BYTES);
	memcpy(out, weekdays + 3 * date.weekday, 3);
	khttpd_date_digits(out + 5, date.day, 2);
	memcpy(out + 8, months + 3 * (date.month - 1), 3);
	khttpd_date_digits(out + 12, date.year, 4);
	khttpd_date_digits(out + 17, date.hour, 2);
	khttpd_date_digits(out + 20, date.minute, 2);
	khttpd_date_digits(out + 23, date.second, 2);
}

/* A number of exactly so many digits; false where there are others. */
static bool khttpd_date_number(const u8 *at, unsigned int count, u32 *number)
{
	*number = 0;
	while (count--) {
		u8 digit = *at++ - '0';

		if (digit > 9)
			return false;
		*number = *number * 10 + digit;
	}
	return true;
}

/*
 * The number of a name in a table of names of three letters, from 1; 0 where it is none of them.
 */
static u32 khttpd_date_name(const u8 *at, const char *names)
{
	u32 i;

	for (i = 0; names[3 * i]; i++)
		if (!memcmp(at, names + 3 * i, 3))
			return i + 1;
	return 0;
}

static bool khttpd_date_seconds(u32 year, u32 month, u32 day, const u8 *clock, s64 *seconds)
{
	static const u8 lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	u32 leap = (year % 4 == 0 && year % 100) || year % 400 == 0;
	u32 hour, minute, second;

	if (!khttpd_date_number(clock, 2, &hour) || !khttpd_date_number(clock + 3, 2, &minute) ||
	    !khttpd_date_number(clock + 6, 2, &second) || clock[2] != ':' || clock[5] != ':')
		return false;
	if (hour > 23 || minute > 59 || second > 59 || !month || year < 1970 || !day ||
	    day > lengths[month - 1] + (month == 2 ? leap : 0u))
		return false;
	*seconds = khttpd_date_days(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
	return true;
}

/* "Sunday, 06-Nov-94 08:49:37 GMT", which begins behind the name of the day. */
static bool khttpd_date_rfc850(struct khttpd_text text, s64 *seconds)
{
	u32 day, year;

	if (text.length != 24 || memcmp(text.at, ", ", 2) || memcmp(text.at + 20, " GMT", 4))
		return false;
	if (!khttpd_date_number(text.at + 2, 2, &day) ||
	    !khttpd_date_number(text.at + 9, 2, &year) || text.at[4] != '-' || text.at[8] != '-' ||
	    text.at[11] != ' ')
		return false;
	year += year < 70 ? 2000 : 1900;
	return khttpd_date_seconds(year, khttpd_date_name(text.at + 5, months), day, text.at + 12,
				   seconds);
}

/* "Sun Nov  6 08:49:37 1994" */
static bool khttpd_date_asctime(const u8 *at, s64 *seconds)
{
	u8 digits[2] = { at[8] == ' ' ? '0' : at[8], at[9] };
	u32 day, year;

	if (at[3] != ' ' || at[7] != ' ' || at[10] != ' ' || at[19] != ' ' ||
	    !khttpd_date_name(at, weekdays))
		return false;
	return khttpd_date_number(digits, 2, &day) && khttpd_date_number(at + 20, 4, &year) &&
	       khttpd_date_seconds(year, khttpd_date_name(at + 4, months), day, at + 11, seconds);
}

bool khttpd_date_read(struct khttpd_text text, s64 *seconds)
{
	static const char *const days[] = { "Sunday",   "Monday", "Tuesday", "Wednesday",
					    "Thursday", "Friday", "Saturday" };
	const u8 *at = text.at;
	u32 day, year, i;

	if (text.length == 24)
		return khttpd_date_asctime(at, seconds);
	if (text.length == KHTTPD_DATE_BYTES && at[3] == ',' && at[4] == ' ' && at[7] == ' ' &&
	    at[11] == ' ' && at[16] == ' ' && !memcmp(at + 25, " GMT", 4) &&
	    khttpd_date_name(at, weekdays))
		return khttpd_date_number(at + 5, 2, &day) &&
		       khttpd_date_number(at + 12, 4, &year) &&
		       khttpd_date_seconds(year, khttpd_date_name(at + 8, months), day, at + 17,
					   seconds);
	for (i = 0; i < 7; i++) {
		size_t length = strlen(days[i]);

		if (text.length == length + 24 && !memcmp(at, days[i], length))
			return khttpd_date_rfc850(khttpd_text_from(text, length), seconds);
	}
	return false;
}
