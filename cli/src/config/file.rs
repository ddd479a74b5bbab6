//! The files `config.toml` and `gsv.toml`. Refuses a file with secrets that others can read, and settings that do not exist.
//! Comments and order survive a change. Secrets are shown only masked.
//!
//! The reference's command line uses `config.toml` too, and drops from it what it does not know. So `gsv.toml`, which it never
//! touches, has all of GSV's settings: a setting that `config.toml` lacks is read from there. A `config.toml` with sections of
//! the reference belongs to the reference: GSV reads `[node]` from it and moves its own settings out of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

use super::keys::{Key, mask};
use crate::embedded::lock::{Held, Lock};
use crate::embedded::unfinished;
use crate::exit::{Failure, Outcome};
use crate::output::echo_log;
use crate::{paths, private_file};

/// For another command, which writes a few small files.
const PATIENCE: Duration = Duration::from_secs(30);
const HELD: Held = Held {
    who: "Another command",
    does: "changes the local config",
};
const REPAIR: &str = "Fix it with an editor, or move it away and run `gsv up` again.";

/// Tables of the reference's file. `session` is a string in a file of GSV.
const FOREIGN_TABLES: [&str; 6] = ["gateway", "cloudflare", "release", "r2", "session", "channels"];
/// Settings that belong to one gateway: those of two gateways are never mixed.
pub const OF_ONE_GATEWAY: [Key; 4] = [Key::Url, Key::Token, Key::NodeId, Key::NodeToken];
/// Settings that the reference's file cannot have, or that only GSV reads.
const NEVER_FOREIGN: [Key; 4] = [Key::Url, Key::Token, Key::Session, Key::NodeToken];

#[derive(Debug, Clone)]
pub struct Config {
    shared: Settings,
    own: Settings,
    /// `config.toml` belongs to the reference's command line.
    is_foreign: bool,
    /// What was set or removed since it was read, in order: `save` makes these changes in what is stored then.
    changes: Vec<Change>,
    /// No other command changes the files meanwhile.
    lock: Option<Arc<Lock>>,
}

#[derive(Debug, Clone)]
struct Change {
    key: Key,
    /// `None`: it is removed.
    value: Option<String>,
    /// The value when the files were read, in the first change of the key.
    before: Option<String>,
}

impl Config {
    pub fn path() -> Outcome<PathBuf> {
        Ok(paths::config_dir()?.join("config.toml"))
    }

    /// Without a file: all settings come from flags.
    pub fn empty() -> Self {
        Self {
            shared: Settings::default(),
            own: Settings::default(),
            is_foreign: false,
            changes: Vec::new(),
            lock: None,
        }
    }

    /// A file that does not exist is empty.
    pub fn load() -> Outcome<Self> {
        Self::load_from(Self::path()?)
    }

    /// For other files of the folder. Until it is dropped, every other command waits to change them.
    pub fn lock_folder(path: &Path) -> Outcome<Arc<Lock>> {
        lock(path)
    }

    /// For changes that depend on what is stored: until it is dropped, every other command waits to change it. Not for a network.
    pub fn load_locked(path: &Path) -> Outcome<Self> {
        let lock = lock(path)?;
        Ok(Self {
            lock: Some(lock),
            ..Self::load_from(path.to_owned())?
        })
    }

    pub fn load_from(path: PathBuf) -> Outcome<Self> {
        let own_path = path.with_file_name("gsv.toml");
        let own = private_file::read_private(&own_path, REPAIR)?.unwrap_or_default();
        let own = Settings::parse(own_path, own)?;
        own.check()?;
        let text = private_file::read_checked(&path, REPAIR, |meta, text| {
            let is_open = Settings::parse(path.clone(), text.to_owned())
                .is_ok_and(|settings| settings.is_foreign() && !settings.has_secrets());
            if is_open {
                paths::check_unchangeable_file(&path, meta)
            } else {
                paths::check_private_file(&path, meta)
            }
        })?;
        let shared = Settings::parse(path, text.unwrap_or_default())?;
        let is_foreign = shared.is_foreign();
        if !is_foreign {
            shared.check()?;
        }
        Ok(Self {
            shared,
            own,
            is_foreign,
            changes: Vec::new(),
            lock: None,
        })
    }

