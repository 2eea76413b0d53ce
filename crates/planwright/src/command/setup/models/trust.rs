//! `models trust` and `models untrust`: the user's word about a provider that a project's file
//! describes.

use crate::config::file::FILE;
use crate::config::models::trust_name;
use crate::exit::{Exit, Failure};
use crate::terminal::printer::{BOLD, line};
use crate::terminal::trust_prompt;
use crate::workspace::app::CommandContext;
use crate::workspace::servers::Trust;

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
    let described = context.config.models(workspace, &|_| None)?;
    let name = &args.name;
    let (Some(digest), Some(provider)) = (
        described.foreign.get(name),
        described.options.providers.get(name),
    ) else {
        return Err(
            Failure::usage(format!("no provider `{}` needs trust", line(name))).hint(format!(
                "only what {FILE} of the workspace says about models elsewhere does"
            )),
        );
    };
    let label = |name: &str| printer.err(BOLD, &format!("  {name:12}"));
    printer.talk(&format!("the provider `{}` of {FILE}", line(name)));
    printer.talk(&format!("{}{}", label("address"), line(&provider.base_url)));
    let key = provider
        .key
        .as_ref()
        .map_or_else(|| "none is sent".to_owned(), ToString::to_string);
    printer.talk(&format!("{}{}", label("key"), line(&key)));
    printer.talk("  it would see that key, and everything that models are asked in this workspace");
    trust_prompt::confirm_trust(printer, args.yes, &format!("models trust {name}"))?;
    Trust::read(workspace).grant(&trust_name(name), *digest, &provider.base_url)?;
    trust_prompt::print_trusted(printer, name, *digest)
}

pub(crate) fn untrust_provider(
    context: &CommandContext,
    args: &UntrustArgs,
) -> Result<Exit, Failure> {
    let printer = context.printer;
    let name = &args.name;
    let found = Trust::read(&context.workspace.root).revoke(&trust_name(name))?;
    trust_prompt::print_untrusted(printer, name, found)
}
