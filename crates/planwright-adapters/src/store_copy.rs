//! A store copied into another one, of whichever kind: entry by entry, in the order of commits.
//!
//! Everything goes through the ports, so that each store checks and writes a copy as it does what the engine
//! appends. A copy that was interrupted is continued by the next one. What belongs to one place and moment is
//! left behind: sessions of browsers, answers to repeated requests, webhooks that are still to be delivered.

use crate::sqlite::collect_digests;
use planwright_core::digest::Digest;
use planwright_core::id::RunId;
use planwright_core::journal::{Head, Record, StreamName, check_chain};
use planwright_core::principal::Principal;
use planwright_engine::port::{
    AcquireError, Append, AppendError, ArtifactError, Artifacts, FeedOf, LeaseRule, OwnerId,
    PassKind, Passes, Passkeys, Placed, Position, Store, StoreError, StreamStatus, Tokens,
    is_last_page,
};
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

/// Entries that are read and written at a time.
const PAGE: usize = 500;
/// Digests that are remembered, so that a value is not copied again for every entry that names it.
const MAX_REMEMBERED: usize = 100_000;
/// The lease of a run while it is copied. It is given back with the run's last entry.
const LEASE: Duration = Duration::from_secs(60);

/// One of the two stores.
#[derive(Debug, Clone, Copy)]
pub struct CopySide<'a> {
    pub store: &'a dyn Store,
    pub artifacts: &'a dyn Artifacts,
    pub tokens: &'a dyn Tokens,
    pub passes: &'a dyn Passes,
    pub passkeys: &'a dyn Passkeys,
}

/// What a copy consists of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CopiedStore {
    /// Journals, each read back and checked.
    pub streams: u64,
    /// Entries of all journals.
    pub entries: u64,
    /// Large values.
    pub values: u64,
    pub tokens: u64,
    pub passkeys: u64,
}

/// The reason a store was not copied, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum CopyStoreError {
    #[error("the store that is copied to holds journals that are not from this one")]
    OtherJournals,
    #[error("a process executes run {0}")]
    RunExecutes(RunId),
    #[error("a command waits for run {0}")]
    CommandWaits(RunId),
    #[error("the copy of {0} ends elsewhere than the journal: the store has changed meanwhile")]
    Grown(StreamName),
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Copies everything that `from` holds into `to`, and reads every journal back.
pub async fn copy_store(
    from: CopySide<'_>,
    to: CopySide<'_>,
) -> Result<CopiedStore, CopyStoreError> {
    if let Some(message) = from.store.mail().await?.into_iter().next() {
        return Err(CopyStoreError::CommandWaits(message.run));
    }
    let mut name = [0; 8];
    getrandom::fill(&mut name)
        .map_err(|error| StoreError::Failed(format!("there is no randomness: {error}")))?;
    let mut copy = Copy {
        from,
        to,
        owner: OwnerId(format!("copy-{:016x}", u64::from_le_bytes(name))),
        streams: BTreeMap::new(),
        remembered: HashSet::new(),
        copied: CopiedStore::default(),
    };
    let mut after = copy.compare().await?;
    loop {
        let page = from.store.feed(&FeedOf::All, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.position;
        copy.append(&page).await?;
    }
    copy.check_arrived().await?;
    copy.raise_epochs().await?;
    copy.copy_access().await?;
    copy.copied.streams = copy.streams.len() as u64;
    Ok(copy.copied)
}

/// A journal of the copy.
#[derive(Debug, Clone, Copy)]
struct CopiedStream {
    head: Head,
    /// The highest epoch of any entry.
    epoch: u64,
}

struct Copy<'a> {
    from: CopySide<'a>,
    to: CopySide<'a>,
    owner: OwnerId,
    streams: BTreeMap<StreamName, CopiedStream>,
    remembered: HashSet<Digest>,
    copied: CopiedStore,
}

