//! Schemas of everything that is told: one component per event, told apart by `event`.

use planwright_core::event::EventName;
use planwright_core::status::StepStatus;
use serde_json::{Map, Value, json};

/// Properties of an event besides those that all have.
struct Fields {
    always: &'static [&'static str],
    sometimes: &'static [&'static str],
}

const fn fields(always: &'static [&'static str], sometimes: &'static [&'static str]) -> Fields {
    Fields { always, sometimes }
}

/// What an event with this name says. A name without an entry does not compile.
fn fields_of(name: EventName) -> Fields {
    use EventName as N;
    match name {
        N::PlanCreated | N::PlanEdited => fields(&["version", "digest", "by"], &["reason"]),
        N::PlanProposed => fields(&["version", "by"], &["digest", "reason"]),
        N::PlanApproved | N::PlanRunRequested => fields(&["version", "digest", "by"], &[]),
        N::PlanRejected | N::PlanChangesRequested | N::PlanCommented => {
            fields(&["version", "by", "reason"], &[])
        }
        N::PlanExpired => fields(&["version"], &[]),
        N::PlanApprovalExpired => fields(&["version", "digest"], &[]),
        N::PlanApprovalRevoked => fields(&["version", "by"], &["reason"]),
        N::PlanArchived
        | N::PlanUnarchived
        | N::PlanCommentResolved
        | N::PlanCommentReopened
        | N::PlanDeleted => fields(&["by"], &[]),
        N::PlanStep => fields(
            &["step"],
            &[
                "runId", "attempt", "result", "error", "by", "reason", "digest",
            ],
        ),
        N::RunStarted => fields(&["runId", "version", "digest", "by"], &[]),
        N::RunQueued | N::RunStalled | N::RunCancelled => fields(&["runId"], &[]),
        N::RunPaused | N::RunResumed | N::RunCancelling | N::RunUndoing => {
            fields(&["runId", "by"], &[])
        }
        N::RunCompleted => fields(&["runId"], &["error"]),
        // The journal of a run that is written off cannot tell it: the plan's does.
        N::RunFailed => fields(&[], &["runId", "by", "reason"]),
        N::PlanReflected => fields(&["runId", "reason"], &[]),
        N::PlanAdjusted => fields(&["runId", "version"], &[]),
    }
}

/// Adds the schemas of all events.
pub(super) fn add_event_schemas(schemas: &mut Map<String, Value>) {
    let mut mapping = Map::new();
    for name in EventName::ALL {
        let component = format!("{name:?}Event");
        mapping.insert(name.as_str().to_owned(), json!(reference_to(&component)));
        schemas.insert(component, event(name));
    }
    let each: Vec<Value> = mapping
        .values()
        .map(|place| json!({ "$ref": place }))
        .collect();
    let mut streamed = each.clone();
    for (component, schema) in [
        ("PlanProgressEvent", progress()),
        ("PlanLogEvent", log()),
        ("ResetEvent", reset()),
        ("ErrorEvent", error()),
    ] {
        streamed.push(json!({ "$ref": reference_to(component) }));
        schemas.insert(component.to_owned(), schema);
    }
    schemas.insert(
        "Event".to_owned(),
        json!({
            "description": "Something that happened to a plan. `event` says what.",
            "oneOf": each,
            "discriminator": { "propertyName": "event", "mapping": mapping },
        }),
    );
    schemas.insert(
        "StreamedEvent".to_owned(),
        json!({
            "description": "The data of an event of a stream. `plan.progress` and `plan.log` are told to the listeners of that moment only, \
                `reset` says where everything stands to one that has to begin anew, and `error` ends a stream.",
            "oneOf": streamed,
        }),
    );
    schemas.insert("CloudEvent".to_owned(), cloud_event());
    if let Some(list) = schemas.get_mut("EventList") {
        list["properties"]["events"]["items"] = json!({
            "description": "With `format=cloudevents` each is in its envelope.",
            "anyOf": [{ "$ref": reference_to("Event") }, { "$ref": reference_to("CloudEvent") }],
        });
    }
    add_parts(schemas);
    add_chat_events(schemas);
}

