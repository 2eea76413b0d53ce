//! What is on the screen, and what keys do to it. Nothing here reads, writes or waits.

use planwright_core::briefing::BriefingLine;
use planwright_core::id::{PlanId, RunId};

/// A key, as far as it means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Escape,
    Tab,
    Backspace,
    Interrupt,
    Char(char),
}

/// What is seen. The pages below it wait for `Esc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    Inbox,
    Plans,
    Decision,
    Run,
    Log,
}

/// What the person wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    Leave,
    ShowPlan(PlanId),
    ShowRun {
        plan: PlanId,
        run: RunId,
    },
    ShowStep {
        run: RunId,
        step: String,
    },
    ShowLog(PlanId),
    Approve {
        see_late_values: bool,
    },
    Reject(String),
    Comment(String),
    Resolve {
        run: RunId,
        step: String,
        word: String,
    },
    Start(PlanId),
    Resume(PlanId),
    Pause(RunId),
    Cancel(RunId),
    /// A command of the command line, on the ordinary screen.
    Command(Vec<String>),
}

/// Rows with one of them chosen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chosen<T> {
    rows: Vec<T>,
    at: usize,
}

impl<T> Default for Chosen<T> {
    fn default() -> Self {
        let rows = Vec::new();
        Self { rows, at: 0 }
    }
}

impl<T> Chosen<T> {
    /// Shows other rows. The same place stays chosen as long as there is such a row.
    pub(crate) fn set_rows(&mut self, rows: Vec<T>) {
        self.at = self.at.min(rows.len().saturating_sub(1));
        self.rows = rows;
    }

    pub(crate) fn rows(&self) -> &[T] {
        &self.rows
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn row(&self) -> Option<&T> {
        self.rows.get(self.at)
    }

    pub(crate) fn choose(&mut self, at: usize) {
        self.at = at.min(self.rows.len().saturating_sub(1));
    }

    fn move_by(&mut self, key: Key, page: usize) -> bool {
        let last = self.rows.len().saturating_sub(1);
        self.at = match key {
            Key::Up | Key::Char('k') => self.at.saturating_sub(1),
            Key::Down | Key::Char('j') => (self.at + 1).min(last),
            Key::PageUp => self.at.saturating_sub(page),
            Key::PageDown => (self.at + page).min(last),
            Key::Home | Key::Char('g') => 0,
            Key::End | Key::Char('G') => last,
            _ => return false,
        };
        true
    }
}

/// One thing that waits for the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InboxRow {
    /// The kind of decision: `Approve`, `Answer`, `Decide`.
    pub(crate) word: &'static str,
    pub(crate) plan: PlanId,
    pub(crate) run: Option<RunId>,
    pub(crate) step: Option<String>,
    pub(crate) kind: WaitKind,
    pub(crate) title: String,
    pub(crate) since: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitKind {
    Plan,
    Call,
    Question,
    Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanRow {
    pub(crate) id: PlanId,
    pub(crate) title: String,
    pub(crate) status: String,
    pub(crate) steps: usize,
    /// The latest run.
    pub(crate) run: Option<RunId>,
}

/// A plan or a call that is decided on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DecisionPage {
    pub(crate) plan: PlanId,
    /// The run and its step; nothing for a whole plan.
    pub(crate) step: Option<(RunId, String)>,
    pub(crate) heading: String,
    pub(crate) lines: Vec<BriefingLine>,
    pub(crate) digest: String,
    /// Why it cannot be decided on here and now.
    pub(crate) obstacle: Option<String>,
    /// Some arguments are only known later, and can be asked about then.
    pub(crate) has_late_values: bool,
    /// It was approved, and can be started.
    pub(crate) is_approved: bool,
    pub(crate) scroll: usize,
    /// The number of lines that were on the screen, from the first.
    pub(crate) seen: usize,
}

impl DecisionPage {
    /// Takes the lines in view for seen. Lines are seen in order: who jumps to the end has not seen
    /// what is between.
    pub(crate) fn see(&mut self, height: usize) {
        if self.scroll <= self.seen {
            let end = (self.scroll + height).min(self.lines.len());
            self.seen = self.seen.max(end);
        }
    }

    pub(crate) fn is_seen(&self) -> bool {
        self.seen >= self.lines.len()
    }

