//! `gsv workspace`: the agent's files through the gateway. Their versions are in `versions`.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use gsv_protocol::methods::{WorkspaceDelete, WorkspaceList, WorkspaceWrite};
use gsv_protocol::types::{WorkspaceDeleteParams, WorkspaceListParams, WorkspaceWriteParams};
use serde_json::json;
use tempfile::TempDir;

use super::context::Context;
use super::versions;
use super::workspace_file::{read_or_absent, read_whole};
use crate::args::{WorkspaceCommand, WorkspaceFile, WorkspaceGet, WorkspacePut, WorkspaceRm};
use crate::clean::{clean, one_line};
use crate::editor;
use crate::exit::{Failure, OrFail, Outcome};
use crate::new_file;
use crate::output::Style;
use crate::paths::shell;
use crate::units::bytes;

/// `ifMatch` of a file that must not exist yet.
const ABSENT: &str = "absent";

pub async fn run(context: &Context, command: WorkspaceCommand) -> Outcome {
    let out = context.out;
    match command {
        WorkspaceCommand::Ls { path, of } => {
            let params = WorkspaceListParams {
                path,
                agent_id: of.agent,
            };
            let list = context.show::<WorkspaceList>(params, |result| {
                for directory in &result.directories {
                    let name = clean(directory.trim_end_matches('/'));
                    out.line(&out.paint(Style::Cyan, &format!("{name}/")));
                }
                result.files.iter().for_each(|file| out.line(&clean(file)));
                if result.truncated == Some(true) {
                    out.aside("The folder has more files than the gateway lists at once, so some are missing here. A file whose name you know can be read: `gsv workspace cat PATH`. To see all, move files into folders below it.");
                }
            });
            list.await
        }
        WorkspaceCommand::Cat(args) => {
            let client = context.connect().await?;
            let result = versions::read(&client, args).await?;
            client.close().await;
            out.show(result, |result| out.content(&result.content));
            Ok(())
        }
        WorkspaceCommand::Get(args) => get(context, args).await,
        WorkspaceCommand::Put(args) => put(context, args).await,
        WorkspaceCommand::Edit(file) => edit(context, file).await,
        WorkspaceCommand::Rm(WorkspaceRm { of, permanently }) => {
            let WorkspaceFile { path, of } = of;
            let agent = versions::of_agent(of.agent.as_ref());
            let params = WorkspaceDeleteParams {
                path,
                agent_id: of.agent,
                permanently: permanently.then_some(true),
            };
            let deleted = context.change::<WorkspaceDelete>(params, |result| {
                let path = one_line(&result.path, 200);
                if result.kept == Some(false) {
                    return format!("{path} deleted; it was too large to keep an earlier version");
                }
                format!("{path} deleted; `gsv workspace restore {path}{agent}` undoes this")
            });
            deleted.await
        }
        WorkspaceCommand::Log(file) => versions::log(context, file).await,
        WorkspaceCommand::Diff(args) => versions::diff(context, args).await,
        WorkspaceCommand::Restore(args) => versions::restore(context, args).await,
    }
}

async fn get(context: &Context, args: WorkspaceGet) -> Outcome {
    let path = &args.from.path;
    let file = match args.file {
        Some(file) if !file.is_dir() => file,
        folder => {
            let Some(name) = Path::new(path).file_name() else {
                let message = format!("{} names no file.", one_line(path, 200));
                return Err(Failure::usage(message, "List the files: `gsv workspace ls`."));
            };
            folder.unwrap_or_default().join(name)
        }
    };
    new_file::check(&file, args.force)?;
    let client = context.connect().await?;
    let result = read_whole(&client, path, args.from.of.agent.as_ref(), None).await?;
    client.close().await;
    let mut draft = new_file::draft(&file)?;
    draft
        .write_all(result.content.as_bytes())
        .or_fail(new_file::doing(&file), new_file::NEXT)?;
    new_file::finish(draft, &file, args.force)?;
    let size = result.content.len() as u64;
    let words = format!(
        "{} saved as {}, {}",
        one_line(&result.path, 200),
        shell(&file),
        bytes(size)
    );
    context
        .out
        .done(&json!({ "path": result.path, "file": file, "size": size }), &words);
    Ok(())
}

