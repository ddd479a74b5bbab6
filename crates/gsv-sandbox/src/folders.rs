//! The folders of one search, each with what the search needs to know of it. PURE: the file system is asked through [`Bounded`].

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::bounded::Bounded;
use crate::folder::Folder;
use crate::look::Look as _;

/// A folder with fewer entries is listed, in place of a look at each name.
const FEW: usize = 700;

/// Each folder is read once, and once more when all of a large one is needed.
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
        if let Some(read) = self.known.get(dir).filter(|read| read.is_whole) {
            return Arc::clone(&read.folder);
        }
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
        // One of another user may refuse to be listed, and still show each file to a program that knows its name.
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
