//! The laws of [`Offers`].

use super::fixture::{Chain, LONG, owner};
use crate::port::{
    Append, CallNews, ClaimError, ClaimStanding, ClaimedOffer, LeaseRule, OfferChange, OfferClaim,
    OfferKey, OfferLook, OfferQuestion, OfferReport, OfferState, Offers, OwnerId, StepOffer, Store,
    WantedOffers, WorkerRecord,
};
use planwright_core::digest::Digest;
use planwright_core::tool::{EffectClass, ToolName};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// A store, and its offers.
#[derive(Debug, Clone)]
pub struct OfferingStore {
    pub store: Arc<dyn Store>,
    pub offers: Arc<dyn Offers>,
}

const SHORT: Duration = Duration::from_millis(300);

fn definition() -> Digest {
    Digest::of_bytes(b"a tool")
}

fn offer(chain: &Chain, step: &str, attempt: u32) -> StepOffer {
    StepOffer {
        key: OfferKey {
            run: chain.run().clone(),
            step: step.parse().unwrap(),
            attempt,
        },
        capability: "billing".to_owned(),
        idempotency_key: format!("key of {step}"),
        tool: ToolName {
            server: "bank".to_owned(),
            tool: "charge".to_owned(),
        },
        definition: definition(),
        class: EffectClass::Unsafe,
        call: b"{\"args\":{}}".to_vec(),
    }
}

/// Begins a run, and offers these steps with one entry.
async fn offered(subject: &OfferingStore, steps: &[&str]) -> (Chain, Vec<StepOffer>) {
    let mut chain = Chain::of("run/offers");
    chain.open(&subject.store, "owner", LONG).await;
    let offers: Vec<StepOffer> = steps.iter().map(|step| offer(&chain, step, 1)).collect();
    let made = offers.iter().cloned().map(Box::new);
    change(subject, &mut chain, made.map(OfferChange::Make).collect())
        .await
        .unwrap();
    (chain, offers)
}

async fn change(
    subject: &OfferingStore,
    chain: &mut Chain,
    offers: Vec<OfferChange>,
) -> Result<(), crate::port::AppendError> {
    let append = Append {
        lease: LeaseRule::Held { epoch: 1 },
        offers,
        ..chain.grow(&["started"])
    };
    subject.store.append(vec![append]).await
}

fn wanted(worker: &OwnerId, ttl: Duration) -> WantedOffers {
    WantedOffers {
        worker: worker.clone(),
        capabilities: vec!["mail".to_owned(), "billing".to_owned()],
        definitions: vec![definition()],
        only: None,
        ttl,
    }
}

async fn claim(subject: &OfferingStore, worker: &str, ttl: Duration) -> Option<ClaimedOffer> {
    let wanted = wanted(&owner(worker), ttl);
    subject.offers.claim_offer(wanted).await.unwrap()
}

async fn state(subject: &OfferingStore, key: &OfferKey) -> Option<OfferState> {
    let states = subject.offers.offer_states(vec![key.clone()]).await;
    states.unwrap().pop().map(|(_, state)| state)
}

async fn lose(subject: &OfferingStore, key: &OfferKey, worker: &str) -> Option<OfferState> {
    let worker = owner(worker);
    subject.offers.lose_offer(key, &worker).await.unwrap()
}

fn is_over(result: Result<(), ClaimError>) -> bool {
    matches!(result, Err(ClaimError::Over(_)))
}

async fn wait_until_over(subject: &OfferingStore, key: &OfferKey) {
    loop {
        match state(subject, key).await {
            Some(OfferState::Claimed { is_over: true, .. }) => return,
            _ => tokio::time::sleep(SHORT / 10).await,
        }
    }
}

pub async fn an_offer_is_made_with_its_entry_and_ends_with_another(subject: OfferingStore) {
    let (mut chain, offers) = offered(&subject, &["a", "b"]).await;
    let found = subject.offers.offers(chain.run()).await.unwrap();
    assert_eq!(
        found,
        [
            (offers[0].clone(), OfferState::Offered),
            (offers[1].clone(), OfferState::Offered)
        ]
    );
    let end = OfferChange::End(offers[0].key.clone());
    // Ending it twice is no error: the first may have been looked up.
    change(&subject, &mut chain, vec![end.clone(), end])
        .await
        .unwrap();
    assert_eq!(state(&subject, &offers[0].key).await, None);
    assert_eq!(
        state(&subject, &offers[1].key).await,
        Some(OfferState::Offered)
    );
}

