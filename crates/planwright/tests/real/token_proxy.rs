//! A door in front of a service for programs that cannot be given a token.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;

/// Passes every request on with a token. It listens until the test ends.
pub(crate) struct TokenProxy {
    port: u16,
}

struct Target {
    /// The ports that clients and the service know.
    seen: u16,
    served: u16,
    token: String,
}

impl TokenProxy {
    /// A proxy for the service at this address.
    pub(crate) fn start(url: &str, token: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let served = url.rsplit(':').next().unwrap().parse().unwrap();
        let target = Arc::new(Target {
            seen: port,
            served,
            token: token.to_owned(),
        });
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let target = Arc::clone(&target);
                std::thread::spawn(move || drop(target.pass_on(client)));
            }
        });
        Self { port }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

impl Target {
    /// One request per connection, so that each one is seen.
    fn pass_on(&self, mut client: TcpStream) -> std::io::Result<()> {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte)? == 1 {
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let mut lines: Vec<String> = head.trim_end().split("\r\n").map(str::to_owned).collect();
        lines.retain(|line| !line.to_ascii_lowercase().starts_with("connection:"));
        for line in &mut lines {
            let name = line.to_ascii_lowercase();
            // A service answers to its own port; names that are not its own stay.
            if name.starts_with("host:") || name.starts_with("origin:") {
                *line = line.replace(&format!(":{}", self.seen), &format!(":{}", self.served));
            }
        }
        lines.push("Connection: close".to_owned());
        lines.push(format!("Authorization: Bearer {}", self.token));
        let mut service = TcpStream::connect(("127.0.0.1", self.served))?;
        service.write_all(format!("{}\r\n\r\n", lines.join("\r\n")).as_bytes())?;
        let mut from = client.try_clone()?;
        let mut to = service.try_clone()?;
        std::thread::spawn(move || {
            drop(std::io::copy(&mut from, &mut to));
            // The client has gone, and closing its stream may be its way to cancel.
            drop(to.shutdown(Shutdown::Both));
        });
        drop(std::io::copy(&mut service, &mut client));
        client.shutdown(Shutdown::Both)
    }
}
