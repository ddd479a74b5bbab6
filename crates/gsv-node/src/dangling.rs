//! Links whose target does not exist. Opening one fails as if there were no file, and a reader that stops there would use defaults that
//! the owner has replaced. Changes nothing.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// A link whose target does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dangling {
    pub link: PathBuf,
    pub target: PathBuf,
}

impl fmt::Display for Dangling {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (link, target) = (self.link.display(), self.target.display());
        write!(formatter, "{link} is a link to {target}, which does not exist")
    }
}

/// As many links as Linux follows.
const MOST_LINKS: usize = 40;

/// Why a path was not found although it is there: it, or a folder of it, is a link whose target does not exist. Of links that lead to
/// each other, it is the last one.
pub fn dangling_link(path: &Path) -> Option<Dangling> {
    let mut link = path
        .ancestors()
        .find(|part| fs::symlink_metadata(part).is_ok())?
        .to_owned();
    if fs::metadata(&link).is_ok() {
        return None;
    }
    for _ in 0..MOST_LINKS {
        let target = fs::read_link(&link).ok()?;
        let next = link.parent().unwrap_or(Path::new("")).join(&target);
        if fs::symlink_metadata(&next).is_err() {
            return Some(Dangling { link, target });
        }
        link = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn s20_a_link_without_its_target_is_told_from_a_path_that_does_not_exist() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        symlink("missing", at("link")).unwrap();
        symlink(at("gone"), at("folder")).unwrap();
        symlink(dir.path(), at("here")).unwrap();
        for absent in ["none", "none/below", "here/none"] {
            assert_eq!(dangling_link(&at(absent)), None, "{absent}");
        }
        let found = dangling_link(&at("link")).unwrap();
        assert_eq!((found.link, found.target), (at("link"), "missing".into()));
        let found = dangling_link(&at("folder/below/file")).unwrap();
        assert_eq!((found.link, found.target), (at("folder"), at("gone")));
        symlink("link", at("first")).unwrap();
        let found = dangling_link(&at("first")).unwrap();
        assert_eq!((found.link, found.target), (at("link"), "missing".into()));
        symlink("circle", at("circle")).unwrap();
        assert_eq!(dangling_link(&at("circle")), None);
    }
}
