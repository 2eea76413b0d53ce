//! `tui`: the inbox, reviews and runs on a full screen, keyboard only.
//!
//! `model` is what is seen and what keys mean; `draw` paints it; `load` reads what it shows; `act`
//! carries out what was decided. This file moves things between them. Nothing is decided here that the
//! command line would not decide.

mod act;
mod draw;
mod load;
mod model;
mod screen;

use self::load::LoadedPlan;
use self::model::{Key, Model, Page, Wish};
use self::screen::{FullScreen, not_drawn};
use crate::command::args::Cli;
use crate::command::dispatch::run_in_workspace;
use crate::command::execution::order::ExecutionKind;
use crate::exit::{Exit, Failure};
use crate::telemetry::stderr;
use crate::workspace::app::{App, CommandContext, user};
use crate::workspace::plan_source::load_plan;
use crate::workspace::projections::update_plan_files;
use clap::Parser as _;
use crossterm::event::{Event, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use planwright_core::id::{PlanId, RunId};
use planwright_core::run::Shown;
use planwright_engine::{RunCommand, with_causes};
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

/// How often the screen is read anew while something happens elsewhere.
const REFRESH: Duration = Duration::from_millis(200);
/// The longest wait between two looks, in case a change goes unnoticed.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) async fn run(context: &CommandContext) -> Result<Exit, Failure> {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        let failure = Failure::usage("the full-screen view needs a terminal");
        return Err(failure.hint("planwright status and planwright inbox print the same"));
    }
    let app = context.open_existing()?;
    let inner = context.clone().with_shared_app(app.clone());
    let mut session = Session {
        app: &app,
        inner,
        model: Model::default(),
        plan: None,
        call: None,
        running: FuturesUnordered::new(),
        executed: Vec::new(),
    };
    session.stay().await
}

/// The end of a run that was executed here.
type Ended = (RunId, Result<String, String>);

/// One person at one screen.
struct Session<'a> {
    app: &'a App,
    /// For commands on the ordinary screen, which share the open store.
    inner: CommandContext,
    model: Model,
    /// The plan on the screen, as it would be decided on.
    plan: Option<LoadedPlan>,
    /// What an approval of the call on the screen names.
    call: Option<Shown>,
    running: FuturesUnordered<BoxFuture<'a, Ended>>,
    /// The runs behind `running`.
    executed: Vec<RunId>,
}

/// What wakes the session.
enum News {
    Key(Key),
    Resized,
    Changed,
    Ended(Ended),
    TerminalGone,
}

