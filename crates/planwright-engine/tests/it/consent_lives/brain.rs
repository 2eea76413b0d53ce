//! A model without sense: it wants calls, finds fault and plans anew as the dice fall.

use super::author::{WORDS, args, good_args};
use super::stage::Stage;
use planwright_core::model::{ModelRole, ModelUse, TokenUsage, WantedCall};
use planwright_engine::memory::ScriptedModel;
use planwright_engine::port::{BoxFuture, Model, ModelAnswer, ModelError, ModelInfo, ModelRequest};
use planwright_testing::dice::Dice;
use serde_json::{Value, json};
use std::time::Duration;

/// Names that an executor may come up with. Some are in scope, some outside of it, some are no
/// tools.
const NAMES: [&str; 8] = [
    "r.read", "r.look", "r.look", "w.write", "w.write", "w.erase", "read", "made.up",
];

impl Model for Stage {
    fn models(&self) -> Vec<ModelInfo> {
        ScriptedModel::default().models()
    }

    fn resolve(&self, role: ModelRole, _: Option<&str>) -> Result<ModelInfo, ModelError> {
        ScriptedModel::default().resolve(role, None)
    }

    fn ask(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        let answered = match request.role {
            ModelRole::Executor | ModelRole::Chat => self.work(),
            ModelRole::Reflector => Some((self.reflect(), Vec::new())),
            ModelRole::Planner => Some((self.dice(replanned).to_string(), Vec::new())),
        };
        self.perhaps_flip(8);
        let usage = TokenUsage {
            input: 1,
            output: 1,
            ..TokenUsage::default()
        };
        let used = ModelUse {
            role: request.role,
            model: ScriptedModel::NAME.to_owned(),
            usage,
            cost: None,
        };
        let answer = answered.map(|(text, calls)| ModelAnswer {
            text,
            calls,
            used,
            cut: false,
        });
        let down = || ModelError::Unavailable {
            model: ScriptedModel::NAME.to_owned(),
            message: "down".to_owned(),
        };
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            answer.ok_or_else(down)
        })
    }
}

impl Stage {
    /// What an executor says or wants; nothing if it cannot be asked.
    fn work(&self) -> Option<(String, Vec<WantedCall>)> {
        if self.dice(|dice| dice.chance(3)) {
            return None;
        }
        let count = self.dice(|dice| dice.pick(&[0, 1, 1, 1, 2, 2]));
        let calls: Vec<WantedCall> = (0..count).map(|_| self.want()).collect();
        let text = if calls.is_empty() {
            self.dice(|dice| dice.pick(&WORDS))
        } else {
            ""
        };
        Some((text.to_owned(), calls))
    }

    /// A call that an executor wants. It is remembered: what it did not want may not be called in
    /// its name.
    pub(super) fn want(&self) -> WantedCall {
        let (name, args) = self.dice(|dice| (dice.pick(&NAMES).to_owned(), args(dice)));
        self.remember(&name, &args);
        WantedCall {
            id: "c".to_owned(),
            name,
            args,
        }
    }

    fn reflect(&self) -> String {
        let steps = self.current_steps();
        self.dice(|dice| {
            if dice.chance(20) {
                let word = dice.pick(&["on_track", "complete", "failed", "off_track", "splendid"]);
                return json!({"assessment": word, "reasoning": "so it is", "adjustments": []})
                    .to_string();
            }
            let adjustments = adjusted(dice, &steps);
            json!({"assessment": "needs_adjustment", "reasoning": "so", "adjustments": adjustments})
                .to_string()
        })
    }
}

/// A change of the plan: mostly of the step that fails, and sometimes of one that cannot be
/// changed.
fn adjusted(dice: &mut Dice, steps: &[Value]) -> Value {
    let ids: Vec<String> = steps
        .iter()
        .filter_map(|step| step["id"].as_str())
        .map(str::to_owned)
        .collect();
    let other = dice.pick(&ids);
    let step = if dice.chance(75) {
        "b".to_owned()
    } else {
        other.clone()
    };
    let retry = json!({"type": "retry", "step": step, "args": good_args(dice)});
    let new = new_step(dice);
    match dice.below(8) {
        0 => json!([{"type": "retry", "step": step}]),
        1 => json!([{"type": "skip", "step": step, "reason": "not needed"}]),
        2 => json!([{"type": "add_before", "step": step, "new": new}, retry]),
        3 => json!([{"type": "add_after", "step": step, "new": new}, retry]),
        4 => json!([{"type": "replace", "step": step, "new": new}]),
        5 => json!([{"type": "modify", "step": other, "args": good_args(dice)}, retry]),
        _ => json!([retry]),
    }
}

fn new_step(dice: &mut Dice) -> Value {
    let word = dice.pick(&WORDS);
    dice.pick(&[
        json!({"tool": "r.read", "args": {"value": word}}),
        json!({"tool": "r.look", "args": {"of": word}}),
        json!({"tool": "r.look", "args": {"of": "${a}"}}),
        json!({"tool": "w.write", "args": {"to": word}}),
        json!({"tool": "w.write", "args": {"to": "${a}"}}),
        json!({"tool": "w.erase", "args": {}}),
        json!({"agent": {"instruction": "see to it"}}),
    ])
}

/// The rest of a plan, written anew.
fn replanned(dice: &mut Dice) -> Value {
    let steps: Vec<Value> = (0..1 + dice.below(2))
        .map(|number| {
            let mut step = new_step(dice);
            step["id"] = json!(format!("n{number}"));
            step["dependsOn"] = json!([]);
            step
        })
        .collect();
    json!({"title": "Another way", "steps": steps})
}