pub async fn a_fenced_owner_offers_nothing(subject: OfferingStore) {
    let (chain, _) = offered(&subject, &[]).await;
    let mut stale = chain.clone();
    let append = Append {
        lease: LeaseRule::Held { epoch: 7 },
        offers: vec![OfferChange::Make(Box::new(offer(&chain, "a", 1)))],
        ..stale.grow(&["started"])
    };
    subject.store.append(vec![append]).await.unwrap_err();
    assert!(claim(&subject, "worker", LONG).await.is_none());
}

pub async fn of_eight_workers_each_offer_goes_to_one(subject: OfferingStore) {
    let names: Vec<String> = (0..40).map(|number| format!("step{number}")).collect();
    let steps: Vec<&str> = names.iter().map(String::as_str).collect();
    let (_, offers) = offered(&subject, &steps).await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..8 {
        let subject = subject.clone();
        tasks.spawn(async move {
            let mut taken = Vec::new();
            while let Some(claimed) = claim(&subject, &format!("worker{number}"), LONG).await {
                taken.push(claimed.claim);
            }
            taken
        });
    }
    let taken: Vec<OfferClaim> = tasks.join_all().await.into_iter().flatten().collect();
    let keys: BTreeSet<&OfferKey> = taken.iter().map(|claim| &claim.key).collect();
    let numbers: BTreeSet<i64> = taken.iter().map(|claim| claim.number).collect();
    assert_eq!(taken.len(), offers.len(), "each is claimed once");
    assert_eq!(keys.len(), offers.len());
    assert_eq!(numbers.len(), offers.len());
}

pub async fn only_a_worker_that_can_carry_it_out_gets_it(subject: OfferingStore) {
    let (_, offers) = offered(&subject, &["a"]).await;
    let worker = owner("worker");
    let without_capability = WantedOffers {
        capabilities: vec!["mail".to_owned()],
        ..wanted(&worker, LONG)
    };
    let with_another_tool = WantedOffers {
        definitions: vec![Digest::of_bytes(b"another tool")],
        ..wanted(&worker, LONG)
    };
    let another = WantedOffers {
        only: Some(OfferKey {
            attempt: 2,
            ..offers[0].key.clone()
        }),
        ..wanted(&worker, LONG)
    };
    for wanted in [without_capability, with_another_tool, another] {
        assert_eq!(subject.offers.claim_offer(wanted).await.unwrap(), None);
    }
    let named = WantedOffers {
        only: Some(offers[0].key.clone()),
        ..wanted(&worker, LONG)
    };
    let claimed = subject.offers.claim_offer(named.clone()).await.unwrap();
    assert_eq!(claimed.unwrap().offer, offers[0]);
    // A notice that comes again leads to nothing.
    assert_eq!(subject.offers.claim_offer(named).await.unwrap(), None);
}

pub async fn an_answer_is_kept_until_the_attempt_ends(subject: OfferingStore) {
    let (_, offers) = offered(&subject, &["a"]).await;
    let claimed = claim(&subject, "worker", LONG).await.unwrap();
    let answer = b"answer\0with bytes".to_vec();
    subject
        .offers
        .answer_offer(&claimed.claim, answer.clone())
        .await
        .unwrap();
    let kept = Some(OfferState::Answered(answer));
    assert_eq!(state(&subject, &offers[0].key).await, kept);
    // Nothing changes it any more.
    let again = subject
        .offers
        .answer_offer(&claimed.claim, b"other".to_vec());
    assert!(is_over(again.await));
    let withdrawn = subject.offers.withdraw_offer(&offers[0].key).await.unwrap();
    assert_eq!(withdrawn, kept);
    assert_eq!(lose(&subject, &offers[0].key, "worker").await, kept);
}

async fn look(subject: &OfferingStore, key: &OfferKey, heard: u64) -> Option<OfferReport> {
    let look = OfferLook {
        key: key.clone(),
        heard,
    };
    let reports = subject.offers.look_at_offers(vec![look]).await;
    reports.unwrap().pop()
}

