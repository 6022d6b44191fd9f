//! A suite whose tests depend on different things, run as two: emulated machines with the server, and
//! machines that have modules of the kernel alone.
//!
//! It owns the names of both and the words by which the program chooses its tests.

use super::suite::Suite;

/// The suite that is run in parts.
const KERNELS: &str = "kernels";
/// The part that runs no server.
pub(super) const MODULES: &str = "kernels-modules";
/// The files of its tests.
const OF_MODULES: [&str; 8] =
    ["cache::", "listings::", "modules::", "namespaces::", "pieces::", "strain::", "talk::", "timers::"];

/// A machine at a time: the other part has one beside it.
const ONE_AT_A_TIME: [&str; 2] = ["--test-threads", "1"];

/// The parts of a suite: itself, if it is in one.
pub(super) fn of(mut suite: Suite) -> Vec<Suite> {
    if suite.name != KERNELS {
        return vec![suite];
    }
    let modules = Suite {
        name: MODULES.to_owned(),
        program: suite.program.clone(),
        folder: suite.folder.clone(),
        words: words(OF_MODULES.to_vec()),
    };
    suite.words = words(OF_MODULES.iter().flat_map(|file| ["--skip", file]).collect());
    vec![suite, modules]
}

fn words(choice: Vec<&str>) -> Vec<String> {
    [ONE_AT_A_TIME.to_vec(), choice].concat().into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn each_test_is_in_one_part() {
        let suite = |name: &str| Suite {
            name: name.to_owned(),
            program: PathBuf::from("p"),
            folder: PathBuf::from("tests"),
            words: Vec::new(),
        };
        assert_eq!(of(suite("live")).len(), 1);
        let parts = of(suite(KERNELS));
        let skipped: Vec<&String> = parts[0].words.iter().filter(|word| *word != "--skip").collect();
        assert_eq!(skipped, parts[1].words.iter().collect::<Vec<_>>());
    }
}
