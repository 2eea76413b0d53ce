//! The plans that are killed: chains, diamonds, fan-outs, retries, and all effect classes mixed.

use serde_json::{Value, json};

/// What a step does to the world, and so what may happen to it after a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Does {
    /// Nothing: read-only.
    Nothing,
    /// Writes its own file; doing it again changes nothing.
    Writes,
    /// Adds a line with its idempotency key: may be there more than once, always with the same key.
    Keyed,
    /// Adds a line that must never be there twice.
    Appends,
    /// Fails, and the plan says that this is fine.
    Fails,
    /// Its condition is false.
    Skipped,
    /// Asks a person.
    Asks,
    /// Runs over elements, which are steps of their own here.
    Loops,
}

#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) id: String,
    pub(crate) does: Does,
    /// Nothing for an element of a loop: the plan has only the step that loops.
    json: Option<Value>,
}

#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) steps: Vec<Step>,
}

impl Shape {
    pub(crate) fn plan(&self) -> Value {
        let steps: Vec<&Value> = self
            .steps
            .iter()
            .filter_map(|step| step.json.as_ref())
            .collect();
        json!({ "id": "killed", "title": self.name, "steps": steps })
    }
}

fn step(id: &str, does: Does, after: &[&str]) -> Step {
    let mut json = match does {
        Does::Nothing => json!({ "tool": "demo.echo", "args": { "value": { "of": id } } }),
        Does::Writes => {
            json!({ "tool": "write_file", "args": { "path": format!("out/{id}"), "content": id } })
        }
        Does::Keyed => json!({
            "tool": "run_command",
            "args": {
                "command": "sh",
                "args": ["-c", "echo \"$PLANWRIGHT_STEP_ID $PLANWRIGHT_IDEMPOTENCY_KEY\" >> keyed.log"],
            },
        }),
        Does::Appends => {
            json!({ "tool": "append_file", "args": { "path": "effects.log", "content": format!("{id}\n") } })
        }
        Does::Fails => {
            json!({ "tool": "demo.fail", "args": { "retryable": false }, "critical": false })
        }
        Does::Skipped => json!({ "tool": "demo.fail", "when": "1 + 1 == 3" }),
        Does::Asks => json!({ "input": { "message": "How many?", "schema": {
            "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"],
        } } }),
        Does::Loops => json!({}),
    };
    json["id"] = json!(id);
    json["dependsOn"] = json!(after);
    Step {
        id: id.to_owned(),
        does,
        json: Some(json),
    }
}

/// A step that runs over `count` elements, and the elements.
fn over(
    id: &str,
    count: usize,
    does: Does,
    after: &[&str],
    change: impl FnOnce(&mut Value),
) -> Vec<Step> {
    let mut written = step(id, does, after);
    written.does = Does::Loops;
    if let Some(json) = &mut written.json {
        json["forEach"] = json!((0..count).collect::<Vec<_>>());
        match does {
            Does::Appends => json["args"]["content"] = json!(format!("{id}[${{index}}]\n")),
            Does::Writes => json["args"]["path"] = json!(format!("out/{id}[${{item}}]")),
            Does::Nothing
            | Does::Keyed
            | Does::Fails
            | Does::Skipped
            | Does::Asks
            | Does::Loops => {}
        }
        change(json);
    }
    let element = |index| Step {
        id: format!("{id}[{index}]"),
        does,
        json: None,
    };
    std::iter::once(written)
        .chain((0..count).map(element))
        .collect()
}

/// The same with a change to the step's document.
fn with(mut step: Step, change: impl FnOnce(&mut Value)) -> Step {
    change(step.json.as_mut().expect("steps of the plan are written"));
    step
}

fn chain(name: &'static str, kinds: &[Does]) -> Shape {
    let steps = kinds.iter().enumerate().map(|(i, &does)| {
        let before = i.checked_sub(1).map(|before| format!("s{before}"));
        let before: Vec<&str> = before.iter().map(String::as_str).collect();
        step(&format!("s{i}"), does, &before)
    });
    Shape {
        name,
        steps: steps.collect(),
    }
}

fn fan_out(name: &'static str, first: Does, middle: &[Does], last: Does) -> Shape {
    let mut steps = vec![step("first", first, &[])];
    let names: Vec<String> = (0..middle.len()).map(|i| format!("m{i}")).collect();
    steps.extend(
        middle
            .iter()
            .zip(&names)
            .map(|(&does, id)| step(id, does, &["first"])),
    );
    steps.push(step(
        "last",
        last,
        &names.iter().map(String::as_str).collect::<Vec<_>>(),
    ));
    Shape { name, steps }
}

