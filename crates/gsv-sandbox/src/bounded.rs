//! A search of the file system with an end. What a search can't finish must not be taken for what is not there: then it has failed. PURE.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::look::{Kind, Look};

/// What one search may cost: about a second. A look at a path costs 1.
const COST: usize = 500_000;
/// A path without links is looked at folder by folder.
const OF_REAL: usize = 4;
/// Entries of a list, and bytes of a text, for the price of a look.
const ENTRIES: usize = 10;
const BYTES: usize = 256;

pub(crate) struct Bounded<'a> {
    look: &'a dyn Look,
    left: Cell<usize>,
    problem: RefCell<Option<String>>,
}

impl<'a> Bounded<'a> {
    pub(crate) fn new(look: &'a dyn Look) -> Self {
        Self {
            look,
            left: Cell::new(COST),
            problem: RefCell::default(),
        }
    }

    /// The search has failed. The first reason is kept.
    pub(crate) fn fail(&self, problem: String) {
        self.problem.borrow_mut().get_or_insert(problem);
    }

    /// # Errors
    /// A sentence: not everything was looked at.
    pub(crate) fn finish<T>(&self, found: T) -> Result<T, String> {
        self.problem.borrow().clone().map_or(Ok(found), Err)
    }

    /// All entries of a folder. More than `limit` fail the search.
    pub(crate) fn all(&self, dir: &Path, limit: usize) -> Vec<(OsString, Kind)> {
        let entries = self.list(dir, limit + 1);
        if entries.len() > limit {
            self.fail(format!("{} has more than {limit} entries", dir.display()));
        }
        entries
    }

    /// False: nothing more is looked at.
    fn pay(&self, cost: usize, path: &Path) -> bool {
        let left = self.left.get().checked_sub(cost);
        self.left.set(left.unwrap_or(0));
        if left.is_none() {
            self.fail(format!(
                "there are too many folders and repositories to look at, {} among them",
                path.display()
            ));
        }
        left.is_some()
    }
}

impl Look for Bounded<'_> {
    fn real(&self, path: &Path) -> Option<PathBuf> {
        self.pay(OF_REAL, path).then(|| self.look.real(path)).flatten()
    }

    fn kind(&self, path: &Path) -> Option<Kind> {
        self.pay(1, path).then(|| self.look.kind(path)).flatten()
    }

    fn list(&self, dir: &Path, limit: usize) -> Vec<(OsString, Kind)> {
        if !self.pay(1, dir) {
            return Vec::new();
        }
        let entries = self.look.list(dir, limit.min(self.left.get().saturating_mul(ENTRIES)));
        self.pay(entries.len() / ENTRIES, dir);
        entries
    }

    fn text(&self, path: &Path) -> Option<Vec<u8>> {
        let text = self.pay(1, path).then(|| self.look.text(path)).flatten()?;
        self.pay(text.len() / BYTES, path).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::fake::Fake;

    #[test]
    fn sb5_a_search_that_costs_too_much_has_failed() {
        let disk = Fake::of(&["/a/b", "/a/c"]);
        let bounded = Bounded::new(&disk);
        bounded.pay(COST - 1, Path::new("/"));
        assert_eq!(bounded.kind(Path::new("/a/b")), Some(Kind::File));
        assert_eq!(bounded.finish(1), Ok(1));
        assert_eq!(bounded.kind(Path::new("/a/b")), None);
        assert!(bounded.list(Path::new("/a"), 9).is_empty());
        let problem = bounded.finish(1).unwrap_err();
        assert!(problem.contains("/a/b among them"), "{problem}");
    }

    #[test]
    fn sb5_a_folder_with_more_entries_than_the_limit_fails_the_search() {
        let disk = Fake::of(&["/a/b", "/a/c"]);
        let bounded = Bounded::new(&disk);
        assert_eq!(bounded.all(Path::new("/a"), 2).len(), 2);
        assert_eq!(bounded.finish(()), Ok(()));
        bounded.all(Path::new("/a"), 1);
        assert_eq!(bounded.finish(()), Err("/a has more than 1 entries".into()));
    }
}
