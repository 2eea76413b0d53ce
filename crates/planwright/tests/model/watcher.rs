//! Stands between the program and the model and sees how requests are answered.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

/// Passes everything on, byte by byte.
#[derive(Debug)]
pub(crate) struct Watcher {
    pub(crate) port: u16,
    refused: Arc<AtomicUsize>,
    arrived: mpsc::Receiver<()>,
}

impl Watcher {
    pub(crate) fn before(model: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (told, arrived) = mpsc::channel();
        let refused = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&refused);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                pass_on(client, model, told.clone(), Arc::clone(&counted));
            }
        });
        Self {
            port,
            refused,
            arrived,
        }
    }

    /// Waits until the program has asked something.
    pub(crate) fn wait_for_request(&self) {
        self.arrived
            .recv_timeout(std::time::Duration::from_secs(60))
            .expect("the program asks the model");
    }

    /// How often the model said that it is not ready.
    pub(crate) fn refused(&self) -> usize {
        self.refused.load(Ordering::SeqCst)
    }
}

fn pass_on(client: TcpStream, model: u16, told: mpsc::Sender<()>, refused: Arc<AtomicUsize>) {
    // The model does not listen yet, or not any more: the client sees its connection end.
    let Ok(server) = TcpStream::connect(("127.0.0.1", model)) else {
        return;
    };
    let from_client = client.try_clone().unwrap();
    let to_client = client;
    let from_server = server.try_clone().unwrap();
    let to_server = server;
    std::thread::spawn(move || copy(from_client, to_server, |_| told.send(()).unwrap_or(())));
    std::thread::spawn(move || {
        copy(from_server, to_client, |bytes| {
            if bytes.starts_with(b"HTTP/1.1 503") {
                refused.fetch_add(1, Ordering::SeqCst);
            }
        });
    });
}

fn copy(mut from: TcpStream, mut to: TcpStream, seen: impl Fn(&[u8])) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        seen(&buffer[..count]);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    // The other side may have closed it first.
    drop(to.shutdown(std::net::Shutdown::Write));
}
