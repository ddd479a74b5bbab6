//! Finds wrangler and runs it: in a folder of its own, without a shell, telemetry, update check or questions. Secrets go to its stdin. Reads
//! its report, never the text that it prints for people.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use super::api::Login;
use crate::clean::Cleaner;
use crate::embedded::layout::Layout;
use crate::embedded::runtime::Runtime;
use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::output::Output;

const VARIABLE: &str = "GSV_WRANGLER";
const PROGRAM: &str = "wrangler";
/// The version that is tested, and the oldest that works: earlier ones don't know declarative exports of Durable Objects.
const TESTED: &str = "4.164.0";
const LEAST: (u32, u32) = (4, 164);
const INSTALL: &str = "Install Node 22 or newer (https://nodejs.org), then run `npm install -g wrangler@4.164.0`. Or set GSV_WRANGLER to the path of a wrangler.";
const REPORT: &str = "report.ndjson";
/// The end of its output that a failure shows.
const MAX_LINES: usize = 12;
/// Bytes of its output that are read at once.
const PIECE_BYTES: usize = 8192;
/// Quiet, and off the network except for Cloudflare's API.
const QUIET: [(&str, &str); 6] = [
    ("WRANGLER_HIDE_BANNER", "true"),
    ("WRANGLER_SEND_METRICS", "false"),
    ("WRANGLER_SEND_ERROR_REPORTS", "false"),
    ("CLOUDFLARE_CF_FETCH_ENABLED", "false"),
    ("FORCE_COLOR", "0"),
    ("NO_COLOR", "1"),
];

pub struct Wrangler {
    program: PathBuf,
    /// The script, when the program is Node.
    script: Option<PathBuf>,
    pub version: String,
}

/// What a run of wrangler has reported.
#[derive(Debug, Default)]
pub struct Report {
    rows: Vec<Value>,
    pub stdout: String,
}

impl Report {
    /// The id of the version that was deployed.
    pub fn version(&self) -> Option<&str> {
        let row = self.rows.iter().rfind(|row| row["type"] == "deploy")?;
        row["version_id"].as_str()
    }

    fn failure(&self) -> Option<&str> {
        let row = self.rows.iter().rfind(|row| row["type"] == "command-failed")?;
        row["message"].as_str()
    }
}

