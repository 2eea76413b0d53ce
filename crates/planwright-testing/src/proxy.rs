//! A proxy that stands between a program and its database: it breaks connections, also in the middle of a commit, and it
//! lets nothing through, as a network does that is partitioned.

use crate::commits::SentCommits;
use std::collections::{BTreeMap, VecDeque};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Where the connection breaks that sends a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitCut {
    /// The server does not get it.
    Before,
    /// The server gets it, and its answer is lost.
    After,
}

/// A proxy that works until this process ends.
#[derive(Debug, Clone)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    opened: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_closed: bool,
    next_cuts: VecDeque<CommitCut>,
    cuts: usize,
    /// Both ends of each connection, by a number.
    connections: BTreeMap<u64, [TcpStream; 2]>,
    numbered: u64,
}

impl Proxy {
    /// Starts a proxy for a port of this machine.
    pub fn start(upstream: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Self {
            port: listener.local_addr().unwrap().port(),
            shared: Arc::default(),
        };
        let shared = Arc::clone(&proxy.shared);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || shared.join(client, upstream));
            }
        });
        proxy
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Breaks the connection that sends the next commit; called again, also the one after it.
    pub fn cut_next_commit(&self, cut: CommitCut) {
        self.shared.lock().next_cuts.push_back(cut);
    }

    /// Commits that were cut so far.
    pub fn cuts(&self) -> usize {
        self.shared.lock().cuts
    }

    /// Breaks all connections. Returns their number.
    pub fn sever(&self) -> usize {
        let connections = std::mem::take(&mut self.shared.lock().connections);
        for ends in connections.values() {
            drop(ends.each_ref().map(|end| end.shutdown(Shutdown::Both)));
        }
        connections.len()
    }

    /// Lets nothing through: neither end notices anything but silence.
    pub fn close(&self) {
        self.shared.lock().is_closed = true;
    }

    /// Lets everything through again, what was held back first.
    pub fn open(&self) {
        self.shared.lock().is_closed = false;
        self.shared.opened.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something may be let through.
    fn wait_until_open(&self) {
        let mut state = self.lock();
        while state.is_closed {
            let woken = self.opened.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Connects a client with the server. A server that is not there ends the connection.
    fn join(self: Arc<Self>, client: TcpStream, upstream: u16) {
        self.wait_until_open();
        let Ok(server) = TcpStream::connect(("127.0.0.1", upstream)) else {
            return;
        };
        for end in [&client, &server] {
            end.set_nodelay(true).unwrap_or_default();
        }
        let ends = || Some([client.try_clone().ok()?, server.try_clone().ok()?]);
        let (Some(kept), Some([to_client, from_server])) = (ends(), ends()) else {
            return;
        };
        let number = {
            let mut state = self.lock();
            state.numbered += 1;
            let number = state.numbered;
            state.connections.insert(number, kept);
            number
        };
        let answering = Arc::clone(&self);
        std::thread::spawn(move || answering.pump(from_server, to_client, |_| None));
        let mut sent = SentCommits::default();
        self.pump(client, server, |bytes| match sent.read(bytes) {
            true => self.take_cut(),
            false => None,
        });
        self.lock().connections.remove(&number);
    }

    /// The cut for a commit that is sent now.
    fn take_cut(&self) -> Option<CommitCut> {
        let mut state = self.lock();
        let cut = state.next_cuts.pop_front();
        state.cuts += usize::from(cut.is_some());
        cut
    }

    /// Copies until one side ends or the connection is to be cut.
    fn pump(
        &self,
        mut from: TcpStream,
        mut to: TcpStream,
        mut judge: impl FnMut(&[u8]) -> Option<CommitCut>,
    ) {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = from.read(&mut buffer).unwrap_or(0);
            self.wait_until_open();
            let cut = judge(&buffer[..read]);
            if read == 0 || cut == Some(CommitCut::Before) || to.write_all(&buffer[..read]).is_err()
            {
                break;
            }
            if cut == Some(CommitCut::After) {
                // The client hears nothing of what the server answers.
                drop(from.shutdown(Shutdown::Both));
                return;
            }
        }
        drop(from.shutdown(Shutdown::Both));
        drop(to.shutdown(Shutdown::Both));
    }
}
