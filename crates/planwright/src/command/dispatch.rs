//! Runs the command that was named, on the runtime it needs.

use crate::command::agents::{hook, setup};
use crate::command::args::{Cli, Command};
use crate::command::audit::{log, receipt, replay, stats, verify, watch};
use crate::command::execution::{
    cancel, chat, check, fail, fork, input, pause, repair, resolve, resume, run, undo,
};
use crate::command::later::Later;
use crate::command::plan::{
    archive, artifact, create, delete, diff, edit, export, import, list, new, propose, recorded,
    regenerate, restore, show, template, validate, versions,
};
use crate::command::review::{approve, comment, comments, reject, request_changes};
use crate::command::service::{call, mcp, queue, serve, token, webhooks, worker, workers};
use crate::command::setup::policy::PolicyCommand;
use crate::command::setup::{
    completions, doctor, executors, models, policy, schema, secrets, servers, tools, trust,
};
use crate::command::start::{explain, inbox, init, status, stop, version};
use crate::command::{demo, store};
use crate::exit::{Exit, Failure};
use crate::telemetry;
use crate::terminal::printer::Printer;
use crate::terminal::trust_prompt::{FolderAnswer, ask_about_folder, warn_of_untrusted};
use crate::tui;
use crate::workspace::app::CommandContext;
use crate::workspace::principal::is_agent;
use crate::workspace::servers::Servers;

/// Runs the command that was named.
pub(crate) fn dispatch(cli: Cli, printer: Printer) -> Result<Exit, Failure> {
    let dir = cli.global.dir.as_deref();
    // These need no workspace, so a broken one does not stand in their way.
    let command = match cli.command.without_group() {
        Command::Version => return version::run(printer),
        Command::Explain(args) => return explain::run(printer, &args),
        Command::Schema => return schema::run(printer),
        Command::Completions(args) => return completions::run(printer, &args),
        Command::Demo(args) => {
            return demo::run(printer, dir, cli.global.unlock.store(), &args);
        }
        // What is wrong with the workspace is its answer.
        Command::Hook(args) => return Ok(hook::run(printer, dir, cli.global.unlock, &args)),
        Command::Call(args) => {
            return block_on_one_thread(async move { call::run(printer, &args).await });
        }
        Command::Mcp(args) if args.step => return block_on_one_thread(mcp::run_step()),
        Command::Doctor => {
            return block_on_one_thread(doctor::run(printer, dir, cli.global.unlock));
        }
        Command::Policy(Later(policy::Args {
            command: PolicyCommand::Check { file },
        })) => {
            return policy::check_policy(printer, dir, file.as_deref());
        }
        Command::Policy(Later(policy::Args {
            command: PolicyCommand::List,
        })) => return policy::list_always(printer),
        Command::Policy(Later(policy::Args {
            command: PolicyCommand::Remove { names },
        })) => return policy::remove_always(printer, &names),
        other => other,
    };
    let servers = Servers::new(cli.global.trust_project_servers);
    let open = || CommandContext::new(dir, printer, servers.clone());
    let mut context = open()?;
    if offers_trust(&command) && asks_for_trust(&context)? {
        context = open()?;
    }
    if depends_on_trust(&command) {
        warn_of_untrusted(&context);
    }
    let context = context.with_unlock(cli.global.unlock);
    // Dropped last: it sends what was recorded.
    let service = matches!(command, Command::Serve(_) | Command::Worker(_));
    let _telemetry = telemetry::start(&cli.global.log, service, context.config.telemetry())?;
    // What was started ends before we do.
    let children = context.children.clone();
    if let Command::Serve(args) = command {
        return block_on_many_threads(async move {
            let done = serve::run(&context, &args).await;
            servers.close().await;
            children.end().await;
            done
        });
    }
    if let Command::Worker(args) = command {
        return block_on_many_threads(async move {
            let done = Box::pin(worker::run(&context, &args)).await;
            servers.close().await;
            children.end().await;
            done
        });
    }
    block_on_one_thread(async move {
        let done = Box::pin(run_in_workspace(command, context)).await;
        servers.close().await;
        children.end().await;
        done
    })
}

