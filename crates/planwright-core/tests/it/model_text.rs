//! Regardless of the text a model writes around its answer, the answer is found or nothing is, and
//! nothing breaks.

use planwright_core::model::find_json;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_assert_eq, prop_oneof};
use proptest::{collection::vec, proptest};
use serde_json::{Map, Value, json};

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[ -~]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let object = vec(("[a-z]{1,4}", inner.clone()), 0..4)
            .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>()));
        prop_oneof![vec(inner, 0..4).prop_map(Value::from), object]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_object_in_prose_is_found_as_it_was(inner in value(), before in "[a-zA-Z .,:\n]{0,40}", after in "[ -z\n]{0,40}") {
        let answer = json!({ "answer": inner });
        prop_assert_eq!(find_json(&format!("{before}{answer}{after}")), Some(answer.clone()));
        let fenced = format!("{before}\n```json\n{answer:#}\n```\n{before}");
        if !answer.to_string().contains("```") {
            prop_assert_eq!(find_json(&fenced), Some(answer));
        }
    }

    #[test]
    fn no_text_breaks_it(text in "\\PC{0,200}", marks in "[\\[\\]{}\",:`\\\\ 0-9a-z\n]{0,200}") {
        drop(find_json(&text));
        drop(find_json(&marks));
        drop(find_json(&format!("{marks}{text}</think>{marks}")));
    }
}
