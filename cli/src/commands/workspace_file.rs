//! Reads a file of the workspace that may be larger than one answer. One that changes between two parts is read again.

use gsv_protocol::errors;
use gsv_protocol::methods::WorkspaceRead;
use gsv_protocol::types::{AgentId, WorkspaceReadParams, WorkspaceReadResult};

use crate::clean::one_line;
use crate::client::Client;
use crate::exit::{Failure, Outcome};

const TRIES: usize = 3;

pub async fn read_whole(
    client: &Client,
    path: &str,
    agent_id: Option<&AgentId>,
    version: Option<&str>,
) -> Outcome<WorkspaceReadResult> {
    let ask = async |offset| {
        let params = WorkspaceReadParams {
            path: path.to_owned(),
            agent_id: agent_id.cloned(),
            version: version.map(str::to_owned),
            offset: Some(offset),
        };
        client.call::<WorkspaceRead>(params).await
    };
    for _ in 0..TRIES {
        let mut whole = ask(0).await?;
        let mut same = true;
        while let Some(offset) = whole.next_offset.take().filter(|_| same) {
            match ask(offset).await {
                Ok(part) => {
                    let forward = part.next_offset.is_none_or(|next| next > offset);
                    same = part.etag == whole.etag && forward;
                    whole.content.push_str(&part.content);
                    whole.next_offset = part.next_offset;
                }
                // The file is now shorter than this offset.
                Err(failure) if failure.is(&errors::PROTOCOL_INVALID_PARAMS) => same = false,
                Err(failure) => return Err(failure),
            }
        }
        if same {
            return Ok(whole);
        }
    }
    Err(Failure::later(
        format!("{} keeps changing while it is read.", one_line(path, 200)),
        "Try again in a moment.",
    ))
}

pub async fn read_or_absent(
    client: &Client,
    path: &str,
    agent_id: Option<&AgentId>,
) -> Outcome<Option<WorkspaceReadResult>> {
    match read_whole(client, path, agent_id, None).await {
        Err(failure) if failure.is(&errors::PATH_NOT_FOUND) => Ok(None),
        read => read.map(Some),
    }
}

/// The gateway's list of a folder is not complete.
pub fn too_many_files(folder: &str) -> Failure {
    Failure::failed(
        format!(
            "The folder gsv:{} has more files than the gateway lists at once. Nothing was changed.",
            one_line(folder, 200)
        ),
        "Move some of its files into folders below it, then run the same command again.",
    )
}
