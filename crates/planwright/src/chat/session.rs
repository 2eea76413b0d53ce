//! The chat as a whole: what was wired together for it, and the loop of reading and answering.

use super::completion::{CompletionNames, NameCompleter};
use super::conversation::{
    Conversation, ConversationState, ConversationTerms, agent, conversation_state,
};
use super::editor::{Editor, TypedInput};
use super::maker::Planner;
use super::person::ChatPerson;
use super::screen::Screen;
use super::slash::{self, ChatFlow};
use super::watcher::Watcher;
use crate::command::execution::interrupts::Interrupts;
use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::terminal::progress::RunProgress;
use crate::workspace::app::{App, CommandContext, user};
use planwright_core::run::Run;
use planwright_engine::chat::{
    ChatBudget, ChatModel, ConversationTools, CountedModel, CountedTools, Spending,
};
use planwright_engine::port::{Model, TextSink, Tools};
use planwright_engine::{Engine, Observer, PlanTools, RunCommand, RunHandle};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The tool that runs commands is offered only where it is asked for by name.
const RUN_COMMAND: &str = "run_command";

/// How the chat was started.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChatOptions {
    /// Only the tools of these servers; all that there are when absent.
    pub(crate) servers: Option<BTreeSet<String>>,
    pub(crate) no_tools: bool,
    pub(crate) plan_tools: bool,
    pub(crate) model: Option<String>,
    pub(crate) max_turns: Option<u32>,
    pub(crate) budget: ChatBudget,
    pub(crate) resume: Option<String>,
}

/// A chat.
pub(crate) struct Session {
    /// Commands use the same program: its servers are started once, and its store is opened once.
    pub(super) context: CommandContext,
    /// Runs plans.
    pub(super) plans: App,
    /// Runs the conversation.
    talk: App,
    pub(super) model: ChatModel,
    pub(super) spending: Spending,
    pub(super) screen: Arc<Screen>,
    watcher: Arc<Watcher>,
    person: ChatPerson,
    options: ChatOptions,
    conversation: Option<Conversation>,
    names: NameCompleter,
}

impl Session {
    pub(crate) async fn open(app: App, mut options: ChatOptions) -> Result<Self, Failure> {
        // What a conversation began with is what was agreed to.
        let conversation = match &options.resume {
            Some(id) => Some(Conversation::find(&app, id).await?),
            None => None,
        };
        options.plan_tools |= conversation.as_ref().is_some_and(|(_, tools)| tools.plans);
        let spending = Spending::new(options.budget);
        let screen = Arc::new(Screen::new(app.printer(), app.engine.redaction().clone()));
        let tools = Arc::<planwright_adapters::mcp::AllTools>::clone(&app.tools);
        let tools: Arc<dyn Tools> = Arc::new(CountedTools::new(tools, spending.clone()));
        let counted: Arc<dyn Model> = Arc::new(CountedModel::new(
            Arc::clone(app.engine.model()),
            spending.clone(),
        ));
        let limits = || app.context.config.limits();
        let plans = with(
            &app,
            app.engine
                .fork_engine(Arc::clone(&tools), Arc::clone(&counted), limits()),
        );
        let person = ChatPerson::new(plans.clone());
        let heard = Arc::clone(&screen);
        let sink = TextSink::new(move |piece| heard.print_piece(piece));
        let model = ChatModel::new(counted, options.model.clone(), sink);
        model.current().map_err(|error| Failure::from(&error))?;
        let mut offered = ConversationTools::new(tools);
        if options.no_tools {
            offered = offered.only(BTreeSet::new());
        } else if let Some(servers) = &options.servers {
            offered = offered.only(servers.clone());
        }
        if options.plan_tools {
            let servers = options.servers.iter().flatten().cloned().collect();
            let maker = Arc::new(Planner::new(plans.engine.clone(), servers));
            let made = PlanTools::new(plans.engine.clone(), maker, &agent());
            let told: Arc<dyn Observer> = Arc::new(RunProgress::lines(app.printer()));
            offered =
                offered.with_plans(made.asking(Arc::new(person.clone())).watched_by(vec![told]));
        }
        let talk = with(
            &app,
            app.engine
                .fork_engine(Arc::new(offered), Arc::new(model.clone()), limits()),
        );
        let watcher = Arc::new(Watcher::new(Arc::clone(&screen)));
        talk.engine.watch(Arc::<Watcher>::clone(&watcher));
        let context = app.context.clone().with_shared_app(plans.clone());
        let names = NameCompleter::default();
        let mut session = Self {
            context,
            person: ChatPerson::new(talk.clone()),
            plans,
            talk,
            model,
            spending,
            screen,
            watcher,
            options,
            conversation: None,
            names,
        };
        if let Some((conversation, _)) = conversation {
            session
                .talk
                .engine
                .recall_spending(&conversation.run, &session.spending)
                .await?;
            session.conversation = Some(conversation);
        }
        Ok(session)
    }