fn news(number: u64, told: &str) -> CallNews {
    CallNews {
        number,
        told: told.into(),
    }
}

pub async fn the_newest_news_of_a_call_win_and_are_heard_once(subject: OfferingStore) {
    let (_, offers) = offered(&subject, &["a"]).await;
    let key = &offers[0].key;
    assert_eq!(look(&subject, key, 0).await.unwrap().news, None);
    let claimed = claim(&subject, "worker", LONG).await.unwrap();
    let tell = async |claim: &OfferClaim, news| subject.offers.tell_news(claim, news).await;
    for (number, told) in [(1, "one"), (3, "three"), (2, "two")] {
        tell(&claimed.claim, news(number, told)).await.unwrap();
    }
    let report = look(&subject, key, 1).await.unwrap();
    assert!(matches!(report.state, OfferState::Claimed { .. }));
    assert_eq!(report.news, Some(news(3, "three")));
    assert_eq!(look(&subject, key, 3).await.unwrap().news, None);
    // Only the worker that has the claim is heard.
    let other = OfferClaim {
        worker: owner("other"),
        ..claimed.claim.clone()
    };
    tell(&other, news(9, "forged")).await.unwrap();
    lose(&subject, key, "worker").await;
    tell(&claimed.claim, news(10, "late")).await.unwrap();
    assert_eq!(look(&subject, key, 3).await.unwrap().news, None);
}

pub async fn a_question_is_asked_until_it_is_replied_to_and_each_reply_is_for_its_question(
    subject: OfferingStore,
) {
    let (_, offers) = offered(&subject, &["a"]).await;
    let key = &offers[0].key;
    let claimed = claim(&subject, "worker", LONG).await.unwrap();
    let claim = &claimed.claim;
    let question = |number, asked: &str| OfferQuestion {
        number,
        asked: asked.into(),
    };
    let asked = async || look(&subject, key, 0).await.unwrap().question;
    let replies = async |number| subject.offers.find_replies(claim, number).await.unwrap();
    let reply = async |number, text: &str| {
        let replied = subject.offers.reply_to_offer(key, number, text.into());
        replied.await.unwrap();
    };
    assert_eq!(asked().await, None);
    let first = question(1, "Who?");
    subject
        .offers
        .ask_owner(claim, first.clone())
        .await
        .unwrap();
    assert_eq!(asked().await, Some(first.clone()));
    assert_eq!(replies(1).await, None);
    // Replies to a question that was not asked are none.
    reply(2, "early").await;
    assert_eq!((replies(1).await, replies(2).await), (None, None));
    reply(1, "Ada").await;
    reply(1, "Eve").await;
    assert_eq!(replies(1).await, Some(b"Ada".to_vec()));
    assert_eq!(asked().await, None);
    // Asked once more because the worker did not hear that it was asked.
    subject.offers.ask_owner(claim, first).await.unwrap();
    assert_eq!(replies(1).await, Some(b"Ada".to_vec()));
    // The next question has no replies yet, though it says the same.
    let second = question(2, "Who?");
    subject
        .offers
        .ask_owner(claim, second.clone())
        .await
        .unwrap();
    assert_eq!(replies(2).await, None);
    assert_eq!(asked().await, Some(second.clone()));
    // A worker whose claim is over asks and hears nothing.
    lose(&subject, key, "worker").await;
    assert!(is_over(subject.offers.ask_owner(claim, second).await));
    let heard = subject.offers.find_replies(claim, 2).await;
    assert!(matches!(heard, Err(ClaimError::Over(_))), "{heard:?}");
}

pub async fn a_claim_that_ran_out_cannot_be_renewed_or_answered(subject: OfferingStore) {
    let (_, offers) = offered(&subject, &["a"]).await;
    let claimed = claim(&subject, "worker", SHORT).await.unwrap();
    wait_until_over(&subject, &offers[0].key).await;
    let renewed = subject.offers.renew_claim(&claimed.claim, LONG).await;
    assert!(matches!(renewed, Err(ClaimError::Over(_))), "{renewed:?}");
    let answered = subject
        .offers
        .answer_offer(&claimed.claim, b"late".to_vec());
    assert!(is_over(answered.await));
    assert!(is_over(subject.offers.return_offer(&claimed.claim).await));
    let lost = lose(&subject, &offers[0].key, "worker").await;
    assert_eq!(lost, Some(OfferState::Lost));
    assert!(claim(&subject, "other", LONG).await.is_none());
}

