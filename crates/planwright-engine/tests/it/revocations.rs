//! An approver whose access is taken away: what they agreed to starts nothing any more.

use crate::world::{World, after, chain, document, options, person};
use planwright_core::id::PlanId;
use planwright_core::journal::{Entry, Record, StreamName};
use planwright_core::policy::{Policy, Role, Roles};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::review::{Review, ReviewEvent};
use planwright_core::run::{Reflection, Shown};
use planwright_engine::access::{self, Grant, Minted};
use planwright_engine::memory::{MemoryTokens, ScriptedModel};
use planwright_engine::port::{Clock as _, Token, Tokens as _};
use planwright_engine::{
    Engine, EngineBuilder, ReviewError, RunCommand, RunOptions, StartRunError, Sweep, Swept,
    read_entries,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// A world with a service, and bob who may approve.
struct Office {
    world: World,
    engine: Engine,
    tokens: Arc<MemoryTokens>,
}

fn bob() -> Principal {
    Principal::person("bob")
}

impl Office {
    fn new() -> Self {
        Self::with(|builder| builder)
    }

    fn with(adjust: impl FnOnce(EngineBuilder) -> EngineBuilder) -> Self {
        let world = World::new();
        let tokens = Arc::new(MemoryTokens::new());
        let builder =
            adjust(world.builder("one")).store(world.store.clone(), world.artifacts.clone());
        let engine = builder.tokens(Arc::<MemoryTokens>::clone(&tokens)).build();
        Self {
            world,
            engine,
            tokens,
        }
    }

    async fn token(&self, role: Role, lifetime: Option<Duration>) -> Token {
        let grant = Grant {
            to: bob(),
            role,
            lifetime,
        };
        let now = self.world.clock.now();
        let roles = Roles::default();
        let by = person();
        access::create(&*self.tokens, &roles, &by, &grant, now)
            .await
            .unwrap()
            .token
    }

    /// Takes the token away and nothing else, like a process that dies before the rest.
    async fn take_away(&self, token: &Token) {
        assert!(
            self.tokens
                .revoke(&token.id, self.world.clock.now())
                .await
                .unwrap()
        );
    }

    async fn sweep(&self) -> Swept {
        self.engine
            .plans()
            .sweep_approvals(&Sweep::of(bob(), person()))
            .await
            .unwrap()
    }

    /// A plan of this id to which bob agreed.
    async fn approved(&self, id: &str, assurance: Assurance) -> PlanId {
        let plan = self.proposed(id).await;
        self.agree(&plan, &bob(), assurance).await.unwrap();
        plan
    }

    async fn proposed(&self, id: &str) -> PlanId {
        let mut plan = chain(1, "w.write", 10_000);
        plan["id"] = Value::from(id);
        let (review, _) = self
            .engine
            .plans()
            .propose(document(plan), &person())
            .await
            .unwrap();
        review.id().clone()
    }

    async fn agree(
        &self,
        plan: &PlanId,
        by: &Principal,
        with: Assurance,
    ) -> Result<Review, ReviewError> {
        self.engine
            .plans()
            .approve(plan, &Map::new(), Shown::Version(1), by, with)
            .await
    }

    async fn refused(&self, plan: &PlanId) -> String {
        let refused: StartRunError = self.engine.runs().start(plan, options()).await.unwrap_err();
        assert!(self.world.called().is_empty(), "nothing was called");
        refused.to_string()
    }

    async fn runs(&self, plan: &PlanId) -> bool {
        let run = self
            .engine
            .runs()
            .start(plan, options())
            .await
            .unwrap()
            .wait()
            .await
            .unwrap();
        run.status().as_str() == "completed"
    }

    /// Who revoked whose approval of this plan, in order.
    async fn revocations(&self, plan: &PlanId) -> Vec<(String, String)> {
        let stream = StreamName::Plan(plan.clone());
        let mut revoked = Vec::new();
        let note = |_: &Record, entry: Entry<ReviewEvent>| {
            if let ReviewEvent::ApprovalRevoked { of, by, .. } = entry.event {
                revoked.push((by.to_string(), of.to_string()));
            }
            Ok(())
        };
        read_entries(&*self.world.store, &stream, note)
            .await
            .unwrap();
        revoked
    }
}

fn ids(swept: &Swept) -> Vec<&str> {
    let mut ids: Vec<&str> = swept
        .plans
        .iter()
        .map(|review| review.id().as_str())
        .collect();
    ids.sort_unstable();
    ids
}

#[tokio::test(start_paused = true)]
async fn what_was_approved_with_a_token_is_void_once_the_last_one_is_revoked() {
    let office = Office::new();
    let first = office.token(Role::Approver, None).await;
    let second = office.token(Role::Admin, None).await;
    let viewer = office.token(Role::Viewer, None).await;
    let one = office.approved("one", Assurance::Token).await;
    let two = office.approved("two", Assurance::Token).await;
    let terminal = office.approved("terminal", Assurance::Terminal).await;
    for token in [&first, &viewer] {
        office.take_away(token).await;
        assert!(
            office.sweep().await.plans.is_empty(),
            "another token lets him approve"
        );
    }
    after(1).await;
    office.take_away(&second).await;
    let swept = office.sweep().await;
    assert_eq!(
        (ids(&swept), swept.running.len(), swept.failed.len()),
        (vec!["one", "two"], 0, 0)
    );
    assert!(office.sweep().await.plans.is_empty(), "once is enough");
    for plan in [&one, &two] {
        let words = "the approval of person bob was revoked by person ada before it was used";
        assert_eq!(office.refused(plan).await, words);
    }
    assert!(
        office.runs(&terminal).await,
        "what he agreed to elsewhere has nothing to do with a token"
    );
    office
        .agree(&one, &person(), Assurance::Terminal)
        .await
        .unwrap();
    assert!(office.runs(&one).await, "another person agrees");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_was_replaced_or_has_expired_takes_nothing_with_it() {
    let office = Office::new();
    let token = office
        .token(Role::Approver, Some(Duration::from_mins(1)))
        .await;
    let kept = office.approved("kept", Assurance::Token).await;
    let late = office.approved("late", Assurance::Token).await;
    let roles = Roles::default();
    let now = office.world.clock.now();
    let fresh: Minted = access::rotate(&*office.tokens, &roles, &person(), &token.id, now)
        .await
        .unwrap();
    assert!(office.sweep().await.plans.is_empty());
    assert!(office.runs(&kept).await);
    after(120_000).await;
    assert!(!fresh.token.is_valid(office.world.clock.now()));
    assert!(office.sweep().await.plans.is_empty());
    assert!(office.runs(&late).await);
}

#[tokio::test(start_paused = true)]
async fn a_run_does_not_begin_even_if_nobody_swept() {
    let office = Office::new();
    let token = office.token(Role::Approver, None).await;
    let plan = office.approved("p", Assurance::Token).await;
    office.take_away(&token).await;
    let words = "the approval of person bob was revoked by policy access before it was used";
    assert_eq!(office.refused(&plan).await, words);
    assert_eq!(
        office.refused(&plan).await,
        words,
        "it is written down once"
    );
    assert_eq!(
        office.revocations(&plan).await,
        [("policy access".to_owned(), "person bob".to_owned())]
    );
    // Access that is given again brings nothing back, and lets him agree again.
    after(1).await;
    office.token(Role::Approver, None).await;
    assert_eq!(office.refused(&plan).await, words);
    office.agree(&plan, &bob(), Assurance::Token).await.unwrap();
    assert!(office.runs(&plan).await);
}

#[tokio::test(start_paused = true)]
async fn somebody_else_may_agree_even_if_nobody_swept() {
    let office = Office::new();
    let token = office.token(Role::Approver, None).await;
    let plan = office.approved("p", Assurance::Token).await;
    let again = office
        .agree(&plan, &person(), Assurance::Terminal)
        .await
        .unwrap_err();
    assert!(again.to_string().contains("approved already"), "{again}");
    office.take_away(&token).await;
    office
        .agree(&plan, &person(), Assurance::Terminal)
        .await
        .unwrap();
    assert!(office.runs(&plan).await);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_nobody_knows_is_no_consent() {
    let office = Office::new();
    let plan = office.approved("p", Assurance::Token).await;
    assert!(
        office
            .refused(&plan)
            .await
            .contains("was revoked by policy access")
    );
}

#[tokio::test(start_paused = true)]
async fn what_goes_on_is_named_and_goes_on() {
    let office = Office::new();
    let token = office.token(Role::Approver, None).await;
    let plan = office.approved("p", Assurance::Token).await;
    let mut handle = office.engine.runs().start(&plan, options()).await.unwrap();
    let run = handle.run_id().clone();
    after(1).await;
    office.take_away(&token).await;
    let swept = office.sweep().await;
    assert_eq!(
        (swept.plans.len(), swept.running),
        (0, vec![(plan.clone(), run.clone())])
    );
    assert!(office.revocations(&plan).await.is_empty());
    office
        .engine
        .runs()
        .command(&run, RunCommand::Cancel { by: person() })
        .await
        .unwrap();
    assert_eq!(handle.wait().await.unwrap().status().as_str(), "cancelled");
    assert!(office.sweep().await.running.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_sweep_and_a_run_that_begins_at_the_same_moment_agree_on_one_of_them() {
    for first in [true, false] {
        let office = Office::new();
        let token = office.token(Role::Approver, None).await;
        let plan = office.approved("p", Assurance::Token).await;
        let other = office.world.engine("two");
        office.take_away(&token).await;
        // This engine knows no tokens: it is one that looked at them before the token was taken
        // away.
        let (started, swept) = if first {
            tokio::join!(
                async { other.runs().start(&plan, options()).await },
                office.sweep()
            )
        } else {
            let (swept, started) = tokio::join!(office.sweep(), async {
                other.runs().start(&plan, options()).await
            });
            (started, swept)
        };
        match started {
            Ok(mut handle) => {
                assert_eq!((swept.plans.len(), swept.running.len()), (0, 1));
                handle.wait().await.unwrap();
            }
            Err(_) => assert_eq!((swept.plans.len(), swept.running.len()), (1, 0)),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_approval_is_taken_back_by_whoever_gave_it_or_by_an_admin() {
    let office = Office::new();
    for by in [bob(), person()] {
        let plan = office
            .approved(&format!("by-{}", by.name), Assurance::Terminal)
            .await;
        let bot = office
            .engine
            .plans()
            .revoke_approval(&plan, &bob(), &Principal::agent("bot"), None)
            .await;
        assert!(
            bot.unwrap_err()
                .to_string()
                .starts_with("agent bot may not revoke an approval of person bob")
        );
        let review = office
            .engine
            .plans()
            .revoke_approval(&plan, &bob(), &by, Some("no".into()))
            .await
            .unwrap();
        assert_eq!(review.state().status().as_str(), "proposed");
        let again = office
            .engine
            .plans()
            .revoke_approval(&plan, &bob(), &by, None)
            .await
            .unwrap_err()
            .to_string();
        assert_eq!(again, "person bob has no unused approval of this plan");
        office.refused(&plan).await;
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_restore_everybody_is_swept_by_a_rule() {
    let office = Office::new();
    let token = office.token(Role::Approver, None).await;
    let plan = office.approved("p", Assurance::Token).await;
    assert!(
        office
            .engine
            .plans()
            .sweep_approvals(&Sweep::after_restore())
            .await
            .unwrap()
            .plans
            .is_empty()
    );
    office.take_away(&token).await;
    let swept = office
        .engine
        .plans()
        .sweep_approvals(&Sweep::after_restore())
        .await
        .unwrap();
    assert_eq!(ids(&swept), ["p"]);
    assert_eq!(
        office.revocations(&plan).await,
        [("policy restore".to_owned(), "person bob".to_owned())]
    );
}

#[tokio::test(start_paused = true)]
async fn the_work_of_an_adjusted_run_does_not_go_on_by_what_they_had_agreed_to() {
    let adjust = |args: Value| {
        let adjustments = json!([{"type": "retry", "step": "b", "args": args}]);
        json!({"assessment": "needs_adjustment", "reasoning": "because", "adjustments": adjustments})
            .to_string()
    };
    let model = ScriptedModel::default()
        .says(adjust(json!({"fail": "still"})))
        .says(adjust(json!({"value": 1})));
    let policy = Policy::read(&serde_json::from_value(json!({"adjust": "auto"})).unwrap()).unwrap();
    let office = Office::with(|builder| builder.model(Arc::new(model)).policy(Arc::new(policy)));
    let token = office.token(Role::Approver, None).await;
    let plan = document(json!({"id": "p", "steps": [
        {"id": "a", "tool": "w.write"},
        {"id": "slow", "tool": "r.read", "dependsOn": ["a"], "args": {"ms": 1000}},
        {"id": "b", "tool": "r.read", "dependsOn": ["a"], "args": {"fail": "no such file"}},
        {"id": "c", "tool": "w.write", "dependsOn": ["slow"]},
    ]}));
    let plan = office
        .engine
        .plans()
        .propose(plan, &person())
        .await
        .unwrap()
        .0
        .id()
        .clone();
    office.agree(&plan, &bob(), Assurance::Token).await.unwrap();
    let reflection = Some(Reflection {
        max_cycles: 3,
        ..Reflection::default()
    });
    let options = || RunOptions {
        reflection: reflection.clone(),
        ..options()
    };
    let first = office
        .engine
        .runs()
        .start(&plan, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    // Policy agrees to the change and goes on with what he had agreed to. The second change is
    // another one.
    let second = office
        .engine
        .runs()
        .resume(&plan, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(
        (first.status().as_str(), second.status().as_str()),
        ("adjusted", "adjusted")
    );
    let how = office
        .engine
        .runs()
        .continuation(second.id())
        .await
        .unwrap()
        .unwrap();
    assert!(how.by_policy && !how.agreed.is_empty());
    office.take_away(&token).await;
    let how = office
        .engine
        .runs()
        .continuation(second.id())
        .await
        .unwrap()
        .unwrap();
    assert!(!how.by_policy && how.agreed.is_empty());
    let refused = office
        .engine
        .runs()
        .resume(&plan, options())
        .await
        .unwrap_err();
    assert!(matches!(refused, StartRunError::Refused(_)), "{refused}");
    assert!(
        office.sweep().await.running.is_empty(),
        "nothing goes on by itself"
    );
}