impl Copy<'_> {
    /// Compares what is there already, entry by entry. Returns the place in the source where it ends.
    async fn compare(&mut self) -> Result<Position, CopyStoreError> {
        let mut ours = Position(0);
        let mut theirs = Position(0);
        loop {
            let there = self.to.store.feed(&FeedOf::All, theirs, PAGE).await?;
            let Some(last) = there.last() else {
                return Ok(ours);
            };
            theirs = last.position;
            let mut rest = &there[..];
            while !rest.is_empty() {
                let page = self.from.store.feed(&FeedOf::All, ours, rest.len()).await?;
                let is_same = |(one, other): (&Placed, &Placed)| {
                    one.stream == other.stream && one.record == other.record
                };
                let Some(last) = page.last().filter(|_| page.iter().zip(rest).all(is_same)) else {
                    return Err(CopyStoreError::OtherJournals);
                };
                ours = last.position;
                rest = rest.get(page.len()..).unwrap_or_default();
                for placed in &page {
                    self.note(&placed.stream, &placed.record);
                }
            }
        }
    }

    fn note(&mut self, stream: &StreamName, record: &Record) {
        let epoch = self.streams.get(stream).map_or(0, |known| known.epoch);
        let known = CopiedStream {
            head: record.head(),
            epoch: epoch.max(record.epoch),
        };
        self.streams.insert(stream.clone(), known);
        self.copied.entries += 1;
    }

    /// Appends a page, in one transaction.
    async fn append(&mut self, page: &[Placed]) -> Result<(), CopyStoreError> {
        let mut appends = Vec::new();
        for part in page.chunk_by(|one, next| one.stream == next.stream) {
            // Values are there before an entry names them.
            for placed in part {
                self.copy_values(&placed.record).await?;
            }
            self.append_part(part, &mut appends).await?;
        }
        Ok(self.to.store.append(appends).await?)
    }

    /// Makes the appends of consecutive entries of one journal.
    async fn append_part(
        &mut self,
        part: &[Placed],
        appends: &mut Vec<Append>,
    ) -> Result<(), CopyStoreError> {
        let Some(Placed { stream, .. }) = part.first() else {
            return Ok(());
        };
        let expected = self
            .streams
            .get(stream)
            .map_or(Head::EMPTY, |known| known.head);
        let records: Vec<Record> = part.iter().map(|placed| placed.record.clone()).collect();
        // What is damaged is not copied as if it were whole.
        let head = check_chain(expected, stream, &records)
            .map_err(|error| StoreError::chain(stream, &error))?;
        let is_whole = self.from.store.head(stream).await? == head;
        let status = match is_whole {
            true => self.from.store.info(stream).await?.map(|info| info.status),
            false => None,
        };
        let run = match stream {
            StreamName::Run(run) => Some(run),
            StreamName::Plan(_) => None,
        };
        let begun = run.filter(|_| expected == Head::EMPTY);
        if let Some(run) = begun {
            self.refuse_executing(run).await?;
        }
        let lease = begun.map_or(LeaseRule::None, |_| LeaseRule::Open {
            owner: self.owner.clone(),
            ttl: LEASE,
        });
        appends.push(make_append(stream, (expected, records), lease, status));
        if is_whole && run.is_some() {
            // An append of its own: the run may have begun with the one before.
            let lease = LeaseRule::Release { epoch: 1 };
            appends.push(make_append(stream, (head, Vec::new()), lease, None));
        }
        for placed in part {
            self.note(stream, &placed.record);
        }
        Ok(())
    }

    async fn refuse_executing(&self, run: &RunId) -> Result<(), CopyStoreError> {
        match self.from.store.lease(run).await? {
            Some(_) => Err(CopyStoreError::RunExecutes(run.clone())),
            None => Ok(()),
        }
    }

    async fn copy_values(&mut self, record: &Record) -> Result<(), CopyStoreError> {
        let mut named = HashSet::new();
        collect_digests(&record.body, &mut named);
        for digest in named {
            if self.remembered.len() >= MAX_REMEMBERED {
                self.remembered.clear();
            }
            if !self.remembered.insert(digest) {
                continue;
            }
            match self.from.artifacts.get_named(digest, u64::MAX).await {
                Ok(bytes) => {
                    self.to.artifacts.put(bytes).await?;
                    self.copied.values += 1;
                }
                // Most digests are not those of large values.
                Err(ArtifactError::Missing(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads every journal of the copy from its beginning.
    async fn check_arrived(&self) -> Result<(), CopyStoreError> {
        for (stream, known) in &self.streams {
            let mut head = Head::EMPTY;
            loop {
                let page = self.to.store.read(stream, head.seq, PAGE).await?;
                head = check_chain(head, stream, &page)
                    .map_err(|error| StoreError::chain(stream, &error))?;
                if is_last_page(&page, PAGE) {
                    break;
                }
            }
            if head != known.head || head != self.from.store.head(stream).await? {
                return Err(CopyStoreError::Grown(stream.clone()));
            }
            self.copy_status(stream).await?;
        }
        Ok(())
    }

    /// Corrects a cached status that was changed without an entry, after an earlier copy.
    async fn copy_status(&self, stream: &StreamName) -> Result<(), CopyStoreError> {
        let there = self.to.store.info(stream).await?;
        if let Some(here) = self.from.store.info(stream).await?
            && there.is_none_or(|there| there.status != here.status)
        {
            self.to.store.correct_status(stream, here.status).await?;
        }
        Ok(())
    }

    /// Lets the next owner of each run have a higher epoch than any before.
    async fn raise_epochs(&self) -> Result<(), CopyStoreError> {
        for (stream, known) in &self.streams {
            let StreamName::Run(run) = stream else {
                continue;
            };
            // The first lease was taken and given back with the entries.
            let mut epoch = 1;
            while epoch < known.epoch {
                let lease = self.to.store.acquire(run, &self.owner, LEASE).await?;
                self.to.store.release(&lease).await?;
                epoch = lease.epoch;
            }
        }
        Ok(())
    }

    /// Copies tokens and passkeys. They are hashes and public keys: what people hold stays valid.
    async fn copy_access(&mut self) -> Result<(), CopyStoreError> {
        let tokens = self.from.tokens.list().await?;
        let mut people: BTreeMap<String, Principal> = BTreeMap::new();
        for token in tokens {
            if self.to.tokens.find(&token.hash).await?.is_none() {
                self.to.tokens.add(&token).await?;
            }
            self.copied.tokens += 1;
            people.insert(token.principal.to_string(), token.principal);
        }
        for kind in [PassKind::Session, PassKind::Invitation] {
            let passes = self.from.passes.list(kind).await?;
            let bearers = passes.into_iter().map(|pass| pass.principal);
            people.extend(bearers.map(|bearer| (bearer.to_string(), bearer)));
        }
        for person in people.into_values() {
            let there = self.to.passkeys.list(&person).await?;
            for passkey in self.from.passkeys.list(&person).await? {
                if there.iter().all(|known| known.id != passkey.id) {
                    self.to.passkeys.add(&passkey, usize::MAX).await?;
                }
                self.copied.passkeys += 1;
            }
        }
        Ok(())
    }
}

fn make_append(
    stream: &StreamName,
    (expected, records): (Head, Vec<Record>),
    lease: LeaseRule,
    status: Option<StreamStatus>,
) -> Append {
    Append {
        stream: stream.clone(),
        expected,
        records,
        lease,
        status,
        answers: Vec::new(),
        requests: Vec::new(),
        brought: Vec::new(),
        offers: Vec::new(),
    }
}
