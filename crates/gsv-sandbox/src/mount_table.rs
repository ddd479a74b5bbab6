//! The mounts of a process, as the kernel lists them, and the places at which one file of a file system is seen. PURE: takes the text.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// Other places of hidden paths, at most.
const SHOWN: usize = 1_000;
/// Overlays over each other that are followed.
const OVERLAYS: usize = 2;

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
    /// The folders that an overlay shows, as the process that mounted it named them.
    layers: Vec<PathBuf>,
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
            layers: layers(fields),
        })
    }

    /// Where an overlay shows `path`, when `layer` is one of its folders.
    fn through(&self, layer: &Path, path: &Path) -> Option<PathBuf> {
        match path.strip_prefix(layer) {
            Ok(rest) => {
                let rest = Path::new("/").join(rest);
                match rest.strip_prefix(&self.root) {
                    Ok(rest) => Some(joined(&self.point, rest)),
                    Err(_) => self.root.starts_with(&rest).then(|| self.point.clone()),
                }
            }
            Err(_) => layer.starts_with(path).then(|| self.point.clone()),
        }
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.device, &self.root, &self.point) == (&other.device, &other.root, &other.point)
    }
}

/// `lowerdir=/a:/b`, `lowerdir+=/a` and `upperdir=/c` at the end of the line of an overlay. `fields`: from the optional ones on.
fn layers<'a>(fields: impl Iterator<Item = &'a [u8]>) -> Vec<PathBuf> {
    let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
    if !fields
        .next()
        .is_some_and(|kind| kind == b"overlay" || kind.starts_with(b"fuse.fuse-overlayfs"))
    {
        return Vec::new();
    }
    let options = fields.nth(1).unwrap_or_default();
    let mut found = Vec::new();
    for option in options.split(|byte| *byte == b',') {
        let mut parts = option.splitn(2, |byte| *byte == b'=');
        let (name, value) = (
            parts.next().unwrap_or_default(),
            unescape(parts.next().unwrap_or_default()),
        );
        match name {
            b"lowerdir" => found.extend(listed(&value)),
            b"lowerdir+" | b"datadir+" | b"upperdir" => found.push(value),
            _ => {}
        }
    }
    // A relative path was relative to a folder that no one knows any more.
    let paths = found.into_iter().map(|path| PathBuf::from(OsString::from_vec(path)));
    paths.filter(|path| path.is_absolute()).collect()
}

/// The parts between colons. A backslash stands before a colon of a path.
fn listed(text: &[u8]) -> Vec<Vec<u8>> {
    let mut parts = vec![Vec::new()];
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b':' => parts.push(Vec::new()),
            byte => {
                let byte = if *byte == b'\\' {
                    bytes.next().unwrap_or(byte)
                } else {
                    byte
                };
                if let Some(part) = parts.last_mut() {
                    part.push(*byte);
                }
            }
        }
    }
    parts
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
    let too_many = |path: &Path| {
        format!(
            "more than {SHOWN} mounts show {} or other hidden paths; unmount what is not needed",
            path.display()
        )
    };
    for path in hidden {
        let others = shown(path, mounts, mounts).filter(|other| !other.starts_with(path));
        found.extend(others);
        if found.len() > SHOWN {
            return Err(too_many(path));
        }
    }
    // An overlay of a folder that another mount shows, and an overlay of an overlay.
    for _ in 0..OVERLAYS {
        let known: Vec<PathBuf> = hidden.iter().chain(&found).cloned().collect();
        for path in overlaid(&known, mounts) {
            if !hidden.iter().any(|hidden| path.starts_with(hidden)) {
                found.insert(path);
            }
            if found.len() > SHOWN {
                return Err(too_many(hidden.first().map_or(Path::new(""), PathBuf::as_path)));
            }
        }
    }
    Ok(found)
}

/// Where overlays show these paths, or parts of them.
fn overlaid(paths: &[PathBuf], mounts: &[Mount]) -> Vec<PathBuf> {
    // A machine with containers has thousands of layers, and nearly none of them counts.
    let known: HashSet<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let above: HashSet<&Path> = paths.iter().flat_map(|path| path.ancestors()).collect();
    let mut found = Vec::new();
    // The layers of the root itself were named before it was there.
    for mount in mounts.iter().filter(|mount| mount.point != Path::new("/")) {
        for layer in &mount.layers {
            if above.contains(layer.as_path()) || layer.ancestors().any(|folder| known.contains(folder)) {
                found.extend(paths.iter().filter_map(|path| mount.through(layer, path)));
            }
        }
    }
    found
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
    fn sb3_a_hidden_path_is_found_in_an_overlay_of_its_folder() {
        let hidden = ["/home/u/.ssh", "/home/u/.netrc"].map(PathBuf::from);
        let found = |lines: &str| -> Vec<String> {
            let text = format!("1 1 8:1 / / rw - ext4 /dev/x rw\n{lines}");
            let found = aliases(&hidden, &mounts(text.as_bytes()).unwrap()).unwrap();
            found.iter().map(|path| path.display().to_string()).collect()
        };
        let ssh = |folder: &str| [format!("{folder}/.netrc"), format!("{folder}/.ssh")];
        for options in [
            "rw,lowerdir=/home/u,upperdir=/x,workdir=/y",
            "rw,lowerdir=/a:/home/u::/c",
            "ro,lowerdir+=/a,lowerdir+=/home/u",
            "rw,lowerdir=/a,upperdir=/home/u,workdir=/y",
        ] {
            let line = format!("2 1 0:50 / /media/o rw,relatime shared:5 - overlay overlay {options}\n");
            assert_eq!(found(&line), ssh("/media/o"), "{options}");
        }
        // A folder of an overlay, which is mounted elsewhere; a part of a hidden folder; a path with a colon; and a path that no layer has.
        let other = |root: &str, options: &str| found(&format!("2 1 0:50 {root} /o rw - overlay overlay {options}\n"));
        assert_eq!(other("/u", "rw,lowerdir=/home"), ssh("/o"));
        assert_eq!(other("/u/.ssh/keys", "rw,lowerdir=/home"), ["/o"]);
        assert_eq!(other("/", "rw,lowerdir=/home/u/.ssh/keys"), ["/o"]);
        assert_eq!(other("/", "rw,lowerdir=/a\\134:/home/u"), Vec::<String>::new());
        assert_eq!(other("/", "rw,lowerdir=home/u:/var/lib/x"), Vec::<String>::new());
        assert_eq!(
            found("2 1 0:50 / / rw - overlay overlay rw,lowerdir=/home/u/.ssh/x\n"),
            Vec::<String>::new()
        );
        let none = "2 1 0:50 / /o rw - ext4 /dev/y rw,lowerdir=/home/u\n";
        assert_eq!(found(none), Vec::<String>::new());
        let twice = "2 1 0:50 / /o rw - overlay overlay rw,lowerdir=/home\n3 1 0:51 / /p rw - overlay overlay rw,lowerdir=/o/u\n";
        assert_eq!(found(twice), [ssh("/o/u"), ssh("/p")].concat());
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
