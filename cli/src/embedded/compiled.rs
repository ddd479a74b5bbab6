//! workerd's configuration as workerd itself compiles it. Reading the text costs workerd 5 MB for as long as it runs, and a share of each
//! start. A compiled file is used only while all that it was made from is the same, and without one workerd reads the text.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use super::bootstrap::sha256_hex;
use super::cluster;
use super::layout::Layout;
use super::runtime::Runtime;
use crate::private_file;

const COMPILE_TIMEOUT: Duration = Duration::from_secs(10);

/// What workerd starts with.
#[derive(Debug, PartialEq, Eq)]
pub enum Configuration {
    Text(PathBuf),
    Compiled(PathBuf),
}

#[derive(Debug, PartialEq, Eq)]
pub struct Chosen {
    pub configuration: Configuration,
    /// Why it is text, when it should be compiled.
    pub problem: Option<String>,
}

/// The compiled configuration, compiled now unless it was compiled from the current text and scripts.
/// A cluster's stays text: the compiled file would have its key in it (CL4).
pub async fn current(layout: &Layout, runtime: &Runtime) -> Chosen {
    let chosen = |configuration, problem| Chosen { configuration, problem };
    let text = Configuration::Text(layout.config());
    if cluster::is_joined(layout) {
        return chosen(text, None);
    }
    match compiled(layout, runtime).await {
        Ok(path) => chosen(Configuration::Compiled(path), None),
        Err(problem) => chosen(text, Some(problem)),
    }
}

async fn compiled(layout: &Layout, runtime: &Runtime) -> Result<PathBuf, String> {
    let path = layout.compiled_config();
    let fingerprint = fingerprint(layout, runtime)?;
    let mark = || format!("{fingerprint} {}\n", facts(&path));
    // A file that something has changed stops workerd from starting, and one that another user can write could run anything.
    let kept = fs::read_to_string(layout.compiled_from());
    if kept.is_ok_and(|kept| kept == mark()) && private_file::is_private(&path) {
        return Ok(path);
    }
    let content = compile(layout, &runtime.workerd()).await?;
    let written = |result: crate::exit::Outcome| result.map_err(|failure| failure.message);
    // Until both files are whole, the old mark must not fit the new file.
    let _ = fs::remove_file(layout.compiled_from());
    written(private_file::write(&path, &content))?;
    written(private_file::write(&layout.compiled_from(), mark()))?;
    Ok(path)
}

async fn compile(layout: &Layout, workerd: &Path) -> Result<Vec<u8>, String> {
    let running = Command::new(workerd)
        .args(["compile", "--config-only"])
        .arg(layout.config())
        .current_dir(layout.gateway())
        // It needs none, and what starts the gateway may have secrets in it (CL3).
        .env_clear()
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    match timeout(COMPILE_TIMEOUT, running).await {
        Ok(Ok(output)) if output.status.success() && !output.stdout.is_empty() => Ok(output.stdout),
        Ok(Ok(output)) => Err(first_line(&output.stderr)),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("it took more than {} s", COMPILE_TIMEOUT.as_secs())),
    }
}

fn first_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    text.lines().next().unwrap_or("workerd wrote nothing").to_owned()
}

/// A hash of the text, and of what tells a change of each file that the text embeds and of workerd.
fn fingerprint(layout: &Layout, runtime: &Runtime) -> Result<String, String> {
    let text = fs::read_to_string(layout.config()).map_err(|error| error.to_string())?;
    let embedded = embedded(&text).map(|name| layout.gateway().join(name));
    let all: Vec<String> = embedded.chain([runtime.workerd()]).map(|path| facts(&path)).collect();
    Ok(sha256_hex(format!("{text}{}", all.join("\n")).as_bytes()))
}

/// What tells a change of a file, without its content.
fn facts(path: &Path) -> String {
    let of_file = fs::metadata(path).map(|meta| {
        (
            meta.len(),
            meta.ino(),
            meta.mtime(),
            meta.mtime_nsec(),
            meta.ctime(),
            meta.ctime_nsec(),
        )
    });
    format!("{} {:?}", path.display(), of_file.ok())
}