    fn move_by(&mut self, key: Key, height: usize) -> bool {
        let last = self.lines.len().saturating_sub(height);
        self.scroll = match key {
            Key::Up | Key::Char('k') => self.scroll.saturating_sub(1),
            Key::Down | Key::Char('j') => (self.scroll + 1).min(last),
            Key::PageUp => self.scroll.saturating_sub(height),
            Key::PageDown | Key::Char(' ') => (self.scroll + height).min(last),
            Key::Home | Key::Char('g') => 0,
            // Not beyond what follows what was seen.
            Key::End | Key::Char('G') => last.min(self.seen),
            _ => return false,
        };
        true
    }
}

/// One step of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StepRow {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) tool: String,
    pub(crate) sign: char,
    pub(crate) status: String,
    /// Milliseconds from the start of the run to its first call, and from there to its end.
    pub(crate) bar: Option<(u64, u64)>,
    pub(crate) waits: Option<WaitKind>,
    /// What was sent, what came back, what failed.
    pub(crate) details: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunPage {
    pub(crate) plan: PlanId,
    pub(crate) run: RunId,
    pub(crate) heading: String,
    pub(crate) status: String,
    pub(crate) is_over: bool,
    pub(crate) done: usize,
    pub(crate) duration_ms: u64,
    pub(crate) steps: Chosen<StepRow>,
    /// Lines of the details that are scrolled away.
    pub(crate) details_scroll: usize,
}

/// The events of a plan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LogPage {
    pub(crate) plan: PlanId,
    pub(crate) lines: Vec<String>,
    /// Lines from the end; nothing while the newest is in view.
    pub(crate) back: usize,
}

/// A text that is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prompt {
    pub(crate) asks: Asks,
    pub(crate) text: String,
}

/// What a typed text is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asks {
    Reason,
    Comment,
    Outcome { run: RunId, step: String },
    Cancel(RunId),
    Leave,
}

impl Asks {
    pub(crate) fn question(&self) -> String {
        match self {
            Self::Reason => "No, because:".to_owned(),
            Self::Comment => "Comment:".to_owned(),
            Self::Outcome { step, .. } => {
                format!("Step {step}: type happened, did-not-happen or run-again:")
            }
            Self::Cancel(run) => format!("Type cancel to end {run} for good:"),
            Self::Leave => "Runs are active here. Type pause to pause them and leave:".to_owned(),
        }
    }
}

/// Everything that is seen.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pages: Vec<Page>,
    pub(crate) inbox: Chosen<InboxRow>,
    pub(crate) plans: Chosen<PlanRow>,
    pub(crate) decision: Option<DecisionPage>,
    pub(crate) run: Option<RunPage>,
    pub(crate) log: Option<LogPage>,
    pub(crate) prompt: Option<Prompt>,
    /// What was said last, and whether it is bad news.
    pub(crate) notice: Option<(String, bool)>,
    pub(crate) shows_help: bool,
    /// Runs that this process executes.
    pub(crate) running: usize,
}

impl Model {
    pub(crate) fn page(&self) -> Page {
        self.pages.last().copied().unwrap_or(Page::Inbox)
    }

    /// Goes to a page. The one that is seen waits below it.
    pub(crate) fn open(&mut self, page: Page) {
        self.pages.retain(|below| *below != page);
        self.pages.push(page);
    }

    pub(crate) fn close(&mut self) {
        self.pages.pop();
    }

    pub(crate) fn say(&mut self, text: impl Into<String>) {
        self.notice = Some((text.into(), false));
    }

    pub(crate) fn complain(&mut self, text: impl Into<String>) {
        self.notice = Some((text.into(), true));
    }

    /// Does what a key means. `height` is the number of lines that a page shows.
    pub(crate) fn press(&mut self, key: Key, height: usize) -> Option<Wish> {
        let height = height.max(1);
        if self.prompt.is_some() {
            return self.type_key(key);
        }
        if self.shows_help {
            self.shows_help = false;
            return None;
        }
        self.notice = None;
        match key {
            Key::Interrupt => return self.leave(),
            Key::Char('?') => self.shows_help = true,
            Key::Char('1') => self.pages.clear(),
            Key::Char('2') => self.pages = vec![Page::Plans],
            Key::Tab => match self.page() {
                Page::Inbox => self.pages = vec![Page::Plans],
                Page::Plans => self.pages.clear(),
                Page::Decision | Page::Run | Page::Log => {}
            },
            Key::Escape | Key::Char('q') if !self.pages.is_empty() => self.close(),
            Key::Escape | Key::Char('q') => return self.leave(),
            _ => {
                return match self.page() {
                    Page::Inbox => self.press_in_inbox(key, height),
                    Page::Plans => self.press_in_plans(key, height),
                    Page::Decision => self.press_in_decision(key, height),
                    Page::Run => self.press_in_run(key, height),
                    Page::Log => self.press_in_log(key, height),
                };
            }
        }
        None
    }

