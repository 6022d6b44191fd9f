//! The gate under each kernel of Debian's: its program passes that kernel's verifier in every form, and is
//! taken away again. What the verifier refuses is another thing in each.

use std::path::PathBuf;

use crate::modules::Guest;
use crate::{every_series, is_in_depth, is_possible};
use staunch_tests::process::{binary, is_installed};

/// Forms of the program: all, and those that `make test` tries, which have every part of it.
const FORMS: [&str; 5] = ["drop", "reset", "either", "cookie", "lines"];
const LARGEST: [&str; 2] = ["cookie", "lines"];

#[test]
fn the_gate_is_loaded_under_each_kernel() {
    if !is_possible() || !is_installed("ip") {
        return;
    }
    let programs = [PathBuf::from("/bin/ip"), binary()];
    let (series, forms) =
        if is_in_depth() { (every_series(), &FORMS[..]) } else { (vec!["6.12"], &LARGEST[..]) };
    for series in series {
        let guest = Guest { series, modules: &[], programs: &programs, words: &["--stock", "veth"] };
        let said = guest.say(&format!("forms='{}'\n{}", forms.join(" "), include_str!("gate.sh")));
        forms.iter().for_each(|form| said.has(&format!("{form}: ended with 0")));
        said.has("nothing is attached");
    }
}
