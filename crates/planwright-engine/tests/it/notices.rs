//! Couriers, with an endpoint that does as it is told and a clock that is moved by hand.

use planwright_core::plan::{Bounds, Document};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::run::{Parent, Shown};
use planwright_core::time::Timestamp;
use planwright_core::tool::ToolDefinition;
use planwright_engine::memory::{ManualClock, MemoryOutbox};
use planwright_engine::port::{BoxFuture, DeliveryState, Outbox as _};
use planwright_engine::webhooks::{Courier, MAX_ATTEMPTS, Notice};
use planwright_engine::webhooks::{SendNoticeError, Webhook};
use planwright_engine::{Engine, FunctionTools, RunCommand, RunOptions, ShownText};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Answers with what was put in, last one first; then with yes.
#[derive(Debug, Default)]
struct Endpoint {
    answers: Mutex<Vec<SendNoticeError>>,
    told: Mutex<Vec<Notice>>,
}

impl Webhook for Endpoint {
    fn name(&self) -> &str {
        "a"
    }

    fn wants(&self, kind: &str) -> bool {
        kind != "plan.deleted"
    }

    fn send<'a>(&'a self, notice: &'a Notice) -> BoxFuture<'a, Result<(), SendNoticeError>> {
        self.told.lock().unwrap().push(notice.clone());
        let answer = self.answers.lock().unwrap().pop();
        Box::pin(std::future::ready(answer.map_or(Ok(()), Err)))
    }
}

impl Endpoint {
    fn failing(times: usize) -> Self {
        let no = || SendNoticeError::Failed {
            reason: "no".into(),
            retry_after: None,
        };
        Self {
            answers: Mutex::new((0..times).map(|_| no()).collect()),
            told: Mutex::default(),
        }
    }

    fn kinds(&self) -> Vec<&'static str> {
        self.told
            .lock()
            .unwrap()
            .iter()
            .map(|notice| notice.kind)
            .collect()
    }
}

struct World {
    engine: Engine,
    clock: Arc<ManualClock>,
    outbox: Arc<MemoryOutbox>,
    endpoint: Arc<Endpoint>,
}

impl World {
    fn new(endpoint: Endpoint) -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_700_000_000_000)));
        let echo = ToolDefinition::new("t", "echo", "Says it again.", json!({ "type": "object" }));
        let tools = FunctionTools::new().with(echo, |_| async { Ok(json!("x")) });
        let engine = Engine::builder(Arc::new(tools))
            .clock(clock.clone())
            .build();
        Self {
            engine,
            clock,
            outbox: Arc::default(),
            endpoint: Arc::new(endpoint),
        }
    }

    fn courier(&self) -> Courier {
        Courier::new(
            self.engine.clone(),
            self.outbox.clone(),
            self.endpoint.clone(),
        )
    }

    async fn propose(&self, id: &str) {
        let steps = json!([{ "id": "a", "tool": "t.echo" }]);
        self.propose_steps(id, &steps).await;
    }

    async fn propose_steps(&self, id: &str, steps: &Value) {
        let text = json!({ "id": id, "title": "T", "steps": steps }).to_string();
        let document = Document::read(text.as_bytes(), &Bounds::default()).unwrap();
        self.engine
            .plans()
            .propose(document, &Principal::person("ada"))
            .await
            .unwrap();
    }

    async fn count(&self, state: DeliveryState) -> u64 {
        self.outbox.count("a", state).await.unwrap()
    }
}

async fn carry(courier: &mut Courier) {
    courier.carry(&CancellationToken::new()).await.unwrap();
}

#[tokio::test]
async fn a_new_endpoint_is_told_what_happens_from_then_on_in_order() {
    let world = World::new(Endpoint::default());
    for number in 0..40 {
        world.propose(&format!("old-{number}")).await;
    }
    let mut courier = world.courier();
    carry(&mut courier).await;
    assert!(world.endpoint.kinds().is_empty());
    world.propose("new").await;
    carry(&mut courier).await;
    carry(&mut courier).await;
    assert_eq!(
        world.endpoint.kinds(),
        ["plan.proposed", "approval.requested"]
    );
    assert_eq!(world.count(DeliveryState::Waiting).await, 0);
}

#[tokio::test]
async fn two_couriers_of_one_endpoint_share_the_work() {
    let world = World::new(Endpoint::default());
    let mut first = world.courier();
    let mut second = world.courier();
    carry(&mut first).await;
    for number in 0..20 {
        world.propose(&format!("p-{number}")).await;
    }
    tokio::join!(carry(&mut first), carry(&mut second));
    let mut ids: Vec<String> = world
        .endpoint
        .told
        .lock()
        .unwrap()
        .iter()
        .map(|notice| notice.id.clone())
        .collect();
    assert_eq!(ids.len(), 40);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 40, "nothing is told twice");
}

#[tokio::test]
async fn a_notice_is_given_up_after_the_last_attempt_and_can_be_revived() {
    let world = World::new(Endpoint::failing(1000));
    let mut courier = world.courier();
    carry(&mut courier).await;
    world.propose("p").await;
    for _ in 0..200 {
        carry(&mut courier).await;
        world.clock.advance(Duration::from_secs(60 * 60));
    }
    assert_eq!(
        (
            world.count(DeliveryState::Waiting).await,
            world.count(DeliveryState::Dead).await
        ),
        (0, 2)
    );
    let told = world.endpoint.told.lock().unwrap().clone();
    let first = told.iter().filter(|notice| notice.id == told[0].id).count();
    assert_eq!(first, MAX_ATTEMPTS as usize, "always with the same id");

    world.endpoint.answers.lock().unwrap().clear();
    world.endpoint.told.lock().unwrap().clear();
    assert_eq!(
        world.outbox.revive("a", world.engine.now()).await.unwrap(),
        2
    );
    let mut courier = world.courier();
    carry(&mut courier).await;
    assert_eq!(
        world.endpoint.kinds(),
        ["plan.proposed", "approval.requested"]
    );
}

