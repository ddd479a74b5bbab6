//! The lexical part of confinement: turns a caller's text into a normalised relative path. Does not access the file system.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use super::{Beneath, Scope};
use crate::error::{ToolError, quote};
use crate::limits;

/// A path relative to the root: no `.`, no `..`, no empty part, no NUL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelPath {
    parts: Vec<OsString>,
    /// It was written with a slash (or `/.`) at its end, so it can only name a directory.
    dir: bool,
}

impl RelPath {
    pub fn is_root(&self) -> bool {
        self.parts.is_empty()
    }

    pub(crate) fn needs_dir(&self) -> bool {
        self.dir
    }

    pub fn joined(&self) -> PathBuf {
        self.parts.iter().collect()
    }

    pub(crate) fn parts(&self) -> &[OsString] {
        &self.parts
    }

    pub(crate) fn split_last(&self) -> Option<(PathBuf, &OsStr)> {
        let (name, parent) = self.parts.split_last()?;
        Some((parent.iter().collect(), name))
    }
}

impl RelPath {
    /// A name in this folder.
    pub(super) fn child(&self, name: &str) -> Self {
        let mut parts = self.parts.clone();
        parts.push(name.into());
        Self { parts, dir: false }
    }
}

impl Beneath {
    /// Reads a caller's path. `..` is resolved lexically (`a/../b` is `b`), so the result never leaves the root.
    pub fn parse(&self, raw: &str) -> Result<RelPath, ToolError> {
        let invalid = |problem: &str| ToolError::InvalidPath {
            path: quote(raw),
            problem: problem.to_owned(),
        };
        if raw.is_empty() {
            return Err(invalid("it is empty; `.` is the workspace"));
        }
        if raw.contains('\0') {
            return Err(invalid("it has a NUL in it"));
        }
        if raw.len() > limits::PATH_BYTES {
            return Err(invalid("it is longer than 4096 bytes"));
        }
        if raw.starts_with('~') {
            return Err(invalid(
                "`~` is not expanded here; give a path in the workspace (a file with such a name is `./~name`)",
            ));
        }
        if raw.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:")) {
            return Err(invalid("URLs are not taken; give a plain path"));
        }
        let outside = || ToolError::OutsideWorkspace { path: quote(raw) };
        let parts = if Path::new(raw).is_absolute() {
            let absolute = normalise(Vec::new(), raw, Scope::Anywhere).ok_or_else(outside)?;
            match self.scope {
                Scope::Anywhere => absolute,
                Scope::Workspace => self.strip_workspace(&absolute).ok_or_else(outside)?,
            }
        } else {
            let start = if self.scope == Scope::Anywhere {
                parts_of(&self.workspace)
            } else {
                Vec::new()
            };
            normalise(start, raw, self.scope).ok_or_else(outside)?
        };
        let dir = raw.ends_with('/') || raw.ends_with("/.") || raw.ends_with("/..") || raw == "." || raw == "..";
        Ok(RelPath { parts, dir })
    }

    fn strip_workspace(&self, absolute: &[OsString]) -> Option<Vec<OsString>> {
        [Some(&self.workspace), self.alias.as_ref()]
            .into_iter()
            .flatten()
            .find_map(|base| {
                absolute
                    .strip_prefix(parts_of(base).as_slice())
                    .map(<[OsString]>::to_vec)
            })
    }

    /// The parts of an absolute link target relative to the root, when it leads back inside. May still hold `..`.
    pub(super) fn inside(&self, target: &Path) -> Option<PathBuf> {
        [
            Some(&self.root_path),
            self.alias.as_ref().filter(|_| self.scope == Scope::Workspace),
        ]
        .into_iter()
        .flatten()
        .find_map(|base| target.strip_prefix(base).ok().map(Path::to_path_buf))
    }

    /// The path as results show it: relative to the workspace when it is inside, else absolute.
    pub fn show(&self, rel: &RelPath) -> String {
        self.show_path(&rel.joined())
    }

    pub(crate) fn show_path(&self, rel: &Path) -> String {
        let shown = match self.scope {
            Scope::Workspace => rel.to_path_buf(),
            Scope::Anywhere if self.workspace == self.root_path => self.root_path.join(rel),
            Scope::Anywhere => {
                let absolute = self.root_path.join(rel);
                absolute
                    .strip_prefix(&self.workspace)
                    .map(Path::to_path_buf)
                    .unwrap_or(absolute)
            }
        };
        if shown.as_os_str().is_empty() {
            ".".to_owned()
        } else {
            shown.to_string_lossy().into_owned()
        }
    }
}