fn reference_to(component: &str) -> String {
    format!("#/components/schemas/{component}")
}

/// The schema of one event.
fn event(name: EventName) -> Value {
    let Fields { always, sometimes } = fields_of(name);
    let mut properties = Map::new();
    properties.insert(
        "event".to_owned(),
        json!({ "type": "string", "const": name.as_str() }),
    );
    let common = ["traceId", "planId", "occurredAt", "summary", "seq"];
    let all = common.iter().chain(always).chain(sometimes);
    for field in all {
        properties.insert((*field).to_owned(), property(field));
    }
    if name.alias(Some(StepStatus::Running)).is_some() {
        let description = "The name that earlier systems have for it, if they have one.";
        properties.insert(
            "alias".to_owned(),
            json!({ "type": "string", "description": description }),
        );
    }
    let mut required = vec!["event"];
    required.extend(common);
    required.extend(always);
    json!({ "type": "object", "properties": properties, "required": required })
}

fn property(field: &str) -> Value {
    match field {
        "step" => json!({ "$ref": reference_to("EventStep") }),
        "result" => json!({ "$ref": reference_to("EventResult") }),
        "error" => json!({ "$ref": reference_to("ErrorWire") }),
        "by" => json!({ "$ref": reference_to("Principal") }),
        "version" => json!({ "type": "integer", "minimum": 1 }),
        "attempt" => {
            json!({ "type": "integer", "minimum": 1, "description": "The attempt of the step, counted from 1." })
        }
        "seq" => {
            json!({ "type": "integer", "minimum": 1, "description": "The number of the event among those of its plan." })
        }
        "summary" => json!({ "type": "string", "description": "One line for people." }),
        _ => json!({ "type": "string" }),
    }
}

fn add_parts(schemas: &mut Map<String, Value>) {
    let text = json!({ "type": ["string", "null"] });
    schemas.insert(
        "EventStep".to_owned(),
        json!({
            "type": "object",
            "description": "A step as events show it.",
            "properties": {
                "id": { "type": "string" },
                "action": { "type": "string", "description": "What the author calls it, else what it does." },
                "tool": { "type": "string" },
                "state": { "$ref": reference_to("StepStatus") },
                "capability": text,
                "capabilityLabel": text,
                "labels": { "type": "array", "items": { "type": "string" } },
                "timeoutSeconds": { "type": ["number", "null"] },
                "approvalRequired": { "type": "boolean" },
            },
            "required": ["id", "action", "tool", "state", "capability", "capabilityLabel", "labels", "timeoutSeconds", "approvalRequired"],
        }),
    );
    schemas.insert(
        "EventResult".to_owned(),
        json!({
            "type": "object",
            "description": "What a step came to, in short.",
            "properties": {
                "bytes": { "type": "integer", "minimum": 0, "description": "Of the whole value as JSON." },
                "preview": { "type": "string", "description": "How it begins. Absent when the value is kept outside the journal." },
            },
            "required": ["bytes"],
        }),
    );
}

/// An event that is told of a call to the listeners of that moment, with these fields besides.
fn told_live(name: &str, description: &str, fields: &[(&str, Value)]) -> Value {
    let text = || json!({ "type": "string" });
    let step = json!({
        "type": "object",
        "properties": { "id": { "type": "string" } },
        "required": ["id"],
    });
    let common = [
        ("event", json!({ "type": "string", "const": name })),
        ("traceId", text()),
        ("planId", text()),
        ("runId", text()),
        ("step", step),
    ];
    let all = || common.iter().chain(fields);
    let properties: Map<String, Value> = all()
        .map(|(name, schema)| ((*name).to_owned(), schema.clone()))
        .collect();
    let required: Vec<&str> = all().map(|(name, _)| *name).collect();
    json!({
        "type": "object",
        "description": format!("{description} It has no number and is never kept."),
        "properties": properties,
        "required": required,
    })
}

