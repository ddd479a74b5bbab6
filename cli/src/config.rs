//! The command line's own configuration: `config.toml`. Refuses a file that others can read and keys that it does not
//! know. A person's comments and order survive a change. It holds secrets and never shows them: `show` masks.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, Table, Value};

use crate::exit::{Failure, OrFail, Outcome};
use crate::{paths, suggest};

/// Larger is not a configuration.
const MAX_BYTES: u64 = 64 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Url,
    Token,
    Session,
    NodeId,
    NodeToken,
    NodeWorkspace,
}

impl Key {
    pub const ALL: [Self; 6] = [
        Self::Url,
        Self::Token,
        Self::Session,
        Self::NodeId,
        Self::NodeToken,
        Self::NodeWorkspace,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Url => "url",
            Self::Token => "token",
            Self::Session => "session",
            Self::NodeId => "node.id",
            Self::NodeToken => "node.token",
            Self::NodeWorkspace => "node.workspace",
        }
    }

    pub const fn is_secret(self) -> bool {
        matches!(self, Self::Token | Self::NodeToken)
    }

    pub fn parse(name: &str) -> Outcome<Self> {
        Self::ALL
            .into_iter()
            .find(|key| key.name() == name)
            .ok_or_else(|| unknown_key(name))
    }

    /// The table that the key is in, and its name there.
    fn place(self) -> (Option<&'static str>, &'static str) {
        self.name()
            .split_once('.')
            .map_or((None, self.name()), |(table, name)| (Some(table), name))
    }
}

fn unknown_key(name: &str) -> Failure {
    let names: Vec<&str> = Key::ALL.iter().map(|key| key.name()).collect();
    let near = suggest::nearest(name, names.iter().copied());
    let next = near.map_or_else(
        || format!("The keys are {}.", names.join(", ")),
        |near| format!("Did you mean `{near}`?"),
    );
    Failure::usage(format!("There is no local setting `{name}`."), next)
}

#[derive(Debug, Clone)]
pub struct Config {
    path: PathBuf,
    document: DocumentMut,
}

impl Config {
    pub fn path() -> Outcome<PathBuf> {
        Ok(paths::config_dir()?.join("config.toml"))
    }

    /// For when the file can't be used and everything comes from flags.
    pub fn empty() -> Self {
        Self {
            path: PathBuf::new(),
            document: DocumentMut::new(),
        }
    }

    /// Absent is empty.
    pub fn load() -> Outcome<Self> {
        Self::load_from(Self::path()?)
    }

