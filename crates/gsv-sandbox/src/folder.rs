//! What a search needs to know of a folder, without the names of all its files. PURE.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::LazyLock;

use crate::kind::Kind;
use crate::names::{MERCURIAL, NAMES, OF_GIT, OF_HOME, is_searched};

/// The longest name that is looked for.
const LONGEST: usize = 32;

/// Each name that a search looks for in a folder, by its form in small letters.
static NOTABLE: LazyLock<HashMap<Vec<u8>, &'static str>> = LazyLock::new(|| {
    let of_homes = OF_HOME.iter().flat_map(|path| path.split('/'));
    let names = NAMES.iter().copied().chain(of_homes).chain(OF_GIT);
    let names = names.chain([MERCURIAL.0]).filter(|name| name.len() <= LONGEST);
    names.map(|name| (name.to_lowercase().into_bytes(), name)).collect()
});

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folder {
    /// How many entries were read. As many as were asked for: there may be more.
    pub(crate) entries: usize,
    /// Folders that a search goes into.
    pub(crate) folders: Vec<OsString>,
    pub(crate) sockets: Vec<OsString>,
    /// The names of [`NOTABLE`] that are there, also in other letters: some disks take those for the same name.
    notable: Vec<&'static str>,
    /// Some disks may take one of its names for any of [`NOTABLE`].
    is_unclear: bool,
}

impl Folder {
    pub(crate) fn of(entries: impl IntoIterator<Item = (OsString, Kind)>) -> Self {
        let mut folder = Self::default();
        for (name, kind) in entries {
            folder.entries += 1;
            folder.notable.extend(notable(&name));
            folder.is_unclear |= is_unclear(&name);
            match kind {
                Kind::Dir if is_searched(&name) => folder.folders.push(name),
                Kind::Socket => folder.sockets.push(name),
                _ => {}
            }
        }
        folder
    }

    /// How many names it keeps, which is what its memory takes.
    pub(crate) fn names(&self) -> usize {
        self.folders.len() + self.sockets.len() + self.notable.len()
    }

    /// Whether a name of [`NOTABLE`] may be among the entries that were read.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.is_unclear || self.notable.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

fn notable(name: &OsStr) -> Option<&'static str> {
    let name = name.as_bytes();
    let mut small = [0; LONGEST];
    let small = small.get_mut(..name.len())?;
    small.copy_from_slice(name);
    small.make_ascii_lowercase();
    NOTABLE.get(&*small).copied()
}

/// Whether a disk that takes other letters for the same name may take this name for one in ASCII: each other character in it stands for
/// ASCII letters there, or for nothing (full case folding, and characters that are ignored).
fn is_unclear(name: &OsStr) -> bool {
    let folds = |char: char| {
        matches!(
            char,
            '\u{df}' | '\u{131}' | '\u{17f}' | '\u{1e9e}' | '\u{212a}' | '\u{fb00}'..='\u{fb06}'
        )
    };
    let is_ignored = |char: char| {
        matches!(
            char,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}'
                | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
    };
    let may_be_ascii = |name: &str| {
        name.chars()
            .all(|char| char.is_ascii() || folds(char) || is_ignored(char))
    };
    !name.is_ascii() && name.to_str().is_some_and(may_be_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sb5_each_name_that_is_looked_for_is_found_in_a_folder_in_any_letters() {
        for name in NAMES.iter().chain(&OF_GIT).chain([&MERCURIAL.0]) {
            let folder = |name: String| Folder::of([(name.into(), Kind::File)]);
            assert!(folder((*name).to_owned()).has(name), "{name}");
            assert!(folder(name.to_uppercase()).has(name), "{name}");
            assert!(!folder(format!("{name}x")).has(name), "{name}");
        }
        for path in OF_HOME {
            for name in path.split('/') {
                assert!(Folder::of([(name.into(), Kind::Dir)]).has(name), "{name}");
            }
        }
    }

    #[test]
    fn sb5_a_name_that_some_disks_take_for_another_one_counts_as_any() {
        let has = |name: &str| Folder::of([(name.into(), Kind::Dir)]).has("objects");
        for name in [
            "object\u{17f}",
            ".g\u{131}t",
            ".g\u{200c}it",
            "\u{212a}eys",
            "\u{fb01}le",
            "stra\u{df}e",
        ] {
            assert!(has(name), "{name}");
        }
        for name in [
            "T\u{e9}l\u{e9}chargements",
            "\u{4e0b}\u{8f7d}",
            "o\u{308}bjects",
            "plain",
        ] {
            assert!(!has(name), "{name}");
        }
    }

    #[test]
    fn sb5_a_folder_is_told_by_what_a_search_needs() {
        let entries = [
            ("src", Kind::Dir),
            (".git", Kind::Dir),
            ("node_modules", Kind::Dir),
            ("agent.sock", Kind::Socket),
            ("main.rs", Kind::File),
        ];
        let folder = Folder::of(entries.map(|(name, kind)| (name.into(), kind)));
        assert_eq!(folder.entries, 5);
        assert_eq!(folder.folders, ["src"]);
        assert_eq!(folder.sockets, ["agent.sock"]);
        assert!(folder.has(".git") && !folder.has("objects"));
    }
}
