//! New versions: edits, and steps that a planner or a reflection writes anew.

use super::life::Life;
use crate::consent_world::{DOCUMENTS, DOINGS, GATED, compile, people, title};
use planwright_core::adjust::{Adjustable, Adjustment, StepProgress};
use planwright_core::plan::{Bounds, Document};
use planwright_core::planning::merge_steps;
use planwright_core::principal::PrincipalKind;
use planwright_core::review::{ReviewCommand, ReviewStage, Revision};
use serde_json::{Value, json};
use std::sync::Arc;

impl Life<'_> {
    pub(super) fn edit(&mut self) {
        // Often the same thing in other words.
        let next = match self.dice.below(3) {
            0 => (self.document + DOINGS) % DOCUMENTS,
            _ => self.dice.below(DOCUMENTS),
        };
        let document = Arc::clone(&self.setting.documents[next]);
        self.revise(next, document);
    }

    /// A planner or a reflection writes the gated step anew, and says nothing of its gate.
    pub(super) fn rewrite(&mut self) {
        let doing = self.document % DOINGS;
        if !GATED.contains(&doing) {
            return;
        }
        let before = Arc::clone(&self.review.current().document);
        let evil = self.dice.below(2);
        let next = self.document - doing + GATED[evil];
        let to = ["ok", "evil"][evil];
        let step = json!({"id": "c", "tool": "s.write", "args": {"to": to}, "critical": false});
        let mut document = match self.dice.below(3) {
            0 => {
                let answer = json!({"title": "anew", "steps": [step]});
                let answer: Document = serde_json::from_value(answer).unwrap();
                merge_steps(&before, &["c".parse().unwrap()], answer).unwrap()
            }
            1 => {
                let replace = json!({"type": "replace", "step": "c", "new": step});
                adjust(&before, replace)
            }
            _ => {
                let modify = json!({"type": "modify", "step": "c", "args": {"to": to}});
                adjust(&before, modify)
            }
        };
        document.title = Some(title(next));
        self.tally.rewritten += 1;
        self.revise(next, Arc::new(document));
    }

    /// Proposes a document that is meant to be `next`.
    pub(super) fn revise(&mut self, next: usize, document: Arc<Document>) {
        let by = self.dice.pick(&people());
        // A program does not bring back what was rejected too often.
        if self.review.stage() == Some(ReviewStage::NeedsReview) && by.kind != PrincipalKind::Person
        {
            return;
        }
        let as_meant = *document == *self.setting.documents[next];
        let plans = match as_meant {
            true => self.setting.plans[next].clone(),
            false => [0, 1].map(|child| Arc::new(compile((*document).clone(), child))),
        };
        let before = (
            std::mem::replace(&mut self.document, next),
            std::mem::replace(&mut self.plans, plans),
            std::mem::replace(&mut self.as_meant, as_meant),
        );
        let digest = self.digest();
        let current = self.review.current().number;
        let is_same = *self.review.current().document == *document;
        let based_on = if self.dice.below(4) == 0 {
            current.wrapping_sub(1)
        } else {
            current
        };
        let command = if self.dice.below(2) == 0 {
            ReviewCommand::Propose {
                document,
                digest,
                by,
            }
        } else {
            let revision = Revision {
                based_on,
                document,
                digest,
                by,
                reason: Some("better".into()),
                restored_from: None,
                planning: None,
            };
            ReviewCommand::Edit(Box::new(revision))
        };
        if !self.give(&command) {
            assert_ne!(
                based_on, current,
                "only an edit of another version is refused"
            );
            (self.document, self.plans, self.as_meant) = before;
        } else if !is_same {
            assert_eq!(self.review.current().number, current + 1);
            let about = self.about();
            self.oracle.proposed(about.0);
            self.oracle.edited(&about);
            self.tally.carried += u64::from(self.review.stage() == Some(ReviewStage::Approved));
        }
    }
}

/// The document after one adjustment, nothing of which has run.
fn adjust(before: &Document, adjustment: Value) -> Document {
    let adjustment: Adjustment = serde_json::from_value(adjustment).unwrap();
    let ids = before.steps.iter().filter_map(|step| step.id.clone());
    let state: Adjustable = ids.map(|id| (id, StepProgress::Open)).collect();
    before
        .apply_adjustments(&[adjustment], &state, &Bounds::default())
        .unwrap()
}
