//! One owner per run: epochs, expiry, release and takeover.

use super::fixture::{Chain, LONG, Subject, bodies, owner};
use crate::memory::SystemClock;
use crate::port::{AcquireError, Append, AppendError, Clock as _, LeaseRule, StoreError};
use std::time::Duration;

/// Such a lease has run out the moment it is taken.
const SPENT: Duration = Duration::ZERO;

fn held(epoch: u64) -> LeaseRule {
    LeaseRule::Held { epoch }
}

async fn is_fenced(store: &Subject, append: Append) -> (u64, u64) {
    match store.append(vec![append]).await {
        Err(AppendError::Fenced { ours, found, .. }) => (ours, found),
        other => panic!("expected to be fenced, got {other:?}"),
    }
}

pub async fn opening_a_run_takes_epoch_one(store: Subject) {
    let mut chain = Chain::of("run/r");
    chain.open(&store, "a", LONG).await;
    let lease = store.lease(chain.run()).await.unwrap().unwrap();
    assert_eq!(
        (lease.run, lease.owner, lease.epoch),
        (chain.run().clone(), owner("a"), 1)
    );
}

pub async fn a_run_is_opened_once(store: Subject) {
    let mut chain = Chain::of("run/r");
    let mut again = chain.clone();
    chain.open(&store, "a", LONG).await;
    let open = |owner| LeaseRule::Open { owner, ttl: LONG };
    let as_if_new = Append {
        lease: open(owner("b")),
        ..again.grow(&["opened"])
    };
    let refused = store.append(vec![as_if_new]).await;
    assert!(
        matches!(refused, Err(AppendError::Conflict { .. })),
        "{refused:?}"
    );
    is_fenced(
        &store,
        Append {
            lease: open(owner("b")),
            ..chain.nothing()
        },
    )
    .await;
    assert_eq!(
        store.lease(chain.run()).await.unwrap().unwrap().owner,
        owner("a")
    );
}

pub async fn an_unknown_run_has_no_lease(store: Subject) {
    assert_eq!(store.lease(Chain::of("run/r").run()).await.unwrap(), None);
}

pub async fn the_holder_appends_with_its_epoch(store: Subject) {
    let mut chain = Chain::of("run/r");
    chain.open(&store, "a", LONG).await;
    chain.put(&store, "one", held(1)).await;
    chain.put(&store, "two", held(1)).await;
    assert_eq!(
        bodies(&store, &chain.stream).await,
        ["opened", "one", "two"]
    );
}

pub async fn another_epoch_is_fenced(store: Subject) {
    let mut chain = Chain::of("run/r");
    chain.open(&store, "a", LONG).await;
    for epoch in [0, 2, 99] {
        let append = Append {
            lease: held(epoch),
            ..chain.clone().grow(&["stale"])
        };
        assert_eq!(is_fenced(&store, append).await, (epoch, 1));
        let append = Append {
            lease: LeaseRule::Release { epoch },
            ..chain.clone().grow(&["stale"])
        };
        assert_eq!(is_fenced(&store, append).await, (epoch, 1));
    }
    assert_eq!(bodies(&store, &chain.stream).await, ["opened"]);
}

pub async fn holding_needs_a_lease(store: Subject) {
    let mut chain = Chain::of("run/r");
    is_fenced(
        &store,
        Append {
            lease: held(1),
            ..chain.grow(&["one"])
        },
    )
    .await;
}

pub async fn a_plan_has_no_lease(store: Subject) {
    let mut chain = Chain::of("plan/p");
    for lease in [
        held(1),
        LeaseRule::Release { epoch: 1 },
        LeaseRule::Open {
            owner: owner("a"),
            ttl: LONG,
        },
    ] {
        let refused = store
            .append(vec![Append {
                lease,
                ..chain.clone().grow(&["one"])
            }])
            .await;
        assert!(
            matches!(refused, Err(AppendError::Store(StoreError::Failed(_)))),
            "{refused:?}"
        );
    }
    store.append(vec![chain.grow(&["one"])]).await.unwrap();
}

pub async fn a_lease_is_given_back_with_an_append(store: Subject) {
    let mut chain = Chain::of("run/r");
    chain.open(&store, "a", LONG).await;
    chain
        .put(&store, "done", LeaseRule::Release { epoch: 1 })
        .await;
    assert_eq!(store.lease(chain.run()).await.unwrap(), None);
    assert_eq!(bodies(&store, &chain.stream).await, ["opened", "done"]);
}

pub async fn nothing_is_appended_after_the_lease_was_given_back(store: Subject) {
    let mut chain = Chain::of("run/r");
    chain.open(&store, "a", LONG).await;
    chain
        .put(&store, "done", LeaseRule::Release { epoch: 1 })
        .await;
    is_fenced(
        &store,
        Append {
            lease: held(1),
            ..chain.grow(&["more"])
        },
    )
    .await;
}