fn retried(id: &str, times: u32, after: &[&str]) -> Step {
    with(step(id, Does::Nothing, after), |json| {
        json["tool"] = json!("demo.fail");
        json["args"] = json!({ "times": times });
        json["retry"] = json!({ "max": 9, "backoff": 0.002, "factor": 1.0 });
    })
}

pub(crate) fn all() -> Vec<Shape> {
    use Does::{Appends, Asks, Fails, Keyed, Nothing, Skipped, Writes};
    vec![
        chain("one unsafe step", &[Appends]),
        chain("a chain of safe steps", &[Nothing, Writes, Nothing, Writes]),
        chain(
            "a chain of unsafe steps",
            &[Appends, Appends, Appends, Appends],
        ),
        chain("a chain of keyed steps", &[Keyed, Keyed, Keyed]),
        chain(
            "a chain of every class",
            &[Nothing, Appends, Keyed, Writes, Appends],
        ),
        fan_out("a safe diamond", Nothing, &[Writes, Writes], Nothing),
        fan_out("an unsafe diamond", Appends, &[Appends, Appends], Appends),
        fan_out("a fan-out of unsafe steps", Nothing, &[Appends; 6], Appends),
        fan_out(
            "a fan-out of every class",
            Writes,
            &[Appends, Keyed, Nothing, Writes, Appends],
            Appends,
        ),
        Shape {
            name: "retries before an effect",
            steps: vec![retried("flaky", 2, &[]), step("then", Appends, &["flaky"])],
        },
        Shape {
            name: "retries beside effects",
            steps: vec![
                retried("flaky", 1, &[]),
                step("beside", Appends, &[]),
                step("after", Appends, &["beside"]),
                step("both", Writes, &["flaky", "after"]),
            ],
        },
        Shape {
            name: "a failure that is not critical",
            steps: vec![
                step("fails", Fails, &[]),
                step("goes_on", Appends, &[]),
                step("then", Appends, &["goes_on"]),
            ],
        },
        Shape {
            name: "a timeout that is not critical",
            steps: vec![
                with(step("slow", Fails, &[]), |json| {
                    json["tool"] = json!("demo.sleep");
                    json["args"] = json!({ "ms": 60_000 });
                    json["timeoutSeconds"] = json!(0.02);
                }),
                step("beside", Appends, &[]),
                step("then", Appends, &["beside"]),
            ],
        },
        Shape {
            name: "values that flow, one of them large",
            steps: vec![
                with(step("large", Nothing, &[]), |json| {
                    json["tool"] = json!("demo.random_bytes");
                    json["args"] = json!({ "n": 100_000 });
                }),
                with(step("copy", Writes, &[]), |json| {
                    json["args"]["content"] = json!("${large}");
                }),
                with(step("note", Appends, &[]), |json| {
                    json["args"]["content"] = json!("note\n${copy.bytes}\n");
                }),
            ],
        },
        Shape {
            name: "conditions and expectations",
            steps: vec![
                with(step("first", Nothing, &[]), |json| {
                    json["expect"] = json!("result.of == 'first'");
                }),
                step("not", Skipped, &["first"]),
                with(step("then", Appends, &["not"]), |json| {
                    json["when"] = json!("steps.not == null");
                }),
                with(step("wrong", Fails, &[]), |json| {
                    json["tool"] = json!("demo.echo");
                    json["args"] = json!({ "value": 1 });
                    json["expect"] = json!("result == 2");
                }),
            ],
        },
        Shape {
            name: "a loop of unsafe calls, two at a time",
            steps: [
                over("each", 4, Appends, &[], |json| {
                    json["maxParallel"] = json!(2);
                }),
                vec![step("last", Appends, &["each"])],
            ]
            .concat(),
        },
        Shape {
            name: "loops of safe and keyed calls",
            steps: [
                over("write", 3, Writes, &[], |_| {}),
                over("key", 3, Keyed, &["write"], |json| {
                    json["maxParallel"] = json!(1);
                }),
                vec![step("last", Appends, &["key"])],
            ]
            .concat(),
        },
        Shape {
            name: "a question between effects",
            steps: vec![
                step("before", Appends, &[]),
                step("ask", Asks, &["before"]),
                with(step("after", Appends, &["ask"]), |json| {
                    json["when"] = json!("ask.n == 3");
                }),
            ],
        },
        Shape {
            name: "two lanes and a join",
            steps: vec![
                step("a1", Appends, &[]),
                step("a2", Keyed, &["a1"]),
                step("b1", Writes, &[]),
                step("b2", Appends, &["b1"]),
                step("join", Appends, &["a2", "b2"]),
            ],
        },
    ]
}
