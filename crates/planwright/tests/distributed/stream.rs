//! A client that reads the stream of everything, and moves to the other service whenever its connection ends.

use crate::cluster::Cluster;
use planwright_testing::http::HttpRequest;
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A service that stands still is left after this time without a word from it.
const SILENCE: Duration = Duration::from_secs(3);
/// How long the last events may take to arrive once they are listed.
const PATIENCE: Duration = Duration::from_secs(30);
/// A client moves after this time also from a service that is well.
const STAY: Duration = Duration::from_secs(10);

/// What the client saw, and how often it moved.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Ids and their events.
    pub(crate) events: Vec<(String, Value)>,
    pub(crate) moves: usize,
}

/// The number of events to read, as soon as it is known.
#[derive(Debug)]
pub(crate) struct Expected(AtomicUsize);

impl Expected {
    pub(crate) fn unknown() -> Self {
        Self(AtomicUsize::new(usize::MAX))
    }

    pub(crate) fn set(&self, count: usize) {
        self.0.store(count, Ordering::SeqCst);
    }

    fn is_known(&self) -> bool {
        self.0.load(Ordering::SeqCst) < usize::MAX
    }

    fn is_reached(&self, seen: &Seen) -> bool {
        seen.events.len() >= self.0.load(Ordering::SeqCst)
    }
}

/// Reads until it has the expected number of events, or has waited for the rest of them in vain.
pub(crate) fn follow(cluster: &Cluster, expected: &Expected) -> Seen {
    let mut seen = Seen::default();
    let mut known_at = None;
    while !expected.is_reached(&seen) {
        if expected.is_known() && known_at.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            break;
        }
        let services = cluster.services();
        let address = services[seen.moves % services.len()].address();
        seen.moves += 1;
        // It may be about to start again.
        if read_some(&address, cluster.admin_of("/events"), &mut seen, expected).is_err() {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    seen
}

fn read_some(
    address: &str,
    token: &str,
    seen: &mut Seen,
    expected: &Expected,
) -> std::io::Result<()> {
    let last = seen.events.last().map_or("0", |(id, _)| id);
    let request = HttpRequest::new(address, "GET", "/events")
        .token(token)
        .header("Accept", "text/event-stream")
        .header("Last-Event-ID", last);
    let stream = request.try_open()?;
    stream.set_read_timeout(Some(SILENCE))?;
    let since = Instant::now();
    let mut lines = BufReader::new(stream).lines();
    let mut id = None;
    while let Some(line) = lines.next().transpose()? {
        if let Some(found) = line.strip_prefix("id: ") {
            id = Some(found.to_owned());
        } else if let Some(data) = line.strip_prefix("data: ") {
            // What is only live has no id.
            if let (Some(id), Ok(data)) = (id.take(), serde_json::from_str(data)) {
                seen.events.push((id, data));
            }
        } else if line.is_empty() && (since.elapsed() > STAY || expected.is_reached(seen)) {
            break;
        }
    }
    Ok(())
}