    pub fn load_from(path: PathBuf) -> Outcome<Self> {
        let meta = match fs::metadata(&path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Self {
                    path,
                    document: DocumentMut::new(),
                });
            }
            Err(error) => {
                return Err(error).or_fail(
                    format_args!("look at {}", path.display()),
                    "Check the permissions of its folder.",
                );
            }
        };
        paths::check_private_file(&path, &meta)?;
        if meta.len() > MAX_BYTES {
            let next = format!("Look at {} and keep only GSV's settings.", path.display());
            return Err(Failure::failed(
                format!("{} is too large for a configuration.", path.display()),
                next,
            ));
        }
        let text = fs::read_to_string(&path).or_fail(
            format_args!("read {}", path.display()),
            "Check that it is a text file of your own.",
        )?;
        let document = text
            .parse::<DocumentMut>()
            .map_err(|error| malformed(&path, &one_line(&error)))?;
        let config = Self { path, document };
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Outcome<()> {
        for (name, item) in self.document.iter() {
            match item.as_table_like() {
                Some(table) if name == "node" => {
                    for (inner, item) in table.iter() {
                        self.check_value(&format!("{name}.{inner}"), item)?;
                    }
                }
                _ => self.check_value(name, item)?,
            }
        }
        Ok(())
    }

    fn check_value(&self, name: &str, item: &Item) -> Outcome<()> {
        let key = Key::parse(name).map_err(|failure| {
            Failure::usage(
                format!("{} has a setting `{name}` that does not exist.", self.path.display()),
                failure.next,
            )
        })?;
        let value = item
            .as_str()
            .ok_or_else(|| malformed(&self.path, &format!("`{name}` must be a string")))?;
        check_value(key, value).map_err(|failure| Failure {
            message: format!("{}: {}", self.path.display(), failure.message),
            ..failure
        })
    }

    pub fn get(&self, key: Key) -> Option<&str> {
        let (table, name) = key.place();
        let item = match table {
            Some(table) => self.document.get(table)?.get(name)?,
            None => self.document.get(name)?,
        };
        item.as_str()
    }

    /// As it may be shown: secrets keep only their beginning (kind and public id) and their last four characters.
    pub fn show(&self, key: Key) -> Option<String> {
        let value = self.get(key)?;
        Some(if key.is_secret() { mask(value) } else { value.to_owned() })
    }

    pub fn set(&mut self, key: Key, value: &str) -> Outcome<()> {
        check_value(key, value)?;
        let (table, name) = key.place();
        let slot = match table {
            Some(table) => &mut self.document.entry(table).or_insert_with(|| Item::Table(Table::new()))[name],
            None => &mut self.document[name],
        };
        match slot.as_value_mut() {
            // In place, so that a comment behind the value stays.
            Some(old) => {
                let decor = old.decor().clone();
                *old = Value::from(value);
                *old.decor_mut() = decor;
            }
            None => *slot = toml_edit::value(value),
        }
        Ok(())
    }

    /// Whether it was set.
    pub fn unset(&mut self, key: Key) -> bool {
        let (table, name) = key.place();
        match table {
            Some(table) => self
                .document
                .get_mut(table)
                .and_then(Item::as_table_like_mut)
                .and_then(|table| table.remove(name))
                .is_some(),
            None => self.document.remove(name).is_some(),
        }
    }

    /// Keeps the present content in a file beside it.
    pub fn back_up(&self) -> Outcome<PathBuf> {
        let backup = self.path.with_extension("toml.old");
        paths::write_private_file(&backup, self.document.to_string().as_bytes()).or_fail(
            format_args!("write {}", backup.display()),
            "Check that the folder is yours and that the disk is not full.",
        )?;
        Ok(backup)
    }

    pub fn save(&self) -> Outcome<()> {
        let dir = self.path.parent().unwrap_or(Path::new("/"));
        paths::ensure_private_dir(dir)?;
        paths::write_private_file(&self.path, self.document.to_string().as_bytes()).or_fail(
            format_args!("write {}", self.path.display()),
            "Check that the folder is yours and that the disk is not full.",
        )
    }
}

fn malformed(path: &Path, problem: &str) -> Failure {
    Failure::usage(
        format!("{} is not valid: {problem}.", path.display()),
        "Mend it with an editor, or move it away and run `gsv up` again.",
    )
}

/// The parser's message without the quoted source: a line of this file may hold a token.
fn one_line(error: &toml_edit::TomlError) -> String {
    error
        .message()
        .lines()
        .collect::<Vec<_>>()
        .join("; ")
        .trim_end_matches('.')
        .to_owned()
}

/// What each setting may be.
pub fn check_value(key: Key, value: &str) -> Outcome<()> {
    let problem = match key {
        Key::Url => check_url(value).err(),
        Key::Token | Key::NodeToken => {
            let printable =
                !value.is_empty() && value.len() <= 512 && value.bytes().all(|byte| byte.is_ascii_graphic());
            (!printable).then(|| "a token is 1 to 512 printable characters without spaces".to_owned())
        }
        Key::Session => (value.is_empty() || value.len() > 512 || value.chars().any(char::is_control))
            .then(|| "a session key is 1 to 512 characters".to_owned()),
        Key::NodeId => check_node_id(value).err(),
        Key::NodeWorkspace => {
            (!Path::new(value).is_absolute()).then(|| "the workspace must be an absolute path".to_owned())
        }
    };
    match problem {
        None => Ok(()),
        Some(problem) => {
            let next = format!("Set it with `gsv local-config set {} VALUE`.", key.name());
            Err(Failure::usage(
                format!("`{}` is not valid: {problem}.", key.name()),
                next,
            ))
        }
    }
}

pub fn check_url(url: &str) -> Result<(), String> {
    let rest = ["ws://", "wss://", "http://", "https://"]
        .iter()
        .find_map(|scheme| url.strip_prefix(scheme));
    let Some(rest) = rest else {
        return Err("the address must begin with ws://, wss://, http:// or https://".to_owned());
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() || url.len() > 2_048 || url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("the address has no host, or characters that don't belong into one".to_owned());
    }
    if authority.contains('@') {
        return Err("put the token into `token`, not into the address".to_owned());
    }
    Ok(())
}

