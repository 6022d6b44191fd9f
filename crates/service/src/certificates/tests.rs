//! Files that change while the settings are read again.
use std::fs;

use staunch_config::{File, Sources};

use super::*;

const DAY: u64 = 86_400;

#[test]
fn a_reload_does_not_undo_what_was_read_meanwhile() {
    let folder = std::env::temp_dir().join(format!("staunch-overtaken-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let authority = LocalAuthority::create(now_unix_s() - 9 * DAY).expect("an authority");
    let write = |from_unix_s| {
        let issued = authority.issue(&["localhost"], from_unix_s).expect("a local name");
        fs::write(folder.join("key.pem"), issued.key_pem.as_bytes()).expect("a file");
        fs::write(folder.join("chain.pem"), issued.certificate_pem).expect("a file");
    };
    let path = folder.display();
    let text =
        format!("root = '{path}'\ntls = {{ certificate = '{path}/chain.pem', key = '{path}/key.pem' }}\n");
    let file = Some(File::new("staunch.toml", text));
    let config = staunch_config::read(&Sources { flags: Vec::new(), environment: Vec::new(), file });
    let config = config.expect("good settings");
    let say: Notice = Arc::new(|_| ());

    write(now_unix_s() - 2 * DAY);
    let certificates = Certificates::new().expect("random numbers");
    let read = || certificates.read(&config).unwrap_or_else(|failure| panic!("{}", failure.text));
    certificates.replace(&read(), &config, &[]);
    let first = certificates.expiries();
    // A reload has read the files, and is not done when they change.
    let of_reload = read();
    write(now_unix_s() - DAY);
    certificates.look(true, &say);
    let second = certificates.expiries();
    assert_ne!(first, second);
    certificates.replace(&of_reload, &config, &[]);
    certificates.look(false, &say);
    assert_eq!(certificates.expiries(), second);
    fs::remove_dir_all(&folder).expect("ours");
}
