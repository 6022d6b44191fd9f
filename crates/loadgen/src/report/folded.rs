//! Warnings of many rounds as few: those that differ in their figures alone are said once, with the gravest.
//!
//! It must never drop a warning of another kind, nor say the milder of two.

/// The warnings in the order in which their kinds were first said. The figure that a warning begins with says
/// how grave it is.
pub(super) fn folded<'a>(warnings: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut kinds: Vec<Kind<'a>> = Vec::new();
    for warning in warnings {
        match kinds.iter_mut().find(|kind| kind.holds(warning)) {
            Some(kind) => kind.take(warning),
            None => kinds.push(Kind { gravest: warning, rounds: 1 }),
        }
    }
    kinds.iter().map(Kind::words).collect()
}

struct Kind<'a> {
    gravest: &'a str,
    rounds: usize,
}

impl<'a> Kind<'a> {
    fn holds(&self, warning: &str) -> bool {
        letters(self.gravest).eq(letters(warning))
    }

    fn take(&mut self, warning: &'a str) {
        self.rounds += 1;
        if figure(warning) > figure(self.gravest) {
            self.gravest = warning;
        }
    }

    fn words(&self) -> String {
        match self.rounds {
            1 => self.gravest.to_owned(),
            rounds => format!("{} (The worst of {rounds} rounds that say so.)", self.gravest),
        }
    }
}

fn is_of_figure(letter: char) -> bool {
    letter.is_ascii_digit() || letter == '.'
}

fn letters(warning: &str) -> impl Iterator<Item = char> {
    warning.chars().filter(|letter| !is_of_figure(*letter))
}

/// The first figure of a sentence.
fn figure(warning: &str) -> f64 {
    let behind = warning.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let end = behind.find(|letter| !is_of_figure(letter)).unwrap_or(behind.len());
    behind[..end].trim_end_matches('.').parse().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gravest_of_a_kind_is_said_once() {
        let warnings = ["late by 1.7 ms.", "7 unsent.", "late by 10.2 ms.", "late by 9 ms.", "no figure"];
        let warnings = warnings.map(str::to_owned);
        assert_eq!(
            folded(warnings.iter()),
            ["late by 10.2 ms. (The worst of 3 rounds that say so.)", "7 unsent.", "no figure"]
        );
    }

    #[test]
    fn a_figure_at_the_end_of_a_sentence_is_one() {
        assert_eq!(figure("one in 12."), 12.0);
        assert_eq!(figure("none..."), 0.0);
    }
}
