//! What a process is told of the confinement it was born in.
//!
//! It owns the form of that text. It must never be believed alone: who uses it looks whether it is so.

use std::fmt;

/// The variable of the environment in which a process hands on how it is confined, to the one it is upgraded
/// to.
pub const INHERITED: &str = "STAUNCH_CONFINED";

/// What an earlier program of this process, or its parent, has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Inherited {
    /// The fence around files: the kernel's version of Landlock, and the digest of the rules.
    pub(crate) fence: Option<(String, u64)>,
    /// Digest of the filter of system calls.
    pub(crate) filter: Option<u64>,
    /// The user as it was named, and the numbers of user and group.
    pub(crate) user: Option<(String, u32, u32)>,
}

impl Inherited {
    /// What the environment says; what cannot be read is nothing.
    pub(crate) fn from_environment() -> Self {
        std::env::var(INHERITED).map_or_else(|_| Self::default(), |text| Self::read(&text))
    }

    fn read(text: &str) -> Self {
        let mut inherited = Self::default();
        for word in text.split(' ') {
            match word.split('=').collect::<Vec<_>>()[..] {
                ["fence", abi, digest] => inherited.fence = number(digest).map(|digest| (abi.into(), digest)),
                ["filter", digest] => inherited.filter = number(digest),
                ["user", name, user, group] => {
                    let numbers = user.parse().ok().zip(group.parse().ok());
                    inherited.user = numbers.map(|(user, group)| (name.into(), user, group));
                }
                _ => {}
            }
        }
        inherited
    }

    /// Whether nothing is known.
    pub(crate) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

fn number(hexadecimal: &str) -> Option<u64> {
    u64::from_str_radix(hexadecimal, 16).ok()
}

impl fmt::Display for Inherited {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fence = self.fence.as_ref().map(|(abi, digest)| format!("fence={abi}={digest:x}"));
        let filter = self.filter.map(|digest| format!("filter={digest:x}"));
        let user = self.user.as_ref().map(|(name, user, group)| format!("user={name}={user}={group}"));
        let words: Vec<String> = [fence, filter, user].into_iter().flatten().collect();
        formatter.write_str(&words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let whole = Inherited {
            fence: Some(("7".into(), 0xfeed)),
            filter: Some(17),
            user: Some(("www-data:adm".into(), 33, 4)),
        };
        for inherited in [
            Inherited { fence: None, ..whole.clone() },
            Inherited { filter: None, user: None, ..whole.clone() },
            Inherited::default(),
            whole,
        ] {
            assert_eq!(Inherited::read(&inherited.to_string()), inherited);
        }
    }

    #[test]
    fn what_makes_no_sense_is_nothing() {
        for text in ["", "1", "fence=7", "filter=x user=a=b=c", "user=root=0"] {
            assert!(Inherited::read(text).is_nothing(), "{text}");
        }
    }
}
