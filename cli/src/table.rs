//! Tables: aligned columns, the last one cut to the terminal. Pure: gives text, prints nothing.

use crate::clean::one_line;
use crate::width::{columns, cut, pad};

const GAP: &str = "  ";
/// A cell is never wider, so that one long value can't push the others off the screen.
const CELL_COLUMNS: usize = 60;
const LEAST_COLUMNS: usize = 8;

/// Rows of cells, the heading first.
#[derive(Debug)]
pub struct Table<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// Cells may come from anywhere: they are cleaned here.
    pub fn new(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> Self {
        let rows = std::iter::once(head.map(str::to_owned)).chain(rows);
        Self {
            rows: rows.map(|row| row.map(|cell| one_line(&cell, usize::MAX))).collect(),
        }
    }

    /// The lines, the heading first. `width` is the terminal's in columns; without one, nothing is cut.
    pub fn lines(&self, width: Option<usize>) -> Vec<String> {
        let last = N.saturating_sub(1);
        let mut widths = [0; N];
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
        self.rows.iter().map(|row| line(row, &widths, last)).collect()
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

    fn table() -> Table<2> {
        let note = "a note that does not fit\u{1b}[31m";
        Table::new(
            ["ID", "NOTE"],
            [["a".into(), "short".into()], ["longer-id".into(), note.into()]],
        )
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
