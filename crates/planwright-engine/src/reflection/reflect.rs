//! Asking the reflector how a run stands.

use super::Looked;
use crate::port::ModelRequest;
use crate::run::runs::Runs;
use crate::run::undo::load_any_run;
use planwright_core::adjust::{
    Adjustment, EarlierReflection, Reflected, ReflectionRequest, reflection_messages,
    reflection_schema,
};
use planwright_core::model::{Message, ModelRole, ModelUse, OfferedTool};
use planwright_core::planning::REFLECT;
use planwright_core::run::Run;
use tokio_util::sync::CancellationToken;

/// The number of times the model is asked to say it again in a way that can be used.
const ROUNDS: usize = 2;

/// The number of earlier looks at the same work that the model is told about.
const MAX_EARLIER: usize = 10;

/// Letters of an answer that the model is shown again.
const MAX_REPEATED: usize = 8_000;

impl Runs {
    /// Asks how the run stands. Something definite comes of it in every case; nothing is changed.
    pub(crate) async fn ask_how_it_stands(self, run: Run, cancelled: CancellationToken) -> Looked {
        let instructions = match self.context.settings.prompts.fill_prompt(&REFLECT, &[]) {
            Ok(instructions) => instructions,
            Err(error) => {
                let reflected =
                    Reflected::unknown(format!("the model could not be asked: {error}"));
                return Looked::Reflected {
                    reflected,
                    used: Vec::new(),
                    problem: None,
                };
            }
        };
        let tools = self.tools_for_adjusting(&run);
        let request = ReflectionRequest {
            instructions,
            earlier: self.earlier_reflections(&run).await,
            remaining: remaining(&run),
            snapshot: self.context.ports.surroundings.look().await,
            tools,
        };
        let mut messages = reflection_messages(&run, &request);
        let schema = reflection_schema(&run, &request.tools);
        let mut used: Vec<ModelUse> = Vec::new();
        let mut problem = String::new();
        for _ in 0..ROUNDS {
            let mut asked = ModelRequest::new(ModelRole::Reflector, messages.clone());
            asked.schema = Some(schema.clone());
            asked.cancelled = cancelled.clone();
            let answer = match self.context.ports.model.ask(asked).await {
                Ok(answer) => answer,
                Err(error) => {
                    let reflected =
                        Reflected::unknown(format!("the model could not be asked: {error}"));
                    return Looked::Reflected {
                        reflected,
                        used,
                        problem: None,
                    };
                }
            };
            used.push(answer.used);
            if answer.cut {
                problem = "the answer was cut off".to_owned();
            } else {
                match Reflected::read(&answer.text, &self.context.settings.bounds) {
                    Ok(reflected) => {
                        match self.check_adjustments(&run, &reflected.adjustments).await {
                            Ok(()) => {
                                return Looked::Reflected {
                                    reflected,
                                    used,
                                    problem: None,
                                };
                            }
                            Err(why) if used.len() == ROUNDS => {
                                return Looked::Reflected {
                                    reflected,
                                    used,
                                    problem: Some(why),
                                };
                            }
                            Err(why) => problem = why,
                        }
                    }
                    Err(why) => problem = why,
                }
            }
            let repeated: String = answer.text.chars().take(MAX_REPEATED).collect();
            messages.truncate(2);
            messages.push(Message::assistant(repeated));
            messages.push(Message::user(format!(
                "That cannot be used: {problem}\nAnswer again, with the JSON object only."
            )));
        }
        let reflected = Reflected::unknown(format!("the answer cannot be used: {problem}"));
        Looked::Reflected {
            reflected,
            used,
            problem: None,
        }
    }

    /// Returns whether the plan that these adjustments lead to can run.
    async fn check_adjustments(&self, run: &Run, adjustments: &[Adjustment]) -> Result<(), String> {
        if adjustments.is_empty() {
            return Ok(());
        }
        let state = run.reflection().adjustable();
        let adjusted = run.plan().document().apply_adjustments(
            adjustments,
            &state,
            &self.context.settings.bounds,
        );
        let document = adjusted.map_err(|error| error.to_string())?;
        self.check_next(document).await
    }

    /// The tools that adjustments may call: those of the plan's scope, less what policy forbids.
    fn tools_for_adjusting(&self, run: &Run) -> Vec<OfferedTool> {
        self.planner()
            .tools_in_scope(&[], run.plan().document())
            .iter()
            .map(|tool| OfferedTool {
                name: tool.name.to_string(),
                description: tool.definition.description.clone().unwrap_or_default(),
                schema: tool.definition.input_schema.clone(),
            })
            .collect()
    }

    /// What was said before about the same work, oldest first. What cannot be read is left out.
    async fn earlier_reflections(&self, run: &Run) -> Vec<EarlierReflection> {
        let mut earlier = Vec::new();
        let mut before = run
            .start()
            .reflection
            .as_ref()
            .and_then(|reflection| reflection.continues.clone());
        while let Some(id) = before.filter(|_| earlier.len() < MAX_EARLIER) {
            let Ok((run, _)) = load_any_run(&self.context, &id).await else {
                break;
            };
            earlier.extend(run.reflection().looked_at().map(|looked| {
                EarlierReflection {
                    cycle: looked.cycle,
                    assessment: looked.assessment.to_string(),
                    reasoning: looked.reasoning.clone(),
                    adjustments: looked
                        .adjustments
                        .iter()
                        .map(|adjustment| format!("{} {}", adjustment.word(), adjustment.step()))
                        .collect(),
                }
            }));
            before = run
                .start()
                .reflection
                .as_ref()
                .and_then(|reflection| reflection.continues.clone());
        }
        earlier.reverse();
        earlier
    }
}

/// Says in words what may still be spent.
fn remaining(run: &Run) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(reflection) = &run.start().reflection {
        let left = reflection.max_cycles.saturating_sub(reflection.cycles + 1);
        words.push(format!("{left} more looks after this one"));
    }
    words.extend(
        run.reflection()
            .tokens_left()
            .map(|tokens| format!("{tokens} tokens")),
    );
    words
}
