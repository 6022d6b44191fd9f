//! Mercure's hub, with tokens of both versions: a publisher like Symfony's, and subscribers.

use std::process::{Command, Stdio};

use staunch_tests::process::is_installed;

use crate::browsers::script;
use crate::world::{ENGINES, World};

const SECRET: &str = "a-secret-of-an-issuer-of-32-bytes-or-more";

#[test]
fn publishers_and_subscribers_of_mercure_are_served() {
    if !is_installed("python3") {
        return;
    }
    let folder = staunch_tests::tree::Tree::new().expect("a folder");
    let file = folder.root().join("secret");
    std::fs::write(&file, format!("{SECRET}\n")).expect("a file of ours");
    let settings = format!(
        "live_cookie = \"mercureAuthorization\"\nlive_issuer = [{{ name = \"https://id.example.org\", \
         audience = \"https://live.example.org\", secret_file = \"{}\", mercure_compatibility = true }}]",
        file.display()
    );
    for io in ENGINES {
        let world = World::with_settings(io, &[], &settings);
        let address = world.address();
        let output = Command::new("python3")
            .arg(script("mercure.py"))
            .args([address.ip().to_string(), address.port().to_string(), SECRET.to_owned()])
            .stdin(Stdio::null())
            .output()
            .expect("python3");
        let (said, complaints) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(said.ends_with("held\n"), "{io}: {said}{complaints}");
    }
}
