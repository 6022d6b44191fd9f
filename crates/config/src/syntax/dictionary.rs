//! To which former answers a later one is told as the difference.

use crate::node::{Node, ValueKind};
use crate::syntax::choice::OnOff;
use crate::syntax::web::Pattern;
use crate::syntax::{Complaint, Scalar, Syntax};

/// The former answers that are dictionaries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dictionary {
    /// None.
    Off,
    /// Former versions of the same path.
    Own,
    /// Files at paths of this pattern.
    Pattern(String),
}

/// `on`, `off` (in a file also `true` and `false`), or a pattern of paths.
#[derive(Debug)]
pub struct DictionaryOf;

impl Syntax for DictionaryOf {
    type Value = Dictionary;

    fn word() -> String {
        format!("{}|PATTERN", OnOff::WORD)
    }

    fn read(node: &Node, complaints: &mut Vec<Complaint>) -> Option<Dictionary> {
        let switch = match &node.kind {
            ValueKind::Switch(switch) => Some(*switch),
            ValueKind::Text(text) => OnOff::parse(text).ok(),
            _ => None,
        };
        match switch {
            Some(true) => Some(Dictionary::Own),
            Some(false) => Some(Dictionary::Off),
            None => <Pattern as Syntax>::read(node, complaints).map(Dictionary::Pattern),
        }
    }

    fn write(dictionary: &Dictionary) -> Node {
        match dictionary {
            Dictionary::Off => <OnOff as Scalar>::write(&false),
            Dictionary::Own => <OnOff as Scalar>::write(&true),
            Dictionary::Pattern(pattern) => Node::text(pattern),
        }
    }
}
