//! Tables: aligned columns, the last one cut to the terminal. Pure: gives text, prints nothing.

use crate::clean::one_line;
use crate::width::{columns, cut, pad};

const GAP: &str = "  ";
/// A cell is never wider, so that one long value can't push the others off the screen.
const CELL_COLUMNS: usize = 60;
const LEAST_COLUMNS: usize = 8;

#[derive(Debug, Default)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new<const N: usize>(head: [&str; N]) -> Self {
        Self {
            head: head.iter().map(|cell| (*cell).to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// Cells may come from anywhere: they are cleaned here.
    pub fn row<const N: usize>(&mut self, cells: &[String; N]) {
        self.rows
            .push(cells.iter().map(|cell| one_line(cell, usize::MAX)).collect());
    }

    /// The lines, the heading first. `width` is the terminal's, or `None` where output is not one: then nothing is cut.
    pub fn lines(&self, width: Option<usize>) -> Vec<String> {
        let last = self.head.len().saturating_sub(1);
        let mut widths: Vec<usize> = self.head.iter().map(|cell| columns(cell)).collect();
        for row in &self.rows {
            for (wide, cell) in widths.iter_mut().zip(row) {
                *wide = (*wide).max(columns(cell));
            }
        }
        if let Some(width) = width {
            for wide in widths.iter_mut().take(last) {
                *wide = (*wide).min(CELL_COLUMNS);
            }
            let before: usize = widths.iter().take(last).map(|wide| wide + GAP.len()).sum();
            if let Some(wide) = widths.last_mut() {
                *wide = (*wide).min(width.saturating_sub(before).max(LEAST_COLUMNS));
            }
        }
        std::iter::once(&self.head)
            .chain(&self.rows)
            .map(|row| line(row, &widths, last))
            .collect()
    }
}

fn line(row: &[String], widths: &[usize], last: usize) -> String {
    let mut out = String::new();
    for (i, (cell, wide)) in row.iter().zip(widths).enumerate() {
        let cell = cut(cell, *wide);
        out.push_str(&cell);
        if i < last {
            out.push_str(&pad(&cell, *wide));
            out.push_str(GAP);
        }
    }
    out.truncate(out.trim_end().len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["ID", "NOTE"]);
        table.row(&["a".into(), "short".into()]);
        table.row(&["longer-id".into(), "a note that does not fit\u{1b}[31m".into()]);
        table
    }

    #[test]
    fn columns_are_aligned_and_cells_cleaned() {
        assert_eq!(
            table().lines(None),
            [
                "ID         NOTE",
                "a          short",
                "longer-id  a note that does not fit"
            ]
        );
    }

    #[test]
    fn the_last_column_is_cut_to_the_terminal() {
        assert_eq!(
            table().lines(Some(24)),
            ["ID         NOTE", "a          short", "longer-id  a note that …"]
        );
    }
}
