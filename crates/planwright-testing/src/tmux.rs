//! A terminal that was written elsewhere: it keeps the screen, so that a test sees what a person would.

use crate::wait::wait_until;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A command on the screen of tmux.
#[derive(Debug)]
pub struct Tmux {
    directory: TempDir,
}

impl Tmux {
    /// Starts a command on a screen of this size.
    pub fn start(command: &Command, (columns, rows): (u16, u16)) -> Self {
        let tmux = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        let columns = columns.to_string();
        let rows = rows.to_string();
        let folder = command
            .get_current_dir()
            .map(PathBuf::from)
            .unwrap_or_default();
        let line = shell_line(command);
        let folder = folder.to_str().unwrap();
        tmux.tell(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &rows,
            "-c",
            folder,
            &line,
            ";",
            "set-option",
            "-g",
            "remain-on-exit",
            "on",
            ";",
            "set-option",
            "-sg",
            "escape-time",
            "10",
        ]);
        tmux
    }

    /// What is on the screen now.
    pub fn screen(&self) -> String {
        let said = self.tell(&["capture-pane", "-p"]);
        String::from_utf8(said.stdout).unwrap()
    }

    /// Waits until these words are on the screen.
    #[track_caller]
    pub fn wait_for(&self, words: &str) -> String {
        wait_until(&format!("{words:?} on the screen"), || {
            self.screen().contains(words)
        });
        self.screen()
    }

    /// Returns whether the command has ended.
    pub fn has_ended(&self) -> bool {
        let said = self.tell(&["display-message", "-p", "#{pane_dead}"]);
        said.stdout.starts_with(b"1")
    }

    /// Presses keys by their names: `Enter`, `Escape`, `Down`, `C-c`, or a character.
    pub fn press(&self, keys: &[&str]) {
        self.tell(&[&["send-keys"], keys].concat());
    }

    /// Types a text.
    pub fn types(&self, text: &str) {
        self.tell(&["send-keys", "-l", text]);
    }

    /// Makes the screen larger or smaller.
    pub fn resize(&self, (columns, rows): (u16, u16)) {
        let columns = columns.to_string();
        let rows = rows.to_string();
        self.tell(&["resize-window", "-x", &columns, "-y", &rows]);
    }

    fn tell(&self, args: &[&str]) -> Output {
        let said = self.command(args).output();
        let said = said.expect("the tests of the full screen need tmux");
        assert!(said.status.success(), "tmux {args:?}: {said:?}");
        said
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command
            .arg("-S")
            .arg(self.directory.path().join("socket"))
            .args(args)
            .env_clear()
            .env("PATH", "/usr/bin:/bin:/usr/local/bin")
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .env("HOME", self.directory.path());
        command
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // It may have ended with its command.
        drop(self.command(&["kill-server"]).output());
    }
}

/// The command as a shell takes it, with its environment and no other.
fn shell_line(command: &Command) -> String {
    let mut words = vec!["exec env -i TERM=screen-256color LC_ALL=C.UTF-8".to_owned()];
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            let name = name.to_str().unwrap();
            words.push(quoted(OsStr::new(&format!(
                "{name}={}",
                value.to_str().unwrap()
            ))));
        }
    }
    words.push(quoted(command.get_program()));
    words.extend(command.get_args().map(quoted));
    words.join(" ")
}

fn quoted(word: &OsStr) -> String {
    format!("'{}'", word.to_str().unwrap().replace('\'', r"'\''"))
}
