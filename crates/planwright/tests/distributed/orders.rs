//! People who give orders to whichever service answers.

use crate::cluster::Cluster;
use planwright_testing::dice::Dice;
use planwright_testing::http::{HttpReply, HttpRequest};
use planwright_testing::steps::{call, effect};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long a request may be repeated until a service answers it.
const PATIENCE: Duration = Duration::from_secs(180);
/// The time that a call at the bank takes at most.
const LONGEST_CALL: usize = 1_200;

/// Asks one service after the other until `read` has something.
fn ask<T>(
    cluster: &Cluster,
    method: &str,
    path: &str,
    make: impl Fn(HttpRequest) -> HttpRequest,
    read: impl Fn(&HttpReply) -> Option<T>,
) -> T {
    let since = Instant::now();
    let mut last = None;
    // Each path has a service that it begins with.
    for turn in path.len().. {
        let services = cluster.services();
        let address = services[turn % services.len()].address();
        let request = HttpRequest::new(&address, method, path).token(&cluster.admin);
        // Also while the service stands still, or is not there.
        if let Some(reply) = make(request).try_send_within(Duration::from_secs(5)) {
            if let Some(found) = read(&reply) {
                return found;
            }
            last = Some(reply.text());
        }
        assert!(
            since.elapsed() < PATIENCE,
            "no service answers {method} {path}: {last:?}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    unreachable!("the turns do not end")
}

/// Gets a document.
pub(crate) fn get(cluster: &Cluster, path: &str) -> Value {
    ask(
        cluster,
        "GET",
        path,
        |request| request,
        |reply| (reply.status == 200).then(|| reply.json()),
    )
}

/// Posts under one key until a service says what came of it.
pub(crate) fn post(cluster: &Cluster, path: &str, body: &Value, key: &str) -> HttpReply {
    let make = |request: HttpRequest| request.header("Idempotency-Key", key).json(body);
    ask(cluster, "POST", path, make, |reply| {
        let is_said = reply.status < 429 && !reply.text().contains("is being done");
        is_said.then(|| reply.clone())
    })
}

/// Posts once, to the service that answers first; it may be refused.
pub(crate) fn try_post(cluster: &Cluster, path: &str, body: &Value) {
    ask(
        cluster,
        "POST",
        path,
        |request| request.json(body),
        |_| Some(()),
    );
}

/// Three calls of workers and one of the owner, in an order of their own.
fn steps(id: &str, dice: &mut Dice) -> Value {
    let mut kinds = vec!["pay", "transfer", "look", "note"];
    let mut steps = Vec::new();
    let mut before: Option<String> = None;
    while !kinds.is_empty() {
        let kind = kinds.remove(dice.below(kinds.len()));
        let step = format!("{id}-{kind}");
        let after: Vec<&str> = before.as_deref().into_iter().collect();
        steps.push(match kind {
            "note" => effect(&step, &after),
            _ => {
                let milliseconds = 100 + dice.below(LONGEST_CALL);
                let args = json!({ "account": step, "milliseconds": milliseconds });
                let mut step = call(&step, &format!("bank.{kind}"), args, &after);
                step["capability"] = "bank".into();
                step
            }
        });
        before = Some(step);
    }
    steps.into()
}

/// Stores a plan, approves it and starts its run.
pub(crate) fn order(cluster: &Cluster, id: &str, dice: &mut Dice) {
    let plan = json!({ "id": id, "title": id, "steps": steps(id, dice) });
    for (path, body) in [
        ("/plan".to_owned(), plan),
        (
            format!("/plan/{id}/approve"),
            json!({ "decision": "approve", "version": 1 }),
        ),
        (format!("/plan/{id}/run"), json!({})),
    ] {
        let reply = post(cluster, &path, &body, id);
        assert!(
            reply.status < 300 || reply.text().contains("was done"),
            "an order was carried out twice or refused: {path} {}",
            reply.text()
        );
    }
}

/// The statuses of the plans.
pub(crate) fn statuses(cluster: &Cluster) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut path = "/plan?limit=200".to_owned();
    loop {
        let page = get(cluster, &path);
        for plan in page["items"].as_array().unwrap() {
            let text = |name: &str| plan[name].as_str().unwrap_or_default().to_owned();
            found.insert(text("id"), text("status"));
        }
        match page["nextCursor"].as_str() {
            Some(next) => path = format!("/plan?limit=200&cursor={next}"),
            None => return found,
        }
    }
}