    /// Reads and answers until the person has enough.
    pub(crate) async fn run(mut self) -> Result<Exit, Failure> {
        let printer = self.screen.printer();
        let keep = !self.plans.files.is_sealed();
        let editor = Editor::start(self.names.clone(), keep, printer.can_ask());
        self.greet();
        let mut exit = match Box::pin(self.go_on()).await {
            Ok(exit) => exit,
            Err(failure) => self.failed(&failure),
        };
        while exit != Exit::Interrupted {
            self.learn_names().await;
            let interrupts = Interrupts::listen()?;
            let typed = tokio::select! {
                typed = editor.read() => typed,
                _ = interrupts.next_signal() => {
                    exit = Exit::Interrupted;
                    continue;
                }
            };
            let typed = match typed {
                TypedInput::Line(text) if text.trim().is_empty() => continue,
                TypedInput::Line(text) => text,
                TypedInput::TooLong => {
                    exit =
                        self.failed(&Failure::usage("the message is too long, and was not sent"));
                    continue;
                }
                TypedInput::Nothing => continue,
                TypedInput::End => break,
            };
            let done = match typed.trim().strip_prefix('/') {
                Some(command) => match Box::pin(slash::run(&mut self, command)).await {
                    Ok(ChatFlow::Quit) => break,
                    Ok(ChatFlow::Continue) => Ok(exit),
                    Err(failure) => Err(failure),
                },
                None => Box::pin(self.say(&typed)).await,
            };
            // An error in one command or answer never ends the chat.
            exit = done.unwrap_or_else(|failure| self.failed(&failure));
            if exit == Exit::Waits && !self.person.is_there() {
                break;
            }
        }
        self.part().await;
        // A person at a keyboard has seen everything that went wrong; a program looks at the code.
        let seen = printer.can_ask() && !matches!(exit, Exit::Store | Exit::Interrupted);
        Ok(if seen { Exit::Done } else { exit })
    }

    fn failed(&self, failure: &Failure) -> Exit {
        self.screen.failure(failure);
        // A command that was interrupted is over; the chat is not.
        if failure.exit == Exit::Interrupted {
            Exit::Done
        } else {
            failure.exit
        }
    }

    fn greet(&self) {
        let printer = self.screen.printer();
        if printer.json || !printer.can_ask() {
            return;
        }
        let model = self
            .model
            .current()
            .map(|model| model.name)
            .unwrap_or_default();
        let tools = self.talk.engine.catalog().iter().count();
        let tools = count_of(tools, "tool", "tools");
        self.screen.note(&format!(
            "chatting with {model}; {tools}; /help lists the commands, Ctrl-D quits"
        ));
    }

    /// Goes on with a conversation that was left in the middle.
    async fn go_on(&mut self) -> Result<Exit, Failure> {
        let Some(conversation) = self.conversation.clone() else {
            return Ok(Exit::Done);
        };
        let run = conversation.load_run(&self.talk).await?;
        match conversation_state(&run, &self.talk) {
            ConversationState::AwaitingMessage { said } => {
                self.screen.repeat(&said);
                Ok(Exit::Done)
            }
            ConversationState::Ended { .. } => {
                self.conversation = None;
                Err(
                    Failure::refused(format!("the conversation {} is over", conversation.plan))
                        .hint("your next message starts a new one"),
                )
            }
            ConversationState::AwaitingDecision(_) | ConversationState::Interrupted => {
                self.model.listen();
                let interrupts = Interrupts::listen()?;
                let handle = conversation.go_on(&self.talk).await?;
                Box::pin(self.hear(handle, &interrupts)).await
            }
        }
    }

    /// Says something to the model and shows what comes of it.
    pub(super) async fn say(&mut self, message: &str) -> Result<Exit, Failure> {
        self.model.listen();
        // Listened for before anything begins: from here on Ctrl-C ends the answer and not the
        // program.
        let interrupts = Interrupts::listen()?;
        let handle = match &self.conversation {
            Some(conversation) => conversation.tell(&self.talk, message).await?,
            None => {
                let terms = self.terms();
                let (conversation, handle) =
                    Conversation::begin(&self.talk, &terms, message).await?;
                self.conversation = Some(conversation);
                handle
            }
        };
        Box::pin(self.hear(handle, &interrupts)).await
    }

    fn terms(&self) -> ConversationTerms {
        let catalog = self.talk.engine.catalog();
        let named = self.options.servers.is_some();
        let offered = catalog
            .iter()
            .filter(|tool| named || tool.name.tool != RUN_COMMAND);
        ConversationTerms {
            tools: offered.map(|tool| tool.name.to_string()).collect(),
            max_turns: self.options.max_turns,
            budget: self.options.budget,
        }
    }

