//! Short words for the laws: streams that know their head, and appends to them.

use crate::port::{Append, LeaseRule, OwnerId, Store, StreamStatus};
use planwright_core::id::RunId;
use planwright_core::journal::{Head, Record, StreamName};
use planwright_core::time::Timestamp;
use std::sync::Arc;
use std::time::Duration;

pub(super) type Subject = Arc<dyn Store>;

/// Long enough that no lease runs out during a law.
pub(super) const LONG: Duration = Duration::from_secs(3600);

/// A stream as its writer sees it.
#[derive(Debug, Clone)]
pub(super) struct Chain {
    pub(super) stream: StreamName,
    pub(super) head: Head,
    pub(super) at: Timestamp,
}

impl Chain {
    pub(super) fn of(name: &str) -> Self {
        Self {
            stream: name.parse().unwrap(),
            head: Head::EMPTY,
            at: Timestamp::from_millis(1_000),
        }
    }

    pub(super) fn run(&self) -> &RunId {
        match &self.stream {
            StreamName::Run(run) => run,
            StreamName::Plan(plan) => panic!("{plan} is a plan"),
        }
    }

    /// The record that would come next.
    pub(super) fn record(&self, key: Option<&str>, body: &[u8]) -> Record {
        Record::after(
            self.head,
            &self.stream,
            self.at,
            1,
            key.map(str::to_owned),
            body.to_vec(),
        )
    }

    /// The append of one record per body, believing that it will succeed.
    pub(super) fn grow(&mut self, bodies: &[&str]) -> Append {
        let keyed: Vec<_> = bodies.iter().map(|body| (None, *body)).collect();
        self.grow_keyed(&keyed)
    }

    pub(super) fn grow_keyed(&mut self, keyed: &[(Option<&str>, &str)]) -> Append {
        let expected = self.head;
        let mut records = Vec::new();
        for (key, body) in keyed {
            let record = self.record(*key, body.as_bytes());
            self.head = record.head();
            records.push(record);
        }
        Append {
            records,
            expected,
            ..self.nothing()
        }
    }

    /// An append that adds nothing.
    pub(super) fn nothing(&self) -> Append {
        Append {
            stream: self.stream.clone(),
            expected: self.head,
            records: Vec::new(),
            lease: LeaseRule::None,
            status: None,
            answers: Vec::new(),
            requests: Vec::new(),
            brought: Vec::new(),
            offers: Vec::new(),
        }
    }

    /// Appends one record under `rule`.
    pub(super) async fn put(&mut self, store: &Subject, body: &str, rule: LeaseRule) {
        let append = Append {
            lease: rule,
            ..self.grow(&[body])
        };
        store.append(vec![append]).await.unwrap();
    }

    /// Begins the run with a lease for `owner`.
    pub(super) async fn open(&mut self, store: &Subject, by: &str, ttl: Duration) {
        self.put(
            store,
            "opened",
            LeaseRule::Open {
                owner: owner(by),
                ttl,
            },
        )
        .await;
    }
}

pub(super) fn owner(name: &str) -> OwnerId {
    OwnerId(name.to_owned())
}

pub(super) fn status(plan: &str, status: &str) -> Option<StreamStatus> {
    Some(StreamStatus {
        plan: plan.parse().unwrap(),
        status: status.into(),
        label: format!("{plan} label"),
    })
}

pub(super) async fn bodies(store: &Subject, stream: &StreamName) -> Vec<String> {
    let records = store.read(stream, 0, usize::MAX).await.unwrap();
    records
        .into_iter()
        .map(|record| String::from_utf8(record.body).unwrap())
        .collect()
}