pub async fn a_renewed_claim_goes_on(subject: OfferingStore) {
    let (_, offers) = offered(&subject, &["a"]).await;
    let claimed = claim(&subject, "worker", SHORT * 10).await.unwrap();
    let renewed = subject.offers.renew_claim(&claimed.claim, LONG).await;
    assert_eq!(renewed.unwrap(), ClaimStanding::Held);
    let standing = Some(OfferState::Claimed {
        by: owner("worker"),
        is_over: false,
    });
    assert_eq!(state(&subject, &offers[0].key).await, standing);
    // A claim of another worker, or an earlier one of the same, is none.
    let stale = OfferClaim {
        number: claimed.claim.number - 1,
        ..claimed.claim.clone()
    };
    let other = OfferClaim {
        worker: owner("other"),
        ..claimed.claim
    };
    for claim in [stale, other] {
        assert!(is_over(
            subject.offers.answer_offer(&claim, b"x".to_vec()).await
        ));
    }
}

pub async fn a_lost_claim_writes_nothing(subject: OfferingStore) {
    let (_, offers) = offered(&subject, &["a"]).await;
    let claimed = claim(&subject, "worker", LONG).await.unwrap();
    let key = &offers[0].key;
    let by_other = lose(&subject, key, "other").await;
    assert!(matches!(by_other, Some(OfferState::Claimed { .. })));
    let lost = lose(&subject, key, "worker").await;
    assert_eq!(lost, Some(OfferState::Lost));
    let answered = subject
        .offers
        .answer_offer(&claimed.claim, b"late".to_vec());
    assert!(is_over(answered.await));
    assert_eq!(state(&subject, key).await, Some(OfferState::Lost));
}

pub async fn an_offer_that_is_withdrawn_goes_to_no_worker(subject: OfferingStore) {
    let (mut chain, offers) = offered(&subject, &["a", "b"]).await;
    let withdrawn = subject.offers.withdraw_offer(&offers[0].key).await.unwrap();
    assert_eq!(withdrawn, Some(OfferState::Withdrawn));
    let claimed = claim(&subject, "worker", LONG).await.unwrap();
    assert_eq!(claimed.offer, offers[1]);
    // A worker that has it is told with its next renewal, and can still answer.
    let told = subject.offers.withdraw_offer(&offers[1].key).await.unwrap();
    assert!(matches!(told, Some(OfferState::Claimed { .. })));
    let renewed = subject.offers.renew_claim(&claimed.claim, LONG).await;
    assert_eq!(renewed.unwrap(), ClaimStanding::Unwanted);
    // Once the attempt is over, nothing of it counts.
    let end = OfferChange::End(offers[1].key.clone());
    change(&subject, &mut chain, vec![end]).await.unwrap();
    let answered = subject
        .offers
        .answer_offer(&claimed.claim, b"late".to_vec());
    assert!(is_over(answered.await));
    let gone = subject.offers.withdraw_offer(&offers[1].key).await.unwrap();
    assert_eq!(gone, None);
}

pub async fn an_offer_that_is_returned_can_be_claimed_again(subject: OfferingStore) {
    let (_, offers) = offered(&subject, &["a"]).await;
    let first = claim(&subject, "one", LONG).await.unwrap();
    assert!(claim(&subject, "two", LONG).await.is_none());
    subject.offers.return_offer(&first.claim).await.unwrap();
    let second = claim(&subject, "two", LONG).await.unwrap();
    assert_eq!(second.offer, offers[0]);
    let answered = subject.offers.answer_offer(&first.claim, b"late".to_vec());
    assert!(is_over(answered.await));
}

