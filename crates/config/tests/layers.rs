//! Precedence of layers: any subset of keys, said by any layers, gives the values of the highest.

use proptest::prelude::*;
use staunch_config::key::{Form, Key};
use staunch_config::node::quote;
use staunch_config::{File, Origin, Sources, flags, read};

/// What the layers say about one key: nothing, its example, or its default.
type Said = [Option<bool>; 3];

fn keys() -> Vec<&'static Key> {
    flags().map(|(_, key)| key).collect()
}

/// A value of the key as a flag would say it.
fn text(key: &Key, example: bool) -> String {
    match key.default {
        Some(default) if !example && !default.is_empty() => default.into(),
        _ => {
            let bare = key.example.trim_matches(['[', ']']).replace(['"', ' '], "");
            if key.form == Form::Switch { "on".into() } else { bare }
        }
    }
}

fn sources(said: &[Said]) -> Sources {
    let mut sources = Sources::default();
    let mut file = String::new();
    for (key, [flag, variable, written]) in keys().into_iter().zip(said) {
        if let Some(example) = flag {
            sources.flags.push((key.name.into(), text(key, *example)));
        }
        if let Some(example) = variable {
            sources.environment.push((key.variable(), text(key, *example)));
        }
        if let Some(example) = written {
            file.push_str(&format!("{} = {}\n", key.name, quote(&text(key, *example))));
        }
    }
    sources.file = Some(File::new("a.toml", file));
    sources
}

/// The value of a key if nobody but a flag says something about it.
fn alone(key: &'static Key, text: &str) -> String {
    let sources = Sources { flags: vec![(key.name.into(), text.into())], ..Sources::default() };
    let config = read(&sources).unwrap_or_else(|faults| panic!("{}: {faults}", key.name));
    let entry = config.sections[0].entries.iter().find(|entry| entry.key.name == key.name);
    entry.unwrap_or_else(|| panic!("{} was not read", key.name)).value.to_toml()
}

proptest! {
    #[test]
    fn the_highest_layer_speaks(
        said in prop::collection::vec(any::<Said>(), keys().len())
    ) {
        // With a file, somebody must say the root.
        let place = |name| keys().iter().position(|key| key.name == name).expect("a key");
        let (root, mut said) = (place("root"), said);
        said[root][2] = said[root][2].or(Some(true));
        // Two keys for one secret exclude each other.
        if said[place("publish_token")].iter().any(Option::is_some) {
            said[place("publish_token_file")] = [None; 3];
        }
        // No authority is asked where every server is believed.
        if said[place("proxy_tls_ca")].iter().any(Option::is_some) {
            said[place("proxy_tls_insecure")] = [None; 3];
        }
        // With a fabric, servers are named for one backend alone, which wants them.
        if said[place("fabric")].iter().any(Option::is_some) {
            said[place("fabric_backend")] = [None; 3];
            said[place("fabric_peers")] = [None; 3];
        }
        let config = read(&sources(&said)).map_err(|faults| TestCaseError::fail(faults.to_string()))?;
        for (key, [flag, variable, written]) in keys().into_iter().zip(&said) {
            let entry = config.sections[0].entries.iter().find(|entry| entry.key.name == key.name);
            let entry = entry.expect("every key is read");
            let expected = match (flag, variable, written) {
                (Some(_), _, _) => Origin::Flag,
                (None, Some(_), _) => Origin::Environment,
                (None, None, Some(_)) => Origin::File(0),
                (None, None, None) => Origin::Default,
            };
            let origin = if let Origin::File(_) = entry.origin { Origin::File(0) } else { entry.origin };
            prop_assert_eq!(origin, expected, "{}", key.name);
            let value = match flag.or(*variable).or(*written) {
                // With a file `auto` lists nothing.
                None | Some(false) if key.name == "listing" => "false".to_owned(),
                Some(example) => alone(key, &text(key, example)),
                None => alone(key, key.default.unwrap_or_default()),
            };
            prop_assert_eq!(entry.value.to_toml(), value, "{}", key.name);
        }
    }
}

#[test]
fn an_empty_variable_says_nothing() {
    let environment = vec![("STAUNCH_WORKERS".into(), String::new()), ("STAUNCH_BINARY".into(), "x".into())];
    let config = read(&Sources { environment, ..Sources::default() }).expect("defaults");
    assert_eq!(config.network.workers, None);
}

