//! Paints what is seen: on 80 columns and 24 lines, and on more if there are more.

use super::model::{DecisionPage, LogPage, Model, Page, RunPage, StepRow, WaitKind};
use crate::terminal::plan_status::StatusTone;
use crate::terminal::printer::{block, line};
use planwright_core::briefing::{BriefingLine, Tone};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

/// From this width on, a page has room for two columns.
const WIDE: u16 = 110;
/// The columns of a bar of the timeline.
const BAR: usize = 24;

const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);
const WARNING: Style = Style::new().fg(Color::Yellow);
const BAD: Style = Style::new().fg(Color::Red);
const GOOD: Style = Style::new().fg(Color::Green);

/// The number of lines that a page has below the heading and above the keys.
pub(super) fn page_height(screen_height: u16) -> usize {
    usize::from(screen_height.saturating_sub(4))
}

/// Paints everything.
pub(super) fn draw(frame: &mut Frame<'_>, model: &mut Model) {
    let [top, body, bottom] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Fill(1),
        Constraint::Length(2),
    ])
    .areas(frame.area());
    draw_heading(frame, top, model);
    match model.page() {
        Page::Inbox => draw_inbox(frame, body, model),
        Page::Plans => draw_plans(frame, body, model),
        Page::Decision => draw_decision(frame, body, model.decision.as_mut()),
        Page::Run => draw_run(frame, body, model.run.as_ref()),
        Page::Log => draw_log(frame, body, model.log.as_ref()),
    }
    draw_bottom(frame, bottom, model);
    if model.shows_help {
        draw_help(frame);
    }
}

fn draw_heading(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let tab = |page: Page, words: String| {
        let style = if model.page() == page { CHOSEN } else { FAINT };
        Span::styled(format!(" {words} "), style)
    };
    let waiting = model.inbox.rows().len();
    let mut spans = vec![
        Span::styled("planwright ", STRONG),
        tab(Page::Inbox, format!("1 Inbox {waiting}")),
        tab(Page::Plans, "2 Plans".to_owned()),
    ];
    let heading = match model.page() {
        Page::Inbox | Page::Plans => None,
        Page::Decision => model.decision.as_ref().map(|page| page.heading.clone()),
        Page::Run => model.run.as_ref().map(|page| page.heading.clone()),
        Page::Log => model.log.as_ref().map(|page| format!("{} log", page.plan)),
    };
    spans.extend(heading.map(|heading| Span::styled(format!(" › {}", line(&heading)), STRONG)));
    if model.running > 0 {
        spans.push(Span::styled(
            format!("  {} running here", model.running),
            GOOD,
        ));
    }
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
}

fn draw_inbox(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    if model.inbox.rows().is_empty() {
        let words = "Nothing waits for you.\n\nplanwright create GOAL has a model write a plan; \
                     planwright new writes a first one.";
        return frame.render_widget(Paragraph::new(words).wrap(Wrap { trim: false }), area);
    }
    let mut lines = Vec::new();
    for (number, row) in model.inbox.rows().iter().enumerate() {
        let style = if number == model.inbox.position() {
            CHOSEN
        } else {
            Style::new()
        };
        let step = row.step.as_deref().map(|step| format!(" · {step}"));
        lines.push(Line::styled(
            format!("● {:8} {}", row.word, line(&row.title)),
            style,
        ));
        let words = format!(
            "  {}{}  {}  since {}",
            row.plan,
            line(&step.unwrap_or_default()),
            consequence(row.kind),
            row.since
        );
        lines.push(Line::styled(words, FAINT));
    }
    let first = first_row(model.inbox.position() * 2 + 1, lines.len(), area);
    frame.render_widget(Paragraph::new(lines.split_off(first)), area);
}

fn consequence(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::Plan => "a plan to agree to",
        WaitKind::Call => "a call to agree to",
        WaitKind::Question => "a question to answer",
        WaitKind::Outcome => "a call that may have happened",
    }
}