    /// Waits until it is the person's turn, asking them meanwhile what only they can decide.
    async fn hear(
        &mut self,
        mut handle: RunHandle,
        interrupts: &Interrupts,
    ) -> Result<Exit, Failure> {
        loop {
            let Some(run) = self.attend(&mut handle, interrupts).await? else {
                return Ok(Exit::Interrupted);
            };
            self.screen.pause();
            match conversation_state(&run, &self.talk) {
                ConversationState::AwaitingMessage { said } => {
                    let failed = self.model.last_error();
                    if !self.model.was_asked() {
                        self.screen.repeat(&said);
                    }
                    if let Some(error) = &failed {
                        self.screen.failure(&Failure::from(error));
                    }
                    if self.screen.printer().json {
                        self.screen
                            .event(&json!({ "event": "answer", "text": said }));
                    }
                    return Ok(failed.map_or(Exit::Done, |_| Exit::Model));
                }
                ConversationState::Ended { error } => {
                    self.conversation = None;
                    let why = error.map(|error| format!(": {error}")).unwrap_or_default();
                    return Err(Failure::new(
                        Exit::RunFailed,
                        format!("the conversation ended{why}"),
                    )
                    .hint("your next message starts a new one"));
                }
                ConversationState::AwaitingDecision(calls) => {
                    if !self.settle(&calls, interrupts).await? {
                        return self.left_open(&run).await;
                    }
                    let Some(conversation) = &self.conversation else {
                        return Ok(Exit::Done);
                    };
                    handle = conversation.go_on(&self.talk).await?;
                }
                ConversationState::Interrupted => return self.left_open(&run).await,
            }
        }
    }

    /// Waits for the run. Ctrl-C ends the answer; a second one leaves the chat.
    async fn attend(
        &self,
        handle: &mut RunHandle,
        interrupts: &Interrupts,
    ) -> Result<Option<Run>, Failure> {
        loop {
            tokio::select! {
                run = handle.wait() => return Ok(Some(run?)),
                count = interrupts.next_signal() => {
                    if count > 1 {
                        return Ok(None);
                    }
                    self.screen.note("interrupting… press Ctrl-C again to leave");
                    self.model.interrupt();
                    self.cancel_calls();
                }
            }
        }
    }

    /// Stops the calls that are being made. Sent on their own, so that the next signal is heard
    /// meanwhile.
    fn cancel_calls(&self) {
        for run in self.watcher.in_flight() {
            let engine = self.talk.engine.clone();
            tokio::spawn(async move {
                engine
                    .runs()
                    .command(&run, RunCommand::Cancel { by: user() })
                    .await
            });
        }
    }

    /// Asks about what the calls wait for. Whether anything was decided.
    async fn settle(
        &self,
        calls: &[planwright_core::id::RunId],
        interrupts: &Interrupts,
    ) -> Result<bool, Failure> {
        let mut decided = false;
        for call in calls {
            let run = crate::command::execution::execute::load_run(&self.talk, call).await?;
            decided |= run.state().is_terminal() || self.person.settle(&run, interrupts).await?;
        }
        Ok(decided)
    }

    /// Prints the commands for decisions that no person at this terminal can make.
    async fn left_open(&self, run: &Run) -> Result<Exit, Failure> {
        for hint in crate::command::execution::report::next_commands(&self.talk, run).await? {
            if self.screen.printer().json {
                self.screen
                    .event(&json!({ "event": "waits", "hint": hint }));
            } else {
                self.screen.printer().hint(&hint);
            }
        }
        Ok(Exit::Waits)
    }

    /// Ends this conversation; your next message starts a new one.
    pub(super) async fn clear(&mut self) -> Result<(), Failure> {
        match self.conversation.take() {
            Some(conversation) => conversation.end(&self.talk).await,
            None => Ok(()),
        }
    }

    /// The tools the model is offered.
    pub(super) fn engine(&self) -> &Engine {
        &self.talk.engine
    }

    /// What can be completed, as it is now. What cannot be listed is not completed.
    async fn learn_names(&self) {
        let plans = self
            .plans
            .engine
            .journals()
            .plans()
            .await
            .unwrap_or_default();
        self.names.set(CompletionNames {
            plans: plans
                .into_iter()
                .take(500)
                .map(|info| info.status.plan.to_string())
                .collect(),
            tools: self
                .talk
                .engine
                .catalog()
                .iter()
                .map(|tool| tool.name.to_string())
                .collect(),
            models: self
                .model
                .models()
                .into_iter()
                .map(|model| model.name)
                .collect(),
        });
    }

    /// Says what the chat took and how it goes on.
    async fn part(&self) {
        let printer = self.screen.printer();
        let plan = self
            .conversation
            .as_ref()
            .map(|conversation| conversation.plan.to_string());
        if printer.json {
            let mut event = slash::cost_document(self);
            event["event"] = json!("end");
            event["planId"] = json!(plan);
            self.screen.event(&event);
        } else if plan.is_some() || self.spending.tokens().total() > 0 {
            for text in slash::cost_lines(self) {
                printer.talk(&text);
            }
            if let Some(plan) = &plan {
                printer.hint(&format!("To continue: planwright chat --resume {plan}"));
            }
        }
        if let Some(conversation) = &self.conversation
            && let Ok((review, _)) = self
                .plans
                .engine
                .plans()
                .load_review(&conversation.plan)
                .await
        {
            crate::workspace::projections::update_plan_files(&self.plans, &review).await;
        }
    }
}

/// The program with another engine.
fn with(app: &App, engine: Engine) -> App {
    App {
        engine,
        ..app.clone()
    }
}