pub async fn workers_hear_of_offers_and_owners_of_answers(subject: OfferingStore) {
    let mut made = subject.offers.offer_news();
    let mut said = subject.offers.answer_news();
    made.borrow_and_update();
    let (_, offers) = offered(&subject, &["a"]).await;
    made.changed().await.unwrap();
    let claimed = claim(&subject, "worker", LONG).await.unwrap();
    subject.offers.return_offer(&claimed.claim).await.unwrap();
    made.changed().await.unwrap();
    let claimed = claim(&subject, "worker", LONG).await.unwrap();
    said.borrow_and_update();
    let withdrawn = subject.offers.withdraw_offer(&offers[0].key);
    withdrawn.await.unwrap();
    said.changed().await.unwrap();
    said.borrow_and_update();
    subject
        .offers
        .answer_offer(&claimed.claim, b"x".to_vec())
        .await
        .unwrap();
    said.changed().await.unwrap();
}

pub async fn a_worker_is_listed_with_what_it_does(subject: OfferingStore) {
    let (_, offers) = offered(&subject, &["a", "b"]).await;
    let record = WorkerRecord {
        id: owner("worker"),
        host: "machine".to_owned(),
        pid: 7,
        version: "1".to_owned(),
        capabilities: vec!["billing".to_owned()],
        concurrency: 4,
        tools: Vec::new(),
    };
    subject
        .offers
        .register_worker(record.clone())
        .await
        .unwrap();
    let claimed = claim(&subject, "worker", LONG).await.unwrap();
    let waiting = subject.offers.waiting_offers().await.unwrap();
    assert_eq!(waiting.len(), 1);
    assert_eq!(
        (waiting[0].capability.as_str(), waiting[0].count),
        ("billing", 1)
    );
    subject.offers.drain_worker(&record.id).await.unwrap();
    let listed = subject.offers.workers().await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].record, record);
    assert!(listed[0].is_alive && listed[0].is_draining);
    assert_eq!(listed[0].claims, [claimed.claim.key]);
    assert!(offers.iter().any(|offer| offer.key == listed[0].claims[0]));
}

pub async fn the_version_of_the_workers_differs_once_one_has_other_tools_or_drains(
    subject: OfferingStore,
) {
    let offers = &subject.offers;
    let version = async || offers.workers_version().await.unwrap();
    let record = WorkerRecord {
        id: owner("worker"),
        host: "here".to_owned(),
        pid: 7,
        version: "1".to_owned(),
        capabilities: vec!["billing".to_owned()],
        concurrency: 1,
        tools: Vec::new(),
    };
    let mut seen = BTreeSet::from([version().await]);
    offers.register_worker(record.clone()).await.unwrap();
    assert!(seen.insert(version().await));
    assert!(!seen.insert(version().await), "nothing has changed");
    offers.register_worker(record.clone()).await.unwrap();
    assert!(seen.insert(version().await));
    offers.drain_worker(&record.id).await.unwrap();
    assert!(seen.insert(version().await));
    offers.remove_worker(&record.id).await.unwrap();
    assert!(seen.insert(version().await));
}

/// Makes one test of every law.
#[macro_export]
macro_rules! offer_laws {
    ($make:ident) => {
        $crate::offer_laws! { @tests $make;
            an_offer_is_made_with_its_entry_and_ends_with_another,
            the_newest_news_of_a_call_win_and_are_heard_once,
            a_question_is_asked_until_it_is_replied_to_and_each_reply_is_for_its_question,
            a_fenced_owner_offers_nothing,
            of_eight_workers_each_offer_goes_to_one,
            only_a_worker_that_can_carry_it_out_gets_it,
            an_answer_is_kept_until_the_attempt_ends,
            a_claim_that_ran_out_cannot_be_renewed_or_answered,
            a_renewed_claim_goes_on,
            a_lost_claim_writes_nothing,
            an_offer_that_is_withdrawn_goes_to_no_worker,
            an_offer_that_is_returned_can_be_claimed_again,
            workers_hear_of_offers_and_owners_of_answers,
            a_worker_is_listed_with_what_it_does,
            the_version_of_the_workers_differs_once_one_has_other_tools_or_drains,
        }
    };
    (@tests $make:ident; $($law:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $law() {
                let (subject, _keep) = $make();
                $crate::conformance::offer::$law(subject).await;
            }
        )*
    };
}
