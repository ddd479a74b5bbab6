//! The requests that install a skill: one frame for a small skill of texts, else the bytes of all files in chunks, and then the
//! installation, which says where each file is in those bytes.

use std::time::Duration;

use data_encoding::BASE64;
use gsv_protocol::Method;
use gsv_protocol::limits;
use gsv_protocol::methods::{SkillsInstall, SkillsUpload};
use gsv_protocol::types::{SkillFile, SkillUploadedFile, SkillsInstallParams, SkillsInstallResult, SkillsUploadParams};

use crate::client::Client;
use crate::embedded::bootstrap::sha256_hex;
use crate::exit::{Failure, Outcome};
use crate::skill_folder::LocalFile;
use crate::text_files::{ENVELOPE_BYTES, json_bytes};

/// The gateway writes up to 256 files into its bucket before it answers.
pub const PATIENCE: Duration = Duration::from_secs(180);
/// The JSON around a file's path and content.
const FILE_BYTES: u64 = 32;

pub struct Requests {
    pub uploads: Vec<SkillsUploadParams>,
    pub install: SkillsInstallParams,
}

impl Requests {
    /// `params` without files.
    pub fn new(mut params: SkillsInstallParams, files: Vec<LocalFile>) -> Self {
        match inline(&files) {
            Some(texts) => {
                params.files = texts;
                Self {
                    uploads: Vec::new(),
                    install: params,
                }
            }
            None => uploaded(params, files),
        }
    }

    /// Refuses a gateway of an earlier version, which takes only what fits one frame.
    pub fn check(&self, client: &Client) -> Outcome {
        let serves = |method: &str| {
            let hello = client.hello();
            hello.is_none_or(|hello| hello.features.methods.iter().any(|served| served == method))
        };
        if self.uploads.is_empty() || serves(SkillsUpload::NAME) {
            return Ok(());
        }
        let message = "This gateway only takes skills that are text and smaller than 1 MiB.";
        Err(Failure {
            next: "Update the gateway, then install the skill again.".to_owned(),
            ..Failure::from_reason("skill.too_large", message, false)
        })
    }

    /// Sends everything on one connection.
    pub async fn send(self, client: &Client) -> Outcome<SkillsInstallResult> {
        self.check(client)?;
        for chunk in self.uploads {
            client.call::<SkillsUpload>(chunk).await?;
        }
        client.call_within::<SkillsInstall>(self.install, PATIENCE).await
    }
}

/// The files as texts of one frame, if they fit.
fn inline(files: &[LocalFile]) -> Option<Vec<SkillFile>> {
    let mut sent = ENVELOPE_BYTES;
    let mut texts = Vec::new();
    for file in files {
        let content = file.text()?;
        sent += json_bytes(content) + json_bytes(&file.path) + FILE_BYTES;
        if sent > limits::FRAME_BYTES {
            return None;
        }
        texts.push(SkillFile {
            path: file.path.clone(),
            content: content.to_owned(),
        });
    }
    Some(texts)
}

fn uploaded(mut params: SkillsInstallParams, files: Vec<LocalFile>) -> Requests {
    let upload_id = uuid::Uuid::new_v4().to_string();
    let mut stream = Vec::new();
    let mut places = Vec::new();
    for file in files {
        places.push(SkillUploadedFile {
            path: file.path,
            offset: stream.len() as u64,
            size_bytes: file.bytes.len() as u64,
            sha256: sha256_hex(&file.bytes),
        });
        stream.extend(file.bytes);
    }
    let chunk_bytes = usize::try_from(limits::SKILL_CHUNK_BYTES).unwrap_or(usize::MAX);
    let uploads = stream
        .chunks(chunk_bytes)
        .zip(0_u8..)
        .map(|(bytes, index)| SkillsUploadParams {
            upload_id: upload_id.clone(),
            index,
            content: BASE64.encode(bytes),
        });
    params.uploaded = Some(places);
    Requests {
        uploads: uploads.collect(),
        install: SkillsInstallParams {
            upload_id: Some(upload_id),
            ..params
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params() -> SkillsInstallParams {
        SkillsInstallParams {
            agent_id: None,
            name: "x".to_owned(),
            scope: None,
            files: Vec::new(),
            replace: None,
            upload_id: None,
            uploaded: None,
        }
    }

    #[test]
    fn f52_a_small_skill_of_texts_is_one_request() {
        let requests = Requests::new(params(), vec![LocalFile::new("SKILL.md", b"text".to_vec())]);
        assert!(requests.uploads.is_empty() && requests.install.uploaded.is_none());
        assert_eq!(requests.install.files[0].content, "text");
    }

    #[test]
    fn f52_large_or_binary_skills_are_chunks_and_places() {
        for (bytes, chunks) in [(vec![0_u8, 1], 1), (vec![b'x'; 1_200_000], 3)] {
            let files = vec![
                LocalFile::new("SKILL.md", b"text".to_vec()),
                LocalFile::new("a", bytes.clone()),
            ];
            let requests = Requests::new(params(), files);
            assert!(requests.install.files.is_empty());
            assert_eq!(requests.uploads.len(), chunks);
            let stream: Vec<u8> = requests
                .uploads
                .iter()
                .flat_map(|chunk| BASE64.decode(chunk.content.as_bytes()).unwrap())
                .collect();
            let place = &requests.install.uploaded.unwrap()[1];
            assert_eq!((place.offset, place.size_bytes), (4, bytes.len() as u64));
            assert_eq!(stream[4..], bytes[..]);
            assert_eq!(place.sha256, sha256_hex(&bytes));
            assert!(
                requests
                    .uploads
                    .iter()
                    .all(|chunk| Some(&chunk.upload_id) == requests.install.upload_id.as_ref())
            );
            let frame = serde_json::to_string(&requests.uploads[0]).unwrap();
            assert!((frame.len() as u64) < limits::FRAME_BYTES);
        }
    }
}
