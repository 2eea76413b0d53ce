use crate::workbench::{Workbench, call};
use planwright_adapters::demo::Demo;
use planwright_adapters::toolbox::{BuildToolboxError, InProcessServer, Toolbox, ToolboxOptions};
use planwright_core::run::CallEffect;
use planwright_core::tool::{Annotations, EffectClass, KnownTool, ToolDefinition};
use planwright_engine::port::{BoxFuture, Call, CallError, Outcome, Tools as _};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A server whose tools show what they were sent, or panic.
#[derive(Debug)]
struct Odd;

impl InProcessServer for Odd {
    fn name(&self) -> &'static str {
        "odd"
    }

    fn definitions(&self) -> Vec<ToolDefinition> {
        let schema = json!({
            "type": "object",
            "properties": { "key": { "type": "string" }, "pin": { "type": "string", "maxLength": 4 } },
            "additionalProperties": false,
        });
        ["show", "panic_early", "panic_late"]
            .map(|name| ToolDefinition::new("odd", name, "", schema.clone()))
            .into()
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Outcome> {
        assert_ne!(call.tool.tool, "panic_early", "too early");
        Box::pin(async move {
            assert_ne!(call.tool.tool, "panic_late", "too late");
            Ok(Value::Object(call.args))
        })
    }
}

fn odd(options: ToolboxOptions) -> Result<Toolbox, BuildToolboxError> {
    Toolbox::new([Arc::new(Odd) as Arc<dyn InProcessServer>], options)
}

fn one<T>(name: &str, value: T) -> BTreeMap<String, T> {
    BTreeMap::from([(name.to_owned(), value)])
}

#[test]
fn every_definition_is_complete_and_its_schemas_compile() {
    let catalog = Workbench::new().tools.catalog();
    assert_eq!(catalog.iter().count(), 11);
    for tool in catalog.iter() {
        let name = &tool.name;
        tool.input_validator()
            .unwrap_or_else(|problem| panic!("{name}: {problem}"));
        assert_eq!(
            tool.definition.input_schema["additionalProperties"], false,
            "{name}"
        );
        assert!(tool.definition.description.is_some(), "{name}");
        assert!(
            tool.definition.annotations.open_world_hint.is_some(),
            "{name}"
        );
        output_of(tool)
            .input_validator()
            .unwrap_or_else(|problem| panic!("{name}: {problem}"));
    }
}

/// The tool with its output schema in place of the input schema, which is the one that can be
/// compiled.
fn output_of(tool: &KnownTool) -> KnownTool {
    let mut definition = tool.definition.clone();
    definition.input_schema = definition.output_schema.take().expect("every tool has one");
    KnownTool::new(definition, tool.class)
}

#[tokio::test]
async fn results_fit_the_output_schemas() {
    let bench = Workbench::new();
    bench.put("a", "text");
    bench.link("b", "a");
    let calls = [
        ("local.read_file", json!({ "path": "a" })),
        ("local.write_file", json!({ "path": "c", "content": 1 })),
        ("local.append_file", json!({ "path": "c", "content": "x" })),
        ("local.list_dir", json!({})),
        ("local.search_code", json!({ "query": "text" })),
        ("local.run_command", json!({ "command": "true" })),
        ("demo.echo", json!({ "value": {} })),
        ("demo.sleep", json!({ "ms": 0 })),
        ("demo.fail", json!({ "times": 0 })),
        ("demo.random_bytes", json!({ "n": 3 })),
    ];
    let catalog = bench.tools.catalog();
    for (name, args) in calls {
        let value = bench.call(name, args).await.unwrap();
        let tool = output_of(catalog.resolve(name).unwrap());
        assert!(
            tool.input_validator()
                .unwrap()
                .for_value(&value)
                .unwrap()
                .is_valid(&value),
            "{name} returned {value}"
        );
    }
}

#[test]
fn annotations_and_classes_are_honest() {
    let catalog = Workbench::new().tools.catalog();
    let tool = |name: &str| Arc::clone(catalog.resolve(name).unwrap());
    for name in [
        "read_file",
        "list_dir",
        "search_code",
        "http_get",
        "echo",
        "sleep",
        "fail",
        "random_bytes",
    ] {
        assert!(tool(name).is_read_only(), "{name}");
        assert_eq!(tool(name).class, EffectClass::Safe, "{name}");
    }
    for (name, class, destructive) in [
        ("write_file", EffectClass::Safe, true),
        ("append_file", EffectClass::Unsafe, false),
        ("run_command", EffectClass::Unsafe, true),
    ] {
        assert!(!tool(name).is_read_only(), "{name}");
        assert_eq!(tool(name).class, class, "{name}");
        assert_eq!(
            tool(name).definition.annotations.is_destructive(),
            destructive,
            "{name}"
        );
    }
    assert_ne!(
        tool("http_get").definition.annotations,
        Annotations::read_only(),
        "it leaves the machine"
    );
}

