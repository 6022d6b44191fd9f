//! `staunch password`: the hash of a password, for `basic_auth`.
//!
//! A password is read from the terminal without being shown, or from standard input. It must never be an
//! argument: others on the host could read it.

use std::fs::File;
use std::io::{IsTerminal, Read};

use clap::{Args, ValueEnum};
use console::Term;
use staunch_program::{Failure, output};
use staunch_server::limits::BCRYPT_COST_MAX;
use staunch_server::{Hashing, SALT_BYTES, hash_password};

/// Longest password that is read.
const PASSWORD_BYTES_MAX: u64 = 4096;

/// Which hash of whose password.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// User of the password: prints a line for `users_file`
    #[arg(value_name = "NAME", value_parser = user)]
    name: Option<String>,

    /// Kind of the hash
    #[arg(long, value_enum, default_value_t = Kind::Argon2id)]
    algorithm: Kind,

    /// Cost of bcrypt: one more takes twice as long
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = cost())]
    cost: u32,
}

fn cost() -> impl clap::builder::TypedValueParser {
    clap::value_parser!(u32).range(4..=i64::from(BCRYPT_COST_MAX))
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    Argon2id,
    Bcrypt,
}

/// Asks for a password and prints its hash.
///
/// # Errors
/// No password, two that differ, or one that cannot be hashed.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let password = if std::io::stdin().is_terminal() { ask()? } else { read()? };
    let mut salt = [0; SALT_BYTES];
    let random = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut salt));
    random.map_err(|error| format!("/dev/urandom: {error}"))?;
    let hashing = match arguments.algorithm {
        Kind::Argon2id => Hashing::Argon2id,
        Kind::Bcrypt => Hashing::Bcrypt { cost: arguments.cost },
    };
    let hash = hash_password(&password, hashing, salt)?;
    match &arguments.name {
        Some(name) => output::print(&format!("{name}:{hash}\n")),
        None => output::print(&format!("{hash}\n")),
    }
    Ok(())
}

fn ask() -> Result<Vec<u8>, String> {
    let terminal = Term::stderr();
    let line = |prompt: &str| {
        let asked = terminal.write_str(prompt).and_then(|()| terminal.read_secure_line());
        asked.map_err(|error| format!("cannot read a password: {error}"))
    };
    let password = line("Password: ")?;
    if line("Once more: ")? != password {
        return Err("the two passwords differ".into());
    }
    Ok(password.into_bytes())
}

/// The first line of standard input.
fn read() -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    let read = std::io::stdin().take(PASSWORD_BYTES_MAX).read_to_end(&mut text);
    read.map_err(|error| format!("cannot read a password: {error}"))?;
    let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    Ok(line.strip_suffix(b"\r").unwrap_or(line).to_vec())
}

fn user(text: &str) -> Result<String, String> {
    let wrong = text.is_empty() || text.contains(':') || text.chars().any(char::is_control);
    if wrong { Err("a name without `:`".into()) } else { Ok(text.to_owned()) }
}