/// Commands at which a person may be asked about the folder first: those that make something
/// happen with a person there. `--yes` means that the person is not to be asked.
fn offers_trust(command: &Command) -> bool {
    match command {
        Command::Run(args) => !args.flags.yes,
        Command::Create(_)
        | Command::Regenerate(_)
        | Command::Chat(_)
        | Command::Resume(_)
        | Command::Fork(_) => true,
        _ => false,
    }
}

/// Commands that only read what happened, or that see to trust themselves, do not say what of the
/// folder's files is ignored.
fn depends_on_trust(command: &Command) -> bool {
    !matches!(
        command,
        Command::Trust(_)
            | Command::List(_)
            | Command::Status
            | Command::Inbox
            | Command::Tui
            | Command::Stop(_)
            // It says itself what to do next.
            | Command::Init(_)
            | Command::Versions(_)
            | Command::Diff(_)
            | Command::Export(_)
            | Command::Artifact(_)
            | Command::Comments(_)
            | Command::Log(_)
            | Command::Watch(_)
            | Command::Replay(_)
            | Command::Verify(_)
            | Command::Receipt(_)
            | Command::Stats(_)
            | Command::Workers
            | Command::Store(_)
            | Command::Token(_)
            // What it writes does not depend on the folder.
            | Command::Setup(_)
            // These say themselves what is not trusted.
            | Command::Servers(_)
            | Command::Models(_)
            | Command::Executors(_)
    )
}

/// Asks the person at the terminal about what the folder's files loosen. Returns whether something
/// was trusted.
fn asks_for_trust(context: &CommandContext) -> Result<bool, Failure> {
    let printer = context.printer;
    let folder = &context.folder;
    let can_be_trusted =
        folder.untrusted_loosenings().next().is_some() && folder.trust().problem().is_none();
    if !can_be_trusted || !printer.can_ask() || printer.json || is_agent() {
        return Ok(false);
    }
    match ask_about_folder(printer, folder, &context.workspace.root)? {
        FolderAnswer::Trust => folder.grant().map(|()| true),
        FolderAnswer::GoOn => Ok(false),
    }
}

