//! What a search needs to know of a folder, without the names of all its files. PURE: the file system is asked through [`Look`].

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use crate::bounded::Bounded;
use crate::homes::OF_HOME;
use crate::look::{Kind, Look as _};
use crate::names::{MERCURIAL, NAMES, OF_GIT, is_searched};

/// The longest name that is looked for.
const LONGEST: usize = 32;
/// A folder with fewer entries is listed, in place of a look at each name.
const FEW: usize = 700;

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
    names: Vec<&'static str>,
}

impl Folder {
    pub(crate) fn of(entries: impl IntoIterator<Item = (OsString, Kind)>) -> Self {
        let mut folder = Self::default();
        for (name, kind) in entries {
            folder.entries += 1;
            folder.names.extend(notable(&name));
            match kind {
                Kind::Dir if is_searched(&name) => folder.folders.push(name),
                Kind::Socket => folder.sockets.push(name),
                _ => {}
            }
        }
        folder
    }

    /// Whether a name of [`NOTABLE`] is among the entries that were read.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.iter().any(|known| known.eq_ignore_ascii_case(name))
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

/// The folders of one search: each is read once.
pub(crate) struct Folders<'a> {
    pub(crate) look: &'a Bounded<'a>,
    known: HashMap<PathBuf, Read>,
}

#[derive(Clone)]
pub(crate) struct Read {
    folder: Arc<Folder>,
    /// All of its entries were read.
    is_whole: bool,
}

impl Read {
    /// False: it has no such entry, in any letters. `name`: of [`NOTABLE`].
    pub(crate) fn may_have(&self, name: &str) -> bool {
        !self.is_whole || self.folder.has(name)
    }
}

impl<'a> Folders<'a> {
    pub(crate) fn new(look: &'a Bounded<'a>) -> Self {
        Self {
            look,
            known: HashMap::new(),
        }
    }

    /// More than `limit` entries fail the search.
    pub(crate) fn whole(&mut self, dir: &Path, limit: usize) -> Arc<Folder> {
        let folder = self.look.whole(dir, limit);
        self.know(dir, Arc::clone(&folder), folder.entries <= limit);
        folder
    }

    /// A folder with many entries is not read to its end: a look at each name costs less.
    pub(crate) fn read(&mut self, dir: &Path) -> Read {
        if let Some(read) = self.known.get(dir) {
            return read.clone();
        }
        let folder = self.look.folder(dir, FEW);
        let has_few = folder.entries < FEW;
        self.know(dir, folder, has_few)
    }

    /// As `read`. A folder that can't be listed fails no search.
    pub(crate) fn read_if_listed(&mut self, dir: &Path) -> Read {
        if self.known.contains_key(dir) || self.look.is_listed(dir) {
            return self.read(dir);
        }
        self.know(dir, Arc::default(), false)
    }

    fn know(&mut self, dir: &Path, folder: Arc<Folder>, is_read: bool) -> Read {
        // One of another user may be closed to lists and still open to who knows a name.
        let is_whole = is_read && (folder.entries > 0 || self.look.is_listed(dir));
        let read = Read { folder, is_whole };
        self.known.insert(dir.to_owned(), read.clone());
        read
    }

    /// The sockets in the folders that were read.
    pub(crate) fn sockets(&self) -> BTreeSet<PathBuf> {
        let sockets = |(dir, read): (&PathBuf, &Read)| -> Vec<PathBuf> {
            read.folder.sockets.iter().map(|name| dir.join(name)).collect()
        };
        self.known.iter().flat_map(sockets).collect()
    }
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
