//! The service manager that a test plays (test/fakes/services), and what it was asked.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::Home;

pub struct Services {
    folder: PathBuf,
    units: PathBuf,
}

impl Services {
    pub fn new(home: &Home) -> Self {
        let folder = home.root().join("fake");
        fs::create_dir(&folder).unwrap();
        let fakes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../test/fakes/services");
        for name in ["systemctl", "loginctl", "lib"] {
            fs::copy(fakes.join(name), folder.join(name)).unwrap();
        }
        Self {
            folder,
            units: home.root().join(".config/systemd/user"),
        }
    }

    /// What a command needs to find them.
    pub fn env(&self) -> [(&'static str, OsString); 2] {
        let mut path = self.folder.clone().into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        [("PATH", path), ("FAKE", self.folder.clone().into())]
    }

    /// The calls since the last look.
    pub fn calls(&self) -> Vec<String> {
        let file = self.folder.join("calls");
        let text = fs::read_to_string(&file).unwrap_or_default();
        let _ = fs::remove_file(file);
        text.lines().map(str::to_owned).collect()
    }

    pub fn fail_at(&self, number: usize) {
        fs::write(self.folder.join("fail"), number.to_string()).unwrap();
    }

    pub fn refuse(&self, words: &str) {
        fs::write(self.folder.join("refuse"), words).unwrap();
    }

    pub fn fail_nothing(&self) {
        for name in ["fail", "refuse"] {
            let _ = fs::remove_file(self.folder.join(name));
        }
    }

    /// The unit files that are installed.
    pub fn units(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.units).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    pub fn only_unit(&self) -> PathBuf {
        let units = self.units();
        assert_eq!(units.len(), 1, "{units:?}");
        units[0].clone()
    }

    pub fn lingers(&self) -> bool {
        self.folder.join("linger").exists()
    }

    /// Whether the manager knows anything.
    pub fn knows_nothing(&self) -> bool {
        let entries = fs::read_dir(&self.folder).unwrap().flatten();
        entries.map(|entry| entry.path()).all(|path: PathBuf| !is_trace(&path)) && self.units().is_empty()
    }
}

fn is_trace(path: &Path) -> bool {
    let endings = ["pid", "loaded", "enabled"];
    path.file_name().is_some_and(|name| name == "linger")
        || path
            .extension()
            .is_some_and(|ending| endings.iter().any(|known| ending == *known))
}
