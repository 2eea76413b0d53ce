//! The help of the program: its commands under headings, the options that every command has under
//! one.

/// The template of `planwright --help`.
pub(crate) const TOP_HELP: &str = "\
{about-with-newline}
{usage-heading} {usage}

Start:
  init       Set up this folder with what is found on this machine
  demo       Show a review, an approval, a parallel run, a crash and the recovery
  tui        Review, decide and watch on a full screen

Plan:
  new        Write a first plan to edit
  create     Have a model write a plan for a goal
  list       List the plans (ls)
  show       Show a plan, its steps and its runs, or a run
  edit       Change a plan: every change is a new version

Decide:
  inbox      List what waits for you, with the command that decides each
  approve    Approve a plan, or one step of its run
  reject     Reject a plan, or one step of its run

Run:
  run        Run a plan: by its id, or from a file
  resume     Continue a run; after a failure, run what is left
  stop       Stop a run, for now or for good

Talk and serve:
  chat       Chat with a model that can use the tools
  serve      Serve the plans over HTTP, with a page

More, each with its own --help:
  plan       import export validate regenerate diff versions restore propose
             archive unarchive delete template from-session stats schema
  runs       log watch pause cancel fail fork undo input resolve check repair
             replay verify receipt artifact
  review     comment comments request-changes
  server     list trust untrust check        (MCP servers)
  model      list check trust untrust
  policy     check explain list remove
  store      encrypt backup restore check compact adopt …
  config     doctor trust tools executors secrets webhooks queue token setup
             completions

  status, explain CODE|PAGE, version, worker, workers, mcp, hook and call stand at the top as
  well, and so does every command of a noun: `planwright log` is `planwright runs log`.

Global options:
{options}{after-help}";

#[cfg(test)]
mod tests {
    use super::TOP_HELP;
    use crate::command::args::{Cli, describe_all_commands};
    use clap::CommandFactory as _;

    /// The names at the start of a line of the help.
    fn names() -> Vec<&'static str> {
        let lines = TOP_HELP.lines().filter_map(|line| line.strip_prefix("  "));
        let named = lines.filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()));
        let named = named.filter(|line| line.contains("   "));
        named
            .filter_map(|line| line.split_whitespace().next())
            .collect()
    }

    #[test]
    fn the_help_names_every_command_that_is_not_hidden_and_few_of_them() {
        let command = Cli::command();
        let mut shown: Vec<&str> = command
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(clap::Command::get_name)
            .collect();
        let mut named = names();
        named.sort_unstable();
        shown.sort_unstable();
        assert_eq!(named, shown);
        let nouns = [
            "plan", "runs", "review", "server", "model", "policy", "store", "config",
        ];
        let verbs = named.iter().filter(|name| !nouns.contains(*name));
        assert_eq!(verbs.count(), 16);
    }

    #[test]
    fn a_command_that_was_named_says_of_itself_what_the_list_says() {
        let mut all = Cli::command();
        all.build();
        for listed in Cli::command().get_subcommands() {
            let named = all.find_subcommand(listed.get_name()).unwrap();
            let sentences = |command: &clap::Command| {
                let about = command.get_about().map(ToString::to_string);
                (about, command.get_long_about().map(ToString::to_string))
            };
            assert_eq!(sentences(named), sentences(listed));
            assert!(named.get_about().is_some(), "{}", listed.get_name());
        }
    }

    #[test]
    fn every_command_of_a_noun_stands_at_the_top_too() {
        let command = describe_all_commands();
        for noun in ["plan", "runs", "review", "config"] {
            let group = command.find_subcommand(noun).unwrap();
            let members: Vec<_> = group
                .get_subcommands()
                .filter(|member| member.get_name() != "help")
                .collect();
            assert!(members.len() >= 3, "{noun}");
            for member in members {
                let top = command.find_subcommand(member.get_name());
                assert!(
                    top.is_some_and(clap::Command::is_hide_set),
                    "{}",
                    member.get_name()
                );
                assert!(
                    TOP_HELP.contains(member.get_name()),
                    "{}",
                    member.get_name()
                );
            }
        }
    }

    #[test]
    fn names_of_earlier_releases_still_work() {
        let command = Cli::command();
        for name in [
            "servers",
            "models",
            "executors",
            "secrets",
            "webhooks",
            "delete",
            "rm",
            "ls",
            "tools",
            "doctor",
            "import",
            "validate",
            "log",
            "watch",
            "fork",
            "undo",
            "input",
            "resolve",
            "verify",
            "schema",
            "from-session",
            "completions",
            "trust",
            "token",
            "setup",
            "hook",
            "mcp",
            "call",
        ] {
            assert!(command.find_subcommand(name).is_some(), "{name}");
        }
    }
}
