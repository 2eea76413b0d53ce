//! `trust`: the user's word about what the files of a folder loosen.

use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::terminal::printer::{DIM, GREEN, Printer, YELLOW, line};
use crate::terminal::trust_prompt::{
    Detail, FolderAnswer, ask_about_folder, describe_remedy, show_untrusted,
};
use crate::trust::{JudgedLoosening, TrustEntry, TrustState, account};
use crate::workspace::app::CommandContext;
use crate::workspace::principal::refuse_agents;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// List what is trusted, here and in other folders, and what is not trusted here.
    #[arg(long, conflicts_with_all = ["revoke", "yes", "owner"])]
    list: bool,
    /// Revoke all trust in this folder.
    #[arg(long, conflicts_with_all = ["yes", "owner"])]
    revoke: bool,
    /// Do not ask for confirmation: what is trusted is shown all the same.
    #[arg(long, short = 'y')]
    yes: bool,
    /// Accept files of this account in this folder, as if they were yours. They still have to be
    /// trusted.
    #[arg(long, value_name = "UID")]
    owner: Option<u32>,
}

pub(crate) fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    if args.list {
        return list(context);
    }
    refuse_agents("trust a folder, nor take trust back")?;
    if args.revoke {
        return revoke(context);
    }
    if let Some(uid) = args.owner {
        return accept_owner(context, uid);
    }
    trust(context, args.yes)
}

fn trust(context: &CommandContext, yes: bool) -> Result<Exit, Failure> {
    let CommandContext {
        folder,
        printer,
        workspace,
        ..
    } = context;
    if folder.untrusted_loosenings().next().is_none() {
        let words = if folder.judged.is_empty() {
            "nothing in this folder's files needs trust"
        } else {
            "everything is trusted already"
        };
        printer.talk(words);
        return print_folder(context);
    }
    if let Some(file) = folder.trust().foreign().first() {
        return Err(
            Failure::refused(format!("nothing here can be trusted: {file}")).hint(file.remedy()),
        );
    }
    if yes {
        show_untrusted(*printer, folder, &workspace.root, Detail::Full);
    } else if !printer.can_ask() {
        show_untrusted(*printer, folder, &workspace.root, Detail::Full);
        return Err(Failure::refused("trusting this needs a confirmation").hint(
            "repeat the command at a terminal, or planwright trust --yes if you have read it",
        ));
    } else if ask_about_folder(*printer, folder, &workspace.root)? == FolderAnswer::GoOn {
        return Err(Failure::refused("not trusted"));
    }
    folder.grant()?;
    let judged = folder.judged.iter();
    let count = count_of(judged.len(), "setting", "settings");
    print_result(
        *printer,
        &json!({
            "folder": workspace.root,
            "trusted": true,
            "loosenings": judged.map(|judged| document(judged, TrustState::Trusted)).collect::<Vec<_>>(),
        }),
        &format!("{}  trusted  ({count})", workspace.root.display()),
    )
}

fn revoke(context: &CommandContext) -> Result<Exit, Failure> {
    let root = &context.workspace.root;
    let count = context.folder.trust().revoke_all()?;
    let words = match count {
        0 => "was not trusted",
        _ => "no longer trusted",
    };
    print_result(
        context.printer,
        &json!({ "folder": root, "trusted": false, "revoked": count }),
        &format!("{}  {words}", root.display()),
    )
}

fn accept_owner(context: &CommandContext, uid: u32) -> Result<Exit, Failure> {
    let root = &context.workspace.root;
    context.folder.trust().accept_owner(uid)?;
    context
        .printer
        .hint("To review what its files bring and trust it: planwright trust");
    print_result(
        context.printer,
        &json!({ "folder": root, "owner": uid, "accepted": true }),
        &format!("{}  files of {} are accepted", root.display(), account(uid)),
    )
}

