//! Streams that know their head, and a store with something in every table.

use planwright_adapters::files::FileArtifacts;
use planwright_adapters::postgres::{PostgresArtifacts, PostgresStore};
use planwright_core::digest::Digest;
use planwright_core::id::RunId;
use planwright_core::journal::{Head, Record, StreamName};
use planwright_core::policy::{Role, Roles};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::time::Timestamp;
use planwright_core::tool::{EffectClass, ToolName};
use planwright_engine::access::{Grant, create};
use planwright_engine::port::{
    Answers as _, Append, ArtifactRef, Artifacts as _, Asking, CallNews, Claim, Journal as _,
    LeaseRule, Mailbox as _, OfferChange, OfferKey, OfferQuestion, OfferState, Offers as _, Outbox,
    OwnerId, Pass, PassKind, Passes, Passkey, Passkeys, Position, Settled, SignInStore as _,
    StepOffer, StreamIndex as _, StreamStatus, WantedOffers, WorkerRecord,
};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const LONG: Duration = Duration::from_secs(3600);

#[derive(Debug, Clone)]
pub(crate) struct Chain {
    pub(crate) stream: StreamName,
    pub(crate) head: Head,
    pub(crate) records: Vec<Record>,
}

impl Chain {
    pub(crate) fn of(name: &str) -> Self {
        Self {
            stream: name.parse().unwrap(),
            head: Head::EMPTY,
            records: Vec::new(),
        }
    }

    pub(crate) fn run(&self) -> &RunId {
        match &self.stream {
            StreamName::Run(run) => run,
            StreamName::Plan(plan) => panic!("{plan} is a plan"),
        }
    }

    pub(crate) fn grow_keyed(&mut self, key: Option<&str>, body: &str) -> Append {
        let at = Timestamp::from_millis(1 + self.head.seq as i64);
        let record = Record::after(
            self.head,
            &self.stream,
            at,
            1,
            key.map(str::to_owned),
            body.into(),
        );
        let expected = std::mem::replace(&mut self.head, record.head());
        self.records.push(record.clone());
        Append {
            stream: self.stream.clone(),
            expected,
            records: vec![record],
            lease: LeaseRule::None,
            status: None,
            answers: Vec::new(),
            requests: Vec::new(),
            brought: Vec::new(),
            offers: Vec::new(),
        }
    }

    pub(crate) fn grow(&mut self, body: &str) -> Append {
        self.grow_keyed(None, body)
    }

    pub(crate) async fn put(&mut self, store: &PostgresStore, body: &str) {
        store.append(vec![self.grow(body)]).await.unwrap();
    }

    /// Appends an entry and gives the stream a label.
    pub(crate) async fn put_labelled(&mut self, store: &PostgresStore, word: &str, label: &str) {
        let status = StreamStatus {
            plan: "p".parse().unwrap(),
            status: word.into(),
            label: label.to_owned(),
        };
        let append = Append {
            status: Some(status),
            ..self.grow(label)
        };
        store.append(vec![append]).await.unwrap();
    }

    pub(crate) async fn open(&mut self, store: &PostgresStore, body: &str) {
        let lease = LeaseRule::Open {
            owner: OwnerId("owner".to_owned()),
            ttl: LONG,
        };
        let append = Append {
            lease,
            ..self.grow(body)
        };
        store.append(vec![append]).await.unwrap();
    }
}

/// The name under which a sign-in is kept.
const SIGN_IN: &str = "5f0c2a9be1d34c77";

/// Texts that a reader of the database must not find.
pub(crate) const CANARIES: [&str; 23] = [
    "canary-body",
    "canary-keyed",
    "canary-key",
    "canary-label",
    "canary-again",
    "canary-message",
    "canary-refusal",
    "canary-artifact",
    "canary-large",
    "canary-plan",
    "canary-answered",
    "canary-of-the-service",
    "canary-delivery",
    "canary-disabled",
    "canary_step",
    "canary-call",
    "canary-outcome",
    "canary-host",
    "canary_tool",
    "canary-news",
    "canary-question",
    "canary-replies",
    "canary-sign-in",
];

/// What was planted, to be found again.
#[derive(Debug, Clone)]
pub(crate) struct Planted {
    pub(crate) chains: Vec<Chain>,
    artifact: ArtifactRef,
}

