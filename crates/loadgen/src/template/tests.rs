//! Tables of templates, right and wrong, and what holds for all of them.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;

const VALUES: Values = Values { serial: 7, thread: 2, connection: 31, unix_ms: 1_700_000_000_123 };

fn parse(text: &str) -> Result<Template, String> {
    Template::parse(text.as_bytes(), "the target").map_err(|fault| fault.to_string())
}

fn render(text: &str, seed: u64) -> String {
    let mut out = Vec::new();
    let template = parse(text).expect(text);
    template.render(&VALUES, &mut Xoshiro256PlusPlus::seed_from_u64(seed), &mut out);
    String::from_utf8(out).expect("text stays text")
}

#[test]
fn variables() {
    let cases = [
        ("", ""),
        ("/", "/"),
        ("/a?b={{serial}}", "/a?b=7"),
        ("{{ serial }}{{thread}}-{{connection}}", "72-31"),
        ("{{unix_ms}}", "1700000000123"),
        ("{{random 5 5}}", "5"),
        ("{{pick only}}", "only"),
        ("{ {serial} }}", "{ {serial} }}"),
        ("{{{{serial}}", "{{serial}}"),
        ("{{{{{{serial}}}}", "{{7}}"),
        ("{{{serial}}}", "{7}"),
        ("{\"id\":{{serial}}}", "{\"id\":7}"),
        ("\u{fc}{{serial}}\u{fc}", "\u{fc}7\u{fc}"),
    ];
    for (text, made) in cases {
        assert_eq!(render(text, 1), made, "{text:?}");
    }
}

#[test]
fn what_has_no_variable_is_static() {
    for (text, literal) in
        [("", Some("")), ("/a", Some("/a")), ("/{{{{a", Some("/{{a")), ("/{{serial}}", None)]
    {
        assert_eq!(parse(text).expect(text).as_static(), literal.map(str::as_bytes), "{text}");
    }
    let template = parse("a{{pick b cd}}{{random 1 2}}{{{{").expect("a template");
    assert_eq!(template.texts().collect::<Vec<_>>(), [&b"a"[..], b"b", b"cd", b"{{"]);
}

#[test]
fn random_numbers_and_choices_reach_every_value() {
    let mut numbers = [0; 4];
    let mut choices = [0; 3];
    for seed in 0..1000 {
        let number: usize = render("{{random 1 3}}", seed).parse().expect("a number");
        numbers[number] += 1;
        let choice = ["a", "bc", "d"].iter().position(|choice| *choice == render("{{pick a bc d}}", seed));
        choices[choice.expect("one of them")] += 1;
    }
    assert_eq!(numbers[0], 0);
    assert!(
        numbers[1..].iter().chain(&choices).all(|count| (280..390).contains(count)),
        "{numbers:?} {choices:?}"
    );
    assert!(render(&format!("{{{{random 0 {}}}}}", u64::MAX), 3).parse::<u64>().is_ok());
}

#[test]
fn faults_name_the_place() {
    let cases = [
        (
            "/a{{serial",
            "the target, character 3: `{{` is not closed by `}}`; two braces that are meant are written \
             `{{{{`",
        ),
        (
            "/\u{fc}{{}}",
            "the target, character 3: `{{}}` names no variable: known are serial, thread, \
            connection, unix_ms, random LOWEST HIGHEST, and pick with its choices",
        ),
        (
            "{{{seriel}}",
            "the target, character 2: `{{seriel}}` is not known: known are serial, thread, \
            connection, unix_ms, random LOWEST HIGHEST, and pick with its choices",
        ),
        ("{{serial 1}}", "the target, character 1: `{{serial}}` takes nothing besides its name"),
        (
            "{{random 1}}",
            "the target, character 1: `{{random}}` takes two numbers, the lowest and the highest",
        ),
        (
            "{{random 1 2 3}}",
            "the target, character 1: `{{random}}` takes two numbers, the lowest and the highest",
        ),
        (
            "{{random -1 2}}",
            "the target, character 1: `-1` in `{{random}}` is not a number from 0 to \
             18446744073709551615",
        ),
        ("{{random 2 1}}", "the target, character 1: `{{random 2 1}}`: the lowest number stands first"),
        ("{{pick}}", "the target, character 1: `{{pick}}` has nothing to choose from"),
    ];
    for (text, sentence) in cases {
        assert_eq!(parse(text).expect_err(text), sentence);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        rng_seed: RngSeed::Fixed(0x82),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// What is written with doubled braces comes out as it was meant, whatever stands around it.
    #[test]
    fn escaped_text_comes_back(text in "[{}a \u{fc}]{0,12}", after in "[}a]{0,3}") {
        let escaped = text.replace("{{", "{{{{");
        prop_assert_eq!(render(&escaped, 1), text.clone());
        prop_assert_eq!(parse(&escaped), Ok(Template::literal(text.as_bytes())));
        let with_variable = format!("{escaped}{{{{serial}}}}{after}");
        prop_assert_eq!(render(&with_variable, 1), format!("{text}7{after}"));
    }

    #[test]
    fn no_text_is_too_wild(
        text in prop::collection::vec(prop_oneof![Just(b'{'), Just(b'}'), any::<u8>()], 0..40),
    ) {
        if let Err(fault) = Template::parse(&text, "the body") {
            prop_assert!(fault.to_string().starts_with("the body, character "));
        }
    }
}
