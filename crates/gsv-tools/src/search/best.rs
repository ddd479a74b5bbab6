//! Collects the first matches by path from many threads, in any order of arrival.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::lines::Found;

/// Keeps the smallest paths that together hold at least `want` matches.
pub(super) struct Best {
    want: usize,
    kept: Mutex<Kept>,
    /// Increases whenever the bound changes, so that threads read the bound only then.
    version: AtomicUsize,
}

#[derive(Default)]
struct Kept {
    files: BTreeMap<PathBuf, Vec<Found>>,
    total: usize,
}

/// A thread's copy of the largest path that can still be a result.
#[derive(Default)]
pub(super) struct Bound {
    version: usize,
    path: Option<PathBuf>,
}

impl Best {
    pub(super) fn new(want: usize) -> Self {
        Self {
            want,
            kept: Mutex::default(),
            version: AtomicUsize::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, path: &Path, found: Vec<Found>) {
        if found.is_empty() {
            return;
        }
        let mut kept = self.lock();
        kept.total += found.len();
        if let Some(before) = kept.files.insert(path.to_path_buf(), found) {
            kept.total -= before.len();
        }
        while let Some(last) = kept.files.last_entry() {
            let matches = last.get().len();
            if kept.total - matches < self.want {
                break;
            }
            kept.files.pop_last();
            kept.total -= matches;
        }
        if kept.total >= self.want {
            self.version.fetch_add(1, Ordering::Release);
        }
    }

    /// Whether `base/path`, and everything below it, sorts after every path that can still be a result.
    pub(super) fn excludes(&self, bound: &mut Bound, base: &Path, path: &Path) -> bool {
        let version = self.version.load(Ordering::Acquire);
        if version != bound.version {
            bound.version = version;
            bound.path = self.lock().files.last_key_value().map(|(path, _)| path.clone());
        }
        let Some(last) = &bound.path else { return false };
        // As paths are compared, without making `base/path` for each file.
        base.components().chain(path.components()).gt(last.components())
    }

    pub(super) fn into_sorted(self) -> BTreeMap<PathBuf, Vec<Found>> {
        self.kept.into_inner().unwrap_or_else(PoisonError::into_inner).files
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(lines: usize) -> Vec<Found> {
        (0..lines).map(|line| Found::at(line as u64)).collect()
    }

    #[test]
    fn once_there_are_enough_matches_later_paths_are_excluded() {
        let best = Best::new(2);
        let mut bound = Bound::default();
        let mut excludes = |path: &str| best.excludes(&mut bound, Path::new(""), Path::new(path));
        best.add(Path::new("m"), found(1));
        assert!(!excludes("z"));
        best.add(Path::new("p"), found(1));
        assert_eq!([excludes("z"), excludes("p"), excludes("n")], [true, false, false]);
        best.add(Path::new("a"), found(1));
        assert_eq!([excludes("n"), excludes("m"), excludes("b")], [true, false, false]);
    }

    #[test]
    fn paths_are_compared_with_the_folder_that_they_are_in() {
        let best = Best::new(1);
        best.add(Path::new("m/c"), found(1));
        let mut bound = Bound::default();
        let mut excludes = |base: &str, path: &str| best.excludes(&mut bound, Path::new(base), Path::new(path));
        assert_eq!(
            [excludes("m", "d"), excludes("m", "c"), excludes("m", "b")],
            [true, false, false]
        );
        assert_eq!([excludes("n", "a"), excludes("l", "z")], [true, false]);
    }

    #[test]
    fn a_file_without_a_match_is_not_kept() {
        let best = Best::new(2);
        best.add(Path::new("m"), found(0));
        best.add(Path::new("n"), found(1));
        assert_eq!(best.into_sorted().into_keys().collect::<Vec<_>>(), [PathBuf::from("n")]);
    }

    proptest! {
        #[test]
        fn any_order_keeps_the_first_matches(
            files in proptest::collection::btree_map("[a-c](/[a-c.]){0,3}", 1usize..5, 0..30),
            want in 1usize..20,
            seed in any::<u64>(),
        ) {
            let sorted: BTreeMap<PathBuf, usize> = files.into_iter().map(|(path, count)| (PathBuf::from(path), count)).collect();
            let mut order: Vec<_> = sorted.iter().collect();
            fastrand::Rng::with_seed(seed).shuffle(&mut order);
            let best = Best::new(want);
            let mut bound = Bound::default();
            for (path, count) in order {
                if !best.excludes(&mut bound, Path::new(""), path) {
                    best.add(path, found(*count));
                }
            }
            let flat = |files: Vec<(PathBuf, usize)>| -> Vec<(PathBuf, usize)> {
                files.into_iter().flat_map(|(path, count)| (0..count).map(move |line| (path.clone(), line))).take(want).collect()
            };
            let kept = best.into_sorted().into_iter().map(|(path, found)| (path, found.len())).collect();
            prop_assert_eq!(flat(kept), flat(sorted.into_iter().collect()));
        }
    }
}
