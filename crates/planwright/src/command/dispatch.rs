//! Runs the command that was named, on the runtime it needs.

use crate::command::args::{Cli, Command};
use crate::command::audit::{log, replay, stats, verify, watch};
use crate::command::execution::{
    cancel, chat, check, fail, fork, input, pause, resolve, resume, run, undo,
};
use crate::command::plan::{
    archive, create, delete, diff, edit, export, import, list, new, propose, regenerate, restore,
    show, template, validate, versions,
};
use crate::command::review::{approve, comment, comments, reject, request_changes};
use crate::command::service::{call, serve, token, webhooks};
use crate::command::setup::policy::PolicyCommand;
use crate::command::setup::{
    completions, doctor, executors, models, policy, schema, secrets, servers, tools,
};
use crate::command::{demo, store};
use crate::exit::{Exit, Failure};
use crate::telemetry;
use crate::terminal::printer::Printer;
use crate::workspace::app::Setting;
use crate::workspace::servers::Servers;

/// Runs the command that was named.
pub(crate) fn dispatch(cli: Cli, printer: Printer) -> Result<Exit, Failure> {
    let dir = cli.global.dir.as_deref();
    // These need no workspace, so a broken one does not stand in their way.
    let command = match cli.command {
        Command::Schema => return schema::run(printer),
        Command::Completions(args) => return completions::run(printer, &args),
        Command::Demo(args) => return demo::run(printer, dir, &args),
        Command::Call(args) => return on_runtime(async move { call::run(printer, &args).await }),
        Command::Doctor => return on_runtime(doctor::run(printer, dir, cli.global.unlock)),
        Command::Policy(policy::Args {
            command: PolicyCommand::Check { file },
        }) => {
            return policy::check(printer, dir, file.as_deref());
        }
        other => other,
    };
    let servers = Servers::new(cli.global.trust_project_servers);
    let setting = Setting::new(dir, printer, servers.clone())?.unlocked_by(cli.global.unlock);
    // Dropped last: it sends what was recorded.
    let service = matches!(command, Command::Serve(_));
    let _telemetry = telemetry::start(&cli.global.log, service, setting.config.telemetry())?;
    if let Command::Serve(args) = command {
        return on_many_threads(async move {
            let done = serve::run(&setting, &args).await;
            servers.close().await;
            done
        });
    }
    on_runtime(async move {
        let done = with_workspace(command, setting).await;
        servers.close().await;
        done
    })
}

async fn with_workspace(command: Command, setting: Setting) -> Result<Exit, Failure> {
    match command {
        Command::Schema
        | Command::Call(_)
        | Command::Completions(_)
        | Command::Demo(_)
        | Command::Serve(_)
        | Command::Doctor
        | Command::Policy(policy::Args {
            command: PolicyCommand::Check { .. },
        }) => Ok(Exit::Done),
        Command::New(args) => new::run(&setting, &args),
        Command::Create(args) => Box::pin(create::run(&setting, &args)).await,
        Command::Regenerate(args) => Box::pin(regenerate::run(&setting, &args)).await,
        Command::Import(args) => import::run(&setting, &args).await,
        Command::Export(args) => export::run(&setting, &args).await,
        Command::Validate(args) => validate::run(&setting, &args).await,
        Command::Show(args) => show::run(&setting, &args).await,
        Command::List(args) => list::run(&setting, &args).await,
        Command::Edit(args) => edit::run(&setting, &args).await,
        Command::Diff(args) => diff::run(&setting, &args).await,
        Command::Versions(args) => versions::run(&setting, &args).await,
        Command::Restore(args) => restore::run(&setting, &args).await,
        Command::Propose(args) => propose::run(&setting, &args).await,
        Command::Run(args) => Box::pin(run::run(&setting, &args)).await,
        Command::Resume(args) => Box::pin(resume::run(&setting, &args)).await,
        Command::Pause(args) => pause::run(&setting, &args).await,
        Command::Cancel(args) => cancel::run(&setting, &args).await,
        Command::Approve(args) => approve::run(&setting, &args).await,
        Command::Reject(args) => reject::run(&setting, &args).await,
        Command::RequestChanges(args) => request_changes::run(&setting, &args).await,
        Command::Comment(args) => comment::run(&setting, &args).await,
        Command::Comments(args) => comments::run(&setting, &args).await,
        Command::Fail(args) => fail::run(&setting, &args).await,
        Command::Archive(args) => archive::run(&setting, &args).await,
        Command::Unarchive(args) => archive::unarchive(&setting, &args).await,
        Command::Stats(args) => stats::run(&setting, &args).await,
        Command::Chat(args) => Box::pin(chat::run(&setting, &args)).await,
        Command::Input(args) => Box::pin(input::run(&setting, &args)).await,
        Command::Resolve(args) => resolve::run(&setting, &args).await,
        Command::Fork(args) => Box::pin(fork::run(&setting, &args)).await,
        Command::Check(args) => Box::pin(check::run(&setting, &args)).await,
        Command::Undo(args) => Box::pin(undo::run(&setting, &args)).await,
        Command::Template(args) => Box::pin(template::run(&setting, &args)).await,
        Command::Replay(args) => replay::run(&setting, &args).await,
        Command::Log(args) => log::run(&setting, &args).await,
        Command::Watch(args) => watch::run(&setting, &args).await,
        Command::Verify(args) => verify::run(&setting, &args).await,
        Command::Delete(args) => delete::run(&setting, &args).await,
        Command::Secrets(args) => secrets::run(&setting, &args).await,
        Command::Executors(args) => executors::run(&setting, &args),
        Command::Models(args) => models::run(&setting, &args).await,
        Command::Webhooks(args) => webhooks::run(&setting, &args).await,
        Command::Tools(args) => tools::run(&setting, &args).await,
        Command::Servers(command) => servers::run(&setting, &command).await,
        Command::Store(command) => store::run(&setting, &command).await,
        Command::Token(command) => token::run(&setting, &command).await,
        Command::Policy(policy::Args {
            command: PolicyCommand::Explain(args),
        }) => policy::explain(&setting, &args).await,
    }
}

/// Many clients at once want all processors.
fn on_many_threads(work: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    on(tokio::runtime::Builder::new_multi_thread(), work)
}

/// One thread is enough: calls wait, and what blocks has threads of its own.
fn on_runtime(work: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    on(tokio::runtime::Builder::new_current_thread(), work)
}

fn on(
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
