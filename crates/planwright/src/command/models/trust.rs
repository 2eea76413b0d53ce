//! `models trust` and `models untrust`: the user's word about a provider that a project's file describes.

use crate::config::FILE;
use crate::consent::{Answer, ask};
use crate::exit::{Exit, Failure};
use crate::model_table::trust_name;
use crate::printer::{BOLD, line};
use crate::servers::Trust;
use crate::wire_up::Setting;
use serde_json::json;

#[derive(Debug, clap::Args)]
pub(crate) struct TrustArgs {
    /// The provider, as the file names it.
    name: String,
    /// Do not ask.
    #[arg(long, short = 'y')]
    yes: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UntrustArgs {
    /// The provider, as the file names it.
    name: String,
}

pub(crate) fn trust(setting: &Setting, args: &TrustArgs) -> Result<Exit, Failure> {
    let (printer, workspace) = (setting.printer, &setting.workspace.root);
    let described = setting.config.models(workspace, &|_| None)?;
    let name = &args.name;
    let (Some(digest), Some(provider)) = (described.foreign.get(name), described.options.providers.get(name))
    else {
        return Err(Failure::usage(format!("no provider `{}` needs trust", line(name)))
            .hint(format!("only what {FILE} of the workspace says about models elsewhere does")));
    };
    let label = |name: &str| printer.err(BOLD, &format!("  {name:12}"));
    printer.talk(&format!("the provider `{}` of {FILE}", line(name)));
    printer.talk(&format!("{}{}", label("address"), line(&provider.base_url)));
    let key = provider.key.as_ref().map_or_else(|| "none is sent".to_owned(), ToString::to_string);
    printer.talk(&format!("{}{}", label("key"), line(&key)));
    printer.talk("  it would see that key, and everything that models are asked in this workspace");
    if !args.yes {
        if !printer.can_ask() {
            return Err(Failure::refused("a person has to see this and agree")
                .hint(format!("repeat it at a terminal, or planwright models trust {name} --yes")));
        }
        match ask(printer, "Trust it?")? {
            Answer::Yes => {}
            Answer::No | Answer::Neither => return Err(Failure::refused("not trusted")),
        }
    }
    Trust::read(workspace).grant(&trust_name(name), *digest, &provider.base_url)?;
    if printer.json {
        printer.document(&json!({ "name": name, "trusted": true, "digest": digest }))?;
    } else {
        printer.data(&format!("{}  trusted  {digest}", line(name)))?;
    }
    Ok(Exit::Done)
}

pub(crate) fn untrust(setting: &Setting, args: &UntrustArgs) -> Result<Exit, Failure> {
    let (printer, name) = (setting.printer, &args.name);
    let found = Trust::read(&setting.workspace.root).revoke(&trust_name(name))?;
    if printer.json {
        printer.document(&json!({ "name": name, "trusted": false, "wasTrusted": found }))?;
    } else if found {
        printer.data(&format!("{}  no longer trusted", line(name)))?;
    } else {
        printer.data(&format!("{}  was not trusted", line(name)))?;
    }
    Ok(Exit::Done)
}
