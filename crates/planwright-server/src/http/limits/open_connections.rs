//! The connections that are open, and which of them only sit there.
//!
//! A connection without a request is idle. Idle ones cost a file descriptor each, which the store
//! and the programs that runs start need too: they are few per address and closed after a while,
//! and the one that has been idle for longest makes room for a new one. A client whose idle
//! connection is closed opens another, as every client of HTTP does; requests are never cut off by
//! this.

use futures::task::AtomicWaker;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// Programs on this machine share one address, and so do all clients behind a proxy on it.
const LOOPBACK_FACTOR: usize = 4;

/// All open connections. Cheap to clone; all clones are the same.
#[derive(Debug, Clone)]
pub(super) struct OpenConnections(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    max_idle_per_address: usize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    open: HashMap<SocketAddr, Entry>,
    /// Those without a request, the one that has been so for longest first.
    idle: BTreeMap<u64, SocketAddr>,
    turn: u64,
}

#[derive(Debug)]
struct Entry {
    connection: Arc<Connection>,
    requests: usize,
    /// Its place in the order of idle ones.
    turn: Option<u64>,
    /// It came when there was no room, and is for decisions only.
    is_reserve: bool,
}

/// What the connection itself looks at.
#[derive(Debug, Default)]
pub(super) struct Connection {
    idle_since: Mutex<Option<Instant>>,
    closing: AtomicBool,
    pub(super) waker: AtomicWaker,
}

impl Connection {
    /// Returns since when it has been idle; `None` while there is a request.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        *self
            .idle_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether it makes room for another one. A request that has come since is answered
    /// first.
    pub(super) fn gives_way(&self) -> bool {
        self.closing.load(Ordering::Acquire) && self.idle_since().is_some()
    }

    fn set_idle(&self, since: Option<Instant>) {
        *self
            .idle_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = since;
    }

    fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.waker.wake();
    }
}

impl OpenConnections {
    pub(super) fn new(max_idle_per_address: usize) -> Self {
        Self(Arc::new(Shared {
            max_idle_per_address,
            table: Mutex::default(),
        }))
    }

    /// Notes a connection, which has no request yet.
    pub(super) fn add(&self, peer: SocketAddr, is_reserve: bool) -> Arc<Connection> {
        let connection = Arc::<Connection>::default();
        let mut table = self.table();
        let entry = Entry {
            connection: Arc::clone(&connection),
            requests: 0,
            turn: None,
            is_reserve,
        };
        table.open.insert(peer, entry);
        self.note_idle(&mut table, peer);
        connection
    }

    pub(super) fn remove(&self, peer: SocketAddr) {
        let mut table = self.table();
        let turn = table.open.remove(&peer).and_then(|entry| entry.turn);
        if let Some(turn) = turn {
            table.idle.remove(&turn);
        }
    }

    /// Notes a request of this connection until what is returned is dropped.
    pub(super) fn begin_request(&self, peer: SocketAddr) -> RequestGuard {
        let mut table = self.table();
        let mut turn = None;
        let mut is_reserve = false;
        if let Some(entry) = table.open.get_mut(&peer) {
            is_reserve = entry.is_reserve;
            entry.requests += 1;
            entry.connection.set_idle(None);
            turn = entry.turn.take();
        }
        if let Some(turn) = turn {
            table.idle.remove(&turn);
        }
        RequestGuard {
            connections: self.clone(),
            peer,
            is_reserve,
        }
    }

    /// Closes the connection that has been idle for longest. Returns whether there was one.
    pub(super) fn make_room(&self) -> bool {
        let mut table = self.table();
        let oldest = table.idle.pop_first();
        oldest.is_some_and(|(_, peer)| table.close(peer))
    }

    fn end_request(&self, peer: SocketAddr) {
        let mut table = self.table();
        let Some(entry) = table.open.get_mut(&peer) else {
            return;
        };
        entry.requests = entry.requests.saturating_sub(1);
        if entry.requests == 0 {
            self.note_idle(&mut table, peer);
        }
    }