fn draw_plans(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    if model.plans.rows().is_empty() {
        return frame.render_widget(Paragraph::new("There are no plans yet."), area);
    }
    let rows = model.plans.rows().iter().enumerate();
    let mut lines: Vec<Line<'_>> = rows
        .map(|(number, plan)| {
            let base = if number == model.plans.position() {
                CHOSEN
            } else {
                Style::new()
            };
            let words = format!("{:14} ", plan.status);
            Line::from(vec![
                Span::styled(words, base.patch(status_style(&plan.status))),
                Span::styled(format!("{:24} ", plan.id.to_string()), base),
                Span::styled(
                    format!("{:>4} steps  {}", plan.steps, line(&plan.title)),
                    base,
                ),
            ])
        })
        .collect();
    let first = first_row(model.plans.position(), lines.len(), area);
    frame.render_widget(Paragraph::new(lines.split_off(first)), area);
}

/// The first row in view, so that the chosen one is.
fn first_row(at: usize, count: usize, area: Rect) -> usize {
    let height = usize::from(area.height).max(1);
    let first = (at + 1).saturating_sub(height);
    first.min(count.saturating_sub(1))
}

fn status_style(word: &str) -> Style {
    match StatusTone::of(word) {
        StatusTone::Good => GOOD,
        StatusTone::Bad => BAD,
        StatusTone::Waiting => WARNING,
        StatusTone::Active => STRONG,
        StatusTone::Quiet => FAINT,
    }
}

fn tone_style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Strong => STRONG,
        Tone::Warning => WARNING,
        Tone::Faint => FAINT,
        Tone::Added => GOOD,
        Tone::Removed => BAD,
    }
}