pub async fn a_released_run_is_acquired_with_the_next_epoch(store: Subject) {
    let mut chain = Chain::of("run/r");
    chain.open(&store, "a", LONG).await;
    chain
        .put(&store, "done", LeaseRule::Release { epoch: 1 })
        .await;
    let lease = store.acquire(chain.run(), &owner("a"), LONG).await.unwrap();
    assert_eq!(
        (lease.epoch, &lease.owner, &lease.run),
        (2, &owner("a"), chain.run())
    );
    assert_eq!(store.lease(chain.run()).await.unwrap(), Some(lease));
    chain.put(&store, "resumed", held(2)).await;
}

pub async fn a_held_run_is_not_acquired(store: Subject) {
    let mut chain = Chain::of("run/r");
    chain.open(&store, "a", LONG).await;
    let before = store.lease(chain.run()).await.unwrap().unwrap();
    match store.acquire(chain.run(), &owner("b"), LONG).await {
        Err(AcquireError::Held {
            run,
            owner,
            expires_at,
        }) => {
            assert_eq!(
                (&run, &owner, expires_at),
                (&before.run, &before.owner, before.expires_at)
            );
        }
        other => panic!("expected it to be held, got {other:?}"),
    }
    assert_eq!(store.lease(chain.run()).await.unwrap(), Some(before));
}

pub async fn not_even_its_own_owner_acquires_a_held_run(store: Subject) {
    let mut chain = Chain::of("run/r");
    chain.open(&store, "a", LONG).await;
    let refused = store.acquire(chain.run(), &owner("a"), LONG).await;
    assert!(
        matches!(refused, Err(AcquireError::Held { .. })),
        "{refused:?}"
    );
}

pub async fn an_unknown_run_is_not_acquired(store: Subject) {
    let refused = store
        .acquire(Chain::of("run/r").run(), &owner("a"), LONG)
        .await;
    assert!(
        matches!(refused, Err(AcquireError::NoSuchRun(_))),
        "{refused:?}"
    );
}

pub async fn a_run_without_a_lease_is_acquired_with_epoch_one(store: Subject) {
    let mut chain = Chain::of("run/r");
    chain.put(&store, "imported", LeaseRule::None).await;
    assert_eq!(
        store
            .acquire(chain.run(), &owner("a"), LONG)
            .await
            .unwrap()
            .epoch,
        1
    );
}

pub async fn an_expired_lease_is_taken_over(store: Subject) {
    let mut chain = Chain::of("run/r");
    chain.open(&store, "a", SPENT).await;
    let lease = store.acquire(chain.run(), &owner("b"), LONG).await.unwrap();
    assert_eq!(lease.epoch, 2);
    let stale = Append {
        lease: held(1),
        ..chain.clone().grow(&["stale"])
    };
    assert_eq!(is_fenced(&store, stale).await, (1, 2));
    chain.put(&store, "taken over", held(2)).await;
}

pub async fn an_expired_lease_is_not_shown(store: Subject) {
    let mut chain = Chain::of("run/r");
    chain.open(&store, "a", SPENT).await;
    assert_eq!(store.lease(chain.run()).await.unwrap(), None);
}

pub async fn an_expired_lease_that_nobody_took_still_writes(store: Subject) {
    let mut chain = Chain::of("run/r");
    chain.open(&store, "a", SPENT).await;
    chain.put(&store, "late but alone", held(1)).await;
}

pub async fn an_expired_lease_that_nobody_took_is_renewed(store: Subject) {
    let mut chain = Chain::of("run/r");
    chain.put(&store, "imported", LeaseRule::None).await;
    let lease = store
        .acquire(chain.run(), &owner("a"), SPENT)
        .await
        .unwrap();
    let renewed = store.renew(&lease, LONG).await.unwrap();
    assert_eq!(store.lease(chain.run()).await.unwrap(), Some(renewed));
}

pub async fn a_stale_owner_is_fenced_even_if_it_expects_the_wrong_head(store: Subject) {
    let mut chain = Chain::of("run/r");
    chain.open(&store, "a", SPENT).await;
    let mut zombie = chain.clone();
    let lease = store.acquire(chain.run(), &owner("b"), LONG).await.unwrap();
    chain.put(&store, "new owner", held(lease.epoch)).await;
    is_fenced(
        &store,
        Append {
            lease: held(1),
            ..zombie.grow(&["zombie"])
        },
    )
    .await;
    assert_eq!(bodies(&store, &chain.stream).await, ["opened", "new owner"]);
}

pub async fn epochs_grow_by_one_with_every_owner(store: Subject) {
    let mut chain = Chain::of("run/r");
    chain.open(&store, "a", SPENT).await;
    for epoch in 2..10 {
        let lease = store
            .acquire(chain.run(), &owner(&format!("owner-{epoch}")), SPENT)
            .await
            .unwrap();
        assert_eq!(lease.epoch, epoch);
    }
}

