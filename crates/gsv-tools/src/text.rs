//! Cuts UTF-8 text: prefixes, tails and streams. Never splits a character that the bytes hold whole.

const fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

/// How many bytes at the end begin a character whose rest has not arrived.
pub(crate) fn incomplete_suffix(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let byte = bytes[bytes.len() - back];
        if is_continuation(byte) {
            continue;
        }
        let need = match byte {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => 1,
        };
        return if need > back { back } else { 0 };
    }
    0
}

/// How many bytes at the start belong to a character that began before a cut.
pub(crate) fn orphan_prefix(bytes: &[u8]) -> usize {
    bytes.iter().take(3).take_while(|byte| is_continuation(**byte)).count()
}

/// Turns a byte stream into text chunk by chunk; a character split by a chunk border comes with the next chunk.
#[derive(Debug, Default)]
pub(crate) struct Utf8Stream {
    carry: Vec<u8>,
}

impl Utf8Stream {
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        self.carry.extend_from_slice(bytes);
        let rest = self.carry.split_off(self.carry.len() - incomplete_suffix(&self.carry));
        let text = String::from_utf8_lossy(&self.carry).into_owned();
        self.carry = rest;
        text
    }

    /// What is left when no more bytes come.
    pub(crate) fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.carry)).into_owned()
    }
}

/// The last `max` characters, and whether something was cut off.
pub(crate) fn tail_chars(text: &str, max: usize) -> (&str, bool) {
    match max.checked_sub(1).and_then(|last| text.char_indices().rev().nth(last)) {
        Some((start, _)) => (&text[start..], start > 0),
        None => (if max == 0 { "" } else { text }, max == 0 && !text.is_empty()),
    }
}

/// The first `max` characters.
pub(crate) fn cut_chars(text: &str, max: usize) -> &str {
    text.char_indices().nth(max).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn w26_any_chunking_gives_the_same_text(text in "\\PC{0,60}", cuts in proptest::collection::vec(0usize..200, 0..12)) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let mut stream = Utf8Stream::default();
            let mut out = String::new();
            for pair in cuts.windows(2) {
                out += &stream.push(&bytes[pair[0]..pair[1]]);
            }
            out += &stream.finish();
            prop_assert_eq!(out, text);
        }

        #[test]
        fn w26_stream_never_holds_back_more_than_three_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut stream = Utf8Stream::default();
            for byte in bytes {
                stream.push(&[byte]);
                prop_assert!(stream.carry.len() <= 3);
            }
        }

        #[test]
        fn tail_is_a_suffix_of_at_most_max_chars(text in "\\PC{0,40}", max in 0usize..50) {
            let (tail, cut) = tail_chars(&text, max);
            prop_assert!(text.ends_with(tail));
            prop_assert_eq!(tail.chars().count(), text.chars().count().min(max));
            prop_assert_eq!(cut, tail.len() < text.len());
        }
    }

    #[test]
    fn cuts_inside_a_character_are_found() {
        let euro = "€".as_bytes();
        assert_eq!(incomplete_suffix(&euro[..2]), 2);
        assert_eq!(incomplete_suffix(euro), 0);
        assert_eq!(orphan_prefix(&euro[1..]), 2);
        assert_eq!(cut_chars("äöü", 2), "äö");
    }
}