impl Wrangler {
    /// That of `GSV_WRANGLER`, of the source checkout that this program runs from, or of the `PATH`.
    pub fn find() -> Outcome<Self> {
        if let Some(path) = env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
            let path = PathBuf::from(path);
            return Self::at(&path, &[]).ok_or_else(|| {
                let message = format!("{VARIABLE} is {}, which is no wrangler.", path.display());
                Failure::usage(message, INSTALL)
            })?;
        }
        let checkout = checkout();
        let local = checkout
            .as_deref()
            .and_then(|root| Self::at(&root.join("node_modules/wrangler/bin/wrangler.js"), &nodes(root)));
        let found = local.or_else(|| Self::at(&on_path(PROGRAM)?, &[]));
        found.unwrap_or_else(|| {
            Err(Failure::failed(
                "`gsv deploy` needs wrangler, Cloudflare's program, and there is none.",
                INSTALL,
            ))
        })
    }

    /// `None`: it is not there, or not wrangler.
    fn at(path: &Path, nodes: &[PathBuf]) -> Option<Outcome<Self>> {
        let real = path.canonicalize().ok()?;
        let package = fs::read_to_string(real.parent()?.parent()?.join("package.json")).ok()?;
        let package: Value = serde_json::from_str(&package).ok()?;
        let version = package["version"]
            .as_str()
            .filter(|_| package["name"] == PROGRAM)?
            .to_owned();
        if !is_new_enough(&version) {
            let message = format!(
                "wrangler {version} ({}) is not one that `gsv deploy` works with: it is tested with {TESTED}.",
                path.display()
            );
            return Some(Err(Failure::failed(message, INSTALL)));
        }
        let node = nodes
            .iter()
            .find(|node| node.is_file())
            .cloned()
            .or_else(|| on_path("node"));
        Some(match node {
            Some(program) => Ok(Self {
                program,
                script: Some(real),
                version,
            }),
            None => Err(Failure::failed("wrangler needs Node, and there is none.", INSTALL)),
        })
    }

    /// The token that the user has given to wrangler: of the environment, or of its login.
    pub async fn login(&self) -> Outcome<Login> {
        if let Some(token) = env::var("CLOUDFLARE_API_TOKEN").ok().filter(|token| !token.is_empty()) {
            return Ok(Login::Bearer(token));
        }
        let folder = super::bundle::folder()?;
        let report = self.run(folder.path(), &["auth", "token", "--json"], None, None).await;
        let no_login = || {
            Failure::new(
                Exit::Auth,
                "Cloudflare does not know you yet.",
                "Run `wrangler login` (in a source checkout: `npx wrangler login`). Or make an API token (https://dash.cloudflare.com/profile/api-tokens, template `Edit Cloudflare Workers`, and add D1, Queues and Vectorize: Edit) and set CLOUDFLARE_API_TOKEN.",
            )
        };
        let login: Credentials = report
            .ok()
            .and_then(|report| serde_json::from_str(&report.stdout).ok())
            .ok_or_else(no_login)?;
        Ok(match login {
            Credentials { token: Some(token), .. } => Login::Bearer(token),
            Credentials {
                key: Some(key),
                email: Some(email),
                ..
            } => Login::Key { key, email },
            _ => return Err(no_login()),
        })
    }

    /// Runs to its end. `stdin` may be secret.
    pub async fn run(
        &self,
        folder: &Path,
        args: &[&str],
        account: Option<&str>,
        stdin: Option<&[u8]>,
    ) -> Outcome<Report> {
        let mut command = self.command(folder, args, account);
        command.stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().or_fail("start wrangler", INSTALL)?;
        if let (Some(mut pipe), Some(bytes)) = (child.stdin.take(), stdin) {
            // A wrangler that has ended before it read says why itself.
            let _ = pipe.write_all(bytes).await;
        }
        let ended = child
            .wait_with_output()
            .await
            .or_fail("wait for wrangler", "Run it again.")?;
        let text = fs::read_to_string(folder.join(REPORT)).unwrap_or_default();
        let report = Report {
            rows: text
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok())
                .collect(),
            stdout: String::from_utf8_lossy(&ended.stdout).into_owned(),
        };
        if ended.status.success() {
            return Ok(report);
        }
        let said = String::from_utf8_lossy(&ended.stderr);
        // Its log is in the folder that is removed.
        let is_useful = |line: &&str| !line.trim().is_empty() && !line.contains("Logs were written");
        let lines: Vec<&str> = said.lines().filter(is_useful).collect();
        let why = report.failure().unwrap_or("it gave no reason").trim_end_matches('.');
        let what = args.first().copied().unwrap_or_default();
        Err(Failure::failed(
            format!("`wrangler {what}` failed: {why}."),
            "Run the command again: it continues where it stopped. `gsv deploy check` says what the account lacks.",
        )
        .with_lines(
            lines
                .iter()
                .rev()
                .take(MAX_LINES)
                .rev()
                .map(|line| (*line).to_owned())
                .collect(),
        ))
    }

    /// Shows what it prints until it ends or is interrupted: text of others, so it is cleaned (TH19). JSON for a program stays as it is.
    pub async fn show(&self, out: Output, folder: &Path, args: &[&str], account: &str) -> Outcome {
        let mut command = self.command(folder, args, Some(account));
        if !out.json || out.tty {
            command.stdout(Stdio::piped());
        }
        let mut child = command
            .stderr(Stdio::piped())
            .spawn()
            .or_fail("start wrangler", INSTALL)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let running = async {
            tokio::join!(
                relay(stdout, |text| out.piece(text)),
                relay(stderr, |text| out.said(text))
            );
            child.wait().await
        };
        tokio::pin!(running);
        let ended = tokio::select! {
            ended = &mut running => ended.or_fail("wait for wrangler", "Run it again.")?,
            // It gets the signal of the terminal, too, and tidies up before it ends.
            _ = tokio::signal::ctrl_c() => {
                let _ = running.await;
                return Err(Failure::interrupted());
            }
        };
        if ended.success() {
            return Ok(());
        }
        Err(Failure::failed(
            "wrangler failed; it said why above.",
            "Run it again, or look with `gsv deploy status`.",
        ))
    }

    fn command(&self, folder: &Path, args: &[&str], account: Option<&str>) -> Command {
        let mut command = Command::new(&self.program);
        command.args(self.script.iter()).args(args).current_dir(folder);
        command.envs(QUIET).kill_on_drop(true);
        command.env("WRANGLER_OUTPUT_FILE_PATH", folder.join(REPORT));
        command.env("WRANGLER_LOG_PATH", folder.join("log"));
        for secret in ["GSV_TOKEN", "GSV_BACKUP_PASSPHRASE"] {
            command.env_remove(secret);
        }
        if let Some(account) = account {
            command.env("CLOUDFLARE_ACCOUNT_ID", account);
        }
        command
    }
}