    fn leave(&mut self) -> Option<Wish> {
        if self.running == 0 {
            return Some(Wish::Leave);
        }
        self.ask(Asks::Leave);
        None
    }

    fn ask(&mut self, asks: Asks) {
        let text = String::new();
        self.prompt = Some(Prompt { asks, text });
    }

    fn type_key(&mut self, key: Key) -> Option<Wish> {
        /// The longest text that is typed here. Longer ones come from the command line.
        const MAX_TYPED: usize = 2_000;
        let prompt = self.prompt.as_mut()?;
        match key {
            Key::Char(c) if prompt.text.chars().count() < MAX_TYPED => prompt.text.push(c),
            Key::Backspace => drop(prompt.text.pop()),
            Key::Escape | Key::Interrupt => self.prompt = None,
            Key::Enter => {
                let Prompt { asks, text } = self.prompt.take()?;
                return self.typed(asks, text.trim().to_owned());
            }
            _ => {}
        }
        None
    }

    /// Only the exact word does what cannot be taken back.
    fn typed(&mut self, asks: Asks, text: String) -> Option<Wish> {
        let wish = match asks {
            Asks::Reason if !text.is_empty() => Wish::Reject(text),
            Asks::Comment if !text.is_empty() => Wish::Comment(text),
            Asks::Outcome { run, step } if is_outcome(&text) => Wish::Resolve {
                run,
                step,
                word: text,
            },
            Asks::Cancel(run) if text == "cancel" => Wish::Cancel(run),
            Asks::Leave if text == "pause" => Wish::Leave,
            Asks::Reason | Asks::Comment | Asks::Outcome { .. } | Asks::Cancel(_) | Asks::Leave => {
                self.say("nothing was done");
                return None;
            }
        };
        Some(wish)
    }

    fn press_in_inbox(&mut self, key: Key, height: usize) -> Option<Wish> {
        if self.inbox.move_by(key, height / 2) {
            return None;
        }
        let row = self.inbox.row()?;
        match key {
            Key::Enter => Some(row.opened()),
            Key::Char('l') => Some(Wish::ShowLog(row.plan.clone())),
            _ => None,
        }
    }

    fn press_in_plans(&mut self, key: Key, height: usize) -> Option<Wish> {
        if self.plans.move_by(key, height) {
            return None;
        }
        let row = self.plans.row()?;
        let plan = row.id.clone();
        match key {
            Key::Enter => Some(Wish::ShowPlan(plan)),
            Key::Char('r') => row.run.clone().map(|run| Wish::ShowRun { plan, run }),
            Key::Char('l') => Some(Wish::ShowLog(plan)),
            _ => None,
        }
    }

    fn press_in_decision(&mut self, key: Key, height: usize) -> Option<Wish> {
        let page = self.decision.as_mut()?;
        if page.move_by(key, height) {
            return None;
        }
        let is_plan = page.step.is_none();
        let plan = page.plan.to_string();
        match key {
            Key::Char('y' | 's') => {
                if let Some(obstacle) = page.obstacle.clone() {
                    self.complain(obstacle);
                } else if !page.is_seen() {
                    let left = page.lines.len() - page.seen;
                    self.complain(format!(
                        "{left} lines were not on the screen yet: Space shows them"
                    ));
                } else if key == Key::Char('s') && !page.has_late_values {
                    self.complain("every value is known already");
                } else {
                    let see_late_values = key == Key::Char('s');
                    return Some(Wish::Approve { see_late_values });
                }
            }
            Key::Char('n') => match page.obstacle.clone() {
                Some(obstacle) => self.complain(obstacle),
                None => self.ask(Asks::Reason),
            },
            Key::Char('c') => self.ask(Asks::Comment),
            Key::Char('a') if is_plan => return Some(command(&["approve", &plan])),
            Key::Char('e') if is_plan => return Some(command(&["edit", &plan])),
            Key::Char('d') if is_plan => return Some(command(&["diff", &plan])),
            Key::Char('r') if is_plan && page.is_approved => {
                return Some(Wish::Start(page.plan.clone()));
            }
            Key::Char('r') if is_plan => self.complain("it is not approved"),
            Key::Char('l') => return Some(Wish::ShowLog(page.plan.clone())),
            _ => {}
        }
        None
    }