fn draw_decision(frame: &mut Frame<'_>, area: Rect, page: Option<&mut DecisionPage>) {
    let Some(page) = page else { return };
    let height = usize::from(area.height);
    page.see(height);
    let shown = page.lines.iter().skip(page.scroll).take(height);
    // They were wrapped for this width, and are again when it changes.
    let lines: Vec<Line<'_>> = shown
        .map(|BriefingLine { tone, text }| Line::styled(text.clone(), tone_style(*tone)))
        .collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn draw_run(frame: &mut Frame<'_>, area: Rect, page: Option<&RunPage>) {
    let Some(page) = page else { return };
    let split = if area.width >= WIDE {
        Layout::horizontal([Constraint::Percentage(60), Constraint::Fill(1)])
    } else {
        Layout::vertical([Constraint::Percentage(55), Constraint::Fill(1)])
    };
    let [left, right] = split.areas(area);
    draw_steps(frame, left, page);
    draw_details(frame, right, page);
}

fn draw_steps(frame: &mut Frame<'_>, area: Rect, page: &RunPage) {
    let total = page.steps.rows().len();
    let summary = format!("{}  {} of {total} steps", page.status, page.done);
    let title = Line::styled(format!(" {summary} "), status_style(&page.status));
    let frame_block = Block::bordered().title(title);
    let inside = frame_block.inner(area);
    frame.render_widget(frame_block, area);
    let names = usize::from(inside.width).saturating_sub(BAR + 4).max(8);
    let rows = page.steps.rows().iter().enumerate();
    let mut lines: Vec<Line<'_>> = rows
        .map(|(number, step)| {
            let base = if number == page.steps.position() {
                CHOSEN
            } else {
                Style::new()
            };
            let name = if step.title.is_empty() {
                &step.tool
            } else {
                &step.title
            };
            let name = format!("{} {}", step.id, line(name));
            let name: String = name.chars().take(names).collect();
            Line::from(vec![
                Span::styled(
                    format!("{} ", step.sign),
                    base.patch(status_style(&step.status)),
                ),
                Span::styled(format!("{name:names$} "), base),
                Span::styled(
                    bar(step, page.duration_ms),
                    base.patch(status_style(&step.status)),
                ),
            ])
        })
        .collect();
    let first = first_row(page.steps.position(), lines.len(), inside);
    frame.render_widget(Paragraph::new(lines.split_off(first)), inside);
}

/// When a step was called, on the time of its run.
fn bar(step: &StepRow, whole_ms: u64) -> String {
    let Some((start, length)) = step.bar else {
        return String::new();
    };
    let place = |millis: u64| {
        let share = millis.saturating_mul(BAR as u64) / whole_ms.max(1);
        usize::try_from(share).unwrap_or(BAR).min(BAR - 1)
    };
    let from = place(start);
    let to = place(start.saturating_add(length)).max(from);
    format!("{}{}", " ".repeat(from), "▇".repeat(to - from + 1))
}

fn draw_details(frame: &mut Frame<'_>, area: Rect, page: &RunPage) {
    let Some(step) = page.steps.row() else { return };
    let title = format!(" {} {} {} ", step.id, line(&step.tool), step.status);
    let frame_block = Block::bordered().title(title);
    let inside = frame_block.inner(area);
    let text: Vec<String> = step.details.iter().map(|text| block(text)).collect();
    let words = Paragraph::new(text.join("\n")).wrap(Wrap { trim: false });
    let scroll = u16::try_from(page.details_scroll).unwrap_or(u16::MAX);
    frame.render_widget(frame_block, area);
    frame.render_widget(words.scroll((scroll, 0)), inside);
}

fn draw_log(frame: &mut Frame<'_>, area: Rect, page: Option<&LogPage>) {
    let Some(page) = page else { return };
    let height = usize::from(area.height);
    let end = page.lines.len().saturating_sub(page.back);
    let first = end.saturating_sub(height);
    let lines: Vec<Line<'_>> = page.lines[first..end]
        .iter()
        .map(|text| Line::raw(line(text)))
        .collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn draw_bottom(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let [first, second] = Layout::vertical([Constraint::Length(1); 2]).areas(area);
    if let Some(prompt) = &model.prompt {
        let words = format!("{} {}▏", prompt.asks.question(), line(&prompt.text));
        // The end of a long text is what is being typed.
        let width = usize::from(first.width);
        let from = words.chars().count().saturating_sub(width);
        let words: String = words.chars().skip(from).collect();
        frame.render_widget(Paragraph::new(words).style(STRONG), first);
        let keys = Paragraph::new("Enter sends it   Esc leaves it").style(FAINT);
        return frame.render_widget(keys, second);
    }
    if let Some((words, is_bad)) = &model.notice {
        let style = if *is_bad { BAD } else { GOOD };
        frame.render_widget(Paragraph::new(line(words)).style(style), first);
    } else if let (Page::Decision, Some(page)) = (model.page(), &model.decision) {
        frame.render_widget(Paragraph::new(decision_state(page)).style(FAINT), first);
    }
    frame.render_widget(Paragraph::new(keys(model)).style(FAINT), second);
}

fn decision_state(page: &DecisionPage) -> String {
    let left = page.lines.len().saturating_sub(page.seen);
    let seen = match left {
        0 => "all of it was on the screen".to_owned(),
        left => format!("{left} more lines"),
    };
    format!("{seen}   {}", page.digest)
}

fn keys(model: &Model) -> &'static str {
    match model.page() {
        Page::Inbox => "Enter open  j/k move  l log  Tab plans  ? help  q quit",
        Page::Plans => "Enter review  r its run  l log  Tab inbox  ? help  q quit",
        Page::Decision => match &model.decision {
            Some(page) if page.step.is_some() => {
                "y approve  n no, because…  c comment  Space more  Esc back  ? help"
            }
            Some(page) if page.is_approved => {
                "r run  e edit  c comment  d diff  l log  Esc back  ? help"
            }
            Some(_) | None => {
                "y approve  s see late values  a always…  n no…  e edit  c comment  ? help"
            }
        },
        Page::Run => "Enter decide  p pause  r resume  x cancel  u undo  v plan  l log  ? help",
        Page::Log => "j/k move  G newest  Esc back  ? help",
    }
}

const HELP: &str = "\
Everywhere
  1 2 Tab   Inbox, Plans              j k ↑ ↓   move
  Enter     open, decide              g G       first, last
  Esc q     back; quit from the top   Ctrl-C    quit

Review of a plan, or of one call
  Space     the next lines: what was not on the screen cannot be approved
  y         approve exactly what was shown (the digest at the bottom)
  s         approve, and be asked again once late values are known
  a         the question of the command line, with “always allow…”
  n         no, with a reason         c         comment
  e         edit in $EDITOR           d         what changed
  r         run it, once it is approved

Run
  Enter     decide what the step waits for: a call, an answer, an outcome
  p r x     pause, resume, cancel     u         undo, with its calls shown
  [ ]       scroll the details        v l       the plan, the log

Any key closes this.";

fn draw_help(frame: &mut Frame<'_>) {
    let area = frame.area();
    let width = 76.min(area.width);
    let height = 24.min(area.height);
    let place = Rect {
        x: (area.width - width) / 2,
        y: (area.height - height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, place);
    let help = Paragraph::new(HELP).block(Block::bordered().title(" Keys "));
    frame.render_widget(help, place);
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::{decision, reviewing, watching};
    use super::super::model::{Chosen, InboxRow, PlanRow};
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn painted(model: &mut Model, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, model)).unwrap();
        terminal.backend().to_string()
    }

    fn step(id: &str, status: &str, bar: Option<(u64, u64)>) -> StepRow {
        StepRow {
            id: id.to_owned(),
            title: format!("Do {id} \u{1b}[31m"),
            tool: "files.write".to_owned(),
            sign: '●',
            status: status.to_owned(),
            bar,
            waits: None,
            details: vec![
                "sent {\"path\":\"a\"}".to_owned(),
                "result \u{1b}]0;x".to_owned(),
            ],
        }
    }

    fn running() -> Model {
        let mut steps = Chosen::default();
        steps.set_rows(vec![
            step("look", "completed", Some((0, 400))),
            step("write", "running", Some((400, 600))),
            step("send", "pending", None),
        ]);
        watching(RunPage {
            plan: "p".parse().unwrap(),
            run: "run_00000000000000000000000001".parse().unwrap(),
            heading: "p run_1".to_owned(),
            status: "executing".to_owned(),
            is_over: false,
            done: 1,
            duration_ms: 1_000,
            steps,
            details_scroll: 0,
        })
    }

    fn waiting() -> Model {
        let mut model = Model::default();
        model.inbox.set_rows(vec![InboxRow {
            word: "Approve",
            plan: "tidy".parse().unwrap(),
            run: None,
            step: None,
            kind: WaitKind::Plan,
            title: "Tidy the release notes".to_owned(),
            since: "2026-01-01 10:00".to_owned(),
        }]);
        model.plans.set_rows(vec![PlanRow {
            id: "tidy".parse().unwrap(),
            title: "Tidy the release notes".to_owned(),
            status: "proposed".to_owned(),
            steps: 3,
            run: None,
        }]);
        model
    }

    #[test]
    fn pages_at_two_widths() {
        for (name, mut model) in [
            ("inbox", waiting()),
            ("empty", Model::default()),
            ("run", running()),
        ] {
            for (width, height) in [(80, 24), (200, 50)] {
                let text = painted(&mut model, width, height);
                insta::assert_snapshot!(format!("tui_{name}_{width}"), text);
            }
        }
        let mut model = waiting();
        model.decision = Some(decision(30));
        model.open(Page::Decision);
        insta::assert_snapshot!("tui_review_80", painted(&mut model, 80, 24));
        model.shows_help = true;
        insta::assert_snapshot!("tui_help_80", painted(&mut model, 80, 24));
    }

    #[test]
    fn what_tools_say_does_not_steer_the_screen() {
        let text = painted(&mut running(), 80, 24);
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn painting_a_review_counts_its_lines_as_seen() {
        let mut model = reviewing(decision(30));
        painted(&mut model, 80, 24);
        assert_eq!(model.decision.as_ref().unwrap().seen, 20);
        painted(&mut model, 80, 60);
        assert!(model.decision.as_ref().unwrap().is_seen());
    }

    #[test]
    fn every_small_screen_is_painted() {
        for (width, height) in [(1, 1), (5, 3), (20, 6), (80, 5)] {
            for mut model in [waiting(), running()] {
                painted(&mut model, width, height);
            }
        }
    }
}