    /// Puts a connection at the end of the idle ones, and closes the first of its address if those
    /// are too many.
    fn note_idle(&self, table: &mut Table, peer: SocketAddr) {
        table.turn += 1;
        let turn = table.turn;
        if let Some(entry) = table.open.get_mut(&peer) {
            entry.turn = Some(turn);
            entry.connection.set_idle(Some(Instant::now()));
            entry.connection.waker.wake();
        }
        table.idle.insert(turn, peer);
        let address = whose(peer.ip());
        let mut same = table
            .idle
            .iter()
            .filter(|(_, other)| whose(other.ip()) == address);
        let first = same.next().map(|(turn, peer)| (*turn, *peer));
        if same.count() >= self.max_idle(peer.ip())
            && let Some((turn, peer)) = first
        {
            table.idle.remove(&turn);
            table.close(peer);
        }
    }

    fn max_idle(&self, address: IpAddr) -> usize {
        let most = self.0.max_idle_per_address;
        if address.to_canonical().is_loopback() {
            most.saturating_mul(LOOPBACK_FACTOR)
        } else {
            most
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // The table is whole after every statement that changes it.
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn close(&mut self, peer: SocketAddr) -> bool {
        let Some(entry) = self.open.get_mut(&peer) else {
            return false;
        };
        entry.turn = None;
        entry.connection.close();
        true
    }
}

/// The address that a limit counts: one machine has a whole network of 64 bits in IPv6.
fn whose(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// A request that is being answered. It ends with the last byte of its answer.
#[derive(Debug)]
pub(super) struct RequestGuard {
    connections: OpenConnections,
    peer: SocketAddr,
    is_reserve: bool,
}

impl RequestGuard {
    /// Returns whether its connection came when there was no room.
    pub(super) fn is_on_reserve(&self) -> bool {
        self.is_reserve
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.connections.end_request(self.peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_longest_idle_connection_of_an_address_gives_way() {
        let connections = OpenConnections::new(2);
        let first = connections.add(peer("192.0.2.1:1"), false);
        let second = connections.add(peer("192.0.2.1:2"), false);
        let other = connections.add(peer("192.0.2.2:1"), false);
        assert!(!first.gives_way() && !second.gives_way());
        // It is not idle while it is asked something, and the last in the order afterwards.
        drop(connections.begin_request(peer("192.0.2.1:1")));
        let third = connections.add(peer("192.0.2.1:3"), false);
        assert!(second.gives_way());
        assert!(!first.gives_way() && !third.gives_way() && !other.gives_way());
        assert!(connections.make_room());
        assert!(other.gives_way() || first.gives_way());
    }

    #[test]
    fn a_connection_with_a_request_is_never_closed() {
        let connections = OpenConnections::new(1);
        let busy = connections.add(peer("192.0.2.1:1"), false);
        let request = connections.begin_request(peer("192.0.2.1:1"));
        for port in 2..50 {
            connections.add(peer(&format!("192.0.2.1:{port}")), false);
        }
        while connections.make_room() {}
        assert!(!busy.gives_way());
        drop(request);
        assert!(busy.idle_since().is_some());
        assert!(connections.make_room() && busy.gives_way());
    }

    #[test]
    fn this_machine_may_have_more_and_a_network_of_ipv6_counts_as_one() {
        let connections = OpenConnections::new(1);
        let here = connections.add(peer("127.0.0.1:1"), false);
        for port in 2..=4 {
            connections.add(peer(&format!("127.0.0.1:{port}")), false);
        }
        assert!(!here.gives_way());
        connections.add(peer("127.0.0.1:5"), false);
        assert!(here.gives_way());
        let first = connections.add(peer("[2001:db8::1]:1"), false);
        connections.add(peer("[2001:db8::2]:1"), false);
        assert!(first.gives_way());
    }

    #[test]
    fn what_is_closed_is_forgotten() {
        let connections = OpenConnections::new(1);
        connections.add(peer("192.0.2.1:1"), false);
        connections.remove(peer("192.0.2.1:1"));
        assert!(!connections.make_room());
        let table = connections.table();
        assert!(table.open.is_empty() && table.idle.is_empty());
    }
}
