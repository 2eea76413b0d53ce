//! `models trust` and `models untrust`: the user's word about a provider that a project's file
//! describes.

use crate::config::file::FILE;
use crate::config::models::{loosenings, trust_name};
use crate::exit::{Exit, Failure};
use crate::terminal::printer::line;
use crate::terminal::trust_prompt::{self, Detail};
use crate::trust::{Subject, Trust};
use crate::workspace::app::CommandContext;
use crate::workspace::principal::refuse_agents;

#[derive(Debug, clap::Args)]
pub(crate) struct TrustArgs {
    /// The provider, as the file names it.
    name: String,
    /// Do not ask for confirmation.
    #[arg(long, short = 'y')]
    yes: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UntrustArgs {
    /// The provider, as the file names it.
    name: String,
}

pub(crate) fn trust_provider(context: &CommandContext, args: &TrustArgs) -> Result<Exit, Failure> {
    let printer = context.printer;
    let workspace = &context.workspace.root;
    let name = &args.name;
    let subject = Subject::Provider(name.clone());
    let found = loosenings(&context.config, workspace)?;
    let Some(shown) = found.iter().find(|shown| shown.subject == subject) else {
        return Err(
            Failure::usage(format!("no provider `{}` needs trust", line(name))).hint(format!(
                "only what {FILE} of the workspace says about places of models does"
            )),
        );
    };
    trust_prompt::show_loosening(printer, shown, Detail::Full);
    trust_prompt::confirm_trust(printer, args.yes, &format!("models trust {name}"))?;
    Trust::read(workspace).grant(&subject.trust_name(), shown.digest, &shown.value)?;
    trust_prompt::print_trusted(printer, name, shown.digest)
}

pub(crate) fn untrust_provider(
    context: &CommandContext,
    args: &UntrustArgs,
) -> Result<Exit, Failure> {
    refuse_agents("take trust back")?;
    let printer = context.printer;
    let name = &args.name;
    let found = Trust::read(&context.workspace.root).revoke(&trust_name(name))?;
    trust_prompt::print_untrusted(printer, name, found)
}
