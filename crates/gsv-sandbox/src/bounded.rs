//! A search of the file system that costs a bounded time: each look has a price, and the search ends when its budget is spent. A file that
//! was not looked at is never reported as absent: the search fails. PURE.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::folder::Folder;
use crate::look::{Kind, Look, SMALL_FILE, Unseen};

/// What one search may cost: about a second. A look at a path costs 1.
const COST: usize = 500_000;
/// The price of resolving the links in a path, which looks at each folder of it.
const REAL_PATH_COST: usize = 4;
/// Entries of a list, and bytes of a text, for the price of a look.
const ENTRIES: usize = 10;
const BYTES: usize = 256;

/// Why a search has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Problem {
    /// There is more than can be looked at. A clause.
    Limit(String),
    /// The user has no access to this file or folder of theirs.
    Denied(PathBuf),
    /// The system can't read it. A clause.
    Unreadable(String),
}

pub(crate) struct Bounded<'a> {
    look: &'a dyn Look,
    left: Cell<usize>,
    problem: RefCell<Option<Problem>>,
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
    fn fail(&self, problem: Problem) {
        self.problem.borrow_mut().get_or_insert(problem);
    }

    /// The search has failed, because there is too much. `limit`: a clause.
    pub(crate) fn exceed(&self, limit: String) {
        self.fail(Problem::Limit(limit));
    }

    /// # Errors
    /// Not everything was looked at.
    pub(crate) fn finish<T>(&self, found: T) -> Result<T, Problem> {
        self.problem.borrow().clone().map_or(Ok(found), Err)
    }

    /// All entries of a folder. More than `limit` fail the search.
    pub(crate) fn all(&self, dir: &Path, limit: usize) -> Vec<(OsString, Kind)> {
        let entries = self.list(dir, limit + 1);
        self.require_at_most(limit, entries.len(), dir);
        entries
    }

    /// A whole folder. More than `limit` entries fail the search.
    pub(crate) fn whole(&self, dir: &Path, limit: usize) -> Arc<Folder> {
        let folder = self.folder(dir, limit + 1);
        self.require_at_most(limit, folder.entries, dir);
        folder
    }

    fn require_at_most(&self, limit: usize, entries: usize, dir: &Path) {
        if entries > limit {
            self.exceed(format!("{} has more than {limit} entries", dir.display()));
        }
    }

    /// How many entries of a list the rest of the budget is enough for.
    fn entries_left(&self) -> usize {
        self.left.get().saturating_mul(ENTRIES)
    }

    /// For a list of a folder. `limit`: what was asked for. A list that the budget has made shorter may have left out some.
    fn pay_entries(&self, entries: usize, limit: usize, dir: &Path) {
        let is_cut = entries < limit && entries >= self.entries_left();
        self.pay(entries / ENTRIES + usize::from(is_cut), dir);
    }

    /// False: nothing more is looked at.
    fn pay(&self, cost: usize, path: &Path) -> bool {
        let left = self.left.get().checked_sub(cost);
        self.left.set(left.unwrap_or(0));
        if left.is_none() {
            self.exceed(format!(
                "there are too many folders and repositories to look at, {} among them",
                path.display()
            ));
        }
        left.is_some()
    }
}

impl Bounded<'_> {
    /// Nothing, and a failed search, where it can't be looked at.
    fn seen<T: Default>(&self, result: Result<T, Unseen>, path: &Path) -> T {
        result.unwrap_or_else(|unseen| {
            let path = path.display();
            self.fail(match unseen {
                Unseen::Denied(denied) => Problem::Denied(denied),
                Unseen::TooLong => Problem::Limit(format!("{path} is longer than {} KiB", SMALL_FILE / 1024)),
                Unseen::Other(kind) => Problem::Unreadable(format!("{path} can't be read ({kind})")),
            });
            T::default()
        })
    }
}

impl Look for Bounded<'_> {
    fn try_real(&self, path: &Path) -> Result<Option<PathBuf>, Unseen> {
        let real = || self.seen(self.look.try_real(path), path);
        Ok(self.pay(REAL_PATH_COST, path).then(real).flatten())
    }

    fn try_kind(&self, path: &Path) -> Result<Option<Kind>, Unseen> {
        let kind = || self.seen(self.look.try_kind(path), path);
        Ok(self.pay(1, path).then(kind).flatten())
    }

    fn try_list(&self, dir: &Path, limit: usize) -> Result<Vec<(OsString, Kind)>, Unseen> {
        if !self.pay(1, dir) {
            return Ok(Vec::new());
        }
        let entries = self.seen(self.look.try_list(dir, limit.min(self.entries_left())), dir);
        self.pay_entries(entries.len(), limit, dir);
        Ok(entries)
    }

    fn try_folder(&self, dir: &Path, limit: usize) -> Result<Arc<Folder>, Unseen> {
        if !self.pay(1, dir) {
            return Ok(Arc::default());
        }
        let folder = self.seen(self.look.try_folder(dir, limit.min(self.entries_left())), dir);
        self.pay_entries(folder.entries, limit, dir);
        Ok(folder)
    }

    fn is_listed(&self, dir: &Path) -> bool {
        self.pay(1, dir) && self.look.is_listed(dir)
    }

    fn try_text(&self, path: &Path) -> Result<Option<Vec<u8>>, Unseen> {
        let text = || self.seen(self.look.try_text(path), path);
        let text = self.pay(1, path).then(text).flatten();
        let cost = text.as_ref().map_or(0, |text| text.len() / BYTES);
        Ok(text.filter(|_| self.pay(cost, path)))
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
        assert!(
            matches!(&problem, Problem::Limit(text) if text.contains("/a/b among them")),
            "{problem:?}"
        );
    }

    #[test]
    fn sb5_a_list_that_the_budget_cuts_has_failed() {
        let names: Vec<String> = (0..30).map(|number| format!("/a/f{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let disk = Fake::of(&names);
        let of = |left: usize, look: &dyn Fn(&Bounded) -> usize| {
            let bounded = Bounded::new(&disk);
            bounded.pay(COST - left, Path::new("/"));
            (look(&bounded), bounded.finish(()).is_ok())
        };
        let list = |bounded: &Bounded| bounded.list(Path::new("/a"), 700).len();
        let folder = |bounded: &Bounded| bounded.folder(Path::new("/a"), 700).entries;
        for look in [&list as &dyn Fn(&Bounded) -> usize, &folder] {
            // One for the folder, and what is left for its entries.
            assert_eq!(of(3, look), (20, false));
            assert_eq!(of(5, look), (30, true));
        }
    }

    #[test]
    fn sb5_what_can_not_be_looked_at_fails_the_search() {
        let disk = Fake::of(&["/a/b", "/c/d"]).closed("/a");
        let bounded = Bounded::new(&disk);
        assert_eq!(bounded.list(Path::new("/c"), 9).len(), 1);
        assert_eq!(bounded.finish(()), Ok(()));
        bounded.list(Path::new("/a"), 9);
        assert_eq!(bounded.finish(()), Err(Problem::Denied("/a".into())));
    }

    #[test]
    fn sb5_a_folder_with_more_entries_than_the_limit_fails_the_search() {
        let disk = Fake::of(&["/a/b", "/a/c"]);
        let bounded = Bounded::new(&disk);
        assert_eq!(bounded.all(Path::new("/a"), 2).len(), 2);
        assert_eq!(bounded.finish(()), Ok(()));
        bounded.all(Path::new("/a"), 1);
        assert_eq!(
            bounded.finish(()),
            Err(Problem::Limit("/a has more than 1 entries".into()))
        );
    }
}
