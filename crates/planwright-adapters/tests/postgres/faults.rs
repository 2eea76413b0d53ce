//! Servers that restart and connections that break in the middle of a commit.

use crate::databases::{Database, open};
use planwright_adapters::postgres::{Location, PostgresStore};
use planwright_core::journal::{Head, Record, StreamName};
use planwright_core::time::Timestamp;
use planwright_engine::port::{Append, AppendError, Journal as _, LeaseRule, Mailbox as _};
use planwright_testing::postgres::{Server, server};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

fn next(stream: &StreamName, head: Head, body: &str) -> Append {
    let at = Timestamp::from_millis(1);
    let record = Record::after(head, stream, at, 1, None, body.as_bytes().to_vec());
    Append {
        stream: stream.clone(),
        expected: head,
        records: vec![record],
        lease: LeaseRule::None,
        status: None,
        answers: Vec::new(),
        requests: Vec::new(),
        brought: Vec::new(),
        offers: Vec::new(),
    }
}

/// Appends and tries again for as long as the store says that nothing was written, as the engine does.
async fn append(store: &PostgresStore, append: Append) {
    loop {
        match store.append(vec![append.clone()]).await {
            Ok(()) => return,
            Err(AppendError::Store(error)) if error.may_pass() => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_crashes_loses_and_doubles_nothing() {
    let server = Arc::new(Server::start());
    server.create_database("plans");
    let store = Arc::new(open(&server, "plans"));
    let restarting = {
        let server = Arc::clone(&server);
        std::thread::spawn(move || {
            for _ in 0..3 {
                std::thread::sleep(std::time::Duration::from_millis(300));
                server.stop();
                server.resume();
            }
        })
    };
    let writers = (0..4).map(|number| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let stream: StreamName = format!("plan/p{number}").parse().unwrap();
            let mut head = Head::EMPTY;
            let mut written = 0;
            while written < 20 {
                let record = next(&stream, head, &written.to_string());
                head = record.records[0].head();
                append(&store, record).await;
                written += 1;
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
            (stream, head, written)
        })
    });
    let writers: Vec<_> = writers.collect();
    for writer in writers {
        let (stream, head, written) = writer.await.unwrap();
        assert_eq!(store.head(&stream).await.unwrap(), head);
        let records = store.read(&stream, 0, 1000).await.unwrap();
        assert_eq!(records.len(), written);
    }
    restarting.join().unwrap();
}

const PASS: u8 = 0;
const CUT_BEFORE: u8 = 1;
const CUT_AFTER: u8 = 2;

/// Stands between the store and the server, and cuts the connection that sends the next commit.
struct Proxy {
    port: u16,
    mode: Arc<AtomicU8>,
    cuts: Arc<AtomicUsize>,
}

impl Proxy {
    fn start(upstream: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Self {
            port: listener.local_addr().unwrap().port(),
            mode: Arc::default(),
            cuts: Arc::default(),
        };
        let mode = Arc::clone(&proxy.mode);
        let cuts = Arc::clone(&proxy.cuts);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(("127.0.0.1", upstream)).unwrap();
                let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || pump(back.0, back.1, |_| Cut::No));
                let mode = Arc::clone(&mode);
                let cuts = Arc::clone(&cuts);
                std::thread::spawn(move || {
                    pump(client, server, move |bytes| {
                        if !bytes.windows(7).any(|part| part == b"COMMIT\0") {
                            return Cut::No;
                        }
                        let cut = match mode.swap(PASS, Ordering::SeqCst) {
                            CUT_BEFORE => Cut::Before,
                            CUT_AFTER => Cut::After,
                            _ => return Cut::No,
                        };
                        cuts.fetch_add(1, Ordering::SeqCst);
                        cut
                    });
                });
            }
        });
        proxy
    }

    fn cut_next(&self, mode: u8) {
        self.mode.store(mode, Ordering::SeqCst);
    }
}

enum Cut {
    No,
    Before,
    After,
}

/// Copies until one side ends or the connection is to be cut.
fn pump(mut from: TcpStream, mut to: TcpStream, mut judge: impl FnMut(&[u8]) -> Cut) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut buffer).unwrap_or(0);
        let cut = judge(&buffer[..read]);
        let is_last = read == 0 || matches!(cut, Cut::Before);
        if is_last || to.write_all(&buffer[..read]).is_err() {
            break;
        }
        if matches!(cut, Cut::After) {
            // The client hears nothing of what the server answers.
            drop(from.shutdown(Shutdown::Both));
            return;
        }
    }
    drop(from.shutdown(Shutdown::Both));
    drop(to.shutdown(Shutdown::Both));
}

fn through(proxy: &Proxy, database: &Database) -> PostgresStore {
    let port = server().port();
    let url = database
        .url()
        .replace(&format!(":{port}/"), &format!(":{}/", proxy.port));
    PostgresStore::open(Location::parse(&url, None).unwrap(), true).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_outcome_of_an_interrupted_commit_is_looked_up() {
    let database = Database::new();
    let proxy = Proxy::start(server().port());
    let store = through(&proxy, &database);
    let stream: StreamName = "plan/p".parse().unwrap();
    let mut head = Head::EMPTY;
    for turn in 0..10 {
        proxy.cut_next(if turn % 2 == 0 { CUT_AFTER } else { CUT_BEFORE });
        let record = next(&stream, head, &turn.to_string());
        head = record.records[0].head();
        // Once: what was committed is not taken for a conflict, and what was not is written again.
        store.append(vec![record]).await.unwrap();
        assert_eq!(
            proxy.cuts.load(Ordering::SeqCst),
            turn + 1,
            "nothing was cut"
        );
    }
    let records = store.read(&stream, 0, 100).await.unwrap();
    assert_eq!(records.len(), 10);
    assert_eq!(store.head(&stream).await.unwrap(), head);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_sent_once_though_the_connection_breaks() {
    let database = Database::new();
    let proxy = Proxy::start(server().port());
    let store = through(&proxy, &database);
    let run = "r".parse().unwrap();
    for mode in [CUT_AFTER, CUT_BEFORE, CUT_AFTER] {
        proxy.cut_next(mode);
        store.send(&run, b"pause".to_vec()).await.unwrap();
    }
    assert_eq!(proxy.cuts.load(Ordering::SeqCst), 3);
    assert_eq!(store.messages(&run).await.unwrap().len(), 3);
}
