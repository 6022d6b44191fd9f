//! The times of renewals and of attempts after a failure. Pure: wall clock and random numbers are arguments.

use crate::fault::AcmeFault;
use crate::limits::{REFUSED_FACTOR, REFUSED_WAIT_S, UNREACHABLE_WAIT_S, UNREACHABLE_WAIT_S_MAX, WAIT_S_MAX};

const DAY_S: u64 = 86_400;

/// A number from 0 up to and without 1, for jitter.
pub(crate) type Chance = f64;

/// When to renew a certificate valid from the first to the second of these times (seconds since 1970), where
/// the authority does not say: at two thirds of its life, less up to a fiftieth by lot, so that certificates
/// made together are not renewed at the same moment.
pub(crate) fn renewal_unix_s((from, to): (u64, u64), chance: Chance) -> u64 {
    let life = to.saturating_sub(from);
    let due = from + life / 3 * 2;
    due.saturating_sub(part(life / 50, chance))
}

/// A random time in the renewal window that the authority suggests (RFC 9773, section 4.2).
pub(crate) fn moment_unix_s((start, end): (u64, u64), chance: Chance) -> u64 {
    start + part(end.saturating_sub(start), chance)
}

/// The part of a renewal window in which the certificate is still good; a window that begins later is its
/// last day, or half of its life if that is shorter: an authority cannot want a name to go without.
pub(crate) fn window_within((start, end): (u64, u64), (from, to): (u64, u64)) -> (u64, u64) {
    if start < to {
        return (start, end.min(to).max(start));
    }
    (to.saturating_sub(DAY_S.min(to.saturating_sub(from) / 2)), to)
}

/// Seconds until the next attempt, after so many failures in a row, the last of them this fault: longer with
/// each failure, never less than the authority's `Retry-After`, and never more than a day.
pub(crate) fn wait_s(failures: u32, fault: &AcmeFault, chance: Chance) -> u64 {
    let steps = failures.saturating_sub(1);
    let wait = match fault {
        AcmeFault::Unreachable(_) => {
            let wait = 2u64.checked_pow(steps).and_then(|factor| UNREACHABLE_WAIT_S.checked_mul(factor));
            wait.unwrap_or(u64::MAX).min(UNREACHABLE_WAIT_S_MAX)
        }
        _ => {
            let factor = REFUSED_FACTOR.checked_pow(steps);
            factor.and_then(|factor| REFUSED_WAIT_S.checked_mul(factor)).unwrap_or(u64::MAX)
        }
    };
    let wait = wait.max(fault.retry_after_s().unwrap_or(0)).min(WAIT_S_MAX);
    // Many servers that were refused together do not come together again.
    (wait + part(wait / 10, chance)).min(WAIT_S_MAX)
}

#[allow(clippy::cast_precision_loss)]
fn part(length: u64, chance: Chance) -> u64 {
    (length as f64 * chance) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;

    fn refused(retry_after_s: Option<u64>) -> AcmeFault {
        AcmeFault::Refused { kind: "unauthorized".into(), detail: "no".into(), retry_after_s }
    }

    #[test]
    fn renewal_is_at_two_thirds_and_a_little_earlier_for_some() {
        let life = (1_000, 1_000 + 90 * DAY);
        assert_eq!(renewal_unix_s(life, 0.0), 1_000 + 60 * DAY);
        let early = renewal_unix_s(life, 0.999);
        assert!(early < 1_000 + 59 * DAY && early > 1_000 + 58 * DAY, "{early}");
        assert_eq!(renewal_unix_s((5, 5), 0.5), 5);
    }

    #[test]
    fn a_moment_is_within_its_window() {
        assert_eq!(moment_unix_s((10, 20), 0.0), 10);
        assert_eq!(moment_unix_s((10, 20), 0.99), 19);
        assert_eq!(moment_unix_s((10, 10), 0.99), 10);
    }

    #[test]
    fn no_window_lies_behind_the_end_of_the_certificate() {
        let life = (1_000, 1_000 + 90 * DAY);
        assert_eq!(window_within((2_000, 3_000), life), (2_000, 3_000));
        assert_eq!(window_within((2_000, u64::MAX), life), (2_000, life.1));
        // The year 9999.
        let late = (253_370_764_800, 253_370_768_400);
        assert_eq!(window_within(late, life), (life.1 - DAY, life.1));
        assert_eq!(window_within(late, (1_000, 1_000 + DAY)), (1_000 + DAY / 2, 1_000 + DAY));
        assert!(moment_unix_s(window_within(late, life), 0.999) < life.1);
    }

    #[test]
    fn waits_grow_to_a_day_and_obey_the_authority() {
        let waits: Vec<u64> = (1..=9).map(|failures| wait_s(failures, &refused(None), 0.0)).collect();
        assert_eq!(waits, [60, 180, 540, 1_620, 4_860, 14_580, 43_740, DAY, DAY]);
        assert_eq!(wait_s(1, &refused(Some(7_200)), 0.0), 7_200);
        assert_eq!(wait_s(1, &refused(Some(1)), 0.0), 60);
        assert_eq!(wait_s(1, &refused(Some(u64::MAX)), 0.9), DAY);
        assert_eq!(wait_s(u32::MAX, &refused(None), 0.9), DAY);
    }

    #[test]
    fn nothing_is_spent_where_nobody_answers() {
        let unreachable = AcmeFault::Unreachable("refused".into());
        let waits: Vec<u64> = [1, 2, 3, 20, 400].map(|failures| wait_s(failures, &unreachable, 0.0)).into();
        assert_eq!(waits, [5, 10, 20, 3_600, 3_600]);
    }
}
