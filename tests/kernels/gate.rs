//! The gate under each kernel of Debian's: its program passes that kernel's verifier in every form, and is
//! taken away again. What the verifier refuses is another thing in each.

use crate::parts::{self, LARGEST};
use crate::shared::SERVERS;
use crate::{every_series, is_in_depth, is_possible};
use staunch_tests::process::is_installed;

/// All forms of the program; `make test` tries the largest.
const FORMS: [&str; 6] = ["drop", "reset", "either", "cookie", "lines", "most"];

#[test]
fn the_gate_is_loaded_under_each_kernel() {
    if !is_possible() || !is_installed("ip") {
        return;
    }
    let (series, forms) =
        if is_in_depth() { (every_series(), &FORMS[..]) } else { (vec!["6.12"], &LARGEST[..]) };
    for series in series {
        let said = SERVERS.said(series, &parts::gate(forms), &[]);
        forms.iter().for_each(|form| said.has(&format!("{form}: ended with 0")));
        said.has("nothing is attached");
    }
}
