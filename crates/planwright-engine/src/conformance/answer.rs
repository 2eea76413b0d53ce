//! The laws of [`Answers`]: a request changes something at most once, also if the process or the store ends in between.

use super::fixture::Chain;
use crate::port::{
    ANSWER_LIFE, Answers, Append, AppendError, Asking, Claim, OwnerId, RequestClaim, Store,
};
use planwright_core::digest::Digest;
use planwright_core::journal::StreamName;
use planwright_core::time::Timestamp;
use std::fmt;
use std::sync::Arc;

/// Both sides of one store.
pub type Opened = (Arc<dyn Store>, Arc<dyn Answers>);

/// A store, its requests, and the same store after the process of an owner has died.
pub struct Subject {
    pub store: Arc<dyn Store>,
    pub answers: Arc<dyn Answers>,
    /// Opens it again as another process would, once no process holds what is above.
    pub reopen: Box<dyn FnOnce(&OwnerId) -> Opened + Send>,
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl Subject {
    async fn claim(&self, asking: &Asking) -> Claim {
        self.answers.claim(asking, at(0)).await.unwrap()
    }

    /// Ends the process that works for `asking`, and asks from another one.
    async fn after_death_of(self, asking: &Asking) -> (Claim, Opened) {
        let Self {
            store,
            answers,
            reopen,
        } = self;
        drop((store, answers));
        let opened = reopen(&asking.owner);
        let claim = opened.1.claim(&elsewhere(asking), at(1)).await.unwrap();
        (claim, opened)
    }
}

/// Makes one test of every law.
#[macro_export]
macro_rules! answer_laws {
    ($make:ident) => {
        $crate::answer_laws! { @tests $make;
            a_request_that_was_never_seen_is_fresh,
            a_request_of_another_process_is_in_flight,
            a_process_takes_its_own_request_up_again,
            another_request_under_the_same_key_is_refused,
            an_answer_is_given_again_by_any_process,
            a_request_that_changed_nothing_is_fresh_once_released,
            requests_are_forgotten_after_a_day,
            a_principal_has_so_many_requests_kept,
            a_commit_says_which_request_it_carries_out,
            a_run_says_more_than_its_plan,
            what_was_changed_first_is_what_counts,
            a_request_that_changed_something_is_not_released,
            a_request_whose_process_died_before_the_commit_is_fresh,
            a_request_whose_process_died_after_the_commit_is_not_done_again,
            a_refused_commit_carries_nothing_out,
            a_commit_for_an_unknown_request_is_refused,
            a_commit_for_a_request_of_another_is_refused,
            a_commit_after_the_answer_is_refused,
            a_request_that_was_taken_over_is_not_answered_by_its_first_owner,
            a_message_says_which_request_it_carries_out,
            a_message_for_a_request_of_another_is_refused,
        }
    };
    (@tests $make:ident; $($law:ident),* $(,)?) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $law() {
            let (subject, _keep) = $make();
            $crate::conformance::answer::$law(subject).await;
        })*
    };
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_000_000_000_000 + millis)
}

fn asking(key: &str) -> Asking {
    Asking {
        principal: Digest::of_bytes(b"ada"),
        key: Digest::of_bytes(key.as_bytes()),
        request: Digest::of_bytes(b"one"),
        owner: OwnerId("first".to_owned()),
        limit: 3,
    }
}

/// The same request, as another process asks about it.
fn elsewhere(asking: &Asking) -> Asking {
    Asking {
        owner: OwnerId("second".to_owned()),
        ..asking.clone()
    }
}

fn carrying_out(claim: RequestClaim, append: Append) -> Append {
    Append {
        requests: vec![claim],
        brought: Vec::new(),
        offers: Vec::new(),
        ..append
    }
}

pub async fn a_request_that_was_never_seen_is_fresh(subject: Subject) {
    assert_eq!(subject.claim(&asking("k")).await, Claim::Fresh);
    assert_eq!(subject.claim(&asking("other")).await, Claim::Fresh);
}

pub async fn a_request_of_another_process_is_in_flight(subject: Subject) {
    subject.claim(&asking("k")).await;
    assert_eq!(
        subject.claim(&elsewhere(&asking("k"))).await,
        Claim::InFlight
    );
}

pub async fn a_process_takes_its_own_request_up_again(subject: Subject) {
    subject.claim(&asking("k")).await;
    assert_eq!(subject.claim(&asking("k")).await, Claim::Fresh);
}

pub async fn another_request_under_the_same_key_is_refused(subject: Subject) {
    subject.claim(&asking("k")).await;
    let other = Asking {
        request: Digest::of_bytes(b"two"),
        ..asking("k")
    };
    assert_eq!(subject.claim(&other).await, Claim::OtherRequest);
    let claim = asking("k").claim();
    subject
        .answers
        .keep(&claim, b"done".to_vec())
        .await
        .unwrap();
    assert_eq!(subject.claim(&other).await, Claim::OtherRequest);
}