    /// The file for a person to edit.
    pub fn file(&self) -> &Path {
        if self.is_foreign {
            &self.own.path
        } else {
            &self.shared.path
        }
    }

    pub fn get(&self, key: Key) -> Option<&str> {
        let shared = self.shared.get(key);
        if self.is_foreign {
            // A value of the reference that GSV does not accept is no setting of GSV.
            self.own
                .get(key)
                .or_else(|| shared.filter(|value| key.check(value).is_ok()))
        } else {
            shared.or_else(|| self.own.get(key).filter(|_| self.is_own_of_the_same_gateway(key)))
        }
    }

    /// Whether a setting that `config.toml` lacks may come from `gsv.toml`. A command that was killed between the two files, or another program,
    /// leaves them with different gateways: `config.toml` is then the one that is used, without the tokens of the other.
    fn is_own_of_the_same_gateway(&self, key: Key) -> bool {
        let is_same = |of: Key| self.shared.get(of).is_none() || self.shared.get(of) == self.own.get(of);
        !OF_ONE_GATEWAY.contains(&key) || OF_ONE_GATEWAY.into_iter().all(is_same)
    }

    /// The value to show: a secret keeps only its kind, its public id and its last four characters.
    pub fn show(&self, key: Key) -> Option<String> {
        let value = self.get(key)?;
        Some(if key.is_secret() { mask(value) } else { value.to_owned() })
    }

    pub fn set(&mut self, key: Key, value: &str) -> Outcome {
        key.check_new(value)?;
        self.change(key, Some(value));
        Ok(())
    }

    /// Whether it was set.
    pub fn unset(&mut self, key: Key) -> bool {
        self.change(key, None)
    }

    /// Whether it was set.
    fn change(&mut self, key: Key, value: Option<&str>) -> bool {
        let before = self.get(key).map(str::to_owned);
        let was_set = before.is_some();
        self.changes.push(Change {
            key,
            value: value.map(str::to_owned),
            before,
        });
        let Some(value) = value else {
            let was_shared = self.shared.unset(key);
            return self.own.unset(key) || was_shared;
        };
        self.own.set(key, value);
        if !self.is_foreign {
            self.shared.set(key, value);
        }
        was_set
    }

    /// The lock of the files: the one that this has, or another one until it is dropped.
    fn lock(&self) -> Outcome<Arc<Lock>> {
        self.lock.clone().map_or_else(|| lock(&self.shared.path), Ok)
    }

    /// What another command has stored since this was read stays, unless this has changed the same settings.
    ///
    /// # Errors
    /// Another command has changed the gateway meanwhile, or has stored what this removes. Nothing was stored.
    pub fn save(&mut self) -> Outcome {
        let _lock = self.lock()?;
        if self.lock.is_none() {
            let mut stored = Self::load_from(self.shared.path.clone())?;
            if self.is_for_another_gateway(&stored) {
                return Err(Failure::failed(
                    format!(
                        "Another command changed the gateway or its tokens in {} meanwhile, so nothing was stored.",
                        self.file().display()
                    ),
                    "Run the command again.",
                ));
            }
            for Change { key, value, .. } in &self.changes {
                stored.change(*key, value.as_deref());
            }
            *self = stored;
        }
        self.write()?;
        self.changes.clear();
        Ok(())
    }

    /// Whether the changes were made for another gateway than the one that is stored now, or remove what was stored since.
    fn is_for_another_gateway(&self, stored: &Self) -> bool {
        let first = |key: Key| self.changes.iter().find(|change| change.key == key);
        let read = |key: Key| first(key).map_or_else(|| self.get(key), |change| change.before.as_deref());
        let mut changed = OF_ONE_GATEWAY
            .into_iter()
            .filter(|key| first(*key).is_some())
            .peekable();
        if changed.peek().is_none() {
            return false;
        }
        let url = stored.get(Key::Url);
        let is_other = url != read(Key::Url) && url != self.get(Key::Url);
        is_other
            || changed.any(|key| self.get(key).is_none() && stored.get(key).is_some_and(|now| Some(now) != read(key)))
    }

