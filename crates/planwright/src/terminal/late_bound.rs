//! What the approver says about arguments that are only known later: `--late`, or asked on the
//! terminal.

use crate::exit::Failure;
use crate::terminal::approval_prompt::read_answer;
use crate::terminal::printer::{Printer, line};
use planwright_core::plan::Plan;
use planwright_core::policy::{JudgedPlan, LateChoice, Verdict};
use std::collections::BTreeMap;

/// How often a choice that cannot be read is asked for again.
const TRIES: usize = 3;

#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct LateFlags {
    /// What holds for arguments that are only known later: `any`, `ask` (see the call first), or
    /// for one step also a CEL predicate over its arguments, as in `--late
    /// 'send=args.to.endsWith("@example.org")'`.
    #[arg(long = "late", value_name = "[STEP=]any|ask|CEL")]
    late: Vec<String>,
}

/// The flags, read: a choice for all steps and choices for single ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct LateChoices {
    all: Option<LateChoice>,
    steps: BTreeMap<String, LateChoice>,
}

impl LateFlags {
    pub(crate) fn read(&self) -> Result<LateChoices, Failure> {
        let mut choices = LateChoices::default();
        for flag in &self.late {
            match flag.as_str() {
                "any" => choices.all = Some(LateChoice::Any),
                "ask" => choices.all = Some(LateChoice::Ask),
                _ => {
                    let Some((step, choice)) =
                        flag.split_once('=').filter(|(step, _)| is_step(step))
                    else {
                        return Err(Failure::usage(format!(
                            "`--late {flag}` is not STEP=any, STEP=ask or STEP=CEL"
                        ))
                        .hint("for all steps at once: --late any or --late ask"));
                    };
                    let choice = choice
                        .parse()
                        .map_err(|error| Failure::usage(format!("--late {step}: {error}")))?;
                    choices.steps.insert(step.to_owned(), choice);
                }
            }
        }
        Ok(choices)
    }
}

/// Returns whether this can be the id of a step, and not the beginning of an expression.
fn is_step(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
}

impl LateChoices {
    /// The choices that were made, for every step they are about.
    pub(crate) fn choices_for(&self, judged: &JudgedPlan) -> BTreeMap<String, LateChoice> {
        let mut chosen = BTreeMap::new();
        if let Some(all) = &self.all {
            for step in judged.steps.iter().filter(|step| !step.late.is_empty()) {
                chosen.insert(step.step.to_string(), all.clone());
            }
        }
        chosen.extend(self.steps.clone());
        chosen
    }

    /// The choices that were made, and those a person at the terminal makes for the other steps.
    pub(crate) fn ask(
        &self,
        printer: Printer,
        (plan, judged): (&Plan, &JudgedPlan),
        default: &LateChoice,
    ) -> Result<BTreeMap<String, LateChoice>, Failure> {
        let mut chosen = self.choices_for(judged);
        for step in judged
            .steps
            .iter()
            .filter(|step| step.judgement.verdict == Verdict::Ask)
        {
            let id = step.step.to_string();
            if step.late.is_empty() || chosen.contains_key(&id) {
                continue;
            }
            let late: Vec<String> = step.late.iter().map(|name| line(name)).collect();
            let question = format!(
                "Step {id}: {} only known later. Type any, ask (see the call first) or a CEL constraint [{default}]",
                late.join(", ")
            );
            let fits = |choice: &LateChoice| {
                judged.check_choices(plan, &BTreeMap::from([(id.clone(), choice.clone())]))
            };
            let choice = ask_choice(printer, &question, default, fits)?;
            chosen.insert(id, choice);
        }
        Ok(chosen)
    }
}

fn ask_choice(
    printer: Printer,
    question: &str,
    default: &LateChoice,
    fits: impl Fn(&LateChoice) -> Result<(), String>,
) -> Result<LateChoice, Failure> {
    for _ in 0..TRIES {
        let answer = read_answer(printer, question)?;
        match answer.trim() {
            "" => return Ok(default.clone()),
            text => match text
                .parse::<LateChoice>()
                .map_err(|error| error.to_string())
            {
                Ok(choice) => match fits(&choice) {
                    Ok(()) => return Ok(choice),
                    Err(problem) => printer.talk(&line(&problem)),
                },
                Err(problem) => printer.talk(&line(&problem)),
            },
        }
    }
    Err(Failure::refused("not approved: no clear choice"))
}
