//! The mounts of a process, as the kernel lists them, and the places at which one file of a file system is seen. PURE: takes the text.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// Other places of hidden paths, at most.
const SHOWN: usize = 1_000;

/// One line of `mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) id: u64,
    /// Major and minor number, as one text.
    pub(crate) device: Vec<u8>,
    /// The folder of the file system that is mounted.
    root: PathBuf,
    pub(crate) point: PathBuf,
    pub(crate) is_writable: bool,
}

impl Mount {
    /// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw`
    fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ');
        let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
        fields.next()?;
        let (device, root, point) = (fields.next()?, fields.next()?, fields.next()?);
        let is_writable = !fields.next()?.split(|byte| *byte == b',').any(|option| option == b"ro");
        Some(Self {
            id,
            device: device.to_owned(),
            root: OsString::from_vec(unescape(root)).into(),
            point: OsString::from_vec(unescape(point)).into(),
            is_writable,
        })
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.device, &self.root, &self.point) == (&other.device, &other.root, &other.point)
    }
}

/// # Errors
/// A sentence: a line has another form.
pub(crate) fn mounts(listing: &[u8]) -> Result<Vec<Mount>, String> {
    let lines = listing.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| Mount::parse(line).ok_or_else(|| "the list of mounts can't be read".to_owned()))
        .collect()
}

/// Where `path`, without links, of a process with the mounts `of` is seen among the mounts `all`, also where only a part of it is seen.
pub(crate) fn shown<'all>(path: &Path, of: &[Mount], all: &'all [Mount]) -> impl Iterator<Item = PathBuf> + use<'all> {
    // A mount may cover a deeper one, so all mounts above the path count, not the deepest one alone.
    let inner = of.iter().filter_map(|mount| {
        let rest = path.strip_prefix(&mount.point).ok()?;
        Some((mount.device.clone(), joined(&mount.root, rest)))
    });
    let inner: BTreeSet<(Vec<u8>, PathBuf)> = inner.collect();
    inner.into_iter().flat_map(move |(device, inner)| {
        let same = all.iter().filter(move |mount| mount.device == device);
        same.filter_map(move |mount| match inner.strip_prefix(&mount.root) {
            Ok(rest) => Some(joined(&mount.point, rest)),
            Err(_) => mount.root.starts_with(&inner).then(|| mount.point.clone()),
        })
    })
}

/// Other places at which hidden paths, or parts of them, may be seen, not below the paths themselves.
///
/// # Errors
/// A sentence: there are too many.
pub(crate) fn aliases(hidden: &[PathBuf], mounts: &[Mount]) -> Result<BTreeSet<PathBuf>, String> {
    let mut found = BTreeSet::new();
    for path in hidden {
        let others = shown(path, mounts, mounts).filter(|other| !other.starts_with(path));
        found.extend(others);
        if found.len() > SHOWN {
            return Err(format!(
                "more than {SHOWN} mounts show {} or other hidden paths; unmount what is not needed",
                path.display()
            ));
        }
    }
    Ok(found)
}

/// Without a slash at the end.
fn joined(folder: &Path, rest: &Path) -> PathBuf {
    if rest.as_os_str().is_empty() {
        folder.to_owned()
    } else {
        folder.join(rest)
    }
}

/// The kernel writes blanks, backslashes and line ends as `\` and three octal digits.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let number = (*first == b'\\').then(|| after.get(..3)).flatten();
        let number = number.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        plain.push(number.unwrap_or(*first));
        rest = number.and_then(|_| after.get(3..)).unwrap_or(after);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Vec<Mount> {
        let lines = text.lines().enumerate().map(|(number, line)| {
            let [device, root, point] = *line.split_whitespace().collect::<Vec<_>>() else {
                panic!("{line}");
            };
            format!("{number} 1 {device} {root} {point} rw - ext4 /dev/x rw\n")
        });
        mounts(lines.collect::<String>().as_bytes()).unwrap()
    }

    #[test]
    fn sb5_paths_are_read_as_the_kernel_writes_them() {
        assert_eq!(unescape(br"a\040b\134\n\9"), br"a b\\n\9");
        assert!(mounts(b"x").is_err());
    }

    #[test]
    fn sb3_a_hidden_path_is_found_at_each_mount_that_shows_it() {
        let hidden = ["/home/u/.ssh", "/home/u/.netrc"].map(PathBuf::from);
        let found = |text: &str| -> Vec<String> {
            let found = aliases(&hidden, &table(text)).unwrap();
            found.iter().map(|path| path.display().to_string()).collect()
        };
        assert_eq!(found("8:1 / /\n8:2 / /home\n0:5 / /proc"), Vec::<String>::new());
        // The home, its file system, a folder of the hidden one, a file of it, the hidden file; and a folder beside them.
        assert_eq!(
            found(
                "8:1 / /\n8:2 / /home\n8:2 /u /srv/alias\\040a\n8:2 / /media\n8:2 /u/.ssh/keys /k\n8:2 /u/.ssh/id /etc/id\n8:2 /u/.netrc /n\n8:2 /u/ws /ws\n8:3 / /x"
            ),
            [
                "/etc/id",
                "/k",
                "/media/u/.netrc",
                "/media/u/.ssh",
                "/n",
                "/srv/alias a/.netrc",
                "/srv/alias a/.ssh"
            ]
        );
        // The home is a part of a file system that another mount shows as a whole, or that a later mount covers.
        assert_eq!(
            found("8:1 /@ /\n8:1 /@home /home\n8:1 / /top"),
            [
                "/top/@/home/u/.netrc",
                "/top/@/home/u/.ssh",
                "/top/@home/u/.netrc",
                "/top/@home/u/.ssh"
            ]
        );
        let many: Vec<String> = (0..=SHOWN).map(|number| format!("8:1 /home /m{number}")).collect();
        let problem = aliases(&hidden, &table(&format!("8:1 / /\n{}", many.join("\n")))).unwrap_err();
        assert!(problem.contains("more than 1000 mounts"), "{problem}");
    }

    #[test]
    fn sb4_a_path_of_another_process_is_found_where_this_one_has_it() {
        let here = table("8:1 / /\n8:2 / /srv");
        let there = table("0:9 / /\n8:2 /data /app/data");
        let found = |path: &str| shown(Path::new(path), &there, &here).collect::<Vec<_>>();
        assert_eq!(found("/app/data/s"), [PathBuf::from("/srv/data/s")]);
        assert_eq!(found("/run/s"), Vec::<PathBuf>::new());
    }
}
