//! The logins that the local config had before: `logins.json`, beside `config.toml.old` with the whole former content. Gateways of several
//! state folders may use one config. No interruption may remove the only copy of a token: a login is in a file until another one has it.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Config, REPAIR, Settings};
use crate::config::Key;
use crate::exit::Outcome;
use crate::private_file;

/// The oldest are dropped.
const KEPT: usize = 16;
const REMOVE: &str = "Remove it, then run the command again.";

/// Address and token of a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FormerLogin {
    pub url: String,
    pub token: String,
    /// The state folder whose first token it is. None: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<PathBuf>,
    /// What this machine is there. None: nothing, or not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<FormerNode>,
}

/// Name and token of this machine as a node of a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerNode {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

impl FormerNode {
    fn of(id: Option<&str>, token: Option<&str>) -> Option<Self> {
        (id.is_some() || token.is_some()).then(|| Self {
            id: id.map(str::to_owned),
            token: token.map(str::to_owned),
        })
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Logins {
    logins: Vec<FormerLogin>,
}

impl Config {
    fn present(&self) -> &Settings {
        if self.is_foreign { &self.own } else { &self.shared }
    }

    fn backup(&self) -> PathBuf {
        self.present().path.with_extension("toml.old")
    }

    fn logins_file(&self) -> PathBuf {
        self.present().path.with_file_name("logins.json")
    }

    /// Backups of earlier versions, which had no other list.
    fn older(&self) -> impl Iterator<Item = FormerLogin> {
        let files = [self.backup(), self.present().path.with_extension("toml.old-new")];
        files.into_iter().filter_map(|file| {
            let text = private_file::read_private(&file, REPAIR).ok()??;
            let former = Settings::parse(file, text).ok()?;
            Some(FormerLogin {
                url: former.get(Key::Url)?.to_owned(),
                token: former.get(Key::Token)?.to_owned(),
                home: None,
                node: FormerNode::of(former.get(Key::NodeId), former.get(Key::NodeToken)),
            })
        })
    }

    fn read_logins(&self) -> Outcome<Vec<FormerLogin>> {
        let stored: Option<Logins> = private_file::read_json(&self.logins_file(), REMOVE)?;
        let mut logins = stored.unwrap_or_default().logins;
        for older in self.older() {
            if logins.iter().all(|login| login.token != older.token) {
                logins.push(older);
            }
        }
        Ok(logins)
    }

    /// All that are known, the last used first. A list that can't be read is empty.
    pub fn former_logins(&self) -> Vec<FormerLogin> {
        self.read_logins().unwrap_or_else(|_| self.older().collect())
    }

    /// Keeps a login as the last used one. `home`: the state folder whose first token it is; its earlier one is dropped.
    pub fn remember(&self, home: Option<&Path>, url: &str, token: &str) -> Outcome {
        // A folder that can't be written is no obstacle where nothing changes.
        if self.with_last(home, url, token)?.is_none() {
            return Ok(());
        }
        let _lock = self.lock()?;
        let Some(logins) = self.with_last(home, url, token)? else {
            return Ok(());
        };
        let text = serde_json::to_string_pretty(&Logins { logins }).unwrap_or_default();
        private_file::write(&self.logins_file(), text)
    }

    /// The list with this login as the last used one. `None`: it is stored already.
    fn with_last(&self, home: Option<&Path>, url: &str, token: &str) -> Outcome<Option<Vec<FormerLogin>>> {
        let before = self.read_logins()?;
        let same = before
            .iter()
            .filter(|login| login.token == token)
            .max_by_key(|login| login.url == url);
        let home = home
            .map(Path::to_owned)
            .or_else(|| same.and_then(|login| login.home.clone()));
        // Of the local config, where it has this login, else as it was.
        let node = if self.get(Key::Token) == Some(token) {
            self.node()
        } else {
            let of_home = || before.iter().find(|login| login.home.is_some() && login.home == home);
            same.or_else(of_home).and_then(|login| login.node.clone())
        };
        let last = FormerLogin {
            url: url.to_owned(),
            token: token.to_owned(),
            home,
            node,
        };
        let is_replaced = |login: &FormerLogin| {
            let is_same = login.token == last.token && (login.home.is_none() || last.home.is_none());
            is_same || (login.home.is_some() && login.home == last.home)
        };
        let rest = before.iter().filter(|login| !is_replaced(login)).cloned();
        let logins: Vec<_> = std::iter::once(last.clone()).chain(rest).take(KEPT).collect();
        let is_stored = logins == before && self.logins_file().exists();
        Ok((!is_stored).then_some(logins))
    }

    fn node(&self) -> Option<FormerNode> {
        FormerNode::of(self.get(Key::NodeId), self.get(Key::NodeToken))
    }

    /// Keeps the login, and copies the current content to a file beside it. `None`: it has no token, so an earlier copy, which may be the
    /// only one of a token, stays.
    pub fn back_up(&self) -> Outcome<Option<PathBuf>> {
        if let (Some(url), Some(token)) = (self.get(Key::Url), self.get(Key::Token)) {
            self.remember(None, url, token)?;
        }
        if self.get(Key::Token).is_none() && self.get(Key::NodeToken).is_none() {
            return Ok(None);
        }
        let backup = self.backup();
        private_file::write(&backup, self.present().document.to_string())?;
        let _ = fs::remove_file(backup.with_extension("old-new"));
        Ok(Some(backup))
    }

    /// Makes a former login the current one, with the node that belongs to it. `keeps_node`: a present node stays, because it is of the same
    /// gateway or of none. Returns where the content is that was there.
    pub fn return_login(
        &mut self,
        home: Option<&Path>,
        url: &str,
        token: &str,
        keeps_node: bool,
    ) -> Outcome<Option<PathBuf>> {
        // First, so that it is not the one that the list drops.
        self.remember(home, url, token)?;
        let backup = self.back_up()?;
        if !keeps_node {
            self.unset(Key::NodeToken);
        }
        if self.get(Key::NodeToken).is_none() {
            let logins = self.former_logins();
            let node = logins.into_iter().find(|login| login.token == token);
            let FormerNode { id, token } = node
                .and_then(|login| login.node)
                .unwrap_or(FormerNode { id: None, token: None });
            for (key, value) in [(Key::NodeId, id), (Key::NodeToken, token)] {
                if let Some(value) = value {
                    self.set(key, &value)?;
                }
            }
        }
        self.set(Key::Url, url)?;
        self.set(Key::Token, token)?;
        self.save()?;
        Ok(backup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::OF_ONE_GATEWAY;
    use std::os::unix::fs::PermissionsExt;

    const OURS: &str = "url = \"ws://127.0.0.1:1/ws\"\ntoken = \"ours\"\n";
    const OTHER: &str = "url = \"ws://127.0.0.1:2/ws\"\ntoken = \"other\"\n";

    fn write(path: &Path, text: &str) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn load(path: &Path) -> Config {
        Config::load_from(path.to_owned()).unwrap()
    }

    fn tokens(config: &Config) -> Vec<String> {
        config.former_logins().into_iter().map(|login| login.token).collect()
    }

    #[test]
    fn bk25_an_exchange_that_fails_or_is_interrupted_loses_neither_token() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        write(&path, OTHER);
        write(&dir.path().join("config.toml.old"), OURS);
        // The last write of the config fails, as on a full disk: nothing can be renamed to the name of a folder.
        let mut config = load(&path);
        assert_eq!(tokens(&config), ["ours"]);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(config.return_login(None, "ws://127.0.0.1:1/ws", "ours", false).is_err());
        fs::remove_dir(&path).unwrap();
        write(&path, OTHER);
        let config = load(&path);
        assert_eq!(tokens(&config), ["other", "ours"]);
        assert_eq!(
            fs::metadata(config.logins_file()).unwrap().permissions().mode() & 0o777,
            0o600
        );
        load(&path)
            .return_login(None, "ws://127.0.0.1:1/ws", "ours", false)
            .unwrap();
        let config = load(&path);
        assert_eq!(config.get(Key::Token), Some("ours"));
        assert_eq!(tokens(&config), ["other", "ours"]);
    }

    #[test]
    fn bk25_one_login_is_kept_for_each_state_folder_and_the_oldest_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        write(&path, OURS);
        let config = load(&path);
        let home = |number: usize| dir.path().join(format!("home-{number}"));
        for number in 0..KEPT + 4 {
            let url = format!("ws://127.0.0.1:{}/ws", number + 10);
            config
                .remember(Some(&home(number)), &url, &format!("token-{number}"))
                .unwrap();
        }
        assert_eq!(tokens(&config).len(), KEPT);
        assert_eq!(tokens(&config).first().map(String::as_str), Some("token-19"));
        assert_eq!(tokens(&config).last().map(String::as_str), Some("token-4"));
        // A new token of the same folder takes the place of the old one.
        config.remember(Some(&home(7)), "ws://127.0.0.1:17/ws", "new").unwrap();
        assert_eq!(tokens(&config).len(), KEPT);
        assert!(!tokens(&config).contains(&"token-7".to_owned()));
        // A login that becomes a former one keeps its folder.
        config.remember(None, "ws://127.0.0.1:18/ws", "token-8").unwrap();
        let first = config.former_logins().remove(0);
        assert_eq!((first.token.as_str(), first.home), ("token-8", Some(home(8))));
    }

    #[test]
    fn bk25_a_login_comes_back_with_its_node_and_the_copy_of_another_gateway_stays() {
        const REMOTE: &str = "url = \"wss://remote.example/ws\"\ntoken = \"remote\"\n[node]\nid = \"there\"\ntoken = \"node-remote\"\n[chat]\nenter = \"steer\"\n";
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        let unset_url = || {
            let mut config = load(&path);
            let backup = config.back_up().unwrap();
            for key in OF_ONE_GATEWAY {
                config.unset(key);
            }
            config.save().unwrap();
            backup
        };
        write(&path, &format!("{OURS}[node]\nid = \"here\"\ntoken = \"node-ours\"\n"));
        load(&path)
            .remember(Some(dir.path()), "ws://127.0.0.1:1/ws", "ours")
            .unwrap();
        write(&path, REMOTE);
        assert!(unset_url().is_some());
        let old = || fs::read_to_string(dir.path().join("config.toml.old")).unwrap();
        assert_eq!(old(), REMOTE);
        let home = Some(dir.path());
        let backup = load(&path)
            .return_login(home, "ws://127.0.0.1:1/ws", "ours", true)
            .unwrap();
        assert_eq!(backup, None, "it had no token");
        assert_eq!(old(), REMOTE, "the only copy of the remote node");
        let node = |config: &Config| {
            let get = |key| config.get(key).map(str::to_owned);
            (get(Key::NodeId).unwrap(), get(Key::NodeToken))
        };
        assert_eq!(node(&load(&path)), ("here".to_owned(), Some("node-ours".to_owned())));
        // Also from one gateway to the other, and never the node of one to the other.
        load(&path)
            .return_login(None, "wss://remote.example/ws", "remote", false)
            .unwrap();
        assert_eq!(node(&load(&path)), ("there".to_owned(), Some("node-remote".to_owned())));
        load(&path).remember(None, "ws://127.0.0.1:3/ws", "third").unwrap();
        load(&path)
            .return_login(None, "ws://127.0.0.1:3/ws", "third", false)
            .unwrap();
        assert_eq!(node(&load(&path)), ("there".to_owned(), None));
        load(&path)
            .return_login(home, "ws://127.0.0.1:1/ws", "ours", false)
            .unwrap();
        assert_eq!(node(&load(&path)), ("here".to_owned(), Some("node-ours".to_owned())));
        // What the owner removes, or another login of the same gateway, is no reason to bring one back.
        let mut config = load(&path);
        config.unset(Key::NodeToken);
        config.save().unwrap();
        load(&path).remember(home, "ws://127.0.0.1:1/ws", "ours").unwrap();
        assert!(unset_url().is_some());
        load(&path)
            .return_login(home, "ws://127.0.0.1:1/ws", "ours", true)
            .unwrap();
        assert_eq!(node(&load(&path)), ("here".to_owned(), None));
    }
}
