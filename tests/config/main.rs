//! Settings as people meet them: by files, variables and flags, tested, shown, completed and looked up.

mod answers;
mod included;
mod pages;
mod tested;

use std::path::PathBuf;
use std::process::Command;

use staunch_tests::process::{Finished, binary, finish};
use staunch_tests::tree::Tree;

/// A folder with a file of settings in it.
struct Folder {
    tree: Tree,
}

impl Folder {
    fn with(settings: &str) -> Self {
        let folder = Self { tree: Tree::with(&[]).expect("a tree") };
        std::fs::write(folder.settings(), settings).expect("our own folder");
        folder
    }

    fn settings(&self) -> PathBuf {
        self.tree.root().join("staunch.toml")
    }

    /// The command, run from within the folder, so that places are short.
    fn staunch(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.current_dir(self.tree.root()).args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Finished {
        finish(&mut self.staunch(arguments))
    }
}
