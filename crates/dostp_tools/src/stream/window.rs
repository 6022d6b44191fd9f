//! A memory of the last numbers of a stream: which of them have come.
//!
//! A window owns a bitmap of one size. A number before the bitmap must never be taken for new.

/// The farthest behind the greatest that a number may come and still be known for new or for a copy.
pub(super) const WINDOW: u64 = 16_384;

/// Whether a number came before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coming {
    New,
    Copy,
    /// Too far behind for that to be known.
    Old,
}

/// The numbers below the end, as far as they are remembered.
#[derive(Debug)]
pub(super) struct Window {
    /// A bit for each number, by its rest of a division by [`WINDOW`].
    bits: Vec<u64>,
    /// The greatest number that came, and one.
    end: u64,
}

impl Default for Window {
    fn default() -> Self {
        Self { bits: vec![0; (WINDOW / 64) as usize], end: 0 }
    }
}

impl Window {
    /// The greatest number that came, and one.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Takes a number below the greatest of all.
    pub(super) fn take(&mut self, number: u64) -> Coming {
        if number < self.end {
            if self.end - number > WINDOW {
                return Coming::Old;
            }
            if self.has(number) {
                return Coming::Copy;
            }
        } else if number - self.end >= WINDOW {
            self.bits.fill(0);
        } else {
            (self.end..number).for_each(|skipped| self.set(skipped, false));
        }
        self.set(number, true);
        self.end = self.end.max(number + 1);
        Coming::New
    }

    /// The count of numbers at or above this one that have come, as far as they are remembered.
    pub(super) fn count_from(&self, number: u64) -> u64 {
        let first = number.max(self.end.saturating_sub(WINDOW));
        (first..self.end).filter(|number| self.has(*number)).count() as u64
    }

    fn has(&self, number: u64) -> bool {
        let bit = number % WINDOW;
        self.bits[(bit / 64) as usize] >> (bit % 64) & 1 == 1
    }

    fn set(&mut self, number: u64, is_there: bool) {
        let bit = number % WINDOW;
        let (word, mask) = (&mut self.bits[(bit / 64) as usize], 1 << (bit % 64));
        if is_there { *word |= mask } else { *word &= !mask }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_new_once_and_unknown_when_it_is_far_behind() {
        let mut window = Window::default();
        let mut takes = |number: u64, expected: Coming| assert_eq!(window.take(number), expected, "{number}");
        for (number, expected) in [(0, Coming::New), (2, Coming::New), (1, Coming::New), (2, Coming::Copy)] {
            takes(number, expected);
        }
        takes(WINDOW + 1, Coming::New);
        // The place of 1 is now that of the last; that of 2 is the first that is remembered.
        for (number, expected) in [(1, Coming::Old), (2, Coming::Copy), (3, Coming::New)] {
            takes(number, expected);
        }
        takes(10 * WINDOW, Coming::New);
        takes(10 * WINDOW - 1, Coming::New);
        takes(9 * WINDOW, Coming::Old);
        assert_eq!(
            (window.end(), window.count_from(0), window.count_from(10 * WINDOW)),
            (10 * WINDOW + 1, 2, 1)
        );
    }
}