    fn write(&mut self) -> Outcome {
        // All before the first change, because the values depend on each other.
        let values = Key::ALL.map(|key| (key, self.get(key).map(str::to_owned)));
        for (key, value) in values {
            match value {
                Some(value) => self.own.set(key, &value),
                // Else it would be read again, once both files name the same gateway.
                None => {
                    self.own.unset(key);
                }
            }
        }
        // The reference cannot read a `config.toml` whose `session` is a string.
        self.shared.unset(Key::Session);
        if self.is_foreign {
            for key in NEVER_FOREIGN {
                self.shared.unset(key);
            }
        }
        self.own.write()?;
        if self.is_foreign && !self.shared.is_changed() {
            return Ok(());
        }
        self.shared.write()
    }
}

fn lock(config: &Path) -> Outcome<Arc<Lock>> {
    let start = SystemTime::now();
    let folder = config.parent().unwrap_or(Path::new("/"));
    paths::ensure_private_dir(folder)?;
    let lock = Lock::take_and_say(&HELD, &config.with_file_name("config.lock"), PATIENCE, echo_log)?;
    // What a killed command has left, which may have a token in it.
    unfinished::remove_own(folder, start);
    Ok(Arc::new(lock))
}

/// The settings in one file.
#[derive(Debug, Clone, Default)]
struct Settings {
    path: PathBuf,
    document: DocumentMut,
    /// The file's text when it was read.
    read: String,
}

impl Settings {
    fn parse(path: PathBuf, text: String) -> Outcome<Self> {
        let document = text.parse::<DocumentMut>();
        let document = document.map_err(|error| malformed(&path, &one_line(&error)))?;
        Ok(Self {
            path,
            document,
            read: text,
        })
    }

    fn is_foreign(&self) -> bool {
        FOREIGN_TABLES
            .iter()
            .any(|name| self.document.get(name).is_some_and(Item::is_table_like))
    }

    fn has_secrets(&self) -> bool {
        Key::ALL
            .into_iter()
            .any(|key| key.is_secret() && self.get(key).is_some())
    }

