//! Says, independently of `decide`, whether a call was covered by consent at the moment it started.
//!
//! It knows the six policies of the world by heart instead of reading them, and keeps its own books
//! about who agreed to what and when.

use planwright_core::principal::{Principal, PrincipalKind};
use planwright_core::run::Verdict;
use std::collections::BTreeSet;

/// What a call's text argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To<'a> {
    Absent,
    Known(&'a str),
    Later,
}

/// What a person chose for a late-bound step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    Any,
    Ask,
    /// Anything but `evil`.
    NotEvil,
}

/// The step of a plan, as the oracle sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) id: &'static str,
    pub(crate) tool: &'static str,
    pub(crate) to: To<'static>,
}

/// Everything an approval is about: what the document does, the tools and the policy. Its words are
/// not in it.
pub(crate) type Fingerprint = (usize, Vec<u32>, usize);

#[derive(Debug, Clone)]
struct Yes {
    by: Principal,
    /// Given with a token.
    token: bool,
    about: Fingerprint,
    until: Option<i64>,
    uses: u32,
    choices: Vec<(&'static str, Choice)>,
}

#[derive(Debug, Clone)]
struct Running {
    about: Fingerprint,
    people: bool,
    proposer: Principal,
    choices: Vec<(&'static str, Choice)>,
    /// Step, tool and text that a person agreed to.
    agreed: BTreeSet<(String, String, String)>,
    asked: Vec<(String, i64)>,
}

#[derive(Debug, Default)]
pub(crate) struct Oracle {
    yes: Vec<Yes>,
    run: Option<Running>,
}

pub(crate) fn says(policy: usize, tool: &str, to: To<'_>) -> Verdict {
    let usual = if tool == "s.write" {
        Verdict::Ask
    } else {
        Verdict::Allow
    };
    match (policy, tool, to) {
        (1, "s.write", To::Known("evil")) => Verdict::Deny,
        (1, "s.write", To::Known("ok")) => Verdict::Allow,
        (3, "s.peek", _) => Verdict::Ask,
        (4, _, To::Known(text)) if text.len() <= 2 => Verdict::Allow,
        (4, _, _) => Verdict::Ask,
        _ => usual,
    }
}

fn people_needed(policy: usize) -> usize {
    if policy == 2 { 2 } else { 1 }
}

fn lasts(policy: usize) -> Option<i64> {
    match policy {
        1 => Some(10_000),
        3 => Some(20_000),
        _ => None,
    }
}

impl Oracle {
    /// An approval was accepted.
    pub(crate) fn approved(
        &mut self,
        (by, proposer, token): (&Principal, &Principal, bool),
        (about, now): (&Fingerprint, i64),
        parts: &[Part],
        chosen: &[(&'static str, Choice)],
    ) {
        let policy = about.2;
        let verdicts: Vec<Verdict> = parts
            .iter()
            .map(|part| says(policy, part.tool, part.to))
            .collect();
        assert!(
            !verdicts.contains(&Verdict::Deny),
            "what policy denies was approved"
        );
        match by.kind {
            PrincipalKind::Person => {
                assert!(
                    policy != 2 || by != proposer,
                    "four eyes: {by} approved their own plan"
                );
            }
            PrincipalKind::Policy => {
                assert!(
                    verdicts.iter().all(|&verdict| verdict == Verdict::Allow),
                    "policy approved what it asks about"
                );
            }
            PrincipalKind::Agent | PrincipalKind::Service => panic!("{by} approved a plan"),
        }
        let default = if policy == 2 {
            Choice::Ask
        } else {
            Choice::Any
        };
        let late = parts
            .iter()
            .zip(&verdicts)
            .filter(|(part, _)| part.to == To::Later);
        let choices = late.filter_map(|(part, &verdict)| {
            let chosen = chosen
                .iter()
                .find(|(step, _)| *step == part.id)
                .map(|(_, choice)| *choice);
            Some((
                part.id,
                chosen.or_else(|| (verdict == Verdict::Ask).then_some(default))?,
            ))
        });
        self.yes.push(Yes {
            by: by.clone(),
            token,
            about: about.clone(),
            until: lasts(policy).map(|span| now + span),
            uses: if policy == 3 { 2 } else { 1 },
            choices: choices.collect(),
        });
    }

    pub(crate) fn rejected(&mut self) {
        self.yes.clear();
    }

    /// The approvals of a principal no longer count. With `tokens`, only those given with a token
    /// are lost.
    pub(crate) fn revoked(&mut self, of: &Principal, by: &Principal, tokens: bool) {
        let may = by == of || by.kind == PrincipalKind::Person;
        assert!(may, "{by} revoked an approval of {of}");
        self.yes.retain(|yes| yes.by != *of || tokens && !yes.token);
    }

    /// Another version is current. What was agreed to before counts only if that was exactly what
    /// this version does, with the tools and the policy there were when it was written.
    pub(crate) fn edited(&mut self, about: &Fingerprint) {
        self.yes.retain(|yes| yes.about == *about);
    }

    /// A run was opened. Panics if no valid approval of exactly this existed at that moment.
    pub(crate) fn opened(&mut self, about: &Fingerprint, now: i64, proposer: &Principal) {
        let counts = |yes: &Yes| {
            yes.about == *about && yes.uses > 0 && yes.until.is_none_or(|until| now < until)
        };
        let mut names = BTreeSet::new();
        let mut by_policy = false;
        let mut choices = Vec::new();
        for yes in self.yes.iter_mut().filter(|yes| counts(yes)) {
            yes.uses -= 1;
            match yes.by.kind {
                PrincipalKind::Policy => by_policy = true,
                _ => {
                    names.insert(yes.by.name.clone());
                }
            }
            choices.extend(yes.choices.clone());
        }
        assert!(
            by_policy || names.len() >= people_needed(about.2),
            "a run began without an approval"
        );
        self.run = Some(Running {
            about: about.clone(),
            people: names.len() >= people_needed(about.2),
            proposer: proposer.clone(),
            choices,
            agreed: BTreeSet::new(),
            asked: Vec::new(),
        });
    }

    pub(crate) fn asked(&mut self, step: &str, now: i64) {
        let run = self.run.as_mut().expect("only a run asks");
        run.asked.retain(|(other, _)| other != step);
        run.asked.push((step.to_owned(), now));
    }

    /// A person agreed to a call that was shown.
    pub(crate) fn agreed(&mut self, by: &Principal, now: i64, call: (&str, &str, &str)) {
        let run = self.run.as_mut().expect("only a run asks");
        assert_eq!(by.kind, PrincipalKind::Person, "{by} approved a call");
        if run.about.2 == 2 {
            assert_ne!(
                *by, run.proposer,
                "four eyes: {by} approved a call of their own plan"
            );
            let (_, at) = run
                .asked
                .iter()
                .find(|(step, _)| step == call.0)
                .expect("it was asked about");
            assert!(now < at + 5_000, "an approval was given after its time");
        }
        run.agreed
            .insert((call.0.into(), call.1.into(), call.2.into()));
    }

    /// A call started. Panics unless it is covered.
    pub(crate) fn started(&self, part: &Part, to: &str, tools: &[u32], tool_at: usize) {
        let run = self.run.as_ref().expect("only a run calls");
        assert_eq!(
            run.about.1[tool_at], tools[tool_at],
            "`{}` was called though it had changed",
            part.tool
        );
        let known = if part.to == To::Absent {
            To::Absent
        } else {
            To::Known(to)
        };
        // The argument of `peek` has another name, so the policies see none.
        let known = if part.tool == "s.peek" {
            To::Absent
        } else {
            known
        };
        let agreed =
            run.agreed
                .contains(&(part.id.to_owned(), part.tool.to_owned(), to.to_owned()));
        let verdict = says(run.about.2, part.tool, known);
        assert_ne!(
            verdict,
            Verdict::Deny,
            "{} was called though policy denies it",
            part.id
        );
        let late = part.to == To::Later || part.tool == "s.peek";
        let choices: Vec<Choice> = run
            .choices
            .iter()
            .filter(|(step, _)| *step == part.id)
            .map(|(_, choice)| *choice)
            .collect();
        assert!(
            !(choices.contains(&Choice::NotEvil) && to == "evil"),
            "a constraint was broken"
        );
        assert!(
            !choices.contains(&Choice::Ask) || agreed,
            "a call left that was to be asked about"
        );
        if verdict == Verdict::Ask && !agreed {
            assert!(run.people, "only policy had approved {}", part.id);
            assert!(
                !late || !choices.is_empty(),
                "no person had agreed to unknown arguments of {}",
                part.id
            );
        }
    }
}
