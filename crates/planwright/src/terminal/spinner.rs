//! A line that moves while something takes time, drawn on terminals only.

use crate::terminal::printer::Printer;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// Spins until it is dropped. Draws nothing when stderr is not a terminal.
#[derive(Debug)]
pub(crate) struct Spinner(Option<ProgressBar>);

impl Spinner {
    pub(crate) fn begin(printer: Printer, message: &str) -> Self {
        Self(printer.is_live().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            start_spinning(&bar, message);
            bar
        }))
    }

    /// The line itself, if there is one.
    pub(crate) fn bar(&self) -> Option<&ProgressBar> {
        self.0.as_ref()
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// Makes this bar turn, with a message and the time it takes.
pub(crate) fn start_spinning(bar: &ProgressBar, message: &str) {
    let style = ProgressStyle::with_template("{spinner} {msg}  {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.set_message(message.to_owned());
    bar.enable_steady_tick(Duration::from_millis(100));
}
