//! The table on the terminal.

use anyhow::{Result, ensure};

/// The limit that a figure must meet.
pub(crate) enum Bar {
    AtLeast(f64),
    AtMost(f64),
}

/// Prints figures as they are measured, and counts those that miss their bar.
#[derive(Default)]
pub(crate) struct Table {
    missed: usize,
}

impl Table {
    pub(crate) fn note(&self, name: &str, value: String) {
        println!("{name:<48} {value}");
    }

    pub(crate) fn bar(&mut self, name: &str, value: f64, bar: Bar) {
        let (met, bar) = match bar {
            Bar::AtLeast(least) => (value >= least, format!("≥ {least}")),
            Bar::AtMost(most) => (value <= most, format!("≤ {most}")),
        };
        if !met {
            self.missed += 1;
        }
        let verdict = if met { "ok" } else { "MISSED" };
        println!("{name:<48} {value:<12.3} bar {bar:<10} {verdict}");
    }

    /// Fails if a bar was missed.
    pub(crate) fn finish(self) -> Result<()> {
        ensure!(self.missed == 0, "{} bars missed", self.missed);
        Ok(())
    }
}