pub async fn renewing_moves_the_end(store: Subject) {
    let mut chain = Chain::of("run/r");
    chain.open(&store, "a", LONG).await;
    let lease = store.lease(chain.run()).await.unwrap().unwrap();
    let renewed = store.renew(&lease, LONG * 2).await.unwrap();
    assert!(renewed.expires_at > lease.expires_at);
    assert_eq!((renewed.epoch, &renewed.owner), (lease.epoch, &lease.owner));
    assert_eq!(store.lease(chain.run()).await.unwrap(), Some(renewed));
}

pub async fn renewing_after_a_takeover_is_fenced(store: Subject) {
    let mut chain = Chain::of("run/r");
    chain.put(&store, "imported", LeaseRule::None).await;
    let old = store
        .acquire(chain.run(), &owner("a"), SPENT)
        .await
        .unwrap();
    let new = store.acquire(chain.run(), &owner("b"), LONG).await.unwrap();
    let refused = store.renew(&old, LONG).await;
    assert!(
        matches!(
            refused,
            Err(AppendError::Fenced {
                ours: 1,
                found: 2,
                ..
            })
        ),
        "{refused:?}"
    );
    assert_eq!(store.lease(chain.run()).await.unwrap(), Some(new));
}

pub async fn renewing_after_a_release_is_fenced(store: Subject) {
    let mut chain = Chain::of("run/r");
    chain.open(&store, "a", LONG).await;
    let lease = store.lease(chain.run()).await.unwrap().unwrap();
    store.release(&lease).await.unwrap();
    let refused = store.renew(&lease, LONG).await;
    assert!(
        matches!(refused, Err(AppendError::Fenced { .. })),
        "{refused:?}"
    );
}

pub async fn releasing_what_is_no_longer_ours_changes_nothing(store: Subject) {
    let mut chain = Chain::of("run/r");
    chain.put(&store, "imported", LeaseRule::None).await;
    let old = store
        .acquire(chain.run(), &owner("a"), SPENT)
        .await
        .unwrap();
    let new = store.acquire(chain.run(), &owner("b"), LONG).await.unwrap();
    store.release(&old).await.unwrap();
    assert_eq!(store.lease(chain.run()).await.unwrap(), Some(new));
}

pub async fn releasing_frees_the_run(store: Subject) {
    let mut chain = Chain::of("run/r");
    chain.open(&store, "a", LONG).await;
    let lease = store.lease(chain.run()).await.unwrap().unwrap();
    store.release(&lease).await.unwrap();
    store.release(&lease).await.unwrap();
    assert_eq!(store.lease(chain.run()).await.unwrap(), None);
    assert_eq!(
        store
            .acquire(chain.run(), &owner("b"), LONG)
            .await
            .unwrap()
            .epoch,
        2
    );
}

pub async fn a_lease_lasts_from_when_it_was_asked_for(store: Subject) {
    let clock = SystemClock::new();
    let mut chain = Chain::of("run/r");
    let before = clock.now();
    chain.open(&store, "a", LONG).await;
    let opened = store.lease(chain.run()).await.unwrap().unwrap();
    assert!(opened.expires_at >= before.plus(LONG));
    let before = clock.now();
    let renewed = store.renew(&opened, LONG).await.unwrap();
    assert!(renewed.expires_at >= before.plus(LONG));
    store.release(&renewed).await.unwrap();
    let before = clock.now();
    let taken = store.acquire(chain.run(), &owner("b"), LONG).await.unwrap();
    assert!(taken.expires_at >= before.plus(LONG));
}

pub async fn an_owner_that_holds_a_lease_is_not_dead(store: Subject) {
    let mut chain = Chain::of("run/r");
    chain.open(&store, "a", SPENT).await;
    assert!(!store.is_dead(&owner("a")).await.unwrap());
}

pub async fn a_run_that_was_let_go_has_no_living_owner(store: Subject) {
    let mut chain = Chain::of("run/r");
    assert_eq!(store.living_owner(chain.run()).await.unwrap(), None);
    chain.open(&store, "a", LONG).await;
    chain
        .put(&store, "done", LeaseRule::Release { epoch: 1 })
        .await;
    assert_eq!(store.living_owner(chain.run()).await.unwrap(), None);
}

pub async fn a_living_owner_is_the_one_of_the_lease(store: Subject) {
    let mut chain = Chain::of("run/r");
    chain.open(&store, "a", SPENT).await;
    // A store that cannot know who is alive says that it does not.
    let living = store.living_owner(chain.run()).await.unwrap();
    assert!(living.is_none_or(|living| living == owner("a")));
    store.acquire(chain.run(), &owner("b"), LONG).await.unwrap();
    let living = store.living_owner(chain.run()).await.unwrap();
    assert!(living.is_none_or(|living| living == owner("b")));
}
