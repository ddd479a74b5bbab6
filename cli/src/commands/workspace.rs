//! `gsv workspace`: the agent's files through the gateway.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use gsv_protocol::errors;
use gsv_protocol::methods::{WorkspaceDelete, WorkspaceList, WorkspaceRead, WorkspaceWrite};
use gsv_protocol::types::{
    AgentId, WorkspaceDeleteParams, WorkspaceListParams, WorkspaceReadParams, WorkspaceReadResult,
    WorkspaceWriteParams, WorkspaceWriteResult,
};

use super::{Context, read_stdin, versions};
use crate::args::{Agent, WorkspaceCommand};
use crate::clean::{clean, one_line};
use crate::client::Client;
use crate::exit::{Failure, OrFail, Outcome};
use crate::output::Style;
use crate::paths::shell;
use crate::units::bytes;

/// `ifMatch` of a file that must not exist yet.
const ABSENT: &str = "absent";
/// A file that changes between two parts is read this often.
const READ_TRIES: usize = 3;

pub async fn run(context: &Context, command: WorkspaceCommand) -> Outcome {
    match command {
        WorkspaceCommand::Ls { path, agent } => list(context, path, agent_id(agent)).await,
        WorkspaceCommand::Cat { path, agent } => cat(context, path, agent_id(agent)).await,
        WorkspaceCommand::Put {
            path,
            file,
            if_match,
            agent,
        } => put(context, path, file, if_match, agent_id(agent)).await,
        WorkspaceCommand::Edit { path, agent } => edit(context, path, agent_id(agent)).await,
        WorkspaceCommand::Rm { path, agent } => remove(context, path, agent_id(agent)).await,
        WorkspaceCommand::Log { path, agent } => versions::log(context, path, agent_id(agent)).await,
        WorkspaceCommand::Diff { path, from, to, agent } => {
            versions::diff(context, path, from, to, agent_id(agent)).await
        }
        WorkspaceCommand::Restore { path, version, agent } => {
            versions::restore(context, path, version, agent_id(agent)).await
        }
    }
}

fn agent_id(agent: Agent) -> Option<AgentId> {
    agent.agent.map(AgentId)
}

async fn list(context: &Context, path: Option<String>, agent_id: Option<AgentId>) -> Outcome {
    let client = context.connect().await?;
    let result = client
        .call::<WorkspaceList>(WorkspaceListParams { path, agent_id })
        .await?;
    client.close().await;
    let out = context.out;
    if out.json {
        out.json_document(&result);
        return Ok(());
    }
    for directory in &result.directories {
        let name = clean(directory.trim_end_matches('/'));
        out.line(&out.paint(Style::Cyan, &format!("{name}/")));
    }
    for file in &result.files {
        out.line(&clean(file));
    }
    Ok(())
}

async fn cat(context: &Context, path: String, agent_id: Option<AgentId>) -> Outcome {
    let client = context.connect().await?;
    let result = read_whole(&client, &path, agent_id, None).await?;
    client.close().await;
    if context.out.json {
        context.out.json_document(&result);
    } else {
        context.out.content(&result.content);
    }
    Ok(())
}

async fn put(
    context: &Context,
    path: String,
    file: Option<PathBuf>,
    if_match: Option<String>,
    agent_id: Option<AgentId>,
) -> Outcome {
    let text = match file.filter(|file| file != Path::new("-")) {
        Some(file) => {
            let bytes = fs::read(&file).or_fail(
                format_args!("read {}", file.display()),
                "Check the path, or pipe the content in.",
            )?;
            String::from_utf8(bytes).map_err(|_| {
                Failure::usage(
                    format!("{} is not UTF-8 text.", file.display()),
                    "Only text goes into the workspace this way.",
                )
            })?
        }
        None => read_stdin(context.out, "the content")?,
    };
    let client = context.connect().await?;
    let result = client
        .call::<WorkspaceWrite>(WorkspaceWriteParams {
            path,
            content: text,
            agent_id,
            if_match,
        })
        .await?;
    client.close().await;
    told(context, &result);
    Ok(())
}

fn told(context: &Context, result: &WorkspaceWriteResult) {
    if context.out.json {
        context.out.json_document(result);
    } else {
        context.out.aside(&format!(
            "{} written, {}",
            one_line(&result.path, 200),
            bytes(result.size)
        ));
    }
}

async fn remove(context: &Context, path: String, agent_id: Option<AgentId>) -> Outcome {
    let client = context.connect().await?;
    let result = client
        .call::<WorkspaceDelete>(WorkspaceDeleteParams { path, agent_id })
        .await?;
    client.close().await;
    if context.out.json {
        context.out.json_document(&result);
    } else {
        let path = one_line(&result.path, 200);
        context.out.aside(&format!(
            "{path} deleted; `gsv workspace restore {path}` brings it back"
        ));
    }
    Ok(())
}

