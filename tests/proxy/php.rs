//! PHP's own process manager, and a site whose scripts it runs.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use staunch_tests::house::skipping::skip;
use staunch_tests::process::binary;
use staunch_tests::tree::Tree;

use crate::world::{PATIENCE, Told as _, World};

/// Tells a script's variables and the body of the request.
pub(crate) const TELL: &str = r"<?php
$body = file_get_contents('php://input');
$told = $_SERVER;
$told['BODY_BYTES'] = strlen($body);
$told['BODY_MD5'] = md5($body);
$told['PROXY'] = getenv('HTTP_PROXY');
header('Content-Type: application/json');
echo json_encode($told, JSON_UNESCAPED_SLASHES);
";

/// Settings of a site that PHP answers for.
pub(crate) const SITE: &str = "root = \"{root}\"\nproxy = \"{php}\"\nworkers = 2\n";

/// A process manager with a folder of its own, and the folder that is served.
pub(crate) struct Php {
    child: Child,
    tree: Tree,
}

impl Drop for Php {
    fn drop(&mut self) {
        // Asked by TERM it ends its children as well. A test that failed has its own reason to tell.
        _ = Command::new("kill").arg(self.child.id().to_string()).status();
        _ = self.child.wait();
    }
}

impl Php {
    /// Begins with so many processes and these scripts and files; `None` where it is not installed, which is
    /// a failure where everything must be tested.
    pub(crate) fn start(children: usize, files: &[(&str, &str)]) -> Option<Self> {
        let Some(program) = program() else {
            skip("php-fpm8.2 is not installed (cargo xtask install --for test brings it)");
            return None;
        };
        let tree = Tree::with(&[]).expect("a tree");
        std::fs::create_dir(tree.root().join("www")).expect("a folder");
        for (name, content) in files {
            write(tree.root(), name, content.as_bytes());
        }
        let path = tree.root().display();
        let settings = format!(
            "[global]\nerror_log = {path}/log\ndaemonize = no\nprocess_control_timeout = 60s\n[www]\n\
             listen = {path}/php.sock\nlisten.backlog = 511\nlisten.mode = 0666\npm = static\n\
             pm.max_children = {children}\nuser = nobody\ngroup = nogroup\nclear_env = yes\n"
        );
        std::fs::write(tree.root().join("settings"), settings).expect("settings");
        let mut command = Command::new(program);
        command.args(["-n", "-F", "-R", "-y"]).arg(tree.root().join("settings"));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("php-fpm starts");
        let mut php = Self { child, tree };
        // The file is there before anybody listens at it.
        while UnixStream::connect(php.tree.root().join("php.sock")).is_err() {
            let ended = php.child.try_wait().expect("its state");
            assert!(ended.is_none(), "php-fpm has ended: {ended:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
        Some(php)
    }

    pub(crate) fn root(&self) -> &Path {
        self.tree.root()
    }

    /// The address, as the proxy is told it.
    pub(crate) fn address(&self) -> String {
        format!("fastcgi:{}", self.root().join("php.sock").display())
    }

    /// All its processes end as soon as they have answered, and others take their places. Waits for those.
    pub(crate) fn restart(&self) {
        let begun = || std::fs::read_to_string(self.root().join("log")).unwrap_or_default();
        let count = |log: &str| log.matches("ready to handle connections").count();
        let (before, began) = (count(&begun()), Instant::now());
        let status = Command::new("kill").args(["-USR2", &self.child.id().to_string()]).status();
        assert!(status.expect("kill").success());
        while count(&begun()) == before {
            assert!(began.elapsed() < PATIENCE, "php-fpm does not begin anew: {}", begun());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A file beside the site that a script can write.
    pub(crate) fn shared_file(&self, name: &str) -> PathBuf {
        let file = self.root().join(name);
        std::fs::write(&file, "").expect("a file");
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        std::fs::set_permissions(&file, all).expect("a file of ours");
        file
    }

    /// A server of the folder by these settings, in which `{root}`, `{php}` and `{folder}` stand for the
    /// folder of scripts, the address and the folder around.
    pub(crate) fn serve(&self, io: &str, settings: &str) -> World {
        let text = settings
            .replace("{root}", &self.root().join("www").display().to_string())
            .replace("{php}", &self.address())
            .replace("{folder}", &self.root().display().to_string());
        let file = World::settings_file(&self.tree);
        std::fs::write(&file, text).expect("a file");
        let mut command = Command::new(binary());
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--io", io, "--config"]);
        World::of(command.arg(file))
    }
}

/// Writes a file of the site.
fn write(root: &Path, name: &str, content: &[u8]) {
    let file = root.join("www").join(name);
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    std::fs::write(file, content).expect("a file");
}

fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    folders.map(|folder| folder.join("php-fpm8.2")).find(|program| program.exists())
}

/// What a script was told, by the answer of [`TELL`].
pub(crate) fn told(world: &World, request: &str) -> Value {
    let response = world.ask(request);
    assert_eq!(response.status, 200, "{request}: {}", response.text());
    serde_json::from_str(&response.text()).unwrap_or_else(|error| panic!("{error}: {}", response.text()))
}

pub(crate) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: shop.test:8080\r\n\r\n")
}

/// Asks again until it is so.
pub(crate) fn until(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "it does not become so");
        std::thread::sleep(Duration::from_millis(2));
    }
}