impl Session<'_> {
    async fn stay(&mut self) -> Result<Exit, Failure> {
        let mut screen = FullScreen::enter()?;
        let mut keys = EventStream::new();
        let mut changes = self.app.engine.journals().changes();
        self.refresh(width(&screen)?).await;
        loop {
            self.take_words();
            self.model.running = self.executed.len();
            let drawn = screen
                .terminal
                .draw(|frame| draw::draw(frame, &mut self.model));
            drawn.map_err(not_drawn)?;
            changes.mark_unchanged();
            let news = tokio::select! {
                event = keys.next() => read_event(event),
                Some(ended) = self.running.next(), if !self.running.is_empty() => Some(News::Ended(ended)),
                _ = tokio::time::timeout(PATIENCE, changes.changed()) => {
                    // Many changes at once are read once.
                    tokio::time::sleep(REFRESH).await;
                    Some(News::Changed)
                }
            };
            match news {
                None => {}
                Some(News::TerminalGone) => {
                    self.pause_all().await;
                    return Ok(Exit::Interrupted);
                }
                Some(News::Changed) => self.refresh(width(&screen)?).await,
                Some(News::Resized) => {
                    self.wrap_anew(width(&screen)?).await;
                }
                Some(News::Ended((run, outcome))) => {
                    self.executed.retain(|executed| *executed != run);
                    match outcome {
                        Ok(status) => self.model.say(format!("{run}: {status}")),
                        Err(problem) => self.model.complain(format!("{run}: {problem}")),
                    }
                    self.refresh(width(&screen)?).await;
                }
                Some(News::Key(key)) => {
                    let size = screen.terminal.size().map_err(not_drawn)?;
                    match self.model.press(key, draw::page_height(size.height)) {
                        None => {}
                        Some(Wish::Leave) => {
                            self.pause_all().await;
                            return Ok(Exit::Done);
                        }
                        Some(Wish::Command(words)) => {
                            // Its questions read the keyboard themselves.
                            drop(keys);
                            screen.leave_for_a_while();
                            self.run_command(&words).await;
                            screen.return_to_it()?;
                            keys = EventStream::new();
                            self.refresh(width(&screen)?).await;
                        }
                        Some(wish) => {
                            let outcome = Box::pin(self.grant(wish, width(&screen)?)).await;
                            self.tell(outcome);
                            self.refresh(width(&screen)?).await;
                        }
                    }
                }
            }
        }
    }

    /// Puts what other parts wrote for stderr where it can be read.
    fn take_words(&mut self) {
        let held = stderr::take_held();
        if let Some(last) = held.lines().rev().find(|line| !line.trim().is_empty()) {
            self.model.complain(last.to_owned());
        }
    }

    fn tell(&mut self, outcome: Result<Option<String>, Failure>) {
        match outcome {
            Ok(None) => {}
            Ok(Some(words)) => self.model.say(words),
            Err(failure) => {
                let hint = failure.hint.map(|hint| format!(" ({hint})"));
                let hint = hint.unwrap_or_default();
                self.model.complain(format!("{}{hint}", failure.message));
            }
        }
    }

    /// Does what is wanted, and returns what to say about it.
    async fn grant(&mut self, wish: Wish, width: usize) -> Result<Option<String>, Failure> {
        let app = self.app;
        Ok(match wish {
            Wish::Leave | Wish::Command(_) => None,
            Wish::ShowPlan(plan) => {
                let loaded = load::load_plan_page(app, &plan, width).await?;
                self.model.decision = Some(loaded.page.clone());
                self.plan = Some(loaded);
                self.model.open(Page::Decision);
                None
            }
            Wish::ShowStep { run, step } => {
                let (page, shown) = load::load_step_page(app, &run, &step, width).await?;
                self.model.decision = Some(page);
                self.plan = None;
                self.call = Some(shown);
                self.model.open(Page::Decision);
                None
            }
            Wish::ShowRun { plan, run } => {
                self.model.run = Some(load::load_run_page(app, &plan, &run).await?);
                self.model.open(Page::Run);
                None
            }
            Wish::ShowLog(plan) => {
                self.model.log = Some(load::load_log_page(app, &plan).await?);
                self.model.open(Page::Log);
                None
            }
            Wish::Approve { see_late_values } => Some(self.approve(see_late_values).await?),
            Wish::Reject(reason) => Some(self.reject(reason).await?),
            Wish::Comment(text) => match &self.model.decision {
                Some(page) => Some(act::add_comment(app, page, text).await?),
                None => None,
            },
            Wish::Resolve { run, step, word } => {
                Some(act::resolve_step(app, (&run, &step), &word).await?)
            }
            Wish::Start(plan) => {
                let kind = ExecutionKind::Start(plan.clone());
                self.execute(plan, kind).await?
            }
            Wish::Resume(plan) => {
                let kind = ExecutionKind::Resume(plan.clone());
                self.execute(plan, kind).await?
            }
            Wish::Pause(run) => {
                let command = RunCommand::Pause { by: user() };
                app.engine.runs().command(&run, command).await?;
                Some("running calls finish, nothing new starts".to_owned())
            }
            Wish::Cancel(run) => {
                let command = RunCommand::Cancel { by: user() };
                app.engine.runs().command(&run, command).await?;
                Some("running calls are stopped".to_owned())
            }
        })
    }

    async fn approve(&mut self, see_late_values: bool) -> Result<String, Failure> {
        let Some(page) = self.model.decision.clone() else {
            return Ok(String::new());
        };
        if let (Some((run, step)), Some(shown)) = (&page.step, self.call.take()) {
            let decision = act::decide_step(self.app, (run, step), shown, None).await?;
            self.model.close();
            return Ok(decision.as_str().to_owned());
        }
        let Some(loaded) = self.plan.take() else {
            return Err(Failure::refused("it was not shown"));
        };
        act::approve_plan(self.app, loaded, see_late_values).await
    }

    async fn reject(&mut self, reason: String) -> Result<String, Failure> {
        let Some(page) = &self.model.decision else {
            return Ok(String::new());
        };
        let words = match (&page.step, &self.plan, self.call.take()) {
            (Some((run, step)), _, Some(shown)) => {
                let refusal = Some(reason);
                let decision = act::decide_step(self.app, (run, step), shown, refusal).await?;
                decision.as_str().to_owned()
            }
            (None, Some(loaded), _) => act::send_back(self.app, loaded, &reason).await?,
            (Some(_), _, None) | (None, None, _) => {
                return Err(Failure::refused("it was not shown"));
            }
        };
        self.model.close();
        Ok(words)
    }

    /// Executes a run here, beside the page that is looked at.
    async fn execute(
        &mut self,
        plan: PlanId,
        kind: ExecutionKind,
    ) -> Result<Option<String>, Failure> {
        let app = self.app;
        let mut handle = act::open_run(app, &plan, kind).await?;
        let run = handle.run_id().clone();
        self.executed.push(run.clone());
        self.model.run = Some(load::load_run_page(app, &plan, &run).await?);
        self.model.open(Page::Run);
        self.running.push(Box::pin(async move {
            let ended = handle.wait().await;
            if let Ok((review, _)) = load_plan(app, &plan).await {
                update_plan_files(app, &review).await;
            }
            let ended = ended.map(|run| run.status().to_string());
            (run, ended.map_err(|error| with_causes(&error)))
        }));
        Ok(None)
    }

    /// Pauses what is executed here, and waits for the calls in flight.
    async fn pause_all(&mut self) {
        for run in std::mem::take(&mut self.executed) {
            let command = RunCommand::Pause { by: user() };
            // One that has just ended cannot be paused.
            drop(self.app.engine.runs().command(&run, command).await);
        }
        while self.running.next().await.is_some() {}
    }

    /// Runs a command as the command line would, on the ordinary screen.
    async fn run_command(&mut self, words: &[String]) {
        let all = std::iter::once("planwright").chain(words.iter().map(String::as_str));
        let done = match Cli::try_parse_from(all) {
            Ok(cli) => {
                let command = cli.command.without_group();
                Box::pin(run_in_workspace(command, self.inner.clone())).await
            }
            Err(error) => Err(Failure::usage(error.to_string())),
        };
        if let Err(failure) = done {
            self.app.printer().failure(&failure);
        }
        self.app.printer().talk("Press Enter to go back.");
        drop(std::io::stderr().flush());
        // A terminal that is gone is noticed by the next key.
        let waited = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
        drop(waited.await);
    }

    /// Reads what is on the screen again.
    async fn refresh(&mut self, width: usize) {
        let app = self.app;
        match load::load_inbox_rows(app).await {
            Ok(rows) => self.model.inbox.set_rows(rows),
            Err(failure) => self.model.complain(failure.message),
        }
        let read = match self.model.page() {
            Page::Inbox => Ok(()),
            Page::Plans => match load::load_plan_rows(app).await {
                Ok(rows) => {
                    self.model.plans.set_rows(rows);
                    Ok(())
                }
                Err(failure) => Err(failure),
            },
            Page::Decision => self.refresh_decision(width).await,
            Page::Run => self.refresh_run().await,
            Page::Log => self.refresh_log().await,
        };
        if let Err(failure) = read {
            self.model.complain(failure.message);
        }
    }

    /// A plan that changed is shown anew, and has to be seen anew.
    async fn refresh_decision(&mut self, width: usize) -> Result<(), Failure> {
        let Some(page) = &self.model.decision else {
            return Ok(());
        };
        if page.step.is_some() {
            return Ok(());
        }
        let loaded = load::load_plan_page(self.app, &page.plan.clone(), width).await?;
        let mut new = loaded.page.clone();
        if page.digest == new.digest && page.lines == new.lines {
            new.scroll = page.scroll;
            new.seen = page.seen;
        }
        self.model.decision = Some(new);
        self.plan = Some(loaded);
        Ok(())
    }

    async fn refresh_run(&mut self) -> Result<(), Failure> {
        let Some(page) = &self.model.run else {
            return Ok(());
        };
        let mut new = load::load_run_page(self.app, &page.plan, &page.run).await?;
        new.steps.choose(page.steps.position());
        new.details_scroll = page.details_scroll;
        self.model.run = Some(new);
        Ok(())
    }

    async fn refresh_log(&mut self) -> Result<(), Failure> {
        let Some(page) = &self.model.log else {
            return Ok(());
        };
        let mut new = load::load_log_page(self.app, &page.plan).await?;
        // Who reads older lines goes on reading them.
        let added = new.lines.len().saturating_sub(page.lines.len());
        new.back = if page.back == 0 { 0 } else { page.back + added };
        self.model.log = Some(new);
        Ok(())
    }

    /// Breaks the lines of a review for another width. They have to be seen anew.
    async fn wrap_anew(&mut self, width: usize) {
        let Some(page) = self.model.decision.clone() else {
            return;
        };
        let read = match &page.step {
            None => self.refresh_decision(width).await,
            Some((run, step)) => match load::load_step_page(self.app, run, step, width).await {
                Ok((page, shown)) => {
                    self.model.decision = Some(page);
                    self.call = Some(shown);
                    Ok(())
                }
                Err(failure) => Err(failure),
            },
        };
        if let Err(failure) = read {
            self.model.complain(failure.message);
        }
    }
}

fn width(screen: &FullScreen) -> Result<usize, Failure> {
    let size = screen.terminal.size().map_err(not_drawn)?;
    Ok(usize::from(size.width))
}

fn read_event(event: Option<std::io::Result<Event>>) -> Option<News> {
    match event {
        None | Some(Err(_)) => Some(News::TerminalGone),
        Some(Ok(Event::Resize(..))) => Some(News::Resized),
        Some(Ok(Event::Key(key))) => read_key(key).map(News::Key),
        Some(Ok(Event::FocusGained | Event::FocusLost | Event::Mouse(_) | Event::Paste(_))) => None,
    }
}

fn read_key(event: KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let held = event.modifiers;
    Some(match event.code {
        KeyCode::Char('c' | 'd') if held.contains(KeyModifiers::CONTROL) => Key::Interrupt,
        KeyCode::Char(_) if held.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
            return None;
        }
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Tab => Key::Tab,
        KeyCode::Backspace => Key::Backspace,
        _ => return None,
    })
}