#[tokio::test]
async fn dangerous_tools_are_off_and_say_how_to_turn_them_on() {
    let bench = Workbench::with(|_| ());
    let how = "enable it in planwright.toml";
    assert_eq!(
        bench.tools.disabled_tools(),
        [
            ("local.http_get".to_owned(), how),
            ("local.run_command".to_owned(), how)
        ]
    );
    for name in ["local.http_get", "local.run_command"] {
        assert!(bench.tools.catalog().resolve(name).is_err());
        let expected = CallError::Unavailable(format!("{name} is off: {how}"));
        assert_eq!(bench.call(name, json!({})).await, Err(expected));
    }
    assert_eq!(Workbench::new().tools.disabled_tools(), []);
}

#[tokio::test]
async fn an_unknown_tool_is_unavailable() {
    let bench = Workbench::new();
    for name in ["local.absent", "elsewhere.echo", "demo.Echo"] {
        let expected = CallError::Unavailable(format!("there is no tool {name}"));
        assert_eq!(bench.call(name, json!({})).await, Err(expected));
    }
}

#[tokio::test]
async fn a_call_that_does_not_fit_is_not_made_and_shows_no_values() {
    let tools = odd(ToolboxOptions::default()).unwrap();
    let outcome = tools
        .call(call("odd.panic_early", json!({ "pin": "s3cret" })))
        .await;
    let Err(CallError::Failed {
        code,
        message,
        retryable: false,
        effect: CallEffect::None,
    }) = outcome
    else {
        panic!("{outcome:?}")
    };
    assert_eq!(code.as_str(), "invalid_args");
    assert!(
        message.contains("/pin") && !message.contains("s3cret"),
        "{message}"
    );
}

#[tokio::test]
async fn a_panic_fails_the_call_and_nothing_else() {
    let tools = odd(ToolboxOptions::default()).unwrap();
    for (name, text) in [
        ("odd.panic_early", "too early"),
        ("odd.panic_late", "too late"),
    ] {
        let outcome = tools.call(call(name, json!({}))).await;
        let Err(CallError::Failed {
            code,
            message,
            retryable: false,
            effect: CallEffect::Unknown,
        }) = outcome
        else {
            panic!("{outcome:?}")
        };
        assert_eq!(code.as_str(), "panic");
        assert!(message.contains(text), "{message}");
    }
    assert_eq!(
        tools.call(call("odd.show", json!({ "pin": "1" }))).await,
        Ok(json!({ "pin": "1" }))
    );
}

#[test]
fn the_operators_word_on_classes_limits_and_order_is_final() {
    let options = ToolboxOptions {
        classes: one("odd.show", EffectClass::Safe),
        limits: one("odd", 3),
        serial_writes: one("odd", false),
        ..ToolboxOptions::default()
    };
    let tools = odd(options).unwrap();
    let catalog = tools.catalog();
    assert_eq!(catalog.resolve("show").unwrap().class, EffectClass::Safe);
    assert_eq!(
        catalog.resolve("panic_late").unwrap().class,
        EffectClass::Unsafe
    );
    assert_eq!(
        (tools.server_limit("odd"), tools.server_limit("demo")),
        (Some(3), None)
    );
    assert!(!tools.serial_writes("odd") && tools.serial_writes("demo"));
}

#[test]
fn mistakes_in_the_settings_are_found_when_the_toolbox_is_built() {
    let classes = |name| ToolboxOptions {
        classes: one(name, EffectClass::Safe),
        ..ToolboxOptions::default()
    };
    for name in ["odd.shwo", "show"] {
        assert_eq!(
            odd(classes(name)).unwrap_err(),
            BuildToolboxError::UnknownTool(name.to_owned())
        );
    }
    assert!(
        odd(classes("elsewhere.tool")).is_ok(),
        "other servers are not this toolbox's"
    );
    let keys = ToolboxOptions {
        key_arguments: one("odd.show", "absent".to_owned()),
        ..ToolboxOptions::default()
    };
    assert!(matches!(
        odd(keys),
        Err(BuildToolboxError::UnknownKeyArgument { .. })
    ));
    let twice: [Arc<dyn InProcessServer>; 2] = [Arc::new(Demo), Arc::new(Demo)];
    let error = Toolbox::new(twice, ToolboxOptions::default()).unwrap_err();
    assert_eq!(error, BuildToolboxError::DuplicateServer("demo".to_owned()));
}
