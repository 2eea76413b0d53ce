//! A diff as lines of text: `+` for what is new, `-` for what is gone, `~` for what is another one,
//! `!` for a safeguard that is gone or holds back less.

use super::{ChangeKind, FieldChange, PlanDiff, StepChange};
use crate::plan::SafeguardLoss;
use crate::text::{escape_invisible, sanitize_line};
use serde_json::Value;
use std::fmt;

/// One line per change. Nothing is cut off and nothing hides: what a reader cannot see is spelt
/// out.
impl fmt::Display for PlanDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for change in &self.fields {
            field(f, "", change, true)?;
        }
        for step in &self.steps {
            self::step(f, step)?;
        }
        for loss in &self.safeguards {
            writeln!(f, "{}", loss.diff_line())?;
        }
        Ok(())
    }
}

fn step(f: &mut fmt::Formatter<'_>, change: &StepChange) -> fmt::Result {
    let StepChange {
        id,
        kind,
        title,
        action,
        from,
        to,
        moved,
        fields,
        executable: _,
    } = change;
    let sign = match kind {
        ChangeKind::Added => '+',
        ChangeKind::Removed => '-',
        ChangeKind::Changed | ChangeKind::Moved => '~',
    };
    write!(f, "{sign} step {id}")?;
    if let Some(title) = title {
        write!(f, "  {}", escape_invisible(&sanitize_line(title)))?;
    }
    write!(f, "  [{}]", escape_invisible(action))?;
    if let (true, Some(from), Some(to)) = (*moved, from, to) {
        write!(f, "  moved from {from} to {to}")?;
    }
    writeln!(f)?;
    // Of a step that is new or gone all fields are, so that is said once.
    let signs = matches!(kind, ChangeKind::Changed | ChangeKind::Moved);
    let shown = fields
        .iter()
        .filter(|change| signs || change.path != "title" && change.path != "tool");
    shown
        .into_iter()
        .try_for_each(|change| field(f, "    ", change, signs))
}

impl SafeguardLoss {
    /// The line of a diff: what held something back, and does so no longer.
    pub fn diff_line(&self) -> String {
        let values = match (&self.before, &self.after) {
            (Some(before), Some(after)) => format!(" ({} → {})", shown(before), shown(after)),
            (Some(before), None) => format!(" (was {})", shown(before)),
            (None, Some(after)) => format!(" (is {})", shown(after)),
            (None, None) => String::new(),
        };
        format!(
            "! safeguard: {}{values}",
            escape_invisible(&self.to_string())
        )
    }
}

fn field(
    f: &mut fmt::Formatter<'_>,
    indent: &str,
    change: &FieldChange,
    signs: bool,
) -> fmt::Result {
    let FieldChange {
        path,
        before,
        after,
        executable,
    } = change;
    let path = escape_invisible(path);
    let words = if *executable || !signs {
        ""
    } else {
        "  (only words)"
    };
    match (before, after) {
        (Some(before), Some(after)) => {
            writeln!(
                f,
                "{indent}~ {path}: {} → {}{words}",
                shown(before),
                shown(after)
            )
        }
        (None, Some(value)) if signs => writeln!(f, "{indent}+ {path}: {}{words}", shown(value)),
        (Some(value), None) if signs => writeln!(f, "{indent}- {path}: {}{words}", shown(value)),
        (None, Some(value)) | (Some(value), None) => {
            writeln!(f, "{indent}{path}: {}", shown(value))
        }
        (None, None) => Ok(()),
    }
}

/// A value as JSON on one line.
fn shown(value: &Value) -> String {
    escape_invisible(&value.to_string()).into_owned()
}
