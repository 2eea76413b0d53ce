//! A secret is found in every form a tool made of it, and nothing else is touched.

use planwright_core::secret::{RedactedStream, Redactor, SecretName, SecretText};
use planwright_testing::spellings::{encodings, standard};
use proptest::prelude::*;
use serde_json::{Value, json};

fn redactor(secrets: &[(&str, &str)]) -> Redactor {
    let known: Vec<(SecretName, SecretText)> = secrets
        .iter()
        .map(|(name, text)| {
            (
                SecretName::new(name).unwrap(),
                SecretText::new((*text).to_owned()).unwrap(),
            )
        })
        .collect();
    Redactor::new(known.iter().map(|(name, text)| (name, text)))
}

const SECRETS: &[&str] = &[
    "hunter2-Hunter2",
    "p&ss\"w<rd'\\ 100% +/=",
    "ключ-и-пароль",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "0123456789",
];

#[test]
fn every_spelling_is_masked_in_the_middle_of_a_text() {
    for secret in SECRETS {
        let redactor = redactor(&[("KEY", secret)]);
        for (name, spelt) in encodings(secret) {
            let masked = redactor.text(&format!("before {spelt} after")).into_owned();
            assert!(
                masked.contains("[secret KEY]"),
                "{name} of {secret}: {masked}"
            );
            assert!(
                masked.starts_with("before ") && masked.ends_with(" after"),
                "{name} of {secret}: {masked}"
            );
            let rest = masked
                .replace("[secret KEY]", "")
                .replace("before ", "")
                .replace(" after", "");
            let left: String = rest.chars().filter(|c| c.is_alphanumeric()).collect();
            let allowed = if name.starts_with("base64, wrapped") {
                110
            } else {
                12
            };
            assert!(
                left.len() <= allowed,
                "{name} of {secret} leaves {left:?} in {masked}"
            );
        }
    }
}

#[test]
fn a_header_of_basic_authentication_is_masked() {
    let redactor = redactor(&[("KEY", "hunter2!")]);
    for user in ["a", "ad", "ada", "adaa"] {
        let header = format!(
            "Authorization: Basic {}",
            standard(format!("{user}:hunter2!").as_bytes())
        );
        let masked = redactor.text(&header).into_owned();
        assert!(masked.ends_with("[secret KEY]"), "{masked}");
    }
}

#[test]
fn a_secret_spread_over_the_texts_of_one_value_is_masked() {
    let redactor = redactor(&[("KEY", "hunter2-Hunter2")]);
    for (spread, masked) in [
        (
            json!(["hunter2", "-Hunter2"]),
            json!(["[secret KEY]", "[secret KEY]"]),
        ),
        (
            json!({"a": "x hunt", "b": {"c": ["er2-Hu", "nter2 y"]}}),
            json!({"a": "x [secret KEY]", "b": {"c": ["[secret KEY]", "[secret KEY] y"]}}),
        ),
        (
            json!({"hunter2-": 1, "Hunter2": 2}),
            json!({"[secret KEY]": 1, "[secret KEY]'": 2}),
        ),
        (
            json!({"hunter2-": "Hunter2"}),
            json!({"[secret KEY]": "[secret KEY]"}),
        ),
        (
            json!({"hunter2-Hunter2": null}),
            json!({"[secret KEY]": null}),
        ),
    ] {
        let mut value = spread;
        redactor.value(&mut value);
        assert_eq!(value, masked);
    }
    let mut bytes = json!({"type": "Buffer", "data": b"hunter2-Hunter2".to_vec()});
    redactor.value(&mut bytes);
    assert!(
        bytes["data"]
            .as_array()
            .unwrap()
            .iter()
            .all(|byte| byte == "[secret KEY]"),
        "{bytes}"
    );
}

#[test]
fn a_number_with_the_digits_of_a_secret_becomes_a_masked_text() {
    let redactor = redactor(&[("PIN", "4711")]);
    let mut value = json!({"pin": 4711, "other": 4712, "list": [4, 7, 11]});
    redactor.value(&mut value);
    assert_eq!(
        value,
        json!({"pin": "[secret PIN]", "other": 4712, "list": [4, 7, 11]})
    );
}

#[test]
fn a_secret_that_is_a_piece_of_its_own_mask_does_not_show() {
    for secret in [
        "secret",
        "KEYS",
        "[secret KEYS]",
        "hidden",
        "[hidden]",
        "[sec",
    ] {
        let redactor = redactor(&[
            ("KEYS", secret),
            ("hidden", "hidden"),
            ("s", "ecret"),
            ("t", "[secret hidden]"),
        ]);
        let masked = redactor.text(&format!("x {secret} y hidden")).into_owned();
        assert!(!masked.contains(secret), "{secret}: {masked}");
        assert_eq!(redactor.text(&masked), masked);
    }
}