async fn put(context: &Context, args: WorkspacePut) -> Outcome {
    let text = match args.file.filter(|file| file != Path::new("-")) {
        Some(file) => {
            let next = "Check the path, or pipe the content in.";
            if file.is_dir() {
                let message = format!("{} is a folder on this machine.", file.display());
                return Err(Failure::usage(message, "Name one file: `gsv workspace put PATH FILE`."));
            }
            if !file.exists() && Path::new(&args.to.path).is_file() {
                let (local, target) = (shell(Path::new(&args.to.path)), shell(&file));
                return Err(Failure::usage(
                    format!("There is no file {target} on this machine. The file of the workspace comes first."),
                    format!("Change the order: `gsv workspace put {target} {local}`."),
                ));
            }
            let bytes = fs::read(&file).or_fail(format_args!("read {}", file.display()), next)?;
            String::from_utf8(bytes).map_err(|_| {
                let message = format!("{} is not UTF-8 text.", file.display());
                Failure::usage(message, "The workspace takes only text this way.")
            })?
        }
        None => match context.read_stdin("the content")? {
            text if text.is_empty() && !args.allow_empty => {
                let path = one_line(&args.to.path, 200);
                return Err(Failure::usage(
                    format!("There is nothing on stdin, so {path} was not changed."),
                    format!(
                        "To empty the file: `gsv workspace put {path} --allow-empty`; to delete it: `gsv workspace rm {path}`."
                    ),
                ));
            }
            text => text,
        },
    };
    let params = WorkspaceWriteParams {
        path: args.to.path,
        content: text,
        agent_id: args.to.of.agent,
        if_match: args.if_match,
    };
    write(context, params).await
}

async fn write(context: &Context, params: WorkspaceWriteParams) -> Outcome {
    let written = context.change::<WorkspaceWrite>(params, |result| {
        format!("{} written, {}", one_line(&result.path, 200), bytes(result.size))
    });
    written.await
}

/// The editor may be open for hours, so the file is read and written on separate connections.
async fn edit(context: &Context, WorkspaceFile { path, of }: WorkspaceFile) -> Outcome {
    let client = context.connect().await?;
    let before = read_or_absent(&client, &path, of.agent.as_ref()).await?;
    client.close().await;
    let (old, if_match) = before.map_or((String::new(), Some(ABSENT.to_owned())), |file| {
        (file.content, file.etag)
    });
    let next = "Check that the folder for temporary files is writable (TMPDIR).";
    let (dir, file) = draft(&path, &old).or_fail("make a temporary file", next)?;
    let agent = of
        .agent
        .as_ref()
        .map_or_else(String::new, |agent| format!(" --agent {}", agent.0));
    let otherwise = format!(
        "From a file: `gsv workspace put{agent} {} FILE`.",
        shell(Path::new(&path))
    );
    editor::open(&file, &otherwise)?;
    let bytes = fs::read(&file).or_fail("read your text", "Check that the editor wrote the file.")?;
    let saved = match String::from_utf8(bytes) {
        Err(_) => Err(Failure::usage("Your text is not UTF-8.", "")),
        Ok(text) if text == old => {
            context.out.aside("nothing changed");
            Ok(())
        }
        Ok(text) => {
            let params = WorkspaceWriteParams {
                path,
                content: text,
                agent_id: of.agent,
                if_match,
            };
            write(context, params).await
        }
    };
    // The work is kept if it could not be saved.
    saved.map_err(|failure| {
        let _ = dir.keep();
        let place = format!("{} Your text is in {}.", failure.next, shell(&file));
        Failure {
            next: place.trim_start().to_owned(),
            ..failure
        }
    })
}

/// A copy for the editor in a private folder, removed with it. Its name tells the editor the kind of file.
fn draft(path: &str, content: &str) -> io::Result<(TempDir, PathBuf)> {
    let private = Permissions::from_mode(0o700);
    let dir = tempfile::Builder::new()
        .prefix("gsv-edit-")
        .permissions(private)
        .tempdir()?;
    let name = path.rsplit('/').next().unwrap_or_default();
    let name: String = name
        .chars()
        .filter(|c| c.is_alphanumeric() || "._-".contains(*c))
        .collect();
    let name = if name.trim_matches('.').is_empty() {
        "file"
    } else {
        &name
    };
    let file = dir.path().join(name);
    fs::write(&file, content)?;
    Ok((dir, file))
}
