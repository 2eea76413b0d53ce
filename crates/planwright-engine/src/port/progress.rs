//! What is told of a call while it goes on. Untrusted, never journaled, and gone when the call is
//! over.

use std::fmt;
use std::sync::Arc;

/// The progress of a call, as its tool says.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Work done so far, in the unit of the tool.
    pub done: f64,
    /// All of the work in the same unit, if the tool knows it.
    pub total: Option<f64>,
    /// The tool's own words.
    pub message: Option<String>,
}

impl Progress {
    /// The part of the work that is done, from 0 to 100, if the tool knows all of it.
    pub fn percent(&self) -> Option<f64> {
        let total = self.total.filter(|total| *total > 0.0)?;
        Some((self.done / total * 100.0).clamp(0.0, 100.0))
    }
}

/// The weight of a line of a log, in the words of syslog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Details for those who wrote the server.
    Debug,
    /// What goes as usual.
    Info,
    /// What is worth noticing.
    Notice,
    /// What may go wrong.
    Warning,
    /// What went wrong.
    Error,
    /// A part of the server failed.
    Critical,
    /// A person has to act at once.
    Alert,
    /// The server cannot be used.
    Emergency,
}

impl LogLevel {
    /// Every level, the one that matters least first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The word for it, which is the protocol's.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// The level of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == word)
    }
}

/// A line that a server wrote to its log during a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedLine {
    /// Its weight, as the server says.
    pub level: LogLevel,
    /// The part of the server that wrote it.
    pub logger: Option<String>,
    /// The server's own words.
    pub text: String,
}

/// Takes what is told of one call. It never waits.
#[derive(Clone)]
pub struct ProgressSink {
    progress: Arc<dyn Fn(Progress) + Send + Sync>,
    log: Arc<dyn Fn(LoggedLine) + Send + Sync>,
}

impl ProgressSink {
    /// Makes a sink of a function that returns at once. Lines of logs are not wanted.
    pub fn new(sink: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self {
            progress: Arc::new(sink),
            log: Arc::new(|_| {}),
        }
    }

    /// Takes lines of logs as well.
    #[must_use]
    pub fn with_log(self, log: impl Fn(LoggedLine) + Send + Sync + 'static) -> Self {
        Self {
            log: Arc::new(log),
            ..self
        }
    }

    /// A sink that tells both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let logs = (Arc::clone(&self.log), Arc::clone(&other.log));
        Self::new(move |progress| {
            self.report(progress.clone());
            other.report(progress);
        })
        .with_log(move |line| {
            (logs.0)(line.clone());
            (logs.1)(line);
        })
    }

    /// Passes on the progress.
    pub fn report(&self, progress: Progress) {
        (self.progress)(progress);
    }

    /// Passes on a line of a log.
    pub fn report_log(&self, line: LoggedLine) {
        (self.log)(line);
    }
}

impl Default for ProgressSink {
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl fmt::Debug for ProgressSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgressSink")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_known_where_the_whole_is() {
        let at = |done, total| {
            let progress = Progress {
                done,
                total,
                message: None,
            };
            progress.percent()
        };
        assert_eq!(at(1.0, Some(4.0)), Some(25.0));
        assert_eq!(at(9.0, Some(4.0)), Some(100.0));
        assert_eq!(at(-1.0, Some(4.0)), Some(0.0));
        assert_eq!(at(1.0, Some(0.0)), None);
        assert_eq!(at(1.0, None), None);
    }
}
