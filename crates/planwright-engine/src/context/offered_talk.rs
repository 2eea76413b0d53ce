//! What a worker and the owner of a run say to each other while a call goes on, as JSON: how far it is, what its server logs,
//! what its tool asks a person and what that person replies. No value of a secret that either knows is in it.

use crate::port::{LogLevel, LoggedLine, Progress};
use planwright_core::run::{Asked, Reply};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Letters of a message or a line that are passed on.
const MAX_TEXT: usize = 1_000;
/// Lines that are passed on at once. With more, the oldest are left out.
const MAX_LINES: usize = 20;
/// Questions whose JSON is longer are not passed on; the core refuses them in any case.
const MAX_QUESTION: usize = 1 << 20;

/// The latest of what a call said. The newest progress wins; lines are numbered, so that none is told twice.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToldOfCall {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    progress: Option<ToldProgress>,
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    lines: VecDeque<ToldLine>,
    /// Lines so far, with those that were left out.
    #[serde(default)]
    count: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ToldProgress {
    done: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    total: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ToldLine {
    number: u64,
    level: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    logger: Option<String>,
    text: String,
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

impl ToldOfCall {
    pub(crate) fn note_progress(&mut self, progress: &Progress) {
        // What is no number is no JSON either.
        let finite = |number: f64| number.is_finite().then_some(number);
        self.progress = Some(ToldProgress {
            done: finite(progress.done).unwrap_or_default(),
            total: progress.total.and_then(finite),
            message: progress.message.as_deref().map(cut),
        });
    }

    pub(crate) fn note_line(&mut self, line: &LoggedLine) {
        self.count += 1;
        if self.lines.len() >= MAX_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(ToldLine {
            number: self.count,
            level: line.level.as_str().to_owned(),
            logger: line.logger.as_deref().map(cut),
            text: cut(&line.text),
        });
    }

    pub(crate) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("what is told of a call is JSON")
    }

    /// Reads what a worker wrote. What cannot be read says nothing.
    pub(crate) fn from_json(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    pub(crate) fn progress(&self) -> Option<Progress> {
        let ToldProgress {
            done,
            total,
            message,
        } = self.progress.clone()?;
        Some(Progress {
            done,
            total,
            message,
        })
    }

    /// The lines behind the first `heard`, and how many there are by now.
    pub(crate) fn lines_after(&self, heard: u64) -> (Vec<LoggedLine>, u64) {
        let new = self.lines.iter().filter(|line| line.number > heard);
        let lines = new.take(MAX_LINES).map(|line| LoggedLine {
            level: LogLevel::from_word(&line.level).unwrap_or(LogLevel::Info),
            logger: line.logger.clone(),
            text: cut(&line.text),
        });
        (lines.collect(), heard.max(self.count))
    }
}

/// Writes down a masked question; `None` if it is too long to be asked.
pub(crate) fn encode_question(asked: &Asked) -> Option<Vec<u8>> {
    let bytes = serde_json::to_vec(asked).ok()?;
    (bytes.len() <= MAX_QUESTION).then_some(bytes)
}

pub(crate) fn decode_question(bytes: &[u8]) -> Option<Asked> {
    serde_json::from_slice(bytes).ok()
}

/// Writes down the replies of a person, or that there will be none.
pub(crate) fn encode_replies(replies: Option<&[Reply]>) -> Vec<u8> {
    serde_json::to_vec(&replies).expect("replies are JSON")
}

/// Reads replies. What cannot be read is no reply.
pub(crate) fn decode_replies(bytes: &[u8]) -> Option<Vec<Reply>> {
    serde_json::from_slice(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> LoggedLine {
        LoggedLine {
            level: LogLevel::Warning,
            logger: None,
            text: text.to_owned(),
        }
    }

    #[test]
    fn the_newest_progress_wins_and_no_line_is_told_twice() {
        let mut told = ToldOfCall::default();
        for done in [1.0, 2.0, f64::NAN, 3.0] {
            told.note_progress(&Progress {
                done,
                total: Some(4.0),
                message: Some("x".repeat(5_000)),
            });
        }
        (0..50).for_each(|number| told.note_line(&line(&number.to_string())));
        let read = ToldOfCall::from_json(&told.to_json());
        assert_eq!(read, told);
        let progress = read.progress().unwrap();
        assert_eq!(progress.percent(), Some(75.0));
        assert_eq!(progress.message.map(|text| text.len()), Some(MAX_TEXT));
        let (lines, heard) = read.lines_after(48);
        assert_eq!(lines, [line("48"), line("49")]);
        assert_eq!(read.lines_after(heard), (Vec::new(), 50));
        assert_eq!(read.lines_after(0).0.len(), MAX_LINES);
        assert!(told.to_json().len() < 32 << 10, "it is bounded");
    }

    #[test]
    fn what_cannot_be_read_says_nothing() {
        assert_eq!(ToldOfCall::from_json(b"{"), ToldOfCall::default());
        assert_eq!(decode_replies(b"7"), None);
        assert_eq!(decode_replies(&encode_replies(None)), None);
        assert_eq!(decode_replies(&encode_replies(Some(&[]))), Some(Vec::new()));
    }
}