/// The editor may be open for hours, so the file is read and written on connections of their own.
async fn edit(context: &Context, path: String, agent_id: Option<AgentId>) -> Outcome {
    let account = context.account()?;
    let client = account.connect().await?;
    let before = read_or_absent(&client, &path, agent_id.clone()).await?;
    client.close().await;
    let (old, etag) = before.map_or((String::new(), Some(ABSENT.to_owned())), |file| {
        (file.content, file.etag)
    });
    let draft = Draft::new(&path, &old).or_fail(
        "make a temporary file",
        "Check that the folder for temporary files is writable (TMPDIR).",
    )?;
    open_editor(&draft.file)?;
    let bytes = fs::read(&draft.file).or_fail("read what you wrote", "Check that the editor wrote the file.")?;
    let new =
        String::from_utf8(bytes).map_err(|_| draft.keep(Failure::usage("What you wrote is not UTF-8 text.", "")))?;
    if new == old {
        context.out.aside("nothing changed");
        return Ok(());
    }
    let params = WorkspaceWriteParams {
        path,
        content: new,
        agent_id,
        if_match: etag,
    };
    let client = account.connect().await.map_err(|failure| draft.keep(failure))?;
    let result = client
        .call::<WorkspaceWrite>(params)
        .await
        .map_err(|failure| draft.keep(failure))?;
    client.close().await;
    told(context, &result);
    Ok(())
}

/// A file may be larger than an answer: then it comes in parts. One that changes in between is read again.
pub async fn read_whole(
    client: &Client,
    path: &str,
    agent_id: Option<AgentId>,
    version: Option<String>,
) -> Outcome<WorkspaceReadResult> {
    let ask = async |offset| {
        let params = WorkspaceReadParams {
            path: path.to_owned(),
            agent_id: agent_id.clone(),
            version: version.clone(),
            offset: Some(offset),
        };
        client.call::<WorkspaceRead>(params).await
    };
    for _ in 0..READ_TRIES {
        let mut whole = ask(0).await?;
        let mut same = true;
        while let Some(offset) = whole.next_offset.take() {
            let part = match ask(offset).await {
                Ok(part) => part,
                // It became shorter than where it was to go on.
                Err(failure) if failure.is(&errors::PROTOCOL_INVALID_PARAMS) => {
                    same = false;
                    break;
                }
                Err(failure) => return Err(failure),
            };
            same = part.etag == whole.etag;
            if !same || part.next_offset.is_some_and(|next| next <= offset) {
                same = false;
                break;
            }
            whole.content.push_str(&part.content);
            whole.next_offset = part.next_offset;
        }
        if same {
            return Ok(whole);
        }
    }
    Err(Failure::failed(
        format!("{} keeps changing while it is read.", one_line(path, 200)),
        "Try again in a moment.",
    ))
}

pub async fn read_or_absent(
    client: &Client,
    path: &str,
    agent_id: Option<AgentId>,
) -> Outcome<Option<WorkspaceReadResult>> {
    match read_whole(client, path, agent_id, None).await {
        Ok(result) => Ok(Some(result)),
        Err(failure) if failure.is(&errors::PATH_NOT_FOUND) => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn open_editor(file: &Path) -> Outcome {
    let editor = ["VISUAL", "EDITOR"]
        .iter()
        .find_map(|name| env::var(name).ok().filter(|value| !value.trim().is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    let next = "Set EDITOR to an editor that waits until you are done, such as `vi`, `nano` or `code --wait`.";
    // EDITOR may hold arguments, as everywhere; the file's name stays out of the shell's hands.
    let status = Command::new("sh")
        .args(["-c", &format!("exec {editor} \"$1\""), "sh"])
        .arg(file)
        .status();
    let status = status.or_fail(format_args!("start the editor `{editor}`"), next)?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::failed(
            format!("The editor `{editor}` failed; nothing was written."),
            next,
        ))
    }
}

/// A private copy for the editor. Removed at the end, unless what is in it would be lost.
struct Draft {
    dir: PathBuf,
    file: PathBuf,
    kept: std::cell::Cell<bool>,
}

impl Draft {
    fn new(path: &str, content: &str) -> io::Result<Self> {
        let dir = env::temp_dir().join(format!("gsv-edit-{}", ulid::Ulid::generate()));
        fs::DirBuilder::new().mode(0o700).create(&dir)?;
        // The name tells the editor the kind of file.
        let name: String = path
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .chars()
            .filter(|c| c.is_alphanumeric() || "._-".contains(*c))
            .collect();
        let file = dir.join(if name.trim_matches('.').is_empty() {
            "file".to_owned()
        } else {
            name
        });
        let draft = Self {
            dir,
            file,
            kept: std::cell::Cell::new(false),
        };
        let mut opened = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft.file)?;
        io::Write::write_all(&mut opened, content.as_bytes())?;
        Ok(draft)
    }

    /// The work is not lost when it can't be stored.
    fn keep(&self, failure: Failure) -> Failure {
        self.kept.set(true);
        let place = format!("What you wrote is in {}.", shell(&self.file));
        let next = if failure.next.is_empty() {
            place
        } else {
            format!("{} {place}", failure.next)
        };
        Failure { next, ..failure }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.kept.get() {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}