pub(crate) fn artifacts(store: &Arc<PostgresStore>) -> PostgresArtifacts {
    PostgresArtifacts::new(Arc::clone(store), FileArtifacts::new("/nonexistent"))
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn asking() -> Asking {
    Asking {
        principal: Digest::of_bytes(b"ada"),
        key: Digest::of_bytes(b"key"),
        request: Digest::of_bytes(CANARIES[11].as_bytes()),
        owner: OwnerId("owner".to_owned()),
        limit: 1,
    }
}

pub(crate) fn offer(run: &RunId, step: &str) -> StepOffer {
    StepOffer {
        key: OfferKey {
            run: run.clone(),
            step: step.parse().unwrap(),
            attempt: 1,
        },
        capability: "billing".to_owned(),
        idempotency_key: format!("key of {step}"),
        tool: ToolName {
            server: "bank".to_owned(),
            tool: CANARIES[18].to_owned(),
        },
        definition: Digest::of_bytes(CANARIES[18].as_bytes()),
        class: EffectClass::Unsafe,
        call: CANARIES[15].into(),
    }
}

pub(crate) fn session() -> Pass {
    Pass {
        kind: PassKind::Session,
        hash: Digest::of_bytes(b"cookie"),
        proof: Some(Digest::of_bytes(b"proof")),
        token: Some(Digest::of_bytes(b"token")),
        principal: Principal::person("bob"),
        role: Role::Viewer,
        assurance: Assurance::Token,
        created_at: at(1),
        expires_at: at(1_000),
    }
}

pub(crate) fn passkey() -> Passkey {
    Passkey {
        id: b"id".to_vec(),
        owner: Principal::person("bob"),
        label: "key".to_owned(),
        key: vec![1],
        counter: 4,
        created_at: at(1),
        used_at: None,
    }
}

/// Puts a canary into everything that holds text of people or tools.
pub(crate) async fn plant(store: &Arc<PostgresStore>) -> Planted {
    let mut run = Chain::of("run/r");
    run.open(store, CANARIES[0]).await;
    let keyed = run.grow_keyed(Some(CANARIES[2]), CANARIES[1]);
    store.append(vec![keyed]).await.unwrap();
    run.put_labelled(store, "running", CANARIES[3]).await;
    run.put_labelled(store, "running", CANARIES[4]).await;
    let message = store.send(run.run(), CANARIES[5].into()).await.unwrap();
    store
        .send(run.run(), b"canary-waits".to_vec())
        .await
        .unwrap();
    let answers = vec![(message, Err(CANARIES[6].to_owned()))];
    let answered = Append {
        answers,
        ..run.grow(CANARIES[10])
    };
    store.append(vec![answered]).await.unwrap();
    assert_eq!(store.claim(&asking(), at(1)).await.unwrap(), Claim::Fresh);
    let kept = store.keep(&asking().claim(), CANARIES[11].into()).await;
    kept.unwrap();
    plant_offers(store, &mut run).await;
    let mut plan = Chain::of("plan/p");
    plan.put(store, &CANARIES[9].repeat(2_000)).await;
    let artifacts = artifacts(store);
    artifacts.put(CANARIES[7].into()).await.unwrap();
    let large = CANARIES[8].repeat(10_000);
    let artifact = artifacts.put(large.into_bytes()).await.unwrap();
    plant_deliveries(store).await;
    let grant = Grant {
        to: Principal::person("ada"),
        role: Role::Viewer,
        lifetime: None,
    };
    let minted = create(&**store, &Roles::default(), &grant.to, &grant, at(1)).await;
    minted.unwrap();
    assert!(Passes::add(&**store, &session(), 10, at(1)).await.unwrap());
    assert!(Passkeys::add(&**store, &passkey(), 10).await.unwrap());
    Planted {
        chains: vec![run, plan],
        artifact,
    }
}

async fn plant_offers(store: &Arc<PostgresStore>, run: &mut Chain) {
    let steps = [CANARIES[14], "waits"];
    let made = steps.map(|step| OfferChange::Make(Box::new(offer(run.run(), step))));
    let started = Append {
        lease: LeaseRule::Held { epoch: 1 },
        offers: made.into(),
        ..run.grow("started")
    };
    store.append(vec![started]).await.unwrap();
    let worker = WorkerRecord {
        id: OwnerId("worker".to_owned()),
        host: CANARIES[17].to_owned(),
        pid: 1,
        version: "1".to_owned(),
        capabilities: vec!["billing".to_owned()],
        concurrency: 1,
        tools: Vec::new(),
    };
    store.register_worker(worker.clone()).await.unwrap();
    let wanted = WantedOffers {
        worker: worker.id,
        capabilities: worker.capabilities,
        definitions: vec![Digest::of_bytes(CANARIES[18].as_bytes())],
        only: Some(offer(run.run(), CANARIES[14]).key),
        ttl: LONG,
    };
    let claimed = store.claim_offer(wanted).await.unwrap().unwrap();
    assert_eq!(claimed.offer, offer(run.run(), CANARIES[14]));
    let claim = &claimed.claim;
    let news = CallNews {
        number: 1,
        told: CANARIES[19].into(),
    };
    store.tell_news(claim, news).await.unwrap();
    let question = OfferQuestion {
        number: 1,
        asked: CANARIES[20].into(),
    };
    store.ask_owner(claim, question).await.unwrap();
    let replied = store.reply_to_offer(&claim.key, 1, CANARIES[21].into());
    replied.await.unwrap();
    let heard = store.find_replies(claim, 1).await.unwrap();
    assert_eq!(heard, Some(CANARIES[21].into()));
    let answered = store.answer_offer(claim, CANARIES[16].into());
    answered.await.unwrap();
    let kept = store.save_sign_in(SIGN_IN, CANARIES[22].as_bytes());
    kept.await.unwrap();
}

async fn plant_deliveries(store: &Arc<PostgresStore>) {
    let found = vec![(Position(1), 0)];
    let moved = store.advance("hook", None, Position(1), found, at(1)).await;
    assert!(moved.unwrap());
    let taken = Outbox::take(&**store, "hook", at(1), at(2)).await;
    let delivery = taken.unwrap().unwrap();
    let settled = Settled::Again {
        at: at(3),
        error: CANARIES[12].to_owned(),
    };
    store.settle("hook", &delivery, settled).await.unwrap();
    store.disable("hook", CANARIES[13]).await.unwrap();
}

/// Finds everything again.
pub(crate) async fn check(store: &Arc<PostgresStore>, planted: &Planted) {
    use planwright_core::journal::check_chain;
    for chain in &planted.chains {
        let records = store.read(&chain.stream, 0, 1_000).await.unwrap();
        assert_eq!(records, chain.records);
        check_chain(Head::EMPTY, &chain.stream, &records).unwrap();
        assert_eq!(store.head(&chain.stream).await.unwrap(), chain.head);
    }
    let run = planted.chains[0].run();
    let info = store.info(&planted.chains[0].stream).await.unwrap();
    assert_eq!(info.unwrap().status.label, CANARIES[4]);
    let first = planwright_engine::port::MessageId(1);
    let answer = store.answer(first).await.unwrap();
    assert_eq!(answer, Some(Err(CANARIES[6].to_owned())));
    assert_eq!(store.mail().await.unwrap()[0].body, b"canary-waits");
    let again = store.claim(&asking(), at(2)).await.unwrap();
    assert_eq!(again, Claim::Answered(CANARIES[11].into()));
    let offers = store.offers(run).await.unwrap();
    let expected = [
        (
            offer(run, CANARIES[14]),
            OfferState::Answered(CANARIES[16].into()),
        ),
        (offer(run, "waits"), OfferState::Offered),
    ];
    assert_eq!(offers, expected);
    let keys = vec![offer(run, "waits").key];
    let states = store.offer_states(keys.clone()).await.unwrap();
    assert_eq!(states, [(keys[0].clone(), OfferState::Offered)]);
    assert_eq!(store.workers().await.unwrap()[0].record.host, CANARIES[17]);
    let sign_in = store.load_sign_in(SIGN_IN).await.unwrap();
    assert_eq!(sign_in, Some(CANARIES[22].into()));
    let standing = store.standing("hook").await.unwrap().unwrap();
    assert_eq!(standing.disabled.as_deref(), Some(CANARIES[13]));
    let state = planwright_engine::port::DeliveryState::Waiting;
    let deliveries = Outbox::list(&**store, "hook", state, 1).await;
    let deliveries = deliveries.unwrap();
    assert_eq!(deliveries[0].last_error.as_deref(), Some(CANARIES[12]));
    let value = artifacts(store).get(&planted.artifact).await.unwrap();
    assert_eq!(value, CANARIES[8].repeat(10_000).into_bytes());
    let tokens = planwright_engine::port::Tokens::list(&**store).await;
    assert_eq!(tokens.unwrap()[0].principal, Principal::person("ada"));
    let found = Passes::find(&**store, PassKind::Session, &session().hash).await;
    assert_eq!(found.unwrap(), Some(session()));
    let keys = Passkeys::list(&**store, &Principal::person("bob")).await;
    assert_eq!(keys.unwrap(), [passkey()]);
}
