//! The file `config.toml`. Refuses a file that others can read and settings that do not exist. Comments and order survive a
//! change. Secrets are shown only masked.

use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

use super::keys::{Key, mask};
use crate::exit::{Failure, Outcome};
use crate::{paths, private_file};

const REPAIR: &str = "Fix it with an editor, or move it away and run `gsv up` again.";

#[derive(Debug, Clone)]
pub struct Config {
    path: PathBuf,
    document: DocumentMut,
}

impl Config {
    pub fn path() -> Outcome<PathBuf> {
        Ok(paths::config_dir()?.join("config.toml"))
    }

    /// Without a file: all settings come from flags.
    pub fn empty() -> Self {
        Self {
            path: PathBuf::new(),
            document: DocumentMut::new(),
        }
    }

    /// A file that does not exist is empty.
    pub fn load() -> Outcome<Self> {
        Self::load_from(Self::path()?)
    }

    pub fn load_from(path: PathBuf) -> Outcome<Self> {
        let text = private_file::read_private(&path, REPAIR)?.unwrap_or_default();
        let document = text.parse::<DocumentMut>();
        let document = document.map_err(|error| malformed(&path, &one_line(&error)))?;
        let config = Self { path, document };
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Outcome {
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

    fn check_value(&self, name: &str, item: &Item) -> Outcome {
        let key = Key::parse(name).map_err(|failure| {
            Failure::usage(
                format!("{} has a setting `{name}` that does not exist.", self.path.display()),
                failure.next,
            )
        })?;
        let value = item
            .as_str()
            .ok_or_else(|| malformed(&self.path, &format!("`{name}` must be a string")))?;
        key.check(value).map_err(|failure| Failure {
            message: format!("{}: {}", self.path.display(), failure.message),
            ..failure
        })
    }

    pub fn get(&self, key: Key) -> Option<&str> {
        match key.place() {
            (Some(table), name) => self.document.get(table)?.get(name)?.as_str(),
            (None, name) => self.document.get(name)?.as_str(),
        }
    }

    /// The value to show: a secret keeps only its kind, its public id and its last four characters.
    pub fn show(&self, key: Key) -> Option<String> {
        let value = self.get(key)?;
        Some(if key.is_secret() { mask(value) } else { value.to_owned() })
    }

    pub fn set(&mut self, key: Key, value: &str) -> Outcome {
        key.check(value)?;
        let (table, name) = key.place();
        let slot = match table {
            Some(table) => &mut self.document.entry(table).or_insert_with(|| Item::Table(Table::new()))[name],
            None => &mut self.document[name],
        };
        match slot.as_value_mut() {
            // In place, so that a comment after the value stays.
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
        let root: Option<&mut dyn TableLike> = match table {
            Some(table) => self.document.get_mut(table).and_then(Item::as_table_like_mut),
            None => Some(self.document.as_table_mut()),
        };
        root.and_then(|table| table.remove(name)).is_some()
    }

    /// Copies the present content to a file beside it.
    pub fn back_up(&self) -> Outcome<PathBuf> {
        let backup = self.path.with_extension("toml.old");
        self.write_to(&backup)?;
        Ok(backup)
    }

    pub fn save(&self) -> Outcome {
        paths::ensure_private_dir(self.path.parent().unwrap_or(Path::new("/")))?;
        self.write_to(&self.path)
    }

    fn write_to(&self, path: &Path) -> Outcome {
        private_file::write(path, self.document.to_string())
    }
}

fn malformed(path: &Path, problem: &str) -> Failure {
    Failure::usage(format!("{} is not valid: {problem}.", path.display()), REPAIR)
}

/// The parser's message without the quoted source, because a line of this file may contain a token.
fn one_line(error: &toml_edit::TomlError) -> String {
    let lines: Vec<&str> = error.message().lines().collect();
    lines.join("; ").trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn file(text: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        (dir, path)
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
}
