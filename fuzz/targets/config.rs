//! A file of settings with a flag and a variable: it is understood or blamed, and what is shown reads the
//! same. It must never judge what a value means.
#![cfg_attr(fuzzing, no_main)]

use staunch_config::{Config, File, Sources, flags, read, show};

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

pub(crate) fn judge(input: &[u8]) {
    let Some((&which, rest)) = input.split_first() else { return };
    let Ok(rest) = std::str::from_utf8(rest) else { return };
    let (text, written) = rest.split_once('\n').unwrap_or(("", rest));
    let key = flags().map(|(_, key)| key).cycle().nth(usize::from(which)).expect("there are keys");
    let given = (key.check)(text).is_ok().then(|| (key.name.into(), text.into()));
    let environment = vec![(key.variable(), text.into())];
    let file = |text: &str| Some(File::new("fuzz.toml", text));
    match read(&Sources { flags: given.into_iter().collect(), environment, file: file(written) }) {
        Err(faults) => assert!(matches!(faults.lines().len(), 1..=21), "{faults}"),
        Ok(config) => {
            let shown = show(&config.sections, None);
            if !shown.contains("\"***\"") {
                let again = read(&Sources { file: file(&shown), ..Sources::default() });
                let again = again.unwrap_or_else(|faults| panic!("{faults}\n{shown}"));
                assert_eq!(values(&again), values(&config), "{shown}");
            }
        }
    }
}

fn values(config: &Config) -> Vec<String> {
    let entries = config.sections.iter().flat_map(|section| &section.entries);
    entries.map(|entry| format!("{} = {}", entry.key.name, entry.value.to_toml())).collect()
}
