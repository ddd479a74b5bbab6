//! What Glob and Grep share: the directory to search, the parallel walk that honours ignore files, and glob patterns.
//!
//! The walk follows no symlinks and reads `.gitignore` and `.ignore` files of the workspace only: what it leaves out must not
//! depend on a file outside. Each find is opened or checked again through [`crate::beneath`], so a directory that is swapped
//! for a link during the walk leaks nothing.

mod ages;
mod best;
mod glob;
mod grep;
mod lines;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use globset::{GlobBuilder, GlobMatcher};
use ignore::{DirEntry, WalkBuilder, WalkParallel};

use crate::beneath::{Beneath, FileId, Opened, RelPath, fd_path};
use crate::error::{ToolError, quote};
use crate::limits;

pub(crate) use glob::Glob;
pub(crate) use grep::Grep;

/// Where a search starts.
enum Base {
    Dir(Tree),
    File(RelPath, Opened),
}

impl Base {
    fn open(files: &Arc<Beneath>, path: Option<&str>) -> Result<Self, ToolError> {
        let rel = files.parse(path.unwrap_or("."))?;
        match files.open_dir(&rel) {
            Ok(dir) => {
                files.require_given(&rel, &dir)?;
                Ok(Self::Dir(Tree {
                    files: Arc::clone(files),
                    base: rel,
                    dir,
                }))
            }
            Err(ToolError::NotFound { path }) => match files.open_file(&rel) {
                Ok(opened) => Ok(Self::File(rel, opened)),
                Err(
                    error @ (ToolError::NotAFile { .. }
                    | ToolError::PrivateFolder { .. }
                    | ToolError::ManyNames { .. }
                    | ToolError::ThroughLink { .. }),
                ) => Err(error),
                Err(_) => Err(ToolError::NotFound { path }),
            },
            Err(error) => Err(error),
        }
    }
}

/// A directory to search.
struct Tree {
    files: Arc<Beneath>,
    base: RelPath,
    dir: OwnedFd,
}

/// One walk. `root` is where it begins: the workspace, so that its ignore files count, narrowed to the directory that is
/// searched; or that directory itself.
struct Walk {
    files: Arc<Beneath>,
    root: OwnedFd,
    /// The root's path for the walker, without names that could be swapped.
    root_path: PathBuf,
    /// The root relative to the confinement's root, for messages.
    shown: PathBuf,
    /// The searched directory relative to `root`.
    inner: PathBuf,
    reached: Arc<AtomicBool>,
    skipped: Arc<AtomicUsize>,
}

impl Tree {
    /// Walks with `visit`, which is handed the walk and the walker. The first walk begins at the workspace; when ignore
    /// rules (or a link on the way) keep it from the wanted directory, a second walk begins at that directory.
    fn search(&self, hidden: bool, mut visit: impl FnMut(&Walk, WalkParallel)) -> Result<usize, ToolError> {
        let above = self.files.parse(".")?;
        let mut skipped = 0;
        if let Ok(inner) = self.base.joined().strip_prefix(above.joined()) {
            let root = self.files.open_dir(&above)?;
            let walk = self.walk(root, &above, inner.to_path_buf());
            visit(&walk, walk.build(hidden));
            skipped += walk.skipped.load(Ordering::Relaxed);
            if walk.reached.load(Ordering::Relaxed) {
                return Ok(skipped);
            }
        }
        let root = self
            .dir
            .try_clone()
            .map_err(|error| ToolError::io("open the directory", error))?;
        let walk = self.walk(root, &self.base, PathBuf::new());
        visit(&walk, walk.build(hidden));
        Ok(skipped + walk.skipped.load(Ordering::Relaxed))
    }

    fn walk(&self, root: OwnedFd, rel: &RelPath, inner: PathBuf) -> Walk {
        // The `/.` makes the walker see a directory where the name itself is a link of procfs.
        let root_path = fd_path(&root).map_or_else(|| self.files.real_path(&root, rel), |path| path.join("."));
        let reached = Arc::new(AtomicBool::new(inner.as_os_str().is_empty()));
        Walk {
            files: Arc::clone(&self.files),
            root,
            root_path,
            shown: rel.joined(),
            inner,
            reached,
            skipped: Arc::default(),
        }
    }
}

impl Walk {
    fn build(&self, hidden: bool) -> WalkParallel {
        let filter = Filter {
            files: Arc::clone(&self.files),
            prefix: self.root_path.clone(),
            shown: self.shown.clone(),
            inner: self.inner.clone(),
            reached: Arc::clone(&self.reached),
            skipped: Arc::clone(&self.skipped),
            private: self.files.private_ids(),
        };
        if !filter.has_safe_ignore_files(&self.root_path) {
            self.skipped.fetch_add(1, Ordering::Relaxed);
            return WalkBuilder::empty().build_parallel();
        }
        WalkBuilder::new(&self.root_path)
            .hidden(!hidden)
            .parents(false)
            .git_global(false)
            // `.git` may be a file or a link that leads out of the workspace.
            .git_exclude(false)
            // As git's own rules they would be read in all folders above too, where nothing has checked them.
            .git_ignore(false)
            .ignore(false)
            .add_custom_ignore_filename(".gitignore")
            .add_custom_ignore_filename(".ignore")
            .follow_links(false)
            .threads(std::thread::available_parallelism().map_or(2, |threads| threads.get().min(12)))
            .filter_entry(move |entry| filter.admits(entry))
            .build_parallel()
    }