fn progress() -> Value {
    let percent = json!({
        "type": ["number", "null"],
        "minimum": 0,
        "maximum": 100,
        "description": "From 0 to 100, if the tool knows all of its work.",
    });
    told_live(
        "plan.progress",
        "How far a call is, as its tool says.",
        &[
            ("done", json!({ "type": "number" })),
            ("total", json!({ "type": ["number", "null"] })),
            ("percent", percent),
            ("message", json!({ "type": ["string", "null"] })),
        ],
    )
}

fn log() -> Value {
    let logger = json!({ "type": ["string", "null"], "description": "The part of the server that wrote it." });
    told_live(
        "plan.log",
        "A line that a server logged during a call.",
        &[
            ("level", json!({ "$ref": reference_to("LogLevel") })),
            ("logger", logger),
            ("message", json!({ "type": "string" })),
        ],
    )
}

fn reset() -> Value {
    json!({
        "type": "object",
        "description": "A listener missed too much, or named an event that never was: where the plan stands instead. \
            On the stream of all plans only `last` is known.",
        "properties": {
            "event": { "type": "string", "const": "reset" },
            "reason": { "type": "string", "enum": ["too_old", "unknown_id"] },
            "planId": { "type": "string" },
            "seq": { "type": "integer", "minimum": 0 },
            "status": { "$ref": reference_to("PlanStatus") },
            "version": { "type": "integer", "minimum": 1 },
            "runId": { "type": ["string", "null"] },
            "steps": {
                "type": ["array", "null"],
                "items": {
                    "type": "object",
                    "properties": {
                        "id": { "type": "string" },
                        "state": { "$ref": reference_to("StepStatus") },
                    },
                    "required": ["id", "state"],
                },
            },
            "last": { "type": "string" },
        },
        "required": ["event", "reason"],
    })
}

fn error() -> Value {
    json!({
        "type": "object",
        "description": "The journal of the plan is damaged, and nothing more can be told.",
        "properties": {
            "event": { "type": "string", "const": "error" },
            "planId": { "type": "string" },
            "summary": { "type": "string" },
        },
        "required": ["event", "planId", "summary"],
    })
}

fn cloud_event() -> Value {
    json!({
        "type": "object",
        "description": "An event in the envelope of CloudEvents 1.0.",
        "properties": {
            "specversion": { "type": "string", "const": "1.0" },
            "id": { "type": "string" },
            "source": { "type": "string" },
            "type": { "type": "string", "description": "As `dev.planwright.plan.step.completed.v1`." },
            "subject": { "type": "string", "description": "The step or the run it is about; absent when it is about the plan." },
            "time": { "type": "string", "format": "date-time" },
            "datacontenttype": { "type": "string", "const": "application/json" },
            "planid": { "type": "string" },
            "seq": { "type": "integer", "minimum": 1 },
            "traceparent": { "type": "string" },
            "data": { "$ref": reference_to("Event") },
        },
        "required": ["specversion", "id", "source", "type", "time", "datacontenttype", "planid", "seq", "traceparent", "data"],
    })
}

/// What a chat tells as it comes.
fn add_chat_events(schemas: &mut Map<String, Value>) {
    schemas.insert(
        "ChatDelta".to_owned(),
        json!({
            "type": "object",
            "description": "The data of `chat.delta`: a piece of the answer's text.",
            "properties": { "text": { "type": "string" } },
            "required": ["text"],
        }),
    );
    schemas.insert(
        "ChatEvent".to_owned(),
        json!({
            "description": "The data of an event of a chat: of `chat.delta`, of `chat.done` and of `chat.error`.",
            "oneOf": [
                { "$ref": reference_to("ChatDelta") },
                { "$ref": reference_to("ChatAnswer") },
                { "$ref": reference_to("Problem") },
            ],
        }),
    );
}
