//! The connections that are open, and which of them only sit there.
//!
//! A connection without a request is idle. Idle ones cost a file descriptor each, which the store
//! and the programs that runs start need too: they are few per address and closed after a while,
//! and the one that has been idle for longest makes room for a new one. A client whose idle
//! connection is closed opens another, as every client of HTTP does; requests are never cut off by
//! this.
//!
//! A connection belongs to a stranger until a request on it brings a token that is valid. Strangers have
//! a share of their own: when it is full, one of them makes room for the next, also while it has a
//! request, because no caller with rights waits for the answer. One that has just come, and whose bytes have not
//! been looked at, does not: they may be a token.

use super::crowd::{Crowd, counted_address, most_of};
use futures::task::AtomicWaker;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

/// All open connections. Cheap to clone; all clones are the same.
#[derive(Debug, Clone)]
pub(super) struct OpenConnections(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    max_idle_per_address: usize,
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    open: HashMap<SocketAddr, Entry>,
    /// Those without a request, the one that has been so for longest first.
    idle: BTreeMap<u64, SocketAddr>,
    turn: u64,
    /// Those that have shown no valid token.
    strangers: Crowd<SocketAddr>,
}

#[derive(Debug)]
struct Entry {
    connection: Arc<Connection>,
    requests: usize,
    /// Its place in the order of idle ones.
    turn: Option<u64>,
    /// Its place among the strangers.
    stranger: Option<u64>,
    room: Room,
}

/// The place of one connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Room {
    place: Place,
    _permit: OwnedSemaphorePermit,
}

impl Room {
    pub(super) fn new(place: Place, permit: OwnedSemaphorePermit) -> Self {
        Self {
            place,
            _permit: permit,
        }
    }
}

/// Where a connection has its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Room,
    /// Beyond the limit, for decisions.
    Reserve,
}

/// What the connection itself looks at.
#[derive(Debug, Default)]
pub(super) struct Connection {
    idle_since: Mutex<Option<Instant>>,
    closing: AtomicBool,
    cut: AtomicBool,
    known: AtomicBool,
    listened_to: AtomicBool,
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
    /// first, unless it is a stranger's.
    pub(super) fn gives_way(&self) -> bool {
        self.is_cut() || self.closing.load(Ordering::Acquire) && self.idle_since().is_some()
    }

    /// Returns whether it is a stranger's that is closed in the middle of anything.
    pub(super) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Acquire)
    }

    /// Returns whether a valid token was shown on it.
    pub(super) fn is_known(&self) -> bool {
        self.known.load(Ordering::Acquire)
    }

    /// Notes that everything it sent was read, and more is waited for.
    pub(super) fn note_silence(&self) {
        self.listened_to.store(true, Ordering::Release);
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

    fn cut(&self) {
        self.cut.store(true, Ordering::Release);
        self.waker.wake();
    }
}

impl OpenConnections {
    pub(super) fn new(max_idle_per_address: usize, max_strangers: usize) -> Self {
        Self(Arc::new(Shared {
            max_idle_per_address,
            table: Mutex::new(Table {
                open: HashMap::new(),
                idle: BTreeMap::new(),
                turn: 0,
                strangers: Crowd::new(max_strangers, max_idle_per_address),
            }),
        }))
    }

    /// Notes a connection, which has no request yet.
    pub(super) fn add(&self, peer: SocketAddr, room: Room) -> Arc<Connection> {
        let connection = Arc::<Connection>::default();
        let mut table = self.table();
        let stranger = table.let_in(peer);
        let entry = Entry {
            connection: Arc::clone(&connection),
            requests: 0,
            turn: None,
            stranger: Some(stranger),
            room,
        };
        table.open.insert(peer, entry);
        self.note_idle(&mut table, peer);
        connection
    }

    pub(super) fn remove(&self, peer: SocketAddr) {
        let mut table = self.table();
        let Some(entry) = table.open.remove(&peer) else {
            return;
        };
        if let Some(turn) = entry.turn {
            table.idle.remove(&turn);
        }
        if let Some(stranger) = entry.stranger {
            table.strangers.leave(stranger);
        }
    }

