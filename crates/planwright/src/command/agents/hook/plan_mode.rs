//! The agent leaves plan mode: its plan is proposed, and a person's review of it is waited for.

use super::answer::Answer;
use super::payload::Payload;
use super::tool_use::{explain, open_context};
use crate::config::passphrase::Unlock;
use crate::exit::Failure;
use crate::terminal::printer::{Printer, line};
use crate::workspace::app::{Access, App};
use crate::workspace::principal::how_a_person_approves;
use crate::workspace::projections::update_plan_files;
use planwright_core::digest::Digest;
use planwright_core::id::PlanId;
use planwright_core::plan::{Document, plan_of_prose, steps_of_markdown, validate};
use planwright_core::policy::AgentClient;
use planwright_core::principal::Principal;
use planwright_core::review::{Review, ReviewStage, ReviewState};
use planwright_engine::port::Tools as _;
use planwright_engine::with_causes;
use serde_json::Value;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The tool with which the agent leaves plan mode.
const TOOL: &str = "ExitPlanMode";
/// How often the review is looked at.
const LOOK: Duration = Duration::from_millis(300);

pub(super) fn leave(
    printer: Printer,
    (dir, unlock): (Option<PathBuf>, Unlock),
    payload: &Payload,
    wait: Duration,
) -> Result<Answer, String> {
    if payload.client != AgentClient::ClaudeCode {
        return Err(format!("{} has no such hook", payload.client.as_str()));
    }
    payload.event(&["PermissionRequest"])?;
    let tool = payload.text("tool_name")?;
    if tool != TOOL {
        return Err(format!("`{tool}` is not {TOOL}"));
    }
    let input = payload.input()?;
    let Some(Value::String(plan)) = input.get("plan") else {
        return Err("the agent's plan is missing: `tool_input.plan` is not a text".to_owned());
    };
    let context = open_context(printer, dir, payload)?.with_unlock(unlock);
    let root = context.workspace.root.to_string_lossy().into_owned();
    let id = name_plan(payload.text("session_id")?, &root)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the runtime: {error}"))?;
    let reviewed = runtime.block_on(async {
        let app = context.open(Access::Write)?;
        let document = read_plan(&app, plan, &id)?;
        review(&app, document, wait).await
    });
    let decision = reviewed.map_err(explain)?;
    Ok(match decision {
        Decision::Approved => Answer::AllowInput(input),
        Decision::NotApproved(why) => Answer::Deny(why),
    })
}

/// One plan per session: what the agent presents again is the next version of it.
fn name_plan(session: &str, root: &str) -> Result<PlanId, String> {
    let digest = Digest::of_parts(&[session.as_bytes(), root.as_bytes()]).hex();
    let id = format!("claude-{}", &digest[..10]);
    id.parse()
        .map_err(|error| format!("the plan cannot be named: {error}"))
}

/// The plan with its steps if it has steps that are in order, else as one instruction. What its
/// frontmatter says about its name is the agent's word and does not count.
fn read_plan(app: &App, text: &str, id: &PlanId) -> Result<Document, Failure> {
    let bounds = app.context.config.bounds();
    let name = |mut document: Document| {
        document.id = Some(id.clone());
        document
    };
    let catalog = app.context.toolbox()?.catalog();
    let is_sound = |document: &Document| {
        let checked = validate(document.clone(), &catalog, &bounds);
        checked.plan.is_some() && !checked.findings.iter().any(|finding| finding.is_error())
    };
    let steps = steps_of_markdown(text.as_bytes(), &bounds).map(name);
    if let Some(document) = steps.filter(is_sound) {
        return Ok(document);
    }
    plan_of_prose(text.as_bytes(), &bounds)
        .map(name)
        .map_err(|error| Failure::usage(format!("the agent's plan cannot be read: {error}")))
}

enum Decision {
    Approved,
    NotApproved(String),
}

async fn review(app: &App, document: Document, wait: Duration) -> Result<Decision, Failure> {
    let agent = Principal::agent(AgentClient::ClaudeCode.as_str());
    let plans = app.engine.plans();
    let (proposed, _) = plans.propose(document, &agent).await?;
    update_plan_files(app, &proposed).await;
    let id = proposed.id().clone();
    let version = proposed.current().number;
    let until = Instant::now() + wait;
    loop {
        let loaded = plans.load_review(&id).await;
        let (review, _) =
            loaded.map_err(|error| Failure::new(crate::exit::Exit::Store, with_causes(&error)))?;
        if let Some(decision) = read_decision(&review, version) {
            return Ok(decision);
        }
        if Instant::now() >= until {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    let how = how_a_person_approves(&format!("planwright approve {id}"));
    Ok(Decision::NotApproved(format!(
        "the plan is proposed as `{id}` (version {version}) and no person has decided about it yet. Stay in plan \
         mode; {how}. Present the same plan again after that."
    )))
}

/// What people decided about this version; nothing while it waits.
fn read_decision(review: &Review, version: u32) -> Option<Decision> {
    let id = review.id();
    let current = review.current().number;
    let no = |words: String| Some(Decision::NotApproved(words));
    if current != version {
        return no(format!(
            "the plan `{id}` was changed while it was reviewed and is at version {current} now: read it with \
             plan_get or planwright show {id}, and present that"
        ));
    }
    let stage = match review.state() {
        ReviewState::Active(stage) => stage,
        ReviewState::Archived(_) => return no(format!("the plan `{id}` was archived")),
        ReviewState::Deleted => return no(format!("the plan `{id}` was deleted")),
    };
    let said = |reason: Option<&str>| {
        let reason = reason.filter(|reason| !reason.is_empty());
        reason.map_or_else(String::new, |reason| format!(": {}", line(reason)))
    };
    match stage {
        ReviewStage::Approved => Some(Decision::Approved),
        ReviewStage::Proposed | ReviewStage::Draft => None,
        ReviewStage::Rejected => no(format!(
            "a person rejected the plan `{id}`{}. Change it and present it again",
            said(review.rejections().last().map(|last| last.reason.as_str()))
        )),
        ReviewStage::ChangesRequested => no(format!(
            "a person asks for changes to the plan `{id}`{}. Change it and present it again",
            said(
                review
                    .change_requests()
                    .last()
                    .map(|last| last.reason.as_str())
            )
        )),
        ReviewStage::NeedsReview => no(format!(
            "the plan `{id}` was rejected too often: a person has to step in"
        )),
        ReviewStage::Expired => no(format!("the plan `{id}` has expired")),
    }
}
