//! The former content of the local config, in a file beside it: `config.toml.old`. Gateways of several state folders may use one config,
//! and each keeps its login in one of the two files: no interruption may remove the only copy of a token.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use super::{Config, REPAIR, Settings};
use crate::config::Key;
use crate::exit::{OrFail, Outcome};
use crate::private_file;

const NEXT: &str = "Check that the configuration folder is yours and that the disk is not full.";

/// Address and token of a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormerLogin {
    pub url: String,
    pub token: String,
}

impl Config {
    fn present(&self) -> &Settings {
        if self.is_foreign { &self.own } else { &self.shared }
    }

    fn backup(&self) -> PathBuf {
        self.present().path.with_extension("toml.old")
    }

    /// The content that becomes the backup when the exchange is complete.
    fn pending(&self) -> PathBuf {
        self.present().path.with_extension("toml.old-new")
    }

    /// Address and token of the backup. None: it has none, or can't be read.
    pub fn former_login(&self) -> Option<FormerLogin> {
        let backup = self.backup();
        let text = private_file::read_private(&backup, REPAIR).ok()??;
        let former = Settings::parse(backup, text).ok()?;
        Some(FormerLogin {
            url: former.get(Key::Url)?.to_owned(),
            token: former.get(Key::Token)?.to_owned(),
        })
    }

    /// Copies the present content to a file beside it.
    pub fn back_up(&self) -> Outcome<PathBuf> {
        self.settle()?;
        let backup = self.backup();
        private_file::write(&backup, self.present().document.to_string())?;
        Ok(backup)
    }

    /// The login of the backup and the present one change places. The backup has its login until the config has it.
    pub fn exchange(&mut self, url: &str, token: &str) -> Outcome<PathBuf> {
        self.settle()?;
        let (backup, pending) = (self.backup(), self.pending());
        private_file::write(&pending, self.present().document.to_string())?;
        self.set(Key::Url, url)?;
        self.set(Key::Token, token)?;
        self.save()?;
        fs::rename(&pending, &backup).or_fail(format_args!("replace {}", backup.display()), NEXT)?;
        Ok(backup)
    }

    /// Completes an exchange that was interrupted after the config was written, and drops one that was interrupted before.
    pub fn settle(&self) -> Outcome {
        let (backup, pending) = (self.backup(), self.pending());
        if !pending.exists() {
            return Ok(());
        }
        let is_written = self.former_login().map(|former| former.token).as_deref() == self.get(Key::Token);
        let done = if is_written {
            fs::rename(&pending, &backup)
        } else {
            fs::remove_file(&pending)
        };
        match done {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).or_fail(format_args!("replace {}", backup.display()), NEXT)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    const OURS: &str = "url = \"ws://127.0.0.1:1/ws\"\ntoken = \"ours\"\n";
    const OTHER: &str = "url = \"ws://127.0.0.1:2/ws\"\ntoken = \"other\"\n";

    fn write(path: &Path, text: &str) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn tokens(path: &Path) -> (Option<String>, Option<String>) {
        let config = Config::load_from(path.to_owned()).unwrap();
        let former = config.former_login().map(|former| former.token);
        (config.get(Key::Token).map(str::to_owned), former)
    }

    #[test]
    fn an_exchange_that_is_interrupted_at_any_write_loses_neither_token() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        let backup = dir.path().join("config.toml.old");
        let (ours, other) = (Some("ours".to_owned()), Some("other".to_owned()));
        let exchange = || {
            let mut config = Config::load_from(path.clone()).unwrap();
            let former = config.former_login().unwrap();
            config.exchange(&former.url, &former.token)
        };
        // The last write of the config fails, as on a full disk: nothing can be renamed to the name of a folder.
        write(&path, OTHER);
        write(&backup, OURS);
        let mut config = Config::load_from(path.clone()).unwrap();
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(config.exchange("ws://127.0.0.1:1/ws", "ours").is_err());
        fs::remove_dir(&path).unwrap();
        write(&path, OTHER);
        assert_eq!(tokens(&path), (other.clone(), ours.clone()));
        exchange().unwrap();
        assert_eq!(tokens(&path), (ours.clone(), other.clone()));

        // A kill between the config and the backup: the next command completes it.
        write(&path, OURS);
        write(&backup, OURS);
        write(&dir.path().join("config.toml.old-new"), OTHER);
        Config::load_from(path.clone()).unwrap().settle().unwrap();
        assert_eq!(tokens(&path), (ours.clone(), other.clone()));
        exchange().unwrap();
        assert_eq!(tokens(&path), (other, ours));
        assert!(!dir.path().join("config.toml.old-new").exists());
    }
}