pub fn check_node_id(id: &str) -> Result<(), String> {
    let mut chars = id.chars();
    let valid = chars.next().is_some_and(|c| c.is_ascii_alphanumeric())
        && id.len() <= 64
        && id != "gsv"
        && chars.all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
    if valid {
        Ok(())
    } else {
        Err(
            "a node's id is 1 to 64 letters, digits, `_`, `.` or `-`, begins with a letter or digit, and is not `gsv`"
                .to_owned(),
        )
    }
}

/// `gsv_admin_ab12cd34ef_…9f3c`; anything else keeps only its last four characters.
pub fn mask(secret: &str) -> String {
    let last: String = if secret.len() >= 16 {
        secret.chars().skip(secret.chars().count() - 4).collect()
    } else {
        String::new()
    };
    let mut parts = secret.splitn(4, '_');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some("gsv"), Some(kind), Some(id), Some(rest)) if rest.len() >= 16 => format!("gsv_{kind}_{id}_…{last}"),
        _ => format!("…{last}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use std::os::unix::fs::PermissionsExt;

    fn file(text: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        (dir, path)
    }

    #[test]
    fn s20_a_file_that_others_can_read_is_refused() {
        for mode in [0o644, 0o640, 0o604, 0o660] {
            let (_dir, path) = file("url = \"ws://localhost/ws\"\n", mode);
            let failure = Config::load_from(path).unwrap_err();
            assert!(failure.next.contains("chmod 600"), "{mode:o}: {failure:?}");
        }
    }

    #[test]
    fn an_absent_file_is_an_empty_configuration() {
        let dir = tempfile::tempdir().unwrap();
        let config = Config::load_from(dir.path().join("none/config.toml")).unwrap();
        assert_eq!(config.get(Key::Url), None);
    }

    #[test]
    fn an_unknown_key_is_refused_with_a_suggestion() {
        for (text, near) in [
            ("tokn = \"x\"", "`token`"),
            ("[node]\nworkspce = \"/x\"", "`node.workspace`"),
        ] {
            let (_dir, path) = file(text, 0o600);
            let failure = Config::load_from(path).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.next.contains(near), "{failure:?}");
        }
    }

    #[test]
    fn a_malformed_file_is_refused_without_showing_it() {
        let (_dir, path) = file("token = gsv_admin_secret\n", 0o600);
        let failure = Config::load_from(path).unwrap_err();
        assert!(!format!("{failure:?}").contains("gsv_admin_secret"), "{failure:?}");
    }

    #[test]
    fn s20_changes_keep_comments_and_are_private() {
        let (_dir, path) = file("# mine\nurl = \"ws://a/ws\" # home\n", 0o600);
        let mut config = Config::load_from(path.clone()).unwrap();
        config.set(Key::Url, "ws://b/ws").unwrap();
        config.set(Key::NodeToken, "gsv_node_x_y").unwrap();
        config.save().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(
            text,
            "# mine\nurl = \"ws://b/ws\" # home\n\n[node]\ntoken = \"gsv_node_x_y\"\n"
        );
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

        let mut config = Config::load_from(path.clone()).unwrap();
        assert!(config.unset(Key::NodeToken));
        assert!(!config.unset(Key::NodeToken));
        config.save().unwrap();
        assert_eq!(Config::load_from(path).unwrap().get(Key::NodeToken), None);
    }

    #[test]
    fn values_are_checked_when_set() {
        let (_dir, path) = file("", 0o600);
        let mut config = Config::load_from(path).unwrap();
        for (key, value) in [
            (Key::Url, "localhost:8787"),
            (Key::Url, "ws://"),
            (Key::Url, "wss://me:secret@host/ws"),
            (Key::Token, "with space"),
            (Key::NodeId, "-x"),
            (Key::NodeId, "gsv"),
            (Key::NodeWorkspace, "relative"),
        ] {
            assert_eq!(config.set(key, value).unwrap_err().exit, Exit::Usage, "{value}");
        }
    }

    #[test]
    fn s5_secrets_are_masked() {
        let token = format!("gsv_admin_abcdefghij_{}", "0123456789abcdef".repeat(4));
        assert_eq!(mask(&token), "gsv_admin_abcdefghij_…cdef");
        assert_eq!(mask("short"), "…");
    }
}
