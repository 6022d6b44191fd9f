//! Where settings come from: flags, environment, file. It must never read one of them itself.

/// All that is said, by layer.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Flags that were given: name of the key and value; several values stand between commas.
    pub flags: Vec<(String, String)>,
    /// Variables by their full names. Empty ones say nothing; those of no key are ignored.
    pub environment: Vec<(String, String)>,
    /// The configuration file, if there is one.
    pub file: Option<File>,
}

/// A file that was read.
#[derive(Debug, Clone)]
pub struct File {
    /// What it is called, for messages.
    pub name: String,
    /// What stands in it.
    pub text: String,
}
