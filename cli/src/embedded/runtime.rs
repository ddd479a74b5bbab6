//! The runtime folder: the Worker bundle, the R2 worker, workerd and a manifest. Finds and checks it, and copies its scripts
//! beside the state: a restart after a crash then runs the same scripts, even while the folder is being replaced.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::channel_name::Name;
use super::layout::Layout;
use super::queue::{Queue, core_queues};
use crate::exit::{Failure, OrFail, Outcome};
use crate::private_file;

pub const SCRIPTS: [&str; 2] = ["worker.js", "r2.js"];
const MANIFEST: &str = "manifest.json";
const REBUILD: &str = "Build or install the runtime again.";

/// `manifest.json` of the bundle.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    pub version: String,
    pub compatibility_date: String,
    #[serde(default)]
    pub compatibility_flags: Vec<String>,
    /// Files beside the Worker's script, which it loads on first use.
    #[serde(default)]
    pub modules: Vec<ModuleName>,
    /// The queues that the gateway sends to and takes from.
    #[serde(default = "core_queues")]
    pub queues: Vec<Queue>,
    /// The channels that were built with it.
    #[serde(default)]
    pub channels: BTreeMap<Name, ChannelBundle>,
}

/// The name of a module's file: a script (`.mjs`), WebAssembly (`.wasm`) or data (`.bin`), without any folder.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ModuleName(String);

impl ModuleName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ModuleName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        let stem = [".mjs", ".wasm", ".bin"]
            .iter()
            .find_map(|ending| name.strip_suffix(ending));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if stem.is_some_and(|stem| !stem.is_empty() && stem.chars().all(is_plain)) {
            Ok(Self(name))
        } else {
            Err(format!("{name:?} is not the name of a module"))
        }
    }
}

/// Settings of a channel's Worker, from its own `wrangler.jsonc`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChannelBundle {
    pub compatibility_date: String,
    #[serde(default)]
    pub compatibility_flags: Vec<String>,
    /// The class of its accounts.
    pub durable_object: String,
    /// The size of its script.
    #[serde(default)]
    pub bytes: Option<u64>,
}

impl Manifest {
    /// The files that the gateway runs, beside the channels' scripts.
    fn files(&self) -> impl Iterator<Item = &str> {
        SCRIPTS.into_iter().chain(self.modules.iter().map(ModuleName::as_str))
    }
}

#[derive(Debug, Clone)]
pub struct Runtime {
    pub dir: PathBuf,
    pub manifest: Manifest,
}

impl Runtime {
    /// In the folder; else the one that `GSV_WORKERD` names, as where npm has installed it as a package of its own.
    pub fn workerd(&self) -> PathBuf {
        let own = self.dir.join("workerd");
        match env::var_os("GSV_WORKERD").filter(|path| !path.is_empty() && !own.exists()) {
            Some(elsewhere) => PathBuf::from(elsewhere),
            None => own,
        }
    }

    /// A channel's script, which may be missing.
    pub fn channel_script(&self, name: &Name) -> PathBuf {
        self.dir.join("channels").join(format!("{name}.js"))
    }

    /// The first of the usual folders that has a manifest.
    pub fn find(layout: &Layout) -> Outcome<Self> {
        let places = places(layout);
        if let Some(dir) = places.iter().find(|dir| dir.join("manifest.json").is_file()) {
            return Self::open(dir);
        }
        let looked = places
            .iter()
            .map(|dir| format!("looked in {}", dir.display()))
            .collect();
        Err(Failure::failed(
            "The gateway's runtime is not installed.",
            "In a source checkout run `node scripts/build.ts`; else install GSV again, or set GSV_RUNTIME_DIR to the folder with manifest.json, worker.js, r2.js and workerd.",
        )
        .with_lines(looked))
    }