/// Shows the text of a pipe as it comes, cleaned.
async fn relay(pipe: Option<impl AsyncRead + Unpin>, mut show: impl FnMut(&str)) {
    let Some(mut pipe) = pipe else { return };
    let mut cleaner = Cleaner::default();
    let mut bytes = Vec::new();
    let mut piece = vec![0; PIECE_BYTES];
    while let Ok(count @ 1..) = pipe.read(&mut piece).await {
        bytes.extend_from_slice(&piece[..count]);
        let whole: Vec<u8> = bytes.drain(..whole_characters(&bytes)).collect();
        show(&cleaner.push(&String::from_utf8_lossy(&whole)));
    }
    show(&cleaner.push(&String::from_utf8_lossy(&bytes)));
}

/// Where a character begins whose end has not come yet.
fn whole_characters(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Err(error) = std::str::from_utf8(&bytes[at..]) {
        at += error.valid_up_to();
        match error.error_len() {
            Some(invalid) => at += invalid,
            None => return at,
        }
    }
    bytes.len()
}

#[derive(Deserialize)]
struct Credentials {
    token: Option<String>,
    key: Option<String>,
    email: Option<String>,
}

fn is_new_enough(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    let (Some(Some(major)), Some(Some(minor))) = (parts.next(), parts.next()) else {
        return false;
    };
    major == LEAST.0 && minor >= LEAST.1
}

/// The source checkout whose runtime this program uses.
fn checkout() -> Option<PathBuf> {
    let runtime = Runtime::find(&Layout::find().ok()?).ok()?;
    let root = runtime.dir.parent()?.parent()?;
    root.join("gateway/wrangler.jsonc").is_file().then(|| root.to_owned())
}

/// The Node that the scripts of a checkout have installed, because the machine's own may be too old.
fn nodes(root: &Path) -> Vec<PathBuf> {
    let folder = root.join(".tools/node/node_modules");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().join("bin/node")).collect()
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path: OsString = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn de15_th19_what_it_prints_is_cleaned_also_where_it_is_cut() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let text = "a \u{1b}]52;c;ZXZpbA==\u{7}né\u{202e}b\u{1b}[2J 日本\nc".as_bytes();
        for cut in 0..=text.len() {
            let mut shown = String::new();
            let pipe = AsyncReadExt::chain(&text[..cut], &text[cut..]);
            runtime.block_on(relay(Some(pipe), |piece| shown.push_str(piece)));
            assert_eq!(shown, "a néb 日本\nc", "{cut}");
        }
        let mut shown = String::new();
        runtime.block_on(relay(Some(&b"a\xffb\xc3"[..]), |piece| shown.push_str(piece)));
        assert_eq!(shown, "a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn de7_only_versions_with_what_is_used_are_taken() {
        for (version, is_taken) in [
            ("4.164.0", true),
            ("4.200.1", true),
            ("4.163.9", false),
            ("3.114.0", false),
            ("5.0.0", false),
            ("", false),
        ] {
            assert_eq!(is_new_enough(version), is_taken, "{version}");
        }
    }

    #[test]
    fn de7_the_version_that_is_advised_is_the_one_that_is_tested() {
        let package = include_str!("../../../../package.json");
        assert!(package.contains(&format!("\"wrangler\": \"{TESTED}\"")), "{TESTED}");
        assert!(INSTALL.contains(&format!("wrangler@{TESTED}`")), "{INSTALL}");
    }

    #[test]
    fn de7_a_folder_without_wrangler_is_none_and_an_old_one_says_what_to_install() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("bin/wrangler.js");
        assert!(Wrangler::at(&script, &[]).is_none());
        fs::create_dir(dir.path().join("bin")).unwrap();
        fs::write(&script, "").unwrap();
        assert!(Wrangler::at(&script, &[]).is_none());
        fs::write(
            dir.path().join("package.json"),
            r#"{"name":"wrangler","version":"4.1.0"}"#,
        )
        .unwrap();
        let failure = Wrangler::at(&script, &[]).unwrap().err().unwrap();
        assert!(failure.message.contains("wrangler 4.1.0") && failure.next.contains("npm install -g wrangler@4.164.0"));
    }
}