    fn check(&self) -> Outcome {
        for (name, item) in self.document.iter() {
            match item.as_table_like() {
                Some(table) if matches!(name, "node" | "chat" | "update") => {
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

    fn get(&self, key: Key) -> Option<&str> {
        match key.place() {
            (Some(table), name) => self.document.get(table)?.get(name)?.as_str(),
            (None, name) => self.document.get(name)?.as_str(),
        }
    }

    fn set(&mut self, key: Key, value: &str) {
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
    }

    /// Whether it was set. A table with the name of a setting is not that setting.
    fn unset(&mut self, key: Key) -> bool {
        if self.get(key).is_none() {
            return false;
        }
        let (table, name) = key.place();
        let root: Option<&mut dyn TableLike> = match table {
            Some(table) => self.document.get_mut(table).and_then(Item::as_table_like_mut),
            None => Some(self.document.as_table_mut()),
        };
        root.and_then(|table| table.remove(name)).is_some()
    }

    fn is_changed(&self) -> bool {
        self.document.to_string() != self.read
    }

    fn write(&self) -> Outcome {
        private_file::write(&self.path, self.document.to_string())
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

#[path = "former.rs"]
mod former;

pub use former::FormerLogin;

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
    fn rm9_what_a_killed_command_was_writing_is_removed_by_the_next_change() {
        let (dir, path) = file("token = \"old\"\n", 0o600);
        let at = |name: &str| dir.path().join(name);
        let now = SystemTime::now();
        for (name, time) in [
            (".gsv-Killed", now - Duration::from_secs(60)),
            (".gsv-Writes", now - Duration::from_secs(60)),
            (".gsv-Newer1", now + Duration::from_secs(60)),
            (".gsv-of-the-user", now - Duration::from_secs(60)),
        ] {
            fs::write(at(name), "token = \"secret\"").unwrap();
            let file = fs::File::options().write(true).open(at(name)).unwrap();
            file.set_modified(time).unwrap();
        }
        let writes = fs::File::open(at(".gsv-Writes")).unwrap();
        writes.try_lock().unwrap();
        let mut config = Config::load_from(path).unwrap();
        config.set(Key::Token, "new").unwrap();
        config.save().unwrap();
        let mut left: Vec<String> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with(".gsv-"))
            .collect();
        left.sort();
        assert_eq!(left, [".gsv-Newer1", ".gsv-Writes", ".gsv-of-the-user"]);
    }

    #[test]
    fn rm9_a_change_keeps_what_another_command_has_stored_since() {
        let (_dir, path) = file("token = \"old\"\n", 0o600);
        let load = || Config::load_from(path.clone()).unwrap();
        let (mut node, mut client) = (load(), load());
        node.unset(Key::Token);
        node.set(Key::NodeToken, "gsv_node_x_y").unwrap();
        client.set(Key::Token, "gsv_client_x_y").unwrap();
        node.save().unwrap();
        client.save().unwrap();
        for seen in [load(), client] {
            assert_eq!(seen.get(Key::NodeToken), Some("gsv_node_x_y"));
            assert_eq!(seen.get(Key::Token), Some("gsv_client_x_y"));
        }
        // Saved again, it changes nothing more.
        let mut other = load();
        other.set(Key::NodeToken, "gsv_node_x_z").unwrap();
        other.save().unwrap();
        node.save().unwrap();
        assert_eq!(load().get(Key::NodeToken), Some("gsv_node_x_z"));
    }

    #[test]
    fn rm9_rm11_a_token_is_never_stored_beside_another_gateway_and_a_new_one_never_removed() {
        let (_dir, path) = file(
            "url = \"wss://x.example/ws\"\n[node]\nid = \"desk\"\ntoken = \"gsv_node_x_y\"\n",
            0o600,
        );
        let load = || Config::load_from(path.clone()).unwrap();
        // A node asks X for a token while another command joins Y.
        let (mut node, mut forget, mut client) = (load(), load(), load());
        let mut join = load();
        join.set(Key::Url, "wss://y.example/ws").unwrap();
        join.set(Key::NodeToken, "gsv_node_x_of-y").unwrap();
        join.save().unwrap();
        node.set(Key::NodeId, "desk").unwrap();
        node.set(Key::NodeToken, "gsv_node_x_new").unwrap();
        assert!(node.save().unwrap_err().message.contains("nothing was stored"));
        forget.unset(Key::NodeToken);
        assert!(forget.save().is_err());
        assert_eq!(load().get(Key::NodeToken), Some("gsv_node_x_of-y"));
        // Settings of no gateway are stored.
        client.set(Key::Session, "work").unwrap();
        client.save().unwrap();
        assert_eq!(load().get(Key::Session), Some("work"));
        // At the same gateway, a token that was stored meanwhile is not removed.
        let (mut forget, mut other) = (load(), load());
        other.set(Key::NodeToken, "gsv_node_x_newer").unwrap();
        other.save().unwrap();
        forget.unset(Key::NodeId);
        forget.unset(Key::NodeToken);
        assert!(forget.save().is_err());
        assert_eq!(
            (load().get(Key::NodeId), load().get(Key::NodeToken)),
            (Some("desk"), Some("gsv_node_x_newer"))
        );
    }

    #[test]
    fn rm9_rm11_a_command_that_is_killed_between_the_two_files_mixes_no_gateways() {
        let (_dir, path) = file("url = \"wss://a.example/ws\"\ntoken = \"gsv_client_x_a\"\n", 0o600);
        let load = || Config::load_from(path.clone()).unwrap();
        load().save().unwrap();
        let of_a = fs::read_to_string(&path).unwrap();
        let mut join = load();
        join.set(Key::Url, "wss://b.example/ws").unwrap();
        join.unset(Key::Token);
        join.set(Key::NodeToken, "gsv_node_x_b").unwrap();
        join.save().unwrap();
        // Killed before `config.toml` was replaced.
        fs::write(&path, of_a).unwrap();
        let mut config = load();
        let all =
            |config: &Config| [Key::Url, Key::Token, Key::NodeToken].map(|key| config.get(key).map(str::to_owned));
        let only_a = [
            Some("wss://a.example/ws".to_owned()),
            Some("gsv_client_x_a".to_owned()),
            None,
        ];
        assert_eq!(all(&config), only_a);
        config.set(Key::Session, "work").unwrap();
        config.save().unwrap();
        assert_eq!(all(&load()), only_a);
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

    /// As the reference's command line writes it.
    const FOREIGN: &str = "[gateway]\nurl = \"wss://theirs.example/ws\"\ntoken = \"theirs\"\n\n[cloudflare]\n\n[node]\nid = \"node-box\"\n\n[session]\ndefault_key = \"agent:main:cli:dm:main\"\n\n[channels.whatsapp]\n";

    #[test]
    fn f38_a_file_of_the_reference_is_read_and_stays_as_it_is() {
        let (_dir, path) = file(FOREIGN, 0o644);
        let mut config = Config::load_from(path.clone()).unwrap();
        assert_eq!(
            (config.get(Key::Url), config.get(Key::Token), config.get(Key::Session)),
            (None, None, None)
        );
        assert_eq!(config.get(Key::NodeId), Some("node-box"));
        config.set(Key::Url, "ws://a/ws").unwrap();
        config.set(Key::Token, "ours").unwrap();
        config.set(Key::NodeId, "box").unwrap();
        config.save().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), FOREIGN);
        let config = Config::load_from(path.clone()).unwrap();
        assert_eq!(
            (config.get(Key::Url), config.get(Key::Token), config.get(Key::NodeId)),
            (Some("ws://a/ws"), Some("ours"), Some("box"))
        );
        assert_eq!(config.file(), path.with_file_name("gsv.toml"));
        assert_eq!(fs::metadata(config.file()).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn f38_settings_that_the_reference_drops_are_kept() {
        let (_dir, path) = file(
            "url = \"ws://a/ws\"\nsession = \"notes\"\n[node]\nid = \"box\"\n",
            0o600,
        );
        let mut config = Config::load_from(path.clone()).unwrap();
        config.set(Key::Token, "ours").unwrap();
        config.set(Key::NodeToken, "ours-too").unwrap();
        config.save().unwrap();
        assert!(!fs::read_to_string(&path).unwrap().contains("session"));
        // `local-config set` of the reference writes only what it knows.
        fs::write(&path, FOREIGN).unwrap();
        let mut config = Config::load_from(path.clone()).unwrap();
        for (key, value) in [
            (Key::Url, "ws://a/ws"),
            (Key::Token, "ours"),
            (Key::Session, "notes"),
            (Key::NodeId, "box"),
            (Key::NodeToken, "ours-too"),
        ] {
            assert_eq!(config.get(key), Some(value), "{key:?}");
        }
        assert!(config.unset(Key::Token));
        config.save().unwrap();
        assert_eq!(Config::load_from(path).unwrap().get(Key::Token), None);
    }

    #[test]
    fn f38_settings_move_out_of_a_file_that_the_reference_has_taken() {
        let mixed = format!("token = \"ours\" # old\n{FOREIGN}");
        let (_dir, path) = file(&mixed, 0o644);
        let refused = Config::load_from(path.clone()).unwrap_err();
        assert!(refused.next.contains("chmod 600"), "{refused:?}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let mut config = Config::load_from(path.clone()).unwrap();
        assert_eq!(config.get(Key::Token), Some("ours"));
        config.save().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), FOREIGN);
        assert_eq!(Config::load_from(path.clone()).unwrap().get(Key::Token), Some("ours"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(Config::load_from(path).is_err());
    }
}
