//! Times of a listing in UTC, as RFC 3339 writes them.
//!
//! Owns the way from seconds to a calendar date. Never asks for the current time.

/// The earliest and the latest second that RFC 3339 can write (years 0000 to 9999). File systems can hold
/// more.
const SECONDS_MIN: i64 = -62_167_219_200;
/// See above.
const SECONDS_MAX: i64 = 253_402_300_799;

/// Days of UTC are all of one length here, as in every count of seconds since 1970.
const DAY_S: i64 = 86_400;

/// `2026-11-20T10:33:46Z` (RFC 3339, section 5.6) for seconds since 1970; times out of its range become the
/// nearest that can be written.
pub(super) fn rfc3339(unix_s: i64) -> [u8; 20] {
    let unix_s = unix_s.clamp(SECONDS_MIN, SECONDS_MAX);
    let (year, month, day) = civil(unix_s.div_euclid(DAY_S));
    let second = unix_s.rem_euclid(DAY_S);
    let mut text = *b"0000-00-00T00:00:00Z";
    put(&mut text[0..4], year);
    put(&mut text[5..7], month);
    put(&mut text[8..10], day);
    put(&mut text[11..13], second / 3600);
    put(&mut text[14..16], second / 60 % 60);
    put(&mut text[17..19], second % 60);
    text
}

/// Writes a number that is not negative right-aligned over digits.
fn put(digits: &mut [u8], mut number: i64) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Year, month and day of a count of days since 1970 in the Gregorian calendar. Years are counted from March,
/// so that the leap day is the last day of its year, and in eras of 400 years, which are all 146 097 days
/// long.
fn civil(days: i64) -> (i64, i64, i64) {
    const ERA_DAYS: i64 = 146_097;
    const MARCH_OF_YEAR_0: i64 = -719_468;
    let days = days - MARCH_OF_YEAR_0;
    let era = days.div_euclid(ERA_DAYS);
    let day_of_era = days.rem_euclid(ERA_DAYS);
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / (ERA_DAYS - 1);
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months_since_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * months_since_march + 2) / 5 + 1;
    let month = if months_since_march < 10 { months_since_march + 3 } else { months_since_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn known_times() {
        let table: [(i64, &str); 9] = [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (1_795_170_826, "2026-11-20T10:33:46Z"),
            (i64::MIN, "0000-01-01T00:00:00Z"),
            (i64::MAX, "9999-12-31T23:59:59Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ];
        for (unix_s, text) in table {
            assert_eq!(str::from_utf8(&rfc3339(unix_s)), Ok(text), "{unix_s}");
        }
    }

    #[test]
    fn days_follow_each_other() {
        // Counts four hundred years day by day with the rule of leap years as everyone knows it.
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..146_097 {
            assert_eq!(super::civil(days), (year, month, day), "{days}");
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let last = match month {
                2 => 28 + i64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > last {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
        }
    }
}
