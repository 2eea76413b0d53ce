//! The DAG as lines of text, one step per line, one block per level.

use super::{Plan, StepIx};
use crate::text::sanitize_line;
use std::fmt::Write as _;

/// The sign in front of a step that says where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Glyph {
    /// Not looked at yet.
    Pending,
    /// Waits for other steps.
    Blocked,
    /// May start.
    Ready,
    /// Waits for an approval.
    AwaitingApproval,
    /// Waits for a person's values.
    AwaitingInput,
    /// A call is in flight.
    Running,
    /// Waits for its next attempt.
    RetryDue,
    /// Completed.
    Completed,
    /// Failed for good.
    Failed,
    /// Denied by a person or a rule.
    Denied,
    /// Left out.
    Skipped,
    /// Cancelled with its run.
    Cancelled,
    /// The outcome of its call was lost.
    OutcomeUnknown,
    /// Taken back.
    Undone,
}

impl Glyph {
    /// All glyphs, in the order of a step's life.
    pub const ALL: [Self; 14] = [
        Self::Pending,
        Self::Blocked,
        Self::Ready,
        Self::AwaitingApproval,
        Self::AwaitingInput,
        Self::Running,
        Self::RetryDue,
        Self::Completed,
        Self::Failed,
        Self::Denied,
        Self::Skipped,
        Self::Cancelled,
        Self::OutcomeUnknown,
        Self::Undone,
    ];

    /// Returns the character of the glyph.
    pub fn as_char(self) -> char {
        match self {
            Self::Pending => '○',
            Self::Blocked => '◌',
            Self::Ready => '◎',
            Self::AwaitingApproval => '◇',
            Self::AwaitingInput => '◈',
            Self::Running => '◉',
            Self::RetryDue => '↻',
            Self::Completed => '●',
            Self::Failed => '✗',
            Self::Denied => '⊗',
            Self::Skipped => '↷',
            Self::Cancelled => '■',
            Self::OutcomeUnknown => '?',
            Self::Undone => '↶',
        }
    }
}

/// Narrow plans line up as if their titles had this many characters; a longer title than the widest
/// pushes its own line only, since nothing of what is approved may be cut off.
const LABEL_WIDTH: (usize, usize) = (38, 64);
const ACTION_WIDTH: (usize, usize) = (0, 40);

/// Draws the plan. `glyph` says where each step stands.
///
/// `∥` marks every member of a level larger than one: each of them may run beside the others.
pub fn render(plan: &Plan, glyph: impl Fn(StepIx) -> Glyph) -> String {
    let label = |ix| {
        let title = plan.step(ix).title.as_deref().unwrap_or_default();
        format!("{}. {}", plan.step_id(ix), sanitize_line(title))
    };
    let action = |ix| format!("[{}]", sanitize_line(plan.step(ix).action_label()));
    let label_width = column(
        plan.indices().map(|ix| label(ix).chars().count()),
        LABEL_WIDTH,
    );
    let action_width = column(
        plan.indices().map(|ix| action(ix).chars().count()),
        ACTION_WIDTH,
    );
    let mut text = String::new();
    for (number, level) in plan.graph().levels().iter().enumerate() {
        if number > 0 {
            text.push('\n');
        }
        for &ix in level {
            let mut line = format!(
                "{} {:label_width$} {:action_width$}",
                glyph(ix).as_char(),
                label(ix),
                action(ix),
            );
            if level.len() > 1 {
                line.push_str("  ∥");
            }
            let after: Vec<&str> = plan
                .graph()
                .dependencies(ix)
                .iter()
                .map(|&d| plan.step_id(d).as_str())
                .collect();
            if !after.is_empty() {
                write!(line, "  ← after: {}", after.join(", "))
                    .expect("writing to a string cannot fail");
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    text
}

/// The width of the widest entry that is not wider than the column may be.
fn column(widths: impl Iterator<Item = usize>, (least, most): (usize, usize)) -> usize {
    widths
        .filter(|&width| width <= most)
        .max()
        .unwrap_or(0)
        .max(least)
}