#[test]
fn a_key_of_several_lines_is_masked_whole_and_line_by_line() {
    let key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END KEY-----\n";
    let redactor = redactor(&[("PEM", key)]);
    assert_eq!(redactor.text(&format!("<{key}>")), "<[secret PEM]>");
    assert_eq!(redactor.text("AQEFAASCBKcwggSjAgEAAoIB"), "[secret PEM]");
    assert_eq!(redactor.text("-----BEGIN KEY-----"), "-----BEGIN KEY-----");
}

#[test]
fn a_text_larger_than_a_window_is_searched_to_its_end() {
    let redactor = redactor(&[("KEY", "hunter2-Hunter2")]);
    let filler = "x".repeat((1 << 20) - 7);
    let masked = redactor
        .text(&format!("{filler}hunter2-Hunter2{filler}hunter2-Hunter2"))
        .into_owned();
    assert_eq!(masked.matches("[secret KEY]").count(), 2);
    assert_eq!(masked.len(), 2 * filler.len() + 2 * "[secret KEY]".len());
}

#[test]
fn without_secrets_nothing_changes() {
    let none = Redactor::default();
    let mut value = json!({"a": ["hunter2", 4711, {"b": null}]});
    let before = value.clone();
    none.value(&mut value);
    assert_eq!(value, before);
    assert!(none.is_empty());
    let mut stream = RedactedStream::default();
    assert_eq!(stream.push(&none, b"at once"), b"at once");
}

fn secret() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{8,40}", "\\PC{8,20}", "[0-9]{4,12}", "[a-z]{4,9}"]
        .prop_filter("a secret has visible characters", |text| {
            SecretText::new(text.clone()).is_ok()
        })
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((".{0,8}", inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    /// For any input: no panic, nothing left, and nothing more to do the second time.
    #[test]
    fn masked_is_masked(secret in secret(), before in ".{0,30}", after in ".{0,30}", choice in any::<prop::sample::Index>()) {
        let redactor = redactor(&[("KEY", &secret)]);
        let spelt = choice.get(&encodings(&secret)).1.clone();
        for text in [format!("{before}{secret}{after}"), format!("{before}{spelt}{after}")] {
            let masked = redactor.text(&text).into_owned();
            prop_assert!(!redactor.finds(masked.as_bytes()), "{masked:?} of {text:?}");
            prop_assert!(!masked.contains(&secret), "{masked:?} of {text:?}");
            prop_assert_eq!(redactor.text(&masked), masked.clone());
        }
    }

    #[test]
    fn masked_values_are_masked(secret in secret(), mut value in any_json(), cut in any::<prop::sample::Index>()) {
        let redactor = redactor(&[("KEY", &secret)]);
        let at = secret.floor_char_boundary(cut.index(secret.len()));
        let mut spread = json!([&value, secret, {"k": [&secret[..at], &secret[at..]]}, &value]);
        redactor.value(&mut spread);
        let mut again = spread.clone();
        redactor.value(&mut again);
        prop_assert_eq!(&again, &spread);
        prop_assert_ne!(&spread[1], &json!(secret));
        redactor.value(&mut value);
    }

    /// A stream shows the same as the whole text, however it is cut.
    #[test]
    fn a_stream_is_masked_wherever_it_is_cut(
        secret in "[a-zA-Z0-9]{8,20}",
        texts in prop::collection::vec("[ -~\n]{0,60}", 1..6),
        sizes in prop::collection::vec(1_usize..50, 1..20),
    ) {
        let redactor = redactor(&[("KEY", &secret)]);
        let whole = texts.join(&secret);
        let mut stream = RedactedStream::default();
        let mut shown = Vec::new();
        let mut rest = whole.as_bytes();
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, left) = rest.split_at(rest.len().min(*size));
            shown.extend(stream.push(&redactor, piece));
            rest = left;
        }
        shown.extend(stream.finish(&redactor));
        prop_assert!(!redactor.finds(&shown));
        prop_assert_eq!(String::from_utf8_lossy(&shown), redactor.text(&whole));
    }

    /// Bytes that have nothing to do with the secret come back as they are.
    #[test]
    fn what_has_no_secret_in_it_is_not_touched(text in "[b-jm-z .,;:!?%&=\\\\\n]{0,200}", bytes in prop::collection::vec(128_u8.., 0..100)) {
        // No spelling of this one is made of those characters alone.
        let redactor = redactor(&[("KEY", "AKLAKLAKL#")]);
        prop_assert_eq!(redactor.text(&text), text.clone());
        prop_assert_eq!(redactor.bytes(bytes.clone()), bytes);
    }
}
