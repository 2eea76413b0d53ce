//! A terminal with a person at it.

use crate::wait::wait_until;
use crate::workbench::{Bench, Running, with_default_signals};
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest wait for what a command said last.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The width of a terminal, unless a test says otherwise.
const COLUMNS: u16 = 160;

/// A command at a terminal: a person can see its stderr and type.
#[derive(Debug)]
pub struct Terminal {
    running: Running,
    keyboard: std::fs::File,
    screen: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl Terminal {
    pub fn start(bench: &Bench, args: &[&str]) -> Self {
        Self::of(bench.command(args))
    }

    pub fn of(command: Command) -> Self {
        Self::opened(command, false, COLUMNS)
    }

    /// The same in a terminal of this width.
    pub fn narrow(command: Command, columns: u16) -> Self {
        Self::opened(command, false, columns)
    }

    /// A command whose stdout the person sees too: it may move the cursor, and asks where it is.
    pub fn whole(command: Command) -> Self {
        Self::opened(command, true, COLUMNS)
    }

    /// The same as [`Terminal::whole`], in a terminal of this width.
    pub fn wide(command: Command, columns: u16) -> Self {
        Self::opened(command, true, columns)
    }

    fn opened(command: Command, whole: bool, columns: u16) -> Self {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let mut command = with_default_signals(&command);
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = rustix::termios::Winsize {
            ws_row: 40,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&master, size).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave = || {
            std::fs::OpenOptions::new()
                .read(true)
                .write(true)
                .open(&name)
                .unwrap()
        };
        command.stdin(slave()).stderr(slave()).stdout(Stdio::null());
        if whole {
            command.stdout(slave());
        }
        let running = Running::of(command);
        let keyboard = std::fs::File::from(master);
        let screen: Arc<Mutex<String>> = Arc::default();
        let mut reader = keyboard.try_clone().unwrap();
        let seen = Arc::clone(&screen);
        let mut cursor = keyboard.try_clone().unwrap();
        // Ends with the terminal: reading fails once no process holds its other side.
        let reading = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..count]);
                if whole && text.contains("\u{1b}[6n") {
                    // As a terminal does that is asked where its cursor is.
                    drop(cursor.write_all(b"\x1b[1;1R"));
                }
                seen.lock().unwrap().push_str(&text);
            }
        });
        Self {
            running,
            keyboard,
            screen,
            reader: reading,
        }
    }

    pub fn seen(&self) -> String {
        self.screen.lock().unwrap().clone()
    }

    #[track_caller]
    pub fn wait_for(&self, words: &str) {
        wait_until(words, || self.seen().contains(words));
    }

    pub fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    pub fn interrupt(&self) {
        self.running.interrupt();
    }

    /// Returns `true` once the command has ended.
    pub fn is_over(&mut self) -> bool {
        self.running.is_over()
    }

    /// Waits for the command to end and returns its exit code. What it said last is on the screen by
    /// then, unless a process that it left behind holds the terminal open.
    #[track_caller]
    pub fn ends(&mut self) -> Option<i32> {
        wait_until("the command to end", || self.running.is_over());
        let since = Instant::now();
        while !self.reader.is_finished() && since.elapsed() < LAST_WORDS {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.running.exit_code()
    }
}
