//! People who give orders to whichever service answers.

use crate::cluster::Cluster;
use planwright_testing::dice::Dice;
use planwright_testing::http::{HttpReply, HttpRequest};
use planwright_testing::service::ServiceClient;
use planwright_testing::steps::{call, effect};
use planwright_testing::wait::wait_until;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a request may be repeated until a service answers it.
const PATIENCE: Duration = Duration::from_secs(180);
/// The time that a call at the bank takes at most.
const LONGEST_CALL: usize = 900;

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
        let request = HttpRequest::new(&address, method, path).token(cluster.admin_of(path));
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
        // A service that has just started learns in a moment which tools workers have.
        let is_early = ["is being done", "missing_tools"];
        let text = reply.text();
        let is_said = reply.status < 429 && !is_early.iter().any(|words| text.contains(words));
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

/// Two calls of workers and one of the owner, in an order of their own.
fn steps(id: &str, dice: &mut Dice) -> Value {
    let mut kinds = vec!["pay", dice.pick(&["transfer", "look"]), "note"];
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

/// Stores a plan and approves it.
pub(crate) fn approve(cluster: &Cluster, id: &str, dice: &mut Dice) {
    let plan = json!({ "id": id, "title": id, "steps": steps(id, dice) });
    insist(cluster, "/plan", &plan, id);
    let yes = json!({ "decision": "approve", "version": 1 });
    insist(cluster, &format!("/plan/{id}/approve"), &yes, id);
}

/// Starts the run of a plan.
pub(crate) fn run(cluster: &Cluster, id: &str) {
    insist(cluster, &format!("/plan/{id}/run"), &json!({}), id);
}

fn insist(cluster: &Cluster, path: &str, body: &Value, key: &str) {
    let reply = post(cluster, path, body, key);
    assert!(
        reply.status < 300 || reply.text().contains("was done"),
        "an order was carried out twice or refused: {path} {}",
        reply.text()
    );
}

/// Begins the ids of plans that are never run.
pub(crate) const PROBE: &str = "probe";
/// Counts them.
static PROBES: AtomicUsize = AtomicUsize::new(0);

/// Waits until both services know the tools of the workers: until a plan that names them can be approved.
pub(crate) fn await_tools(cluster: &Cluster) {
    for service in cluster.services() {
        let client = ServiceClient {
            host: service.address(),
            admin: cluster.admin_of("/plan").to_owned(),
        };
        let pause = Duration::from_millis(500);
        wait_until("the tools of the workers", || {
            // A service of a later round may have the port of an earlier one.
            let id = format!("{PROBE}-{}", PROBES.fetch_add(1, Ordering::Relaxed));
            client.plan(&id, steps(&id, &mut Dice::new(0)));
            let yes = json!({ "decision": "approve", "version": 1 });
            let reply = client.post(&format!("/plan/{id}/approve"), &yes);
            let is_known = reply.status == 200;
            if !is_known {
                std::thread::sleep(pause);
            }
            is_known
        });
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
            if !text("id").starts_with(PROBE) {
                found.insert(text("id"), text("status"));
            }
        }
        match page["nextCursor"].as_str() {
            Some(next) => path = format!("/plan?limit=200&cursor={next}"),
            None => return found,
        }
    }
}
