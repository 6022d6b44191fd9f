//! Passwords that are guessed fast by whoever gets their file: which lines those are, and what to do.
//!
//! Old hashes are only warned of: a file of another server is to be served from today and mended tomorrow.

use staunch_config::Config;
use staunch_config::syntax::web::users_with_old_hashes;
use staunch_netio::named_file::read_text;
use staunch_server::limits::USERS_FILE_BYTES_MAX;

/// A sentence for each file of users in which such hashes stand.
pub(crate) fn warnings(config: &Config) -> Vec<String> {
    let rules = config.sites.iter().flat_map(|site| &site.paths);
    let mut files: Vec<_> =
        rules.filter_map(|rule| rule.basic_auth.as_ref()?.as_ref()?.users_file.as_deref()).collect();
    files.sort_unstable();
    files.dedup();
    // A file that cannot be read is told of by who needs it.
    let read = files.into_iter().filter_map(|file| Some((file, read_text(file, USERS_FILE_BYTES_MAX).ok()?)));
    read.filter_map(|(file, text)| {
        let old = users_with_old_hashes(&text);
        let (line, name) = old.first()?;
        let others = match old.len() - 1 {
            0 => String::new(),
            1 => ", as that of another user".to_owned(),
            count => format!(", as those of {count} others"),
        };
        Some(format!(
            "{}:{line}: the hash of {name} is $apr1$ or {{SHA}}, which is guessed fast{others}: put the line \
             that `staunch password {name}` prints in its place",
            file.display()
        ))
    })
    .collect()
}