/// The names of the files that a configuration embeds.
fn embedded(text: &str) -> impl Iterator<Item = &str> {
    text.split("embed \"").skip(1).filter_map(|rest| rest.split('"').next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const MANIFEST: &str = r#"{"version":"1","compatibilityDate":"2026-11-01"}"#;

    struct Home {
        folder: tempfile::TempDir,
        layout: Layout,
        runtime: Runtime,
    }

    impl Home {
        /// With a workerd that compiles a configuration into its text and a line for each time.
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let layout = Layout {
                home: folder.path().join("state"),
            };
            layout.ensure().unwrap();
            let dir = folder.path().join("runtime");
            fs::create_dir(&dir).unwrap();
            for (name, content) in [
                ("manifest.json", MANIFEST),
                ("worker.js", ""),
                ("r2.js", ""),
                ("workerd", ""),
            ] {
                fs::write(dir.join(name), content).unwrap();
            }
            fs::set_permissions(dir.join("workerd"), fs::Permissions::from_mode(0o755)).unwrap();
            fs::write(layout.config(), "embed \"worker.js\"").unwrap();
            fs::write(layout.gateway().join("worker.js"), "1").unwrap();
            let runtime = Runtime::open(&dir).unwrap();
            let home = Self {
                folder,
                layout,
                runtime,
            };
            home.workerd("echo once >> ../times; echo \"$1 $2\"; cat \"$3\"");
            home
        }

        fn workerd(&self, script: &str) {
            let path = self.folder.path().join("runtime/workerd");
            fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
        }

        fn times(&self) -> usize {
            fs::read_to_string(self.layout.home.join("times")).map_or(0, |text| text.lines().count())
        }

        async fn current(&self) -> Chosen {
            current(&self.layout, &self.runtime).await
        }
    }

    #[tokio::test]
    async fn f64_a_configuration_is_compiled_again_only_when_what_it_was_made_from_changes() {
        let home = Home::new();
        let path = home.layout.compiled_config();
        let compiled = || Chosen {
            configuration: Configuration::Compiled(path.clone()),
            problem: None,
        };
        assert_eq!(home.current().await, compiled());
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "compile --config-only\nembed \"worker.js\""
        );
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!((home.current().await, home.times()), (compiled(), 1));

        fs::write(home.layout.config(), "embed \"worker.js\" 2").unwrap();
        assert_eq!((home.current().await, home.times()), (compiled(), 2), "another text");
        private_file::write(&home.layout.gateway().join("worker.js"), "2").unwrap();
        assert_eq!(
            (home.current().await, home.times()),
            (compiled(), 3),
            "another script of the same size"
        );
        home.workerd("echo once >> ../times; echo other");
        assert_eq!((home.current().await, home.times()), (compiled(), 4), "another workerd");
        fs::write(&path, "OTHER\n").unwrap();
        // Some kernels give two changes within some milliseconds the same time.
        let before = std::time::SystemTime::now() - Duration::from_secs(60);
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(before)
            .unwrap();
        assert_eq!(
            (home.current().await, home.times()),
            (compiled(), 5),
            "a damaged file of the same length"
        );
        fs::remove_file(&path).unwrap();
        assert_eq!((home.current().await, home.times()), (compiled(), 6), "no file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(
            (home.current().await, home.times()),
            (compiled(), 7),
            "a file that others can change"
        );
        let elsewhere = home.layout.home.join("elsewhere");
        fs::rename(&path, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        assert_eq!((home.current().await, home.times()), (compiled(), 8), "a link");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    /// Cargo gives a test its own variables.
    #[tokio::test]
    async fn cl3_the_compiler_gets_no_environment() {
        let home = Home::new();
        home.workerd("export -p | grep CARGO > ../environment; echo content");
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
        assert_eq!(home.current().await.problem, None);
        assert_eq!(fs::read_to_string(home.layout.home.join("environment")).unwrap(), "");
    }

    #[tokio::test]
    async fn p12_a_configuration_that_cannot_be_compiled_or_stored_is_read_as_text() {
        let home = Home::new();
        let text = Configuration::Text(home.layout.config());
        home.workerd("echo 'no such option' >&2; exit 1");
        let chosen = home.current().await;
        assert_eq!(
            (chosen.configuration, chosen.problem.as_deref()),
            (text, Some("no such option"))
        );
        home.workerd("exit 0");
        assert_eq!(home.current().await.problem.as_deref(), Some("workerd wrote nothing"));
        home.workerd("echo content");
        fs::create_dir_all(home.layout.compiled_config().join("in the way")).unwrap();
        let chosen = home.current().await;
        assert!(matches!(chosen.configuration, Configuration::Text(_)));
        assert!(chosen.problem.unwrap().contains("config.bin"));
    }

    #[tokio::test]
    async fn cl4_the_configuration_of_a_cluster_stays_text_because_it_embeds_the_key() {
        let home = Home::new();
        fs::write(home.layout.cluster(), "{}").unwrap();
        let chosen = home.current().await;
        assert_eq!(
            (chosen.configuration, chosen.problem),
            (Configuration::Text(home.layout.config()), None)
        );
        assert!(!home.layout.compiled_config().exists() && home.times() == 0);
    }

    #[test]
    fn the_embedded_files_of_a_configuration_are_found() {
        let text = r#"(name = "a \" embed", esModule = embed "worker.js"), [embed "a-0.pem"]"#;
        assert_eq!(embedded(text).collect::<Vec<_>>(), ["worker.js", "a-0.pem"]);
    }
}