    fn press_in_run(&mut self, key: Key, height: usize) -> Option<Wish> {
        let page = self.run.as_mut()?;
        if page.steps.move_by(key, height) {
            page.details_scroll = 0;
            return None;
        }
        let run = page.run.clone();
        let row = page.steps.row().cloned();
        let waits = row.as_ref().and_then(|row| row.waits);
        let step = row.map(|row| row.id).unwrap_or_default();
        match (key, waits) {
            (Key::Enter | Key::Char('a'), Some(WaitKind::Call)) => {
                return Some(Wish::ShowStep { run, step });
            }
            (Key::Enter | Key::Char('i'), Some(WaitKind::Question)) => {
                return Some(command(&["input", run.as_str(), &step]));
            }
            (Key::Enter | Key::Char('o'), Some(WaitKind::Outcome)) => {
                self.ask(Asks::Outcome { run, step });
            }
            (Key::Char(']'), _) => page.details_scroll = page.details_scroll.saturating_add(1),
            (Key::Char('['), _) => page.details_scroll = page.details_scroll.saturating_sub(1),
            (Key::Char('p' | 'x'), _) if page.is_over => self.complain("the run is over"),
            (Key::Char('p'), _) => return Some(Wish::Pause(run)),
            (Key::Char('x'), _) => self.ask(Asks::Cancel(run)),
            (Key::Char('r'), _) => return Some(Wish::Resume(page.plan.clone())),
            (Key::Char('u'), _) => return Some(command(&["undo", run.as_str()])),
            (Key::Char('v'), _) => return Some(Wish::ShowPlan(page.plan.clone())),
            (Key::Char('l'), _) => return Some(Wish::ShowLog(page.plan.clone())),
            _ => {}
        }
        None
    }

    fn press_in_log(&mut self, key: Key, height: usize) -> Option<Wish> {
        let page = self.log.as_mut()?;
        let first = page.lines.len().saturating_sub(height);
        page.back = match key {
            Key::Up | Key::Char('k') => (page.back + 1).min(first),
            Key::Down | Key::Char('j') => page.back.saturating_sub(1),
            Key::PageUp => (page.back + height).min(first),
            Key::PageDown | Key::Char(' ') => page.back.saturating_sub(height),
            Key::Home | Key::Char('g') => first,
            Key::End | Key::Char('G') => 0,
            _ => return None,
        };
        None
    }
}

fn is_outcome(word: &str) -> bool {
    matches!(word, "happened" | "did-not-happen" | "run-again")
}

fn command(words: &[&str]) -> Wish {
    Wish::Command(words.iter().map(|word| (*word).to_owned()).collect())
}