    /// Notes that a valid token was shown on this connection: it is no stranger's any more.
    pub(super) fn note_known(&self, peer: SocketAddr) {
        let mut table = self.table();
        let Some(entry) = table.open.get_mut(&peer) else {
            return;
        };
        entry.connection.known.store(true, Ordering::Release);
        if let Some(stranger) = entry.stranger.take() {
            table.strangers.leave(stranger);
        }
    }

    /// Notes that no valid token was shown on this connection: it is the youngest of the strangers.
    pub(super) fn note_stranger(&self, peer: SocketAddr) {
        let mut table = self.table();
        if table
            .open
            .get(&peer)
            .is_none_or(|entry| entry.stranger.is_some())
        {
            return;
        }
        let place = table.let_in(peer);
        if let Some(entry) = table.open.get_mut(&peer) {
            entry.stranger = Some(place);
            entry.connection.known.store(false, Ordering::Release);
        }
    }

    /// Notes a request of this connection until what is returned is dropped.
    pub(super) fn begin_request(&self, peer: SocketAddr) -> RequestGuard {
        let mut table = self.table();
        let mut turn = None;
        let mut is_reserve = false;
        if let Some(entry) = table.open.get_mut(&peer) {
            is_reserve = entry.room.place == Place::Reserve;
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

    /// Closes the connection that has been idle for longest, or else a stranger's. Returns where there is
    /// room then.
    pub(super) fn make_room(&self) -> Option<Place> {
        self.close_one(&[Place::Room, Place::Reserve])
    }

    /// Closes such a connection that is not on the reserve. Returns whether there is one.
    pub(super) fn make_room_beside_reserve(&self) -> bool {
        self.close_one(&[Place::Room]).is_some()
    }

    fn close_one(&self, places: &[Place]) -> Option<Place> {
        let mut table = self.table();
        let peer = table.close_idle(places).or_else(|| {
            let Table {
                open, strangers, ..
            } = &mut *table;
            let has_place = |peer: &SocketAddr| {
                open.get(peer)
                    .is_some_and(|entry| places.contains(&entry.room.place))
            };
            let stranger = strangers.give_way(|peer| has_place(peer) && may_leave(open, peer))?;
            table.cut(stranger);
            Some(stranger)
        })?;
        table.open.get(&peer).map(|entry| entry.room.place)
    }

    /// Gives a connection another place, in exchange for its own.
    pub(super) fn change_room(&self, peer: SocketAddr, room: Room) {
        if let Some(entry) = self.table().open.get_mut(&peer) {
            entry.room = room;
        }
    }

    fn end_request(&self, peer: SocketAddr) {
        let mut table = self.table();
        let Some(entry) = table.open.get_mut(&peer) else {
            return;
        };
        entry.requests = entry.requests.saturating_sub(1);
        if entry.requests > 0 {
            return;
        }
        // One that was answered is the youngest of the strangers again.
        if let Some(place) = entry.stranger.take() {
            table.strangers.leave(place);
            let place = table.let_in(peer);
            if let Some(entry) = table.open.get_mut(&peer) {
                entry.stranger = Some(place);
            }
        }
        self.note_idle(&mut table, peer);
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
        let address = counted_address(peer.ip());
        let mut same = table
            .idle
            .iter()
            .filter(|(_, other)| counted_address(other.ip()) == address);
        let first = same.next().map(|(turn, peer)| (*turn, *peer));
        if same.count() >= most_of(self.0.max_idle_per_address, peer.ip())
            && let Some((turn, peer)) = first
        {
            table.idle.remove(&turn);
            table.close(peer);
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // The table is whole after every statement that changes it.
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a stranger may be made to leave: what it sent has been read, and was no token.
fn may_leave(open: &HashMap<SocketAddr, Entry>, peer: &SocketAddr) -> bool {
    open.get(peer)
        .is_none_or(|entry| entry.connection.listened_to.load(Ordering::Acquire))
}

impl Table {
    /// Counts a connection among the strangers, one of which leaves if they are too many. Returns its place there.
    fn let_in(&mut self, peer: SocketAddr) -> u64 {
        let open = &self.open;
        let may_leave = |other: &SocketAddr| may_leave(open, other);
        let (place, left) = self.strangers.enter(peer.ip(), peer, may_leave);
        if let Some(left) = left {
            self.cut(left);
        }
        place
    }

    /// Closes the connection that has been idle for longest at one of these places.
    fn close_idle(&mut self, places: &[Place]) -> Option<SocketAddr> {
        let has_place = |peer: &SocketAddr| {
            let entry = self.open.get(peer);
            entry.is_some_and(|entry| places.contains(&entry.room.place))
        };
        let found = self.idle.iter().find(|(_, peer)| has_place(peer));
        let (turn, peer) = found.map(|(turn, peer)| (*turn, *peer))?;
        self.idle.remove(&turn);
        self.close(peer);
        Some(peer)
    }

    fn close(&mut self, peer: SocketAddr) {
        if let Some(entry) = self.open.get_mut(&peer) {
            entry.turn = None;
            entry.connection.close();
        }
    }

    /// Closes the connection of a stranger, in the middle of anything.
    fn cut(&mut self, peer: SocketAddr) {
        let Some(entry) = self.open.get_mut(&peer) else {
            return;
        };
        entry.stranger = None;
        entry.connection.cut();
        if let Some(turn) = entry.turn.take() {
            self.idle.remove(&turn);
        }
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
    /// Returns the connection that it came on.
    pub(super) fn on_connection(&self) -> OnConnection {
        OnConnection {
            connections: self.connections.clone(),
            peer: self.peer,
        }
    }

    /// Returns whether its connection came when there was no room.
    pub(super) fn is_on_reserve(&self) -> bool {
        self.is_reserve
    }
}

/// The connection that a request came on.
#[derive(Debug, Clone)]
pub(crate) struct OnConnection {
    connections: OpenConnections,
    pub(super) peer: SocketAddr,
}

impl OnConnection {
    /// Notes that the request brought a valid token.
    pub(crate) fn note_known(&self) {
        self.connections.note_known(self.peer);
    }

    /// Notes that the request brought none after all.
    pub(crate) fn note_stranger(&self) {
        self.connections.note_stranger(self.peer);
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
    use tokio::sync::Semaphore;

    #[test]
    fn a_connection_whose_token_is_looked_up_does_not_give_way_to_strangers() {
        let open = OpenConnections::new(100, 4);
        let asks = peer("10.0.0.1:1");
        let connection = add(&open, asks);
        let request = open.begin_request(asks);
        request.on_connection().note_known();
        let flood = |ports: std::ops::Range<u16>| -> Vec<Arc<Connection>> {
            let one = |port: u16| add(&open, SocketAddr::from(([10, 0, 0, 1], port)));
            ports.map(one).collect()
        };
        let others = flood(1_000..1_020);
        assert!(!connection.is_cut() && connection.is_known());
        assert_eq!(others.iter().filter(|other| !other.is_cut()).count(), 4);
        // The token was none: it is a stranger like the others.
        request.on_connection().note_stranger();
        assert!(!connection.is_cut() && !connection.is_known());
        flood(2_000..2_004);
        assert!(connection.is_cut());
    }

    /// A connection that came and said nothing.
    fn add(open: &OpenConnections, peer: SocketAddr) -> Arc<Connection> {
        let connection = add_unread(open, peer, Place::Room);
        connection.note_silence();
        connection
    }

    /// A connection that came, and whose bytes were not read yet.
    fn add_unread(open: &OpenConnections, peer: SocketAddr, place: Place) -> Arc<Connection> {
        let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        open.add(peer, Room::new(place, permit))
    }

    fn peer(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_longest_idle_connection_of_an_address_gives_way() {
        let connections = OpenConnections::new(2, 100);
        let first = add(&connections, peer("192.0.2.1:1"));
        let second = add(&connections, peer("192.0.2.1:2"));
        let other = add(&connections, peer("192.0.2.2:1"));
        assert!(!first.gives_way() && !second.gives_way());
        // It is not idle while it is asked something, and the last in the order afterwards.
        drop(connections.begin_request(peer("192.0.2.1:1")));
        let third = add(&connections, peer("192.0.2.1:3"));
        assert!(second.gives_way());
        assert!(!first.gives_way() && !third.gives_way() && !other.gives_way());
        assert_eq!(connections.make_room(), Some(Place::Room));
        assert!(other.gives_way() || first.gives_way());
    }

    #[test]
    fn a_connection_with_a_request_is_never_closed_once_a_token_was_shown() {
        let connections = OpenConnections::new(1, 100);
        let busy = add(&connections, peer("192.0.2.1:1"));
        let request = connections.begin_request(peer("192.0.2.1:1"));
        connections.note_known(peer("192.0.2.1:1"));
        for port in 2..50 {
            add(&connections, peer(&format!("192.0.2.1:{port}")));
        }
        while connections.make_room().is_some() {}
        assert!(!busy.gives_way());
        drop(request);
        assert!(busy.idle_since().is_some());
        assert!(connections.make_room().is_some() && busy.gives_way());
    }

    #[test]
    fn this_machine_may_have_more_and_a_network_of_ipv6_counts_as_one() {
        let connections = OpenConnections::new(1, 100);
        let here = add(&connections, peer("127.0.0.1:1"));
        for port in 2..=4 {
            add(&connections, peer(&format!("127.0.0.1:{port}")));
        }
        assert!(!here.gives_way());
        add(&connections, peer("127.0.0.1:5"));
        assert!(here.gives_way());
        let first = add(&connections, peer("[2001:db8::1]:1"));
        add(&connections, peer("[2001:db8::2]:1"));
        assert!(first.gives_way());
    }

    #[test]
    fn a_stranger_gives_way_with_its_request_and_who_showed_a_token_does_not() {
        let connections = OpenConnections::new(10, 2);
        let known = add(&connections, peer("192.0.2.1:1"));
        let _asks = connections.begin_request(peer("192.0.2.1:1"));
        connections.note_known(peer("192.0.2.1:1"));
        let slow = add(&connections, peer("192.0.2.1:2"));
        let _slow = connections.begin_request(peer("192.0.2.1:2"));
        for port in 3..20 {
            add(&connections, peer(&format!("192.0.2.2:{port}")));
        }
        assert!(slow.is_cut() && slow.gives_way());
        assert!(!known.is_cut() && known.is_known());
    }

    #[test]
    fn one_whose_bytes_are_unread_gives_way_to_no_flood() {
        let connections = OpenConnections::new(100, 4);
        let person = add_unread(&connections, peer("192.0.2.1:1"), Place::Room);
        for port in 2..50 {
            add(&connections, peer(&format!("192.0.2.1:{port}")));
        }
        assert!(!person.is_cut());
        person.note_silence();
        add(&connections, peer("192.0.2.1:50"));
        assert!(person.is_cut());
    }

    #[test]
    fn who_leaves_the_reserve_takes_the_place_of_one_beside_it() {
        let connections = OpenConnections::new(100, 100);
        let on_reserve = add_unread(&connections, peer("192.0.2.1:1"), Place::Reserve);
        on_reserve.note_silence();
        assert!(!connections.make_room_beside_reserve());
        let slow = add(&connections, peer("192.0.2.1:2"));
        let _request = connections.begin_request(peer("192.0.2.1:2"));
        assert!(connections.make_room_beside_reserve());
        assert!(slow.is_cut() && !on_reserve.gives_way());
        assert!(
            connections
                .begin_request(peer("192.0.2.1:1"))
                .is_on_reserve()
        );
        let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        connections.change_room(peer("192.0.2.1:1"), Room::new(Place::Room, permit));
        assert!(
            !connections
                .begin_request(peer("192.0.2.1:1"))
                .is_on_reserve()
        );
    }

    #[test]
    fn what_is_closed_is_forgotten() {
        let connections = OpenConnections::new(1, 100);
        add(&connections, peer("192.0.2.1:1"));
        connections.remove(peer("192.0.2.1:1"));
        assert_eq!(connections.make_room(), None);
        let table = connections.table();
        assert!(table.open.is_empty() && table.idle.is_empty());
    }
}