pub(crate) async fn run_in_workspace(
    command: Command,
    context: CommandContext,
) -> Result<Exit, Failure> {
    match command {
        Command::Schema
        | Command::Call(_)
        | Command::Hook(_)
        | Command::Version
        | Command::Explain(_)
        // Replaced by the command they name.
        | Command::Plan(_)
        | Command::Runs(_)
        | Command::Review(_)
        | Command::Config(_)
        | Command::Completions(_)
        | Command::Demo(_)
        | Command::Serve(_)
        | Command::Worker(_)
        | Command::Doctor
        | Command::Policy(Later(policy::Args {
            command:
                PolicyCommand::Check { .. } | PolicyCommand::List | PolicyCommand::Remove { .. },
        })) => Ok(Exit::Done),
        Command::New(args) => new::run(&context, &args),
        Command::Init(args) => init::run(&context, &args),
        Command::Status => status::run(&context).await,
        Command::Inbox => inbox::run(&context).await,
        Command::Tui => Box::pin(tui::run(&context)).await,
        Command::Stop(args) => stop::run(&context, &args).await,
        Command::Setup(args) => setup::run(&context, &args),
        Command::Create(args) => Box::pin(create::run(&context, &args)).await,
        Command::Regenerate(args) => Box::pin(regenerate::run(&context, &args)).await,
        Command::Import(args) => import::run(&context, &args).await,
        Command::Export(args) => export::run(&context, &args).await,
        Command::Artifact(args) => artifact::run(&context, &args).await,
        Command::Validate(args) => validate::run(&context, &args).await,
        Command::Show(args) => show::run(&context, &args).await,
        Command::List(args) => list::run(&context, &args).await,
        Command::Edit(args) => edit::run(&context, &args).await,
        Command::Diff(args) => diff::run(&context, &args).await,
        Command::Versions(args) => versions::run(&context, &args).await,
        Command::Restore(args) => restore::run(&context, &args).await,
        Command::Propose(args) => propose::run(&context, &args).await,
        Command::Run(args) => Box::pin(run::run(&context, &args)).await,
        Command::Resume(args) => Box::pin(resume::run(&context, &args)).await,
        Command::Pause(args) => pause::run(&context, &args).await,
        Command::Cancel(args) => cancel::run(&context, &args).await,
        Command::Approve(args) => approve::run(&context, &args).await,
        Command::Reject(args) => reject::run(&context, &args).await,
        Command::RequestChanges(args) => request_changes::run(&context, &args).await,
        Command::Comment(args) => comment::run(&context, &args).await,
        Command::Comments(args) => comments::run(&context, &args).await,
        Command::Repair(args) => Box::pin(repair::run(&context, &args)).await,
        Command::Fail(args) => fail::run(&context, &args).await,
        Command::Archive(args) => archive::run(&context, &args).await,
        Command::Unarchive(args) => archive::unarchive(&context, &args).await,
        Command::Stats(args) => stats::run(&context, &args).await,
        Command::Chat(args) => Box::pin(chat::run(&context, &args)).await,
        Command::Mcp(args) => Box::pin(mcp::run(&context, &args)).await,
        Command::Workers => workers::run(&context).await,
        Command::Input(args) => Box::pin(input::run(&context, &args)).await,
        Command::Resolve(args) => Box::pin(resolve::run(&context, &args)).await,
        Command::Fork(args) => Box::pin(fork::run(&context, &args)).await,
        Command::Check(args) => Box::pin(check::run(&context, &args)).await,
        Command::Undo(args) => Box::pin(undo::run(&context, &args)).await,
        Command::FromSession(args) => recorded::run(&context, &args).await,
        Command::Template(args) => Box::pin(template::run(&context, &args)).await,
        Command::Replay(args) => replay::run(&context, &args).await,
        Command::Log(args) => log::run(&context, &args).await,
        Command::Watch(args) => watch::run(&context, &args).await,
        Command::Verify(args) => verify::run(&context, &args).await,
        Command::Receipt(args) => receipt::run(&context, &args).await,
        Command::Delete(args) => delete::run(&context, &args).await,
        Command::Secrets(args) => secrets::run(&context, &args).await,
        Command::Executors(args) => executors::run(&context, &args),
        Command::Models(args) => models::run(&context, &args).await,
        Command::Webhooks(args) => webhooks::run(&context, &args).await,
        Command::Queue(args) => Box::pin(queue::run(&context, &args)).await,
        Command::Trust(args) => trust::run(&context, &args),
        Command::Tools(args) => tools::run(&context, &args).await,
        Command::Servers(command) => servers::run(&context, &command).await,
        Command::Store(command) => Box::pin(store::run(&context, &command)).await,
        Command::Token(command) => token::run(&context, &command).await,
        Command::Policy(Later(policy::Args {
            command: PolicyCommand::Explain(args),
        })) => policy::explain_policy(&context, &args).await,
    }
}

/// Many clients at once want all processors.
fn block_on_many_threads(
    work: impl Future<Output = Result<Exit, Failure>>,
) -> Result<Exit, Failure> {
    block_on(tokio::runtime::Builder::new_multi_thread(), work)
}

/// One thread is enough: calls wait, and what blocks has threads of its own.
fn block_on_one_thread(work: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    block_on(tokio::runtime::Builder::new_current_thread(), work)
}

fn block_on(
    mut builder: tokio::runtime::Builder,
    work: impl Future<Output = Result<Exit, Failure>>,
) -> Result<Exit, Failure> {
    let runtime = builder.enable_all().build().map_err(|error| {
        Failure::new(
            Exit::RunFailed,
            format!("cannot start the runtime: {error}"),
        )
    })?;
    let done = runtime.block_on(work);
    // A call that did not stop when told to must not keep the program alive.
    runtime.shutdown_background();
    done
}