impl InboxRow {
    /// What Enter opens.
    fn opened(&self) -> Wish {
        let plan = self.plan.clone();
        match (self.kind, &self.run, &self.step) {
            (WaitKind::Call, Some(run), Some(step)) => Wish::ShowStep {
                run: run.clone(),
                step: step.clone(),
            },
            (WaitKind::Question | WaitKind::Outcome, Some(run), _) => Wish::ShowRun {
                plan,
                run: run.clone(),
            },
            (WaitKind::Plan | WaitKind::Call | WaitKind::Question | WaitKind::Outcome, ..) => {
                Wish::ShowPlan(plan)
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use planwright_core::briefing::Tone;

    pub(crate) fn decision(lines: usize) -> DecisionPage {
        let line = |number: usize| BriefingLine {
            tone: Tone::Plain,
            text: format!("line {number}"),
        };
        DecisionPage {
            plan: "p".parse().unwrap(),
            step: None,
            heading: "“Tidy up”".to_owned(),
            lines: (0..lines).map(line).collect(),
            digest: "sha256:1b46".to_owned(),
            obstacle: None,
            has_late_values: false,
            is_approved: false,
            scroll: 0,
            seen: 0,
        }
    }

    pub(crate) fn reviewing(page: DecisionPage) -> Model {
        let mut model = Model {
            decision: Some(page),
            ..Model::default()
        };
        model.open(Page::Decision);
        model
    }

    pub(crate) fn watching(page: RunPage) -> Model {
        let mut model = Model {
            run: Some(page),
            ..Model::default()
        };
        model.open(Page::Run);
        model
    }

    fn see(model: &mut Model, height: usize) {
        model.decision.as_mut().unwrap().see(height);
    }

    const YES: Option<Wish> = Some(Wish::Approve {
        see_late_values: false,
    });

    #[test]
    fn what_was_not_on_the_screen_is_not_approved() {
        let mut model = reviewing(decision(25));
        see(&mut model, 10);
        assert_eq!(model.press(Key::Char('y'), 10), None);
        assert!(model.notice.clone().unwrap().0.contains("15 lines"));
        // A jump to the end goes no further than what comes next.
        model.press(Key::Char('G'), 10);
        see(&mut model, 10);
        assert_eq!(model.press(Key::Char('y'), 10), None);
        model.press(Key::Char(' '), 10);
        see(&mut model, 10);
        assert_eq!(model.press(Key::Char('y'), 10), YES);
    }

    #[test]
    fn a_larger_screen_shows_more_at_once() {
        let mut model = reviewing(decision(25));
        see(&mut model, 40);
        assert_eq!(model.press(Key::Char('y'), 40), YES);
    }

    #[test]
    fn an_obstacle_is_said_instead_of_a_decision() {
        let page = DecisionPage {
            obstacle: Some("you wrote it".to_owned()),
            ..decision(1)
        };
        let mut model = reviewing(page);
        see(&mut model, 10);
        assert_eq!(model.press(Key::Char('y'), 10), None);
        assert_eq!(model.notice, Some(("you wrote it".to_owned(), true)));
        assert_eq!(model.press(Key::Char('n'), 10), None);
        assert_eq!(model.prompt, None);
    }

    #[test]
    fn a_no_has_a_reason() {
        let mut model = reviewing(decision(1));
        model.press(Key::Char('n'), 10);
        assert_eq!(model.press(Key::Enter, 10), None);
        assert_eq!(model.notice.clone().unwrap().0, "nothing was done");
        model.press(Key::Char('n'), 10);
        for c in "the path?".chars() {
            assert_eq!(model.press(Key::Char(c), 10), None);
        }
        model.press(Key::Backspace, 10);
        let wish = model.press(Key::Enter, 10);
        assert_eq!(wish, Some(Wish::Reject("the path".to_owned())));
    }

    #[test]
    fn an_outcome_is_said_in_full() {
        let run: RunId = "run_00000000000000000000000001".parse().unwrap();
        let step = StepRow {
            id: "pay".to_owned(),
            title: String::new(),
            tool: "bank.pay".to_owned(),
            sign: '?',
            status: "outcome_unknown".to_owned(),
            bar: None,
            waits: Some(WaitKind::Outcome),
            details: Vec::new(),
        };
        let mut steps = Chosen::default();
        steps.set_rows(vec![step]);
        let mut model = watching(RunPage {
            plan: "p".parse().unwrap(),
            run: run.clone(),
            heading: String::new(),
            status: "waiting".to_owned(),
            is_over: false,
            done: 0,
            duration_ms: 0,
            steps,
            details_scroll: 0,
        });
        for (typed, expected) in [("h", None), ("happened", Some("happened"))] {
            model.press(Key::Enter, 10);
            for c in typed.chars() {
                model.press(Key::Char(c), 10);
            }
            let expected = expected.map(|word| Wish::Resolve {
                run: run.clone(),
                step: "pay".to_owned(),
                word: word.to_owned(),
            });
            assert_eq!(model.press(Key::Enter, 10), expected);
        }
    }

    #[test]
    fn leaving_with_runs_that_go_on_is_asked_about() {
        let mut model = Model::default();
        assert_eq!(model.press(Key::Char('q'), 10), Some(Wish::Leave));
        model.running = 1;
        assert_eq!(model.press(Key::Char('q'), 10), None);
        for c in "pause".chars() {
            model.press(Key::Char(c), 10);
        }
        assert_eq!(model.press(Key::Enter, 10), Some(Wish::Leave));
    }

    #[test]
    fn rows_that_go_away_leave_a_row_chosen() {
        let mut chosen = Chosen::default();
        chosen.set_rows(vec![1, 2, 3]);
        chosen.choose(2);
        chosen.set_rows(vec![1]);
        assert_eq!(chosen.row(), Some(&1));
        chosen.set_rows(Vec::new());
        assert_eq!(chosen.row(), None);
    }
}