#[test]
fn what_needs_a_restart_is_named() {
    let of = |text: &str| {
        let file = Some(File::new("a.toml", text));
        read(&Sources { file, ..Sources::default() }).expect("a right file")
    };
    let before = of("workers = 1\nkeep_alive = '5s'\nroot = 'a'");
    let after = of("workers = 2\nkeep_alive = '6s'\nroot = 'b'\nio = 'auto'\nadmin = '127.0.0.1:1'");
    assert_eq!(before.changed_needing_restart(&after), ["workers", "admin"]);
    assert!(after.changed_needing_restart(&after).is_empty());
}

#[test]
fn servers_of_the_fabric_are_named_for_udp_and_only_for_it() {
    let of = |text: &str| {
        let file = Some(File::new("a.toml", format!("root = 'a'\n{text}")));
        read(&Sources { file, ..Sources::default() }).map_err(|faults| faults.to_string())
    };
    let peers = "fabric_peers = ['10.0.0.7', '10.0.0.8']\n";
    let config = of(&format!("fabric = 'eth1'\nfabric_backend = 'udp'\n{peers}")).expect("right settings");
    assert_eq!(config.fabric.fabric_peers.len(), 2);
    let fault = of("fabric = 'eth1'\nfabric_backend = 'udp'\n").expect_err("nobody is named");
    assert!(fault.contains("write the servers into fabric_peers"), "{fault}");
    let repeated = "fabric_peers = ['10.0.0.7', '10.0.0.8', '10.0.0.7']\n";
    let fault =
        of(&format!("fabric = 'eth1'\nfabric_backend = 'udp'\n{repeated}")).expect_err("one too many");
    assert!(fault.contains("10.0.0.7 is named twice"), "{fault}");
    for backend in ["", "fabric_backend = 'ring'\n"] {
        let fault = of(&format!("fabric = 'eth1'\n{backend}{peers}")).expect_err("nobody need be named");
        assert!(fault.contains("servers are named for fabric_backend = \"udp\" alone"), "{fault}");
    }
    let fault = of("fabric_backend = 'udp'\nfabric_peers = ['ten']\n").expect_err("no address");
    assert!(fault.contains("write an IPv4 address"), "{fault}");
}

#[test]
fn a_site_says_of_live_data_what_differs() {
    let of = |text: &str| {
        let file = Some(File::new("a.toml", text));
        read(&Sources { file, ..Sources::default() }).map_err(|faults| faults.to_string())
    };
    let (one, other) =
        ("a-secret-of-at-least-thirty-two-bytes", "another-secret-of-thirty-two-bytes-or-more");
    let top = format!("live = true\nlive_topics = 7\npublish_token = '{one}'\n");
    let site = |host: &str, more: &str| format!("[[site]]\nhosts = ['{host}']\nroot = '.'\n{more}\n");
    let text = [&top[..], &site("a", ""), &site("b", "live_topics = 8\npublish_token_file = '/t'")].concat();
    let config = of(&text).expect("a right file");
    let [a, b] = &config.sites[..] else { panic!("two sites") };
    assert_eq!((a.live.live_topics, a.live.publish_token.as_deref()), (7, Some(one)));
    assert_eq!((b.live.live, b.live.live_topics, &b.live.publish_token), (true, 8, &None));
    assert!(b.live.publish_token_file.is_some());
    // Only what a site says stands in its section.
    let said: Vec<_> = config.sections[2].entries.iter().map(|entry| entry.key.name).collect();
    assert!(said.contains(&"live_topics") && !said.contains(&"live_memory"), "{said:?}");
    let alone = of(&[&top[..], "root = '.'"].concat()).expect("a right file");
    assert_eq!(alone.sites[0].live, alone.live);
    for (more, changed) in [
        (site("a", ""), &[][..]),
        (site("a", "live_topics = 9"), &["live_topics"]),
        (site("a", &format!("publish_token = '{other}'")), &["publish_token"]),
        ([site("a", ""), site("c", "")].concat(), &["live"]),
        ([site("a", ""), site("c", "live = false")].concat(), &[]),
    ] {
        let after = of(&[&top[..], &more].concat()).expect("a right file");
        assert_eq!(config.changed_needing_restart(&after), changed, "{more}");
    }
    let fault = of(&[&top[..], &site("a", "live_memori = '1MiB'")].concat()).expect_err("a wrong file");
    assert!(fault.contains("did you mean `live_memory`?"), "{fault}");
    let fault = of(&[&top[..], &site("a", "live_value_size = '1GiB'")].concat()).expect_err("a wrong file");
    assert!(fault.contains("a.toml:7:") && fault.contains("at most 16MiB"), "{fault}");
}
