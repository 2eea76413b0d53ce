//! What is still to be told, in memory.

use crate::port::{
    BoxFuture, Delivery, DeliveryState, EndpointStanding, Outbox, Position, Settled, StoreError,
};
use planwright_core::time::Timestamp;
use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Forgets everything with the process.
#[derive(Debug, Default)]
pub struct MemoryOutbox(Mutex<BTreeMap<String, Endpoint>>);

#[derive(Debug)]
struct Endpoint {
    standing: EndpointStanding,
    deliveries: BTreeMap<(Position, u32), Delivery>,
}

impl MemoryOutbox {
    fn endpoints(&self) -> MutexGuard<'_, BTreeMap<String, Endpoint>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T: Default>(&self, endpoint: &str, work: impl FnOnce(&mut Endpoint) -> T) -> T {
        self.endpoints()
            .get_mut(endpoint)
            .map(work)
            .unwrap_or_default()
    }
}

fn done<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, Result<T, StoreError>> {
    Box::pin(ready(Ok(value)))
}

impl Outbox for MemoryOutbox {
    fn standing<'a>(
        &'a self,
        endpoint: &'a str,
    ) -> BoxFuture<'a, Result<Option<EndpointStanding>, StoreError>> {
        done(
            self.endpoints()
                .get(endpoint)
                .map(|endpoint| endpoint.standing.clone()),
        )
    }

    fn advance<'a>(
        &'a self,
        endpoint: &'a str,
        from: Option<Position>,
        to: Position,
        found: Vec<(Position, u32)>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let mut endpoints = self.endpoints();
        if endpoints
            .get(endpoint)
            .map(|endpoint| endpoint.standing.cursor)
            != from
        {
            return done(false);
        }
        let row = endpoints
            .entry(endpoint.to_owned())
            .or_insert_with(|| Endpoint {
                standing: EndpointStanding {
                    cursor: to,
                    disabled: None,
                },
                deliveries: BTreeMap::new(),
            });
        row.standing.cursor = to;
        for (position, index) in found {
            let state = DeliveryState::Waiting;
            let delivery = Delivery {
                position,
                index,
                attempts: 0,
                next_at: now,
                state,
                last_error: None,
            };
            row.deliveries.entry((position, index)).or_insert(delivery);
        }
        done(true)
    }

    fn take<'a>(
        &'a self,
        endpoint: &'a str,
        now: Timestamp,
        until: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Delivery>, StoreError>> {
        done(self.with(endpoint, |row| {
            let waits = |delivery: &&mut Delivery| {
                delivery.state == DeliveryState::Waiting && delivery.next_at <= now
            };
            let due = row
                .deliveries
                .values_mut()
                .find(waits)
                .filter(|_| row.standing.disabled.is_none())?;
            due.attempts += 1;
            due.next_at = until;
            Some(due.clone())
        }))
    }

    fn settle<'a>(
        &'a self,
        endpoint: &'a str,
        delivery: &'a Delivery,
        settled: Settled,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.with(endpoint, |row| {
            let key = (delivery.position, delivery.index);
            match settled {
                Settled::Done => drop(row.deliveries.remove(&key)),
                Settled::Again { at, error } => {
                    if let Some(row) = row.deliveries.get_mut(&key) {
                        (row.next_at, row.last_error) = (at, Some(error));
                    }
                }
                Settled::Dead { error } => {
                    if let Some(row) = row.deliveries.get_mut(&key) {
                        (row.state, row.last_error) = (DeliveryState::Dead, Some(error));
                    }
                }
            }
        });
        done(())
    }

    fn next_at<'a>(
        &'a self,
        endpoint: &'a str,
    ) -> BoxFuture<'a, Result<Option<Timestamp>, StoreError>> {
        done(self.with(endpoint, |row| {
            let waiting = row
                .deliveries
                .values()
                .filter(|row| row.state == DeliveryState::Waiting);
            waiting
                .map(|row| row.next_at)
                .min()
                .filter(|_| row.standing.disabled.is_none())
        }))
    }

    fn list<'a>(
        &'a self,
        endpoint: &'a str,
        state: DeliveryState,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Delivery>, StoreError>> {
        done(self.with(endpoint, |row| {
            row.deliveries
                .values()
                .filter(|row| row.state == state)
                .take(limit)
                .cloned()
                .collect()
        }))
    }

    fn count<'a>(
        &'a self,
        endpoint: &'a str,
        state: DeliveryState,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        done(self.with(endpoint, |row| {
            row.deliveries
                .values()
                .filter(|row| row.state == state)
                .count() as u64
        }))
    }

    fn disable<'a>(
        &'a self,
        endpoint: &'a str,
        reason: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.with(endpoint, |row| {
            row.standing.disabled = Some(reason.to_owned());
        });
        done(())
    }

    fn revive<'a>(
        &'a self,
        endpoint: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        done(self.with(endpoint, |row| {
            row.standing.disabled = None;
            for delivery in row.deliveries.values_mut() {
                (delivery.state, delivery.next_at, delivery.attempts) =
                    (DeliveryState::Waiting, now, 0);
            }
            row.deliveries.len() as u64
        }))
    }
}