#[tokio::test]
async fn a_clock_that_is_set_neither_holds_a_notice_back_nor_hurries_it() {
    const DAY: i64 = 24 * 60 * 60 * 1_000;
    for jump in [-DAY, DAY] {
        let world = World::new(Endpoint::failing(1));
        let mut courier = world.courier();
        carry(&mut courier).await;
        world.propose("p").await;
        carry(&mut courier).await;
        assert_eq!(world.endpoint.kinds().len(), 1, "it failed");
        let now = world.engine.now().as_millis();
        let set = Timestamp::from_millis(now + jump);
        world.clock.set_time_of_day(set);
        carry(&mut courier).await;
        assert_eq!(world.endpoint.kinds().len(), 1, "it is not time yet");
        world.clock.advance(Duration::from_secs(60 * 60));
        carry(&mut courier).await;
        assert_eq!(world.count(DeliveryState::Waiting).await, 0);
    }
}

#[tokio::test]
async fn an_endpoint_that_is_gone_is_told_nothing_more_until_somebody_says_so() {
    let world = World::new(Endpoint {
        answers: Mutex::new(vec![SendNoticeError::Gone]),
        ..Endpoint::default()
    });
    let mut courier = world.courier();
    carry(&mut courier).await;
    world.propose("p").await;
    carry(&mut courier).await;
    world.propose("q").await;
    world.clock.advance(Duration::from_secs(60 * 60));
    carry(&mut courier).await;
    assert_eq!(world.endpoint.kinds(), ["plan.proposed"]);
    world.outbox.revive("a", world.engine.now()).await.unwrap();
    carry(&mut courier).await;
    assert_eq!(
        world.endpoint.kinds().len(),
        1 + 4,
        "nothing of the time in between is lost"
    );
}

#[tokio::test]
async fn a_throttled_endpoint_is_left_alone_as_long_as_it_asks() {
    let asks = SendNoticeError::Throttled {
        reason: "busy".into(),
        retry_after: Some(Duration::from_secs(90)),
    };
    let world = World::new(Endpoint {
        answers: Mutex::new(vec![asks]),
        ..Endpoint::default()
    });
    let mut courier = world.courier();
    carry(&mut courier).await;
    world.propose("p").await;
    carry(&mut courier).await;
    world.clock.advance(Duration::from_secs(89));
    carry(&mut courier).await;
    assert_eq!(world.endpoint.kinds().len(), 1);
    world.clock.advance(Duration::from_secs(2));
    carry(&mut courier).await;
    assert_eq!(
        world.endpoint.kinds(),
        ["plan.proposed", "plan.proposed", "approval.requested"]
    );
}

#[tokio::test]
async fn of_a_child_run_only_what_people_decide_is_told_with_the_run_they_started() {
    let world = World::new(Endpoint::default());
    world
        .propose_steps(
            "inner",
            &json!([{ "id": "a", "tool": "t.echo", "approvalRequired": true }]),
        )
        .await;
    world
        .propose_steps(
            "middle",
            &json!([{ "id": "in", "plan": { "id": "inner" } }]),
        )
        .await;
    world
        .propose_steps(
            "outer",
            &json!([{ "id": "sub", "plan": { "id": "middle" } }]),
        )
        .await;
    let engine = &world.engine;
    let ada = Principal::person("ada");
    let outer = "outer".parse().unwrap();
    let (review, _) = engine.plans().load_review(&outer).await.unwrap();
    engine
        .plans()
        .approve(
            &outer,
            &Map::new(),
            Shown::Digest(review.current().digest),
            &ada,
            Assurance::Terminal,
        )
        .await
        .unwrap();
    let mut courier = world.courier();
    carry(&mut courier).await;

    let options = || RunOptions::new(Principal::person("ada"));
    let run = engine
        .runs()
        .start(&outer, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    let place = |run, step: &str| Parent {
        run,
        step: step.parse().unwrap(),
        index: None,
        call: None,
        outside: false,
    };
    let inner = place(place(run.id().clone(), "sub").child(), "in").child();
    let (review, _) = engine
        .plans()
        .load_review(&"inner".parse().unwrap())
        .await
        .unwrap();
    let (child, _) = engine.runs().load_run(&inner, &review).await.unwrap();
    let step = "a".to_owned();
    let shown = ShownText::Digest(child.start().digest);
    let yes = RunCommand::Approve {
        step,
        by: ada,
        assurance: Assurance::Terminal,
        shown,
    };
    engine.runs().command(&inner, yes).await.unwrap();
    let run = engine
        .runs()
        .resume(&outer, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(run.status().as_str(), "completed");
    carry(&mut courier).await;

    assert_eq!(
        world.endpoint.kinds(),
        [
            "run.started",
            "approval.requested",
            "approval.decided",
            "run.ended"
        ]
    );
    let told = world.endpoint.told.lock().unwrap().clone();
    assert!(told[0].about.parent.is_none() && told[3].about.run_id.as_ref() == Some(run.id()));
    let asked = &told[1].about;
    assert_eq!(
        (
            asked.plan_id.as_ref().unwrap().as_str(),
            asked.run_id.as_ref()
        ),
        ("inner", Some(&inner))
    );
    let parent = asked.parent.clone().unwrap();
    assert_eq!(
        (parent.plan_id, parent.run_id, parent.step_id.as_str()),
        (Some(outer), run.id().clone(), "sub")
    );
}