    pub fn open(dir: &Path) -> Outcome<Self> {
        let dir = dir
            .canonicalize()
            .or_fail(format_args!("open {}", dir.display()), REBUILD)?;
        let path = dir.join(MANIFEST);
        let text = fs::read_to_string(&path).or_fail(format_args!("read {}", path.display()), REBUILD)?;
        let manifest: Manifest = serde_json::from_str(&text)
            .map_err(|error| Failure::failed(format!("{} is not valid: {error}.", path.display()), REBUILD))?;
        for name in manifest.files() {
            if !dir.join(name).is_file() {
                return Err(Failure::failed(
                    format!("The runtime in {} has no {name}.", dir.display()),
                    REBUILD,
                ));
            }
        }
        let runtime = Self { dir, manifest };
        let workerd = runtime.workerd();
        if rustix::fs::access(&workerd, rustix::fs::Access::EXEC_OK).is_err() {
            return Err(Failure::failed(
                format!("{} is missing or can't be run.", workerd.display()),
                REBUILD,
            ));
        }
        Ok(runtime)
    }

    /// Copies the scripts to where `config.capnp` embeds them from, and the modules to where the gateway loads them from. Megabytes
    /// that were copied from the same build, and have not changed since, are not read again.
    pub fn copy_scripts(&self, layout: &Layout) -> Outcome<()> {
        let manifest = fs::read(self.dir.join(MANIFEST)).or_fail("read the runtime's manifest", REBUILD)?;
        let copied = layout.gateway().join(MANIFEST);
        let is_copied = fs::read(&copied).is_ok_and(|kept| kept == manifest);
        if !is_copied {
            // Until all files are there, they are those of no build.
            let _ = fs::remove_file(&copied);
        }
        let scripts = SCRIPTS.map(|name| (name, layout.gateway().join(name)));
        let modules = self.manifest.modules.iter().map(ModuleName::as_str);
        for (name, to) in scripts
            .into_iter()
            .chain(modules.map(|name| (name, layout.modules().join(name))))
        {
            let from = self.dir.join(name);
            if !(is_copied && looks_same(&from, &to)) {
                copy(&from, &to)?;
                keep_time(&from, &to);
            }
        }
        for name in self.manifest.modules.iter().map(ModuleName::as_str) {
            // Earlier versions embedded the modules.
            let _ = fs::remove_file(layout.gateway().join(name));
        }
        if !is_copied {
            private_file::write(&copied, manifest)?;
        }
        Ok(())
    }
}

/// The version whose scripts were copied last. `None`: there are none, or an early version copied them.
pub fn version_copied(layout: &Layout) -> Option<String> {
    let manifest = fs::read(layout.gateway().join(MANIFEST)).ok()?;
    Some(serde_json::from_slice::<Manifest>(&manifest).ok()?.version)
}

/// Does not touch a copy that is the same already.
pub fn copy(from: &Path, to: &Path) -> Outcome<()> {
    let content = fs::read(from).or_fail(format_args!("read {}", from.display()), REBUILD)?;
    private_file::write_changed(to, content)
}

/// By size and time: only for files of one build.
fn looks_same(from: &Path, to: &Path) -> bool {
    let facts = |path| {
        fs::metadata(path)
            .and_then(|meta| Ok((meta.len(), meta.modified()?)))
            .ok()
    };
    facts(from).is_some_and(|original| facts(to) == Some(original))
}

/// Without it the next start compares the contents, so a failure costs only time.
fn keep_time(from: &Path, to: &Path) {
    if let (Ok(time), Ok(copy)) = (
        fs::metadata(from).and_then(|meta| meta.modified()),
        File::options().append(true).open(to),
    ) {
        let _ = copy.set_modified(time);
    }
}

