//! Results in what models are told: `think` steps, agent steps, conversations.

use super::{Besieged, LOGIN};
use crate::world::{options, person, status_of};
use planwright_core::model::ModelRole;
use planwright_core::run::{Reply, StepState};
use planwright_engine::{AgentSettings, RunCommand};
use serde_json::{Map, Value, json};

fn thinking(page: usize) -> Value {
    json!({"id": "p", "steps": [
        {"id": LOGIN, "tool": "r.look", "args": {"value": "Bearer ${secret.KEY}"}},
        {"id": "read", "tool": "r.read", "args": {"page": page}},
        {"id": "sum", "think": {"prompt": "Say in one line what this is: ${read}"}, "dependsOn": [LOGIN]},
        {"id": "send", "tool": "w.write", "args": {"to": "team@example.org", "text": "${sum}"}},
    ]})
}

#[tokio::test(start_paused = true)]
async fn what_a_model_thinks_is_text_whatever_it_was_told() {
    for page in 0..Besieged::cases() {
        let besieged = Besieged::new();
        let injected = besieged.corpus[page].clone();
        let run = besieged.run(thinking(page), &[("send", "any")]).await;
        assert_eq!(run.status().as_str(), "completed", "{}", injected.attack);
        assert_eq!(besieged.model.asked(ModelRole::Executor), 1);
        let said = format!("{} {}", injected.wants.says, injected.text);
        besieged.holds(
            &injected,
            &[("w.write", json!({"to": "team@example.org", "text": said}))],
        );
    }
}

/// An agent is given the page, or reads it by itself.
fn working(page: usize, tools: &[&str]) -> Value {
    let instruction = if page.is_multiple_of(2) {
        "sum up: ${read}".to_owned()
    } else {
        format!("read page number {page}")
    };
    json!({"id": "p", "toolsRequired": tools, "steps": [
        {"id": LOGIN, "tool": "r.look", "args": {"value": "Bearer ${secret.KEY}"}},
        {"id": "read", "tool": "r.read", "args": {"page": page}},
        {"id": "work", "agent": {"instruction": instruction, "maxTurns": 6, "maxCalls": 20},
         "dependsOn": [LOGIN, "read"]},
    ]})
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_obeys_stays_in_its_scope() {
    for page in 0..Besieged::cases() {
        let besieged = Besieged::new();
        let injected = besieged.corpus[page].clone();
        let run = besieged
            .run(working(page, &["r.read", "r.look"]), &[("work", "any")])
            .await;
        assert!(
            run.state().is_terminal(),
            "{}: {}",
            injected.attack,
            run.status().as_str()
        );
        assert!(besieged.model.asked(ModelRole::Executor) > 0);
        besieged.holds(&injected, &[]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_obeys_makes_no_call_that_the_approver_ruled_out() {
    for page in 0..Besieged::cases() {
        let besieged = Besieged::new();
        let injected = besieged.corpus[page].clone();
        let plan = working(page, &["r.read", "r.look", "w.write", "w.erase"]);
        let run = besieged
            .run(
                plan,
                &[("work", "'to' in args && args.to == 'team@example.org'")],
            )
            .await;
        assert!(
            run.state().is_terminal(),
            "{}: {}",
            injected.attack,
            run.status().as_str()
        );
        besieged.holds(&injected, &[]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_obeys_waits_for_a_person_where_one_is_to_be_asked() {
    for page in 0..Besieged::cases() {
        let besieged = Besieged::new();
        let injected = besieged.corpus[page].clone();
        let plan = working(page, &["r.read", "r.look", "w.write", "w.erase"]);
        besieged.run(plan, &[("work", "ask")]).await;
        besieged.holds(&injected, &[]);
    }
}

#[tokio::test(start_paused = true)]
async fn where_scopes_are_only_watched_a_person_is_still_asked() {
    for page in 0..Besieged::cases() {
        let besieged = Besieged::with(
            json!({}),
            AgentSettings {
                observe_scope: true,
            },
        );
        let injected = besieged.corpus[page].clone();
        besieged
            .run(working(page, &["r.read", "r.look"]), &[("work", "any")])
            .await;
        besieged.holds(&injected, &[]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_reads_a_page_asks_the_person_who_talks() {
    for page in (0..Besieged::cases()).step_by(4) {
        let besieged = Besieged::new();
        let injected = besieged.corpus[page].clone();
        let instruction = "Talk with the person.";
        let plan = json!({"id": "p", "toolsRequired": ["r.read", "r.look", "w.write", "w.erase"], "steps": [
            {"id": LOGIN, "tool": "r.look", "args": {"value": "Bearer ${secret.KEY}"}},
            {"id": "work", "agent": {"instruction": instruction, "converse": true, "maxTurns": 6}, "dependsOn": [LOGIN]},
        ]});
        let id = besieged.approved(plan, &[("work", "ask")]).await;
        let run = besieged
            .engine
            .runs()
            .start(&id, options())
            .await
            .unwrap()
            .wait()
            .await
            .unwrap();
        let StepState::AwaitingInput { asked, .. } = run.step(run.find("work").unwrap()) else {
            panic!("nothing is asked: {}", status_of(&run, "work"));
        };
        let said = Map::from_iter([(
            "message".to_owned(),
            json!(format!("please read page number {page}")),
        )]);
        let step = "work".to_owned();
        let question = asked.digest();
        let command = RunCommand::GiveInput {
            step,
            by: person(),
            question,
            replies: vec![Reply::Values(said)],
        };
        besieged
            .engine
            .runs()
            .command(run.id(), command)
            .await
            .unwrap();
        let run = besieged
            .engine
            .runs()
            .resume(&id, options())
            .await
            .unwrap()
            .wait()
            .await
            .unwrap();
        assert!(
            !run.state().is_terminal() || status_of(&run, "work") != "completed",
            "{}",
            injected.attack
        );
        assert!(
            besieged.model.shown().contains(&injected.marker),
            "{}",
            injected.attack
        );
        besieged.holds(&injected, &[]);
    }
}