pub async fn an_answer_is_given_again_by_any_process(subject: Subject) {
    let asking = asking("k");
    subject.claim(&asking).await;
    let answer = b"\0done\xff".to_vec();
    let claim = asking.claim();
    subject.answers.keep(&claim, answer.clone()).await.unwrap();
    assert_eq!(
        subject.claim(&asking).await,
        Claim::Answered(answer.clone())
    );
    let (claim, _) = subject.after_death_of(&asking).await;
    assert_eq!(claim, Claim::Answered(answer));
}

pub async fn a_request_that_changed_nothing_is_fresh_once_released(subject: Subject) {
    let asking = asking("k");
    subject.claim(&asking).await;
    assert!(subject.answers.release(&asking.claim()).await.unwrap());
    assert_eq!(subject.claim(&elsewhere(&asking)).await, Claim::Fresh);
}

pub async fn requests_are_forgotten_after_a_day(subject: Subject) {
    let asking = asking("k");
    subject.claim(&asking).await;
    let claim = asking.claim();
    subject
        .answers
        .keep(&claim, b"done".to_vec())
        .await
        .unwrap();
    let life = i64::try_from(ANSWER_LIFE.as_millis()).unwrap();
    let before = subject.answers.claim(&asking, at(life - 1)).await.unwrap();
    assert_eq!(before, Claim::Answered(b"done".to_vec()));
    let after = subject.answers.claim(&asking, at(life)).await.unwrap();
    assert_eq!(after, Claim::Fresh);
}

pub async fn a_principal_has_so_many_requests_kept(subject: Subject) {
    for key in ["a", "b", "c"] {
        assert_eq!(subject.claim(&asking(key)).await, Claim::Fresh);
    }
    assert_eq!(subject.claim(&asking("d")).await, Claim::TooMany);
    let decision = Asking {
        limit: 4,
        ..asking("d")
    };
    assert_eq!(subject.claim(&decision).await, Claim::Fresh);
    let other = Asking {
        principal: Digest::of_bytes(b"bob"),
        ..asking("e")
    };
    assert_eq!(subject.claim(&other).await, Claim::Fresh);
}

pub async fn a_commit_says_which_request_it_carries_out(subject: Subject) {
    let asking = asking("k");
    subject.claim(&asking).await;
    let mut plan = Chain::of("plan/p");
    let append = carrying_out(asking.claim(), plan.grow(&["a"]));
    subject.store.append(vec![append]).await.unwrap();
    let changed = Claim::Changed(plan.stream.clone());
    assert_eq!(subject.claim(&asking).await, changed);
    // And again: it stays so.
    assert_eq!(subject.claim(&asking).await, changed);
}

pub async fn a_run_says_more_than_its_plan(subject: Subject) {
    let asking = asking("k");
    subject.claim(&asking).await;
    let mut plan = Chain::of("plan/p");
    let mut run = Chain::of("run/run-1");
    let both = vec![
        carrying_out(asking.claim(), plan.grow(&["a"])),
        carrying_out(asking.claim(), run.grow(&["b"])),
    ];
    subject.store.append(both).await.unwrap();
    assert_eq!(subject.claim(&asking).await, Claim::Changed(run.stream));
}

pub async fn what_was_changed_first_is_what_counts(subject: Subject) {
    let asking = asking("k");
    subject.claim(&asking).await;
    let mut first = Chain::of("run/run-1");
    let mut later = Chain::of("run/run-2");
    for chain in [&mut first, &mut later] {
        let append = carrying_out(asking.claim(), chain.grow(&["a"]));
        subject.store.append(vec![append]).await.unwrap();
    }
    assert_eq!(subject.claim(&asking).await, Claim::Changed(first.stream));
}

pub async fn a_request_that_changed_something_is_not_released(subject: Subject) {
    let asking = asking("k");
    subject.claim(&asking).await;
    let mut plan = Chain::of("plan/p");
    let append = carrying_out(asking.claim(), plan.grow(&["a"]));
    subject.store.append(vec![append]).await.unwrap();
    assert!(!subject.answers.release(&asking.claim()).await.unwrap());
    assert_eq!(
        subject.claim(&asking).await,
        Claim::Changed(plan.stream.clone())
    );
    // An answer can still be kept.
    let claim = asking.claim();
    subject.answers.keep(&claim, b"no".to_vec()).await.unwrap();
    assert_eq!(
        subject.claim(&asking).await,
        Claim::Answered(b"no".to_vec())
    );
}

pub async fn a_request_whose_process_died_before_the_commit_is_fresh(subject: Subject) {
    let asking = asking("k");
    subject.claim(&asking).await;
    let (claim, (store, _)) = subject.after_death_of(&asking).await;
    assert_eq!(claim, Claim::Fresh);
    // The first owner comes too late, and the second one does it.
    let mut plan = Chain::of("plan/p");
    let append = plan.grow(&["a"]);
    let late = carrying_out(asking.claim(), append.clone());
    let refused = store.append(vec![late]).await;
    assert!(
        matches!(refused, Err(AppendError::Unclaimed)),
        "{refused:?}"
    );
    let now = carrying_out(elsewhere(&asking).claim(), append);
    store.append(vec![now]).await.unwrap();
}