fn list(context: &CommandContext) -> Result<Exit, Failure> {
    let printer = context.printer;
    let trust = context.folder.trust();
    if let Some(problem) = trust.problem() {
        printer.warn(problem);
    }
    let mut folders: BTreeMap<&str, Vec<&TrustEntry>> = BTreeMap::new();
    for entry in trust.entries() {
        folders.entry(&entry.folder).or_default().push(entry);
    }
    if printer.json {
        let entry = |entry: &&TrustEntry| json!({ "name": entry.name, "digest": entry.digest, "words": entry.words });
        let folder = |(folder, entries): (&&str, &Vec<&TrustEntry>)| json!({ "folder": folder, "trusted": entries.iter().map(entry).collect::<Vec<_>>() });
        printer.document(&json!({
            "folder": context.workspace.root,
            "loosenings": documents(context),
            "problem": trust.problem(),
            "folders": folders.iter().map(folder).collect::<Vec<_>>(),
        }))?;
        return Ok(Exit::Done);
    }
    for (folder, entries) in &folders {
        let here = if Some(*folder) == trust.folder() {
            printer.out(DIM, "  (this folder)")
        } else {
            String::new()
        };
        printer.data(&format!("{}{here}", line(folder)))?;
        for entry in entries {
            let words = printer.out(DIM, &line(&entry.words));
            printer.data(&format!("  {:24}  {words}", line(&entry.name)))?;
        }
    }
    if context.folder.untrusted_loosenings().next().is_some() {
        printer.data("not trusted in this folder:")?;
    }
    for judged in context.folder.untrusted_loosenings() {
        print_judged(printer, judged)?;
    }
    if let Some(ignored) = context.folder.summary() {
        let remedy = describe_remedy(&context.folder);
        printer.warn(&format!("not trusted, and so ignored: {ignored}{remedy}"));
    } else if folders.is_empty() {
        printer.talk("nothing is trusted");
    }
    Ok(Exit::Done)
}

fn print_folder(context: &CommandContext) -> Result<Exit, Failure> {
    let printer = context.printer;
    if printer.json {
        printer.document(&json!({
            "folder": context.workspace.root, "trusted": true, "loosenings": documents(context),
        }))?;
        return Ok(Exit::Done);
    }
    for judged in &context.folder.judged {
        print_judged(printer, judged)?;
    }
    Ok(Exit::Done)
}

fn print_judged(printer: Printer, judged: &JudgedLoosening) -> Result<(), Failure> {
    let word = match judged.state {
        TrustState::Trusted => printer.out(GREEN, "trusted  "),
        TrustState::Changed => printer.out(YELLOW, "changed  "),
        TrustState::Unknown => printer.out(YELLOW, "untrusted"),
    };
    let loosening = &judged.loosening;
    printer.data(&format!(
        "  {word}  {:18}  {}  {}",
        line(&loosening.place),
        line(&loosening.key),
        line(&loosening.value)
    ))
}

fn documents(context: &CommandContext) -> Vec<Value> {
    let judged = context.folder.judged.iter();
    judged
        .map(|judged| document(judged, judged.state))
        .collect()
}

fn document(judged: &JudgedLoosening, state: TrustState) -> Value {
    let loosening = &judged.loosening;
    let parts: Vec<Value> = loosening
        .parts
        .iter()
        .map(|(label, text)| json!({ "label": label, "text": text }))
        .collect();
    json!({
        "place": loosening.place,
        "key": loosening.key,
        "value": loosening.value,
        "parts": parts,
        "warnings": loosening.warnings,
        "content": loosening.content,
        "digest": loosening.digest,
        "state": match state {
            TrustState::Trusted => "trusted",
            TrustState::Changed => "changed",
            TrustState::Unknown => "untrusted",
        },
    })
}

fn print_result(printer: Printer, document: &Value, words: &str) -> Result<Exit, Failure> {
    if printer.json {
        printer.document(document)?;
    } else {
        printer.data(&line(words))?;
    }
    Ok(Exit::Done)
}
