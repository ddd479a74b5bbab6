//! Tables: aligned columns, cut to the terminal: the last one first, then the widest. Pure: gives text, prints nothing.

use crate::clean::cell;
use crate::width::{columns, cut, pad};

const GAP: &str = "  ";
/// A cell is never wider, so that one long value can't push the others off the screen.
const CELL_COLUMNS: usize = 60;
const LEAST_COLUMNS: usize = 8;

/// Rows of cells, the heading first.
#[derive(Debug)]
pub struct Table<const N: usize> {
    rows: Vec<[String; N]>,
    /// How many columns of the terminal each one keeps in a narrow terminal.
    least: [usize; N],
}

impl<const N: usize> Table<N> {
    /// Cells may come from anywhere: what is hidden in them is shown here.
    pub fn new(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> Self {
        let rows = std::iter::once(head.map(str::to_owned)).chain(rows);
        Self {
            rows: rows.map(|row| row.map(|text| cell(&text))).collect(),
            least: [LEAST_COLUMNS; N],
        }
    }

    /// The same table, whose column `index` keeps so many columns of a narrow terminal.
    pub const fn keeping(mut self, index: usize, columns: usize) -> Self {
        self.least[index] = columns;
        self
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
            // The first column has the names that a person copies, so it is cut last.
            let fixed = last * GAP.len() + LEAST_COLUMNS.min(widths[last]);
            for from in [1, 0] {
                while fixed + widths.iter().take(last).sum::<usize>() > width {
                    let columns = widths.iter_mut().zip(&self.least).take(last).skip(from);
                    let wider = columns.filter(|(wide, least)| **wide > **least);
                    match wider.max_by_key(|(wide, _)| **wide) {
                        Some((wide, _)) => *wide -= 1,
                        None => break,
                    }
                }
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
    fn columns_are_aligned_and_nothing_in_a_cell_is_hidden() {
        assert_eq!(
            table().lines(None),
            [
                "ID         NOTE",
                "a          short",
                "longer-id  a note that does not fit[U+001B][31m"
            ]
        );
    }

    #[test]
    fn a_column_keeps_what_it_must_in_a_narrow_terminal() {
        let row = [
            "123456789012 name",
            "a long thing that is cut",
            "another one",
            "the end",
        ];
        let table = Table::new(["who", "what", "where", "why"], [row.map(str::to_owned)]);
        let narrow = |table: &Table<4>| table.lines(Some(40))[1].clone();
        assert!(narrow(&table.keeping(0, 13)).starts_with("123456789012…"));
        let second = [
            "a long thing that is cut",
            "123456789012 name",
            "another one",
            "the end",
        ];
        let table = || Table::new(["what", "who", "where", "why"], [second.map(str::to_owned)]);
        assert!(!narrow(&table()).contains("123456789012"));
        assert!(narrow(&table().keeping(1, 13)).contains("123456789012"));
    }

    #[test]
    fn in_a_narrow_terminal_the_widest_columns_are_cut_and_the_first_one_last() {
        let row = [
            "backup-of-the-house",
            "standard",
            "1,234",
            "0",
            "12 minutes ago",
            "says what matters",
        ];
        let table = Table::new(
            ["name", "form", "accepted", "refused", "last", "does"],
            [row.map(str::to_owned)],
        );
        for (width, name) in [
            (60, "backup-of-"),
            (68, "backup-of-the-house"),
            (200, "backup-of-the-house"),
        ] {
            let lines = table.lines(Some(width));
            assert!(lines.iter().all(|line| columns(line) <= width), "{lines:?}");
            assert!(lines[1].starts_with(name), "{lines:?}");
        }
        assert_eq!(table.lines(Some(200)), table.lines(None));
        // So narrow that nothing fits: each column keeps a part.
        assert!(table.lines(Some(10)).iter().all(|line| columns(line) < 70));
    }

    #[test]
    fn the_last_column_is_cut_to_the_terminal() {
        assert_eq!(
            table().lines(Some(24)),
            ["ID         NOTE", "a          short", "longer-id  a note that …"]
        );
    }
}