fn places(layout: &Layout) -> Vec<PathBuf> {
    if let Some(dir) = env::var_os("GSV_RUNTIME_DIR").filter(|dir| !dir.is_empty()) {
        return vec![PathBuf::from(dir)];
    }
    let mut places = vec![layout.home.join("runtime")];
    let exe = env::current_exe().and_then(|exe| exe.canonicalize()).ok();
    if let Some(dir) = exe.as_deref().and_then(Path::parent) {
        places.extend(dir.parent().map(|up| up.join("runtime")));
        places.extend(dir.ancestors().nth(2).map(|root| root.join("dist").join("runtime")));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn runtime_dir(manifest: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("manifest.json"), manifest).unwrap();
        for name in SCRIPTS {
            fs::write(dir.path().join(name), "export default {}").unwrap();
        }
        fs::write(dir.path().join("workerd"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(dir.path().join("workerd"), fs::Permissions::from_mode(0o755)).unwrap();
        dir
    }

    #[test]
    fn a_whole_runtime_is_opened() {
        let dir =
            runtime_dir(r#"{"version":"1.2.3","compatibilityDate":"2026-11-01","compatibilityFlags":["a"],"more":1}"#);
        let runtime = Runtime::open(dir.path()).unwrap();
        assert_eq!(runtime.manifest.version, "1.2.3");
        assert_eq!(runtime.manifest.compatibility_flags, ["a"]);
    }

    #[test]
    fn modules_are_part_of_the_runtime_and_stay_in_its_folder() {
        let manifest = r#"{"version":"1","compatibilityDate":"2026-11-01","modules":["pdf.mjs","photon_rs_bg.wasm"]}"#;
        let dir = runtime_dir(manifest);
        assert!(
            Runtime::open(dir.path())
                .unwrap_err()
                .message
                .contains("has no pdf.mjs")
        );
        for name in ["pdf.mjs", "photon_rs_bg.wasm"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let modules = Runtime::open(dir.path()).unwrap().manifest.modules;
        assert_eq!(
            modules.iter().map(ModuleName::as_str).collect::<Vec<_>>(),
            ["pdf.mjs", "photon_rs_bg.wasm"]
        );
        assert!(ModuleName::try_from("embeddings.bin".to_owned()).is_ok());
        for name in ["../x.mjs", "x.js", ".mjs", "a/b.wasm", "a\".mjs", ".bin", "../x.bin"] {
            assert!(ModuleName::try_from(name.to_owned()).is_err(), "{name}");
        }
    }

    #[test]
    fn scripts_are_copied_again_when_the_build_or_a_file_changes() {
        let dir = runtime_dir(r#"{"version":"1","compatibilityDate":"2026-11-01"}"#);
        let home = tempfile::tempdir().unwrap();
        let layout = Layout {
            home: home.path().to_owned(),
        };
        layout.ensure().unwrap();
        let source = dir.path().join("worker.js");
        let copied = layout.gateway().join("worker.js");
        let copy = || {
            let runtime = Runtime::open(dir.path()).unwrap();
            runtime.copy_scripts(&layout).unwrap();
            fs::read_to_string(&copied).unwrap()
        };
        let set_time = |path: &Path| {
            let file = File::options().append(true).open(path).unwrap();
            file.set_modified(std::time::UNIX_EPOCH).unwrap();
        };
        fs::write(&source, "one").unwrap();
        set_time(&source);
        assert_eq!(copy(), "one");
        // Not read: the build, the size and the time are the same.
        fs::write(&copied, "own").unwrap();
        set_time(&copied);
        assert_eq!(copy(), "own");
        // Another time, as after a rebuild by hand.
        fs::write(&source, "two").unwrap();
        assert_eq!(copy(), "two");
        // Another build, packed with the same times, whose script has the same size.
        set_time(&source);
        assert_eq!(copy(), "two");
        fs::write(&source, "six").unwrap();
        set_time(&source);
        fs::write(
            dir.path().join(MANIFEST),
            r#"{"version":"2","compatibilityDate":"2026-11-01"}"#,
        )
        .unwrap();
        assert_eq!(copy(), "six");
    }

    #[test]
    fn missing_files_are_named() {
        let dir = runtime_dir(r#"{"version":"1","compatibilityDate":"2026-11-01"}"#);
        fs::remove_file(dir.path().join("r2.js")).unwrap();
        assert!(Runtime::open(dir.path()).unwrap_err().message.contains("has no r2.js"));
        let dir = runtime_dir("{}");
        assert!(
            Runtime::open(dir.path())
                .unwrap_err()
                .message
                .contains("manifest.json is not valid")
        );
        let dir = runtime_dir(r#"{"version":"1","compatibilityDate":"2026-11-01"}"#);
        fs::remove_file(dir.path().join("workerd")).unwrap();
        assert!(
            Runtime::open(dir.path())
                .unwrap_err()
                .message
                .contains("workerd is missing")
        );
    }
}
