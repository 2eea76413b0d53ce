//! `input`: answers what a step or a tool's server asks, or lists what is asked.

use crate::command::review::approve::report_decision;
use crate::exit::{Exit, Failure};
use crate::terminal::printer::{BOLD, block, line};
use crate::terminal::prompts::{as_values, ask_questions, pending_question, question_origin};
use crate::workspace::app::{App, CommandContext, user};
use crate::workspace::run_selector::{RunTarget, StepTarget, select_run, select_step};
use crate::workspace::variables::quote_word;
use planwright_core::json::parse_strict;
use planwright_core::plan::StepIx;
use planwright_core::run::{Asked, Reply, Run};
use planwright_engine::RunCommand;
use serde_json::{Map, Value, json};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A plan, or a run.
    #[arg(value_name = "ID")]
    plan: String,
    /// The step that asks, one element of it (`step[3]`), or a step of a sub-plan (`step/step`).
    /// Without it everything that is asked is listed.
    #[arg(value_name = "STEP")]
    step: Option<String>,
    /// The answer as JSON. If there are several questions, an object with an answer for each key.
    #[arg(long, value_name = "JSON", requires = "step", conflicts_with_all = ["set", "decline"])]
    value: Option<String>,
    /// One value of the answer. JSON if it reads as JSON, else text.
    #[arg(
        long,
        value_name = "NAME=VALUE",
        requires = "step",
        conflicts_with = "decline"
    )]
    set: Vec<String>,
    /// Decline to answer.
    #[arg(long, requires = "step")]
    decline: bool,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open_existing()?;
    let Some(step) = &args.step else {
        let RunTarget { review, run } = select_run(&app, &args.plan).await?;
        let (run, _) = app.engine.runs().load_run(&run, &review).await?;
        list_questions(&app, &run)?;
        return Ok(Exit::Done);
    };
    let target = select_step(&app, &args.plan, step).await?;
    let StepTarget { run, step, .. } = &target;
    let id = &args.plan;
    let waiting = run
        .find(step)
        .and_then(|ix| Some((ix, pending_question(run, ix)?)));
    let Some((ix, asked)) = waiting else {
        let state = run
            .find(step)
            .map_or("not there yet", |ix| run.step(ix).status().as_str());
        return Err(Failure::refused(format!(
            "step `{}` is {state}: it has no open question",
            line(step)
        ))
        .hint(format!("To list the open questions: planwright input {id}")));
    };
    let Some(replies) = read_replies(&app, run, ix, asked, args)? else {
        return Err(Failure::refused("not answered"));
    };
    let word = if args.decline { "declined" } else { "answered" };
    let command = RunCommand::GiveInput {
        step: step.clone(),
        by: user(),
        question: asked.digest(),
        replies,
    };
    app.engine.runs().command(run.id(), command).await?;
    report_decision(&app, &target, word).await?;
    Ok(Exit::Done)
}

fn read_replies(
    app: &App,
    run: &Run,
    ix: StepIx,
    asked: &Asked,
    args: &Args,
) -> Result<Option<Vec<Reply>>, Failure> {
    if args.decline {
        return Ok(Some(vec![Reply::Decline; asked.questions.len()]));
    }
    if let Some(text) = &args.value {
        let value = parse_strict(text.as_bytes()).map_err(|error| {
            Failure::usage(format!("--value: {error}"))
                .hint("a text needs its quotes: --value '\"text\"'")
        })?;
        return assign_replies(asked, value).map(Some);
    }
    if !args.set.is_empty() {
        return assign_replies(asked, Value::Object(parse_set_flags(&args.set)?)).map(Some);
    }
    if app.printer().can_ask() && !app.printer().json {
        return ask_questions(app.printer(), &question_origin(app, run, ix), asked);
    }
    let plan = run.plan().id();
    let step = quote_word(run.step_id(ix).as_str());
    Err(
        Failure::usage("give an answer: --set NAME=VALUE, --value JSON or --decline").hint(
            format!("To see the question of {step}: planwright input {plan}"),
        ),
    )
}

/// One answer per question. A sole question is answered directly, several by their keys.
fn assign_replies(asked: &Asked, value: Value) -> Result<Vec<Reply>, Failure> {
    if let [_] = asked.questions.as_slice() {
        return Ok(vec![Reply::Values(as_values(value))]);
    }
    let keys = || {
        asked
            .questions
            .iter()
            .map(|question| line(&question.key))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let Value::Object(mut answers) = value else {
        return Err(Failure::usage(format!(
            "there are several questions: answer each of {}",
            keys()
        )));
    };
    let replies = asked.questions.iter().map(|question| {
        let missing = || {
            Failure::usage(format!(
                "the question `{}` is not answered",
                line(&question.key)
            ))
        };
        answers
            .remove(&question.key)
            .map(|value| Reply::Values(as_values(value)))
            .ok_or_else(missing)
    });
    let replies = replies.collect::<Result<_, _>>()?;
    match answers.keys().next() {
        None => Ok(replies),
        Some(other) => Err(Failure::usage(format!(
            "there is no question `{}`, only {}",
            line(other),
            keys()
        ))),
    }
}

fn parse_set_flags(assignments: &[String]) -> Result<Map<String, Value>, Failure> {
    let mut values = Map::new();
    for assignment in assignments {
        let Some((name, text)) = assignment
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
        else {
            return Err(Failure::usage(format!(
                "`--set {}` is not NAME=VALUE",
                line(assignment)
            )));
        };
        let value =
            parse_strict(text.as_bytes()).unwrap_or_else(|_| Value::String(text.to_owned()));
        if values.insert(name.to_owned(), value).is_some() {
            return Err(Failure::usage(format!("`{}` is given twice", line(name))));
        }
    }
    Ok(values)
}

fn list_questions(app: &App, run: &Run) -> Result<(), Failure> {
    let printer = app.printer();
    let asking: Vec<(StepIx, &Asked)> = run
        .schedule()
        .waiting()
        .filter_map(|ix| Some((ix, pending_question(run, ix)?)))
        .collect();
    if printer.json {
        let asking = asking.iter().map(|(ix, asked)| {
            json!({
                "step": run.step_id(*ix), "origin": question_origin(app, run, *ix), "questions": asked.questions,
            })
        });
        return printer.document(&json!({
            "planId": run.plan().id(), "runId": run.id(), "asked": asking.collect::<Vec<_>>(),
        }));
    }
    for (ix, asked) in &asking {
        printer.data(&printer.out(BOLD, &question_origin(app, run, *ix)))?;
        for question in &asked.questions {
            if asked.questions.len() > 1 {
                printer.data(&format!("  {}:", line(&question.key)))?;
            }
            if !question.message.is_empty() {
                printer.data(&block(&question.message))?;
            }
            match &question.url {
                Some(url) => printer.data(&format!("  page    {}", line(url)))?,
                None => {
                    printer.data(&format!("  schema  {}", line(&question.schema.to_string())))?;
                }
            }
        }
        let plan = run.plan().id();
        let step = quote_word(run.step_id(*ix).as_str());
        printer.hint(&format!(
            "planwright input {plan} {step} --set NAME=VALUE | --value JSON | --decline"
        ));
    }
    if asking.is_empty() {
        printer.talk("no open questions");
    }
    Ok(())
}