    /// An entry's path relative to `root`.
    fn relative<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        relative(&self.root_path, path)
    }
}

fn relative<'p>(prefix: &Path, path: &'p Path) -> Option<&'p Path> {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    // By bytes: comparing components would drop the prefix's own `.`, and cost more.
    let rest = path
        .as_os_str()
        .as_bytes()
        .strip_prefix(prefix.as_os_str().as_bytes())?;
    Some(Path::new(OsStr::from_bytes(rest.strip_prefix(b"/").unwrap_or(rest))))
}

struct Filter {
    files: Arc<Beneath>,
    /// The path of the walk's root for the walker, and relative to the confinement's root.
    prefix: PathBuf,
    shown: PathBuf,
    inner: PathBuf,
    reached: Arc<AtomicBool>,
    skipped: Arc<AtomicUsize>,
    /// Directories that are left out.
    private: Vec<FileId>,
}

impl Filter {
    fn admits(&self, entry: &DirEntry) -> bool {
        let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
        if !self.inner.as_os_str().is_empty() {
            let path = relative(&self.prefix, entry.path()).unwrap_or_else(|| entry.path());
            let is_on_the_way = is_dir && self.inner.starts_with(path);
            if !is_on_the_way && !path.starts_with(&self.inner) {
                return false;
            }
            if path == self.inner {
                self.reached.store(true, Ordering::Relaxed);
            }
        }
        if !is_dir {
            return true;
        }
        // Only reached when hidden files are asked for; the search never includes git's own store.
        if entry.file_name() == ".git" {
            return false;
        }
        if self.is_private(entry) {
            return false;
        }
        let safe = self.has_safe_ignore_files(entry.path());
        if !safe {
            self.skipped.fetch_add(1, Ordering::Relaxed);
        }
        safe
    }

    fn is_private(&self, entry: &DirEntry) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let holds = |found: std::fs::Metadata| self.private.contains(&(found.dev(), found.ino()));
        !self.private.is_empty() && entry.path().symlink_metadata().is_ok_and(holds)
    }

    /// The walker opens ignore files by name and reads them whole. So each must be a regular file of limited size inside the
    /// workspace: not a fifo, a link to an endless device, or a link to a file outside, whose lines the results would reveal.
    fn has_safe_ignore_files(&self, dir: &Path) -> bool {
        [".gitignore", ".ignore"].iter().all(|name| {
            let path = dir.join(name);
            match path.symlink_metadata() {
                Ok(found) if found.is_symlink() => self.size_inside(&path),
                Ok(found) => found.is_file().then_some(found.len()),
                Err(_) => Some(0),
            }
            .is_some_and(|size| size <= limits::IGNORE_FILE_BYTES)
        })
    }

    /// The size of the regular file that a link leads to. `None`: it leads out of the workspace or to no regular file.
    fn size_inside(&self, path: &Path) -> Option<u64> {
        let shown = self.shown.join(relative(&self.prefix, path)?);
        let rel = self.files.parse(&self.files.show_path(&shown)).ok()?;
        let opened = self.files.open_file(&rel).ok()?;
        Some(opened.size())
    }
}

/// A glob relative to the searched directory. Without a slash it matches names at any depth, as in an ignore file.
fn compile(files: &Beneath, field: &str, raw: &str) -> Result<GlobMatcher, ToolError> {
    if raw.is_empty() || raw.len() > limits::GREP_PATTERN_BYTES || raw.contains('\0') {
        return Err(ToolError::bad_args(field, "must be from 1 to 1024 bytes, without NUL"));
    }
    if raw.split('/').any(|part| part == "..") {
        return Err(ToolError::OutsideWorkspace { path: quote(raw) });
    }
    let mut pattern = raw.trim_start_matches("./");
    if let Some(absolute) = pattern.strip_prefix('/') {
        let workspace = files.workspace().to_string_lossy();
        pattern = absolute
            .strip_prefix(workspace.trim_start_matches('/'))
            .and_then(|rest| rest.strip_prefix('/'))
            .ok_or_else(|| ToolError::OutsideWorkspace { path: quote(raw) })?;
    }
    let mut pattern = if pattern.contains('/') {
        pattern.to_owned()
    } else {
        format!("**/{pattern}")
    };
    if pattern.ends_with('/') {
        pattern += "**";
    }
    GlobBuilder::new(&pattern)
        .literal_separator(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| ToolError::bad_args(field, error.to_string()))
}
