//! The full screen: taken, given back for a while, and given back for good, also when the program fails.

use crate::exit::{Exit, Failure};
use crate::telemetry::stderr;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use std::io::{self, Stdout};

/// The screen while it is ours.
#[derive(Debug)]
pub(super) struct FullScreen {
    pub(super) terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl FullScreen {
    pub(super) fn enter() -> Result<Self, Failure> {
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout())).map_err(not_drawn)?;
        let screen = Self { terminal };
        take_screen().map_err(not_drawn)?;
        Ok(screen)
    }

    /// Gives the ordinary screen back for a while.
    pub(super) fn leave_for_a_while(&mut self) {
        give_screen_back();
    }

    pub(super) fn return_to_it(&mut self) -> Result<(), Failure> {
        take_screen()
            .and_then(|()| self.terminal.clear())
            .map_err(not_drawn)
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        give_screen_back();
    }
}

fn take_screen() -> io::Result<()> {
    enable_raw_mode()?;
    // What other parts say would be painted over.
    stderr::hold_back();
    execute!(io::stdout(), EnterAlternateScreen)
}

/// Nothing can be done about a terminal that does not take it.
fn give_screen_back() {
    drop(execute!(io::stdout(), LeaveAlternateScreen, Show));
    drop(disable_raw_mode());
    stderr::release();
}

pub(super) fn not_drawn(error: io::Error) -> Failure {
    Failure::new(
        Exit::RunFailed,
        format!("cannot draw on the terminal: {error}"),
    )
}