pub async fn a_request_whose_process_died_after_the_commit_is_not_done_again(subject: Subject) {
    let asking = asking("k");
    subject.claim(&asking).await;
    let mut plan = Chain::of("plan/p");
    let append = carrying_out(asking.claim(), plan.grow(&["a"]));
    subject.store.append(vec![append]).await.unwrap();
    let (claim, _) = subject.after_death_of(&asking).await;
    assert_eq!(claim, Claim::Changed(plan.stream));
}

pub async fn a_refused_commit_carries_nothing_out(subject: Subject) {
    let asking = asking("k");
    subject.claim(&asking).await;
    let mut plan = Chain::of("plan/p");
    let first = plan.grow(&["a"]);
    let stale = Append {
        expected: plan.head,
        ..first.clone()
    };
    let both = vec![carrying_out(asking.claim(), first), stale];
    assert!(subject.store.append(both).await.is_err());
    let (claim, _) = subject.after_death_of(&asking).await;
    assert_eq!(claim, Claim::Fresh);
}

/// Appends for a request that is not the caller's to carry out: refused, and nothing is written.
async fn expect_unclaimed(subject: &Subject, append: Append, stream: &StreamName) {
    let refused = subject.store.append(vec![append]).await;
    assert!(
        matches!(refused, Err(AppendError::Unclaimed)),
        "{refused:?}"
    );
    let head = subject.store.head(stream).await.unwrap();
    assert_eq!(head.seq, 0, "nothing was written");
}

pub async fn a_commit_for_an_unknown_request_is_refused(subject: Subject) {
    let mut plan = Chain::of("plan/p");
    let append = carrying_out(asking("k").claim(), plan.grow(&["a"]));
    expect_unclaimed(&subject, append, &plan.stream).await;
}

pub async fn a_commit_for_a_request_of_another_is_refused(subject: Subject) {
    let asking = asking("k");
    subject.claim(&asking).await;
    let mut plan = Chain::of("plan/p");
    let append = carrying_out(elsewhere(&asking).claim(), plan.grow(&["a"]));
    expect_unclaimed(&subject, append, &plan.stream).await;
}

pub async fn a_commit_after_the_answer_is_refused(subject: Subject) {
    let asking = asking("k");
    subject.claim(&asking).await;
    let claim = asking.claim();
    subject
        .answers
        .keep(&claim, b"done".to_vec())
        .await
        .unwrap();
    let mut plan = Chain::of("plan/p");
    let append = carrying_out(claim, plan.grow(&["a"]));
    let refused = subject.store.append(vec![append]).await;
    assert!(
        matches!(refused, Err(AppendError::Unclaimed)),
        "{refused:?}"
    );
}

pub async fn a_request_that_was_taken_over_is_not_answered_by_its_first_owner(subject: Subject) {
    let asking = asking("k");
    subject.claim(&asking).await;
    let (claim, (_store, answers)) = subject.after_death_of(&asking).await;
    assert_eq!(claim, Claim::Fresh);
    let late = asking.claim();
    answers.keep(&late, b"late".to_vec()).await.unwrap();
    assert!(!answers.release(&late).await.unwrap());
    let again = answers.claim(&elsewhere(&asking), at(2)).await.unwrap();
    assert_eq!(again, Claim::Fresh, "the second owner goes on");
}

pub async fn a_message_says_which_request_it_carries_out(subject: Subject) {
    let asking = asking("k");
    subject.claim(&asking).await;
    let mut run = Chain::of("run/run-1");
    let append = run.grow(&["a"]);
    subject.store.append(vec![append]).await.unwrap();
    let StreamName::Run(id) = run.stream.clone() else {
        panic!("it is a run")
    };
    let body = b"pause".to_vec();
    let sent = subject.store.send_claimed(&id, body, asking.claim()).await;
    let sent = sent.unwrap();
    let mail = subject.store.messages(&id).await.unwrap();
    assert_eq!(
        mail.iter().map(|message| message.id).collect::<Vec<_>>(),
        [sent]
    );
    assert_eq!(subject.claim(&asking).await, Claim::Changed(run.stream));
}

pub async fn a_message_for_a_request_of_another_is_refused(subject: Subject) {
    let asking = asking("k");
    subject.claim(&asking).await;
    let run = Chain::of("run/run-1");
    let claim = elsewhere(&asking).claim();
    let sent = subject
        .store
        .send_claimed(run.run(), b"pause".to_vec(), claim);
    let refused = sent.await;
    assert!(
        matches!(refused, Err(AppendError::Unclaimed)),
        "{refused:?}"
    );
    assert!(subject.store.messages(run.run()).await.unwrap().is_empty());
}
