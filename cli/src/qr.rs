//! QR codes as lines of a terminal: each cell shows two modules, one above the other. Pure.
//!
//! With colour the code is black on white, independent of the terminal's colours. Without colour it is drawn for a dark
//! terminal: the light modules are ink.

use fast_qr::{ECL, QRBuilder};

/// Light modules around the code. The standard asks for four; phones can read two.
const QUIET: [usize; 2] = [4, 2];
/// Black on white, by colour numbers that no colour scheme changes.
const BLACK_ON_WHITE: &str = "\u{1b}[38;5;16;48;5;231m";
const PLAIN: &str = "\u{1b}[0m";

#[derive(Debug)]
pub struct Code {
    size: usize,
    dark: Vec<bool>,
}

/// The size that the terminal needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooSmall {
    pub columns: usize,
    pub rows: usize,
}

impl Code {
    /// `None` when `text` is too long for a QR code.
    pub fn new(text: &str) -> Option<Self> {
        // A screen needs little error correction, and the smallest code is the easiest to read.
        let code = QRBuilder::new(text).ecl(ECL::L).build().ok()?;
        let dark = code.data[..code.size * code.size]
            .iter()
            .map(|module| module.value())
            .collect();
        Some(Self { size: code.size, dark })
    }

    /// The lines of the code, with the largest margin that fits.
    pub fn lines(&self, columns: usize, rows: usize, colour: bool) -> Result<Vec<String>, TooSmall> {
        let needs = |quiet: usize| TooSmall {
            columns: self.size + 2 * quiet,
            rows: (self.size + 2 * quiet).div_ceil(2),
        };
        let quiet = QUIET.into_iter().find(|quiet| {
            let needs = needs(*quiet);
            needs.columns <= columns && needs.rows <= rows
        });
        match quiet {
            Some(quiet) => Ok(self.drawn(quiet, colour)),
            None => Err(needs(QUIET[1])),
        }
    }

    fn drawn(&self, quiet: usize, colour: bool) -> Vec<String> {
        let side = self.size + 2 * quiet;
        (0..side)
            .step_by(2)
            .map(|y| {
                let cells: String = (0..side)
                    .map(|x| {
                        // Dark ink with colour, light ink without.
                        let ink = |y| self.is_dark(x, y, quiet) == colour;
                        match (ink(y), ink(y + 1)) {
                            (true, true) => '█',
                            (true, false) => '▀',
                            (false, true) => '▄',
                            (false, false) => ' ',
                        }
                    })
                    .collect();
                if colour {
                    format!("{BLACK_ON_WHITE}{cells}{PLAIN}")
                } else {
                    cells
                }
            })
            .collect()
    }

    fn is_dark(&self, x: usize, y: usize, quiet: usize) -> bool {
        match (x.checked_sub(quiet), y.checked_sub(quiet)) {
            (Some(x), Some(y)) if x < self.size && y < self.size => self.dark[y * self.size + x],
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clean::clean;
    use crate::width::columns;

    /// As long as the text of a real login.
    fn text() -> String {
        format!(
            "https://wa.me/settings/linked_devices#2@{},{},{},{},1",
            "r".repeat(88),
            "N0ise+/".repeat(6),
            "1dent+/".repeat(6),
            "Adv+/=A".repeat(6)
        )
    }

    /// The texts that a camera reads from the screen.
    fn read(lines: &[String], ink_is_dark: bool) -> Vec<String> {
        const SCALE: usize = 4;
        let cells: Vec<Vec<char>> = lines.iter().map(|line| clean(line).chars().collect()).collect();
        let (wide, high) = (cells[0].len(), cells.len() * 2);
        let mut image = rqrr::PreparedImage::prepare_from_greyscale(wide * SCALE, high * SCALE, |x, y| {
            let (x, y) = (x / SCALE, y / SCALE);
            let ink = match cells[y / 2][x] {
                '█' => true,
                '▀' => y % 2 == 0,
                '▄' => y % 2 == 1,
                _ => false,
            };
            if ink == ink_is_dark { 0 } else { 255 }
        });
        image
            .detect_grids()
            .into_iter()
            .map(|grid| grid.decode().unwrap().1)
            .collect()
    }

    #[test]
    fn codes_can_be_read_on_dark_and_on_light_terminals() {
        for text in [text(), "x".to_owned(), "https://example.org/é".to_owned()] {
            let code = Code::new(&text).unwrap();
            for colour in [true, false] {
                for (columns, rows) in [(200, 100), (code.size + 4, (code.size + 4).div_ceil(2))] {
                    let lines = code.lines(columns, rows, colour).unwrap();
                    assert_eq!(read(&lines, colour), vec![text.clone()], "{columns} {colour}");
                }
            }
        }
    }

    #[test]
    fn a_code_fits_or_names_the_size_that_it_needs() {
        let code = Code::new(&text()).unwrap();
        let lines = code.lines(80, 45, true).unwrap();
        assert!(lines.iter().all(|line| columns(&clean(line)) <= 80) && lines.len() <= 45);
        assert!(
            lines
                .iter()
                .all(|line| line.starts_with("\u{1b}[38;5;16;48;5;231m") && line.ends_with("\u{1b}[0m"))
        );
        for (columns, rows) in [(40, 100), (200, 24)] {
            let needs = code.lines(columns, rows, true).unwrap_err();
            assert!(needs.columns < 80 && needs.rows < 40, "{needs:?}");
            assert!(code.lines(needs.columns, needs.rows, true).is_ok());
            assert!(code.lines(needs.columns - 1, needs.rows, true).is_err());
            assert!(code.lines(needs.columns, needs.rows - 1, true).is_err());
        }
    }

    #[test]
    fn a_text_that_is_too_long_has_no_code() {
        assert!(Code::new(&"x".repeat(5_000)).is_none());
    }
}