fn parts_of(path: &Path) -> Vec<OsString> {
    path.components()
        .filter_map(|part| {
            if let Component::Normal(name) = part {
                Some(name.to_owned())
            } else {
                None
            }
        })
        .collect()
}

/// `None` when the path leaves its root. The parent of `/` is `/`.
fn normalise(mut parts: Vec<OsString>, raw: &str, scope: Scope) -> Option<Vec<OsString>> {
    for part in raw.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() && scope == Scope::Workspace {
                    return None;
                }
            }
            name => parts.push(name.into()),
        }
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::beneath::Resolver;

    #[test]
    fn s11_a_path_with_a_nul_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let beneath = Beneath::new(dir.path(), Scope::Workspace, Resolver::Auto).unwrap();
        let error = beneath.parse("a\0b").unwrap_err().to_string();
        assert!(error.contains("NUL"), "{error}");
    }

    #[test]
    fn s11_a_path_that_ends_as_a_directory_does_names_none_but_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let beneath = Beneath::new(dir.path(), Scope::Workspace, Resolver::Auto).unwrap();
        for (raw, want) in [
            ("a/", true),
            ("a/.", true),
            ("a/b/..", true),
            (".", true),
            ("a", false),
            ("a/..b", false),
        ] {
            assert_eq!(beneath.parse(raw).unwrap().needs_dir(), want, "{raw}");
        }
    }

    #[test]
    fn s11_a_path_has_at_most_4096_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let beneath = Beneath::new(dir.path(), Scope::Workspace, Resolver::Auto).unwrap();
        assert!(beneath.parse(&"a/".repeat(limits::PATH_BYTES / 2)).is_ok());
        let longer = "a/".repeat(limits::PATH_BYTES / 2) + "b";
        assert_eq!(beneath.parse(&longer).unwrap_err().reason(), "path.invalid");
    }

    #[test]
    fn s11_a_link_by_the_name_that_the_workspace_was_given_leads_back_inside() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir(path("real")).unwrap();
        std::fs::write(path("real/f"), "x").unwrap();
        std::fs::write(path("outside"), "x").unwrap();
        std::os::unix::fs::symlink("real", path("alias")).unwrap();
        std::os::unix::fs::symlink(path("alias/f"), path("real/link")).unwrap();
        std::os::unix::fs::symlink(path("outside"), path("real/out")).unwrap();
        for resolver in [Resolver::Auto, Resolver::Walk] {
            let beneath = Beneath::new(&path("alias"), Scope::Workspace, resolver).unwrap();
            let open = |name: &str| {
                beneath
                    .open_file(&beneath.parse(name).unwrap())
                    .map(|opened| opened.size())
            };
            assert_eq!(open("link").unwrap(), 1);
            assert_eq!(open("out").unwrap_err().reason(), "path.outside_workspace");
        }
    }

    fn part() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("..".to_owned()),
            Just(".".to_owned()),
            Just(String::new()),
            Just("...".to_owned()),
            Just("%2e%2e".to_owned()),
            "[^/\0]{1,8}"
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn s11_a_parsed_path_never_leaves_the_root(parts in proptest::collection::vec(part(), 0..12), absolute in any::<bool>()) {
            let dir = tempfile::tempdir().unwrap();
            let beneath = Beneath::new(dir.path(), Scope::Workspace, Resolver::Auto).unwrap();
            let raw = format!("{}{}", if absolute { "/" } else { "" }, parts.join("/"));
            if let Ok(rel) = beneath.parse(&raw) {
                prop_assert!(rel.parts().iter().all(|part| part != ".." && part != "." && !part.is_empty()));
                prop_assert!(!rel.joined().is_absolute());
                // Parsing what it shows gives the same path again, unless the name needs `./` in front.
                let shown = beneath.show(&rel);
                let again = beneath.parse(&format!("./{shown}")).unwrap();
                prop_assert_eq!(again.parts(), rel.parts());
            }
        }

        #[test]
        fn s11_absolute_inside_equals_relative(names in proptest::collection::vec("[a-z]{1,6}", 0..6)) {
            let dir = tempfile::tempdir().unwrap();
            let beneath = Beneath::new(dir.path(), Scope::Workspace, Resolver::Auto).unwrap();
            let rel = names.join("/");
            let absolute = beneath.parse(&format!("{}/{rel}", beneath.workspace().display())).unwrap();
            let relative = beneath.parse(&format!("./{rel}")).unwrap();
            prop_assert_eq!(absolute.parts(), relative.parts());
        }
    }
}
