//! `queue`: what waits at the broker, and what it gave up.

use crate::exit::{Exit, Failure};
use crate::terminal::printer::{BOLD, DIM, YELLOW, line};
use crate::workspace::app::CommandContext;
use crate::workspace::broker_address::{find_broker, open_broker};
use crate::workspace::principal::refuse_agents;
use planwright_api::{DeadNoticeList, PurgedNotices, QueueList, RequeuedNotices};
use planwright_engine::port::Broker;
use planwright_server::documents::{dead_notice_line, queue_line};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;

/// The most dead notices that are read at once.
const MAX_LISTED: usize = 10_000;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The broker: amqp://USER@HOST/VHOST or redis://HOST/NUMBER. Default: PLANWRIGHT_DISPATCH, then
    /// [dispatch] url of planwright.toml. The password may be in PLANWRIGHT_DISPATCH_PASSWORD.
    #[arg(long, global = true, value_name = "URL")]
    dispatch: Option<String>,
    #[command(subcommand)]
    command: QueueCommand,
}

/// The address of a broker may hold a password.
impl fmt::Debug for Args {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Args")
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, clap::Subcommand)]
enum QueueCommand {
    /// The queues: what waits, what workers hold, what was given up.
    List {
        /// The capabilities; default: those of [dispatch] capabilities.
        #[arg(value_name = "CAPABILITY")]
        capabilities: Vec<String>,
    },
    /// Show the notices of a capability that were given up, the oldest first.
    Show {
        capability: String,
        /// How many at most.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=10_000))]
        limit: u16,
    },
    /// Send notices that were given up again, by the ids that `show` prints.
    Requeue {
        capability: String,
        #[arg(value_name = "ID", required_unless_present = "all")]
        ids: Vec<String>,
        /// All that can be read.
        #[arg(long, conflicts_with = "ids")]
        all: bool,
    },
    /// Forget all notices of a capability that were given up. Their steps are offered again by the
    /// owners of the runs.
    Purge { capability: String },
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let address = find_broker(context, args.dispatch.as_deref())?;
    let Some(address) = address else {
        return Err(Failure::usage(
            "no broker is configured: steps are offered to workers in the store",
        )
        .hint("[dispatch] url in planwright.toml, or --dispatch URL, names one"));
    };
    let broker = open_broker(address)?;
    match &args.command {
        QueueCommand::List { capabilities } => list_queues(context, &broker, capabilities).await,
        QueueCommand::Show { capability, limit } => {
            show_dead(context, &broker, capability, (*limit).into()).await
        }
        QueueCommand::Requeue {
            capability,
            ids,
            all,
        } => {
            refuse_agents("send notices again")?;
            let ids = match all {
                true => readable_ids(&broker, capability).await?,
                false => ids.clone(),
            };
            requeue(context, &broker, capability, &ids).await
        }
        QueueCommand::Purge { capability } => {
            refuse_agents("forget notices")?;
            purge(context, &broker, capability).await
        }
    }
}

async fn list_queues(
    context: &CommandContext,
    broker: &Arc<dyn Broker>,
    named: &[String],
) -> Result<Exit, Failure> {
    let capabilities: Vec<String> = match named.is_empty() {
        true => context.config.dispatch().capabilities.into_iter().collect(),
        false => named.to_vec(),
    };
    if capabilities.is_empty() {
        return Err(Failure::usage("no capability is named").hint(
            "planwright queue list CAPABILITY, or [dispatch] capabilities in planwright.toml",
        ));
    }
    let states = broker.states(&capabilities).await?;
    let queues = states.into_iter().map(queue_line).collect();
    let list = QueueList { queues };
    let printer = context.printer;
    if printer.json {
        printer.document(&list)?;
        return Ok(Exit::Done);
    }
    for queue in list.queues {
        let name = printer.out(BOLD, &format!("{:16}", line(&queue.capability)));
        let held = queue.held.map(|held| format!(", {held} held"));
        let dead = format!("{} given up", queue.dead);
        let dead = match queue.dead {
            0 => dead,
            _ => printer.out(YELLOW, &dead),
        };
        let oldest = queue.oldest.map(|at| format!("  oldest {at}"));
        printer.data(&format!(
            "{name}  {} waiting{}, {dead}{}",
            queue.waiting,
            held.unwrap_or_default(),
            printer.out(DIM, &oldest.unwrap_or_default())
        ))?;
    }
    Ok(Exit::Done)
}

async fn show_dead(
    context: &CommandContext,
    broker: &Arc<dyn Broker>,
    capability: &str,
    limit: usize,
) -> Result<Exit, Failure> {
    let dead = broker.list_dead(capability, limit).await?;
    let list = DeadNoticeList {
        capability: capability.to_owned(),
        dead: dead.iter().map(dead_notice_line).collect(),
    };
    let printer = context.printer;
    if printer.json {
        printer.document(&list)?;
        return Ok(Exit::Done);
    }
    if list.dead.is_empty() {
        printer.talk("nothing was given up");
    }
    for dead in list.dead {
        let what = match (&dead.run, &dead.step, dead.attempt) {
            (Some(run), Some(step), Some(attempt)) => {
                format!("{run} {} attempt {attempt}", line(step))
            }
            _ => "not a notice of planwright's".to_owned(),
        };
        let deliveries = dead.deliveries.map(|count| format!("  {count} deliveries"));
        let since = dead.since.map(|at| format!("  {at}"));
        printer.data(&format!(
            "{}  {what}{}{}",
            printer.out(BOLD, &line(&dead.id)),
            deliveries.unwrap_or_default(),
            printer.out(DIM, &since.unwrap_or_default())
        ))?;
    }
    Ok(Exit::Done)
}

async fn readable_ids(broker: &Arc<dyn Broker>, capability: &str) -> Result<Vec<String>, Failure> {
    let dead = broker.list_dead(capability, MAX_LISTED).await?;
    let readable = dead.into_iter().filter(|dead| dead.notice.is_some());
    Ok(readable.map(|dead| dead.id).collect())
}

async fn requeue(
    context: &CommandContext,
    broker: &Arc<dyn Broker>,
    capability: &str,
    ids: &[String],
) -> Result<Exit, Failure> {
    let mut requeued = 0;
    for id in ids {
        if !broker.requeue(capability, id).await? {
            let message = format!(
                "no notice `{}` was given up ({requeued} were sent again)",
                line(id)
            );
            return Err(Failure::usage(message).hint(format!(
                "To list them: planwright queue show {}",
                line(capability)
            )));
        }
        requeued += 1;
    }
    print_count(
        context,
        &RequeuedNotices { requeued },
        requeued,
        "sent again",
    )
}

async fn purge(
    context: &CommandContext,
    broker: &Arc<dyn Broker>,
    capability: &str,
) -> Result<Exit, Failure> {
    let purged = broker.purge_dead(capability).await?;
    print_count(context, &PurgedNotices { purged }, purged, "forgotten")
}

fn print_count(
    context: &CommandContext,
    document: &impl Serialize,
    count: u64,
    words: &str,
) -> Result<Exit, Failure> {
    match context.printer.json {
        true => context.printer.document(document)?,
        false => context.printer.data(&format!("{count} {words}"))?,
    }
    Ok(Exit::Done)
}
