//! Short codes in large letters, three lines high. Pure.

/// Five rows of five dots each.
type Glyph = [u8; 5];

const COLUMNS: usize = 5;
const ROWS: usize = 5;
#[rustfmt::skip]
const GLYPHS: [(char, Glyph); 37] = [
    ('A', [0b01110, 0b10001, 0b11111, 0b10001, 0b10001]),
    ('B', [0b11110, 0b10001, 0b11110, 0b10001, 0b11110]),
    ('C', [0b01111, 0b10000, 0b10000, 0b10000, 0b01111]),
    ('D', [0b11110, 0b10001, 0b10001, 0b10001, 0b11110]),
    ('E', [0b11111, 0b10000, 0b11110, 0b10000, 0b11111]),
    ('F', [0b11111, 0b10000, 0b11110, 0b10000, 0b10000]),
    ('G', [0b01111, 0b10000, 0b10011, 0b10001, 0b01111]),
    ('H', [0b10001, 0b10001, 0b11111, 0b10001, 0b10001]),
    ('I', [0b11111, 0b00100, 0b00100, 0b00100, 0b11111]),
    ('J', [0b00111, 0b00001, 0b00001, 0b10001, 0b01110]),
    ('K', [0b10010, 0b10100, 0b11000, 0b10100, 0b10010]),
    ('L', [0b10000, 0b10000, 0b10000, 0b10000, 0b11111]),
    ('M', [0b10001, 0b11011, 0b10101, 0b10001, 0b10001]),
    ('N', [0b10001, 0b11001, 0b10101, 0b10011, 0b10001]),
    ('O', [0b01110, 0b10001, 0b10001, 0b10001, 0b01110]),
    ('P', [0b11110, 0b10001, 0b11110, 0b10000, 0b10000]),
    ('Q', [0b01110, 0b10001, 0b10101, 0b10010, 0b01101]),
    ('R', [0b11110, 0b10001, 0b11110, 0b10010, 0b10001]),
    ('S', [0b01111, 0b10000, 0b01110, 0b00001, 0b11110]),
    ('T', [0b11111, 0b00100, 0b00100, 0b00100, 0b00100]),
    ('U', [0b10001, 0b10001, 0b10001, 0b10001, 0b01110]),
    ('V', [0b10001, 0b10001, 0b10001, 0b01010, 0b00100]),
    ('W', [0b10001, 0b10001, 0b10101, 0b11011, 0b10001]),
    ('X', [0b10001, 0b01010, 0b00100, 0b01010, 0b10001]),
    ('Y', [0b10001, 0b01010, 0b00100, 0b00100, 0b00100]),
    ('Z', [0b11111, 0b00010, 0b00100, 0b01000, 0b11111]),
    ('0', [0b01110, 0b10011, 0b10101, 0b11001, 0b01110]),
    ('1', [0b00100, 0b01100, 0b00100, 0b00100, 0b01110]),
    ('2', [0b11110, 0b00001, 0b01110, 0b10000, 0b11111]),
    ('3', [0b11110, 0b00001, 0b01110, 0b00001, 0b11110]),
    ('4', [0b10010, 0b10010, 0b11111, 0b00010, 0b00010]),
    ('5', [0b11111, 0b10000, 0b11110, 0b00001, 0b11110]),
    ('6', [0b01110, 0b10000, 0b11110, 0b10001, 0b01110]),
    ('7', [0b11111, 0b00010, 0b00100, 0b01000, 0b01000]),
    ('8', [0b01110, 0b10001, 0b01110, 0b10001, 0b01110]),
    ('9', [0b01110, 0b10001, 0b01111, 0b00001, 0b01110]),
    ('-', [0b00000, 0b00000, 0b01110, 0b00000, 0b00000]),
];

/// Three lines of at most `width` columns. `None` when the text does not fit, or has a character without a glyph.
pub fn big(text: &str, width: usize) -> Option<[String; 3]> {
    let glyphs: Vec<&Glyph> = text
        .chars()
        .map(|wanted| GLYPHS.iter().find(|(c, _)| *c == wanted).map(|(_, glyph)| glyph))
        .collect::<Option<_>>()?;
    if glyphs.is_empty() || glyphs.len() * (COLUMNS + 1) > width {
        return None;
    }
    let line = |y: usize| {
        let mut out = String::new();
        for glyph in &glyphs {
            for x in (0..COLUMNS).rev() {
                let dot = |y: usize| y < ROWS && glyph[y] >> x & 1 == 1;
                out.push(match (dot(y), dot(y + 1)) {
                    (true, true) => '█',
                    (true, false) => '▀',
                    (false, true) => '▄',
                    (false, false) => ' ',
                });
            }
            out.push(' ');
        }
        out.truncate(out.trim_end().len());
        out
    };
    Some([line(0), line(2), line(4)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_that_fits_is_shown_in_large_letters() {
        let lines = big("AB-12", 80).unwrap();
        insta::assert_snapshot!(lines.join("\n"), @r"
        ▄▀▀▀▄ █▀▀▀▄        ▄█   ▀▀▀▀▄
        █▀▀▀█ █▀▀▀▄  ▀▀▀    █   ▄▀▀▀
        ▀   ▀ ▀▀▀▀         ▀▀▀  ▀▀▀▀▀
        ");
        assert_eq!(big("ABCD-EFGH", 53), None);
        assert!(big("ABCD-EFGH", 54).is_some());
        assert_eq!((big("é", 80), big("", 80)), (None, None));
    }

    #[test]
    fn no_two_characters_look_the_same() {
        for (i, (c, glyph)) in GLYPHS.iter().enumerate() {
            assert!(glyph.iter().all(|row| *row < 1 << COLUMNS), "{c}");
            assert!(GLYPHS[..i].iter().all(|(_, other)| other != glyph), "{c}");
        }
    }
}
