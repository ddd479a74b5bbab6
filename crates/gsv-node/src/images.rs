//! Uploads the image of a result that is too large for a frame; the result then refers to the stored file. Does not change a
//! result that fits.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gsv_link::{AddressProvider, LinkError, Upload};
use gsv_protocol::errors;
use gsv_protocol::types::MediaUploaded;
use gsv_tools::{Block, ToolOutput};

use crate::fit::fits_a_frame;
use crate::outcome::{CallResult, Outcome};

/// Time for an image of 10 MiB over a slow line.
const WITHIN: Duration = Duration::from_secs(120);
/// Calls of clients. They belong to no conversation, so the gateway stores no files for them.
const OF_A_CLIENT: &str = "gw/";

/// The gateway's address and the token of uploads.
#[derive(Clone)]
pub struct Uploader {
    pub url: String,
    pub address: Option<AddressProvider>,
    pub token: Option<String>,
}

impl Uploader {
    async fn send(&self, call_id: &str, mime: &str, bytes: Vec<u8>) -> Result<MediaUploaded, LinkError> {
        let moved = self.address.as_ref().and_then(|present| present());
        let upload = Upload {
            url: moved.as_deref().unwrap_or(&self.url),
            token: self.token.as_deref(),
            query: &[("callId", call_id)],
            content_type: mime,
            size: bytes.len() as u64,
            source: Box::new(std::io::Cursor::new(bytes)),
            progress: Box::new(|_| {}),
            within: WITHIN,
        };
        upload.send().await
    }
}

/// Uploads the outcome's image if the outcome does not fit a frame. A failed upload is the call's error.
pub async fn upload_image(mut outcome: Outcome, call_id: &str, uploader: &Uploader) -> Outcome {
    if call_id.starts_with(OF_A_CLIENT) || fits_a_frame(&outcome) {
        return outcome;
    }
    let Some(block) = outcome.result.as_mut().and_then(first_image) else {
        return outcome;
    };
    let Block::Image { data, mime_type } = &mut *block else {
        return outcome;
    };
    // Taken out, so that the image is not in memory three times.
    let decoded = STANDARD.decode(std::mem::take(data));
    let mime_type = std::mem::take(mime_type);
    let Ok(bytes) = decoded else {
        return Outcome::error(&errors::TOOL_FAILED, "The tool gave an image that is not base64.");
    };
    match uploader.send(call_id, &mime_type, bytes).await {
        Ok(stored) => {
            *block = Block::StoredImage {
                r2_key: stored.r2_key,
                mime_type: stored.mime_type,
            };
            outcome
        }
        Err(error) => Outcome::error(
            &errors::TOOL_IO,
            format!(
                "The image could not be handed to the gateway: {error} Try again, or make a smaller copy and read that."
            ),
        ),
    }
}

fn first_image(result: &mut CallResult) -> Option<&mut Block> {
    let CallResult::Output(ToolOutput::Blocks(output)) = result else {
        return None;
    };
    output
        .content
        .iter_mut()
        .find(|block| matches!(block, Block::Image { .. }))
}

#[cfg(test)]
mod tests {
    use gsv_protocol::types::ToolOutcome;
    use gsv_tools::BlockOutput;
    use serde_json::json;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::scrub::Scrub;

    fn image(bytes: usize) -> Outcome {
        let data = STANDARD.encode(vec![7; bytes]);
        let text = Block::Text { text: "a.png".into() };
        let image = Block::Image {
            data,
            mime_type: "image/png".into(),
        };
        Outcome::ok(ToolOutput::Blocks(BlockOutput {
            path: Some("a.png".into()),
            content: vec![text, image],
        }))
    }
    /// A server that answers one request. Gives the request's first line and the size of its body.
    async fn gateway(answer: String) -> (Uploader, tokio::task::JoinHandle<(String, usize)>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}", listener.local_addr().unwrap());
        let asked = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut got = Vec::new();
            let (end, length) = loop {
                assert!(socket.read_buf(&mut got).await.unwrap() > 0);
                let Some(at) = got.windows(4).position(|four| four == b"\r\n\r\n") else {
                    continue;
                };
                let head = String::from_utf8_lossy(&got[..at]).to_ascii_lowercase();
                let length = head
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length: ").map(str::to_owned));
                break (at + 4, length.unwrap().parse::<usize>().unwrap());
            };
            while got.len() < end + length {
                assert!(socket.read_buf(&mut got).await.unwrap() > 0);
            }
            socket.write_all(answer.as_bytes()).await.unwrap();
            let line = String::from_utf8_lossy(&got)
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned();
            (line, got.len() - end)
        });
        let uploader = Uploader {
            url,
            address: None,
            token: None,
        };
        (uploader, asked)
    }
    fn answer(status: &str, body: &str) -> String {
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    }

    #[tokio::test]
    async fn p4_3_a_large_image_is_uploaded_and_the_result_refers_to_it() {
        let stored = r#"{"r2Key":"media/s/u.png","mimeType":"image/png","sizeBytes":900000,"sha256":"x"}"#;
        let (uploader, asked) = gateway(answer("200 OK", stored)).await;
        let outcome = upload_image(image(900_000), "ref/r1/1/0", &uploader).await;
        assert_eq!(outcome.kind, ToolOutcome::Ok);
        assert_eq!(
            asked.await.unwrap(),
            ("POST /media?callId=ref%2Fr1%2F1%2F0 HTTP/1.1".to_owned(), 900_000)
        );
        assert!(fits_a_frame(&outcome));
        assert_eq!(
            outcome.into_params("ref/r1/1/0", None, &Scrub::default()).result,
            Some(json!({"path": "a.png", "content": [
                {"type": "text", "text": "a.png"},
                {"type": "image", "r2Key": "media/s/u.png", "mimeType": "image/png"},
            ]}))
        );
    }

    #[tokio::test]
    async fn a_failed_upload_is_the_calls_error_with_a_code() {
        let (uploader, _asked) = gateway(answer(
            "404 Not Found",
            r#"{"reason":"media.not_found","detail":"There is no such call."}"#,
        ))
        .await;
        let outcome = upload_image(image(900_000), "ref/r1/1/0", &uploader).await;
        assert_eq!(
            (outcome.kind, outcome.reason),
            (ToolOutcome::Error, Some(&errors::TOOL_IO))
        );
        assert!(outcome.error.unwrap().contains("There is no such call."));
        assert!(outcome.result.is_none());
    }

    #[tokio::test]
    async fn small_results_texts_and_calls_of_clients_are_not_uploaded() {
        let nowhere = Uploader {
            url: "ws://127.0.0.1:9".into(),
            address: None,
            token: None,
        };
        let small = image(9_000);
        assert_eq!(upload_image(small.clone(), "ref/r1/1/0", &nowhere).await, small);
        let clients = image(900_000);
        assert_eq!(upload_image(clients.clone(), "gw/t/x", &nowhere).await, clients);
        let text = Outcome::ok(ToolOutput::Json(json!({"content": "x".repeat(2_000_000)})));
        assert_eq!(upload_image(text.clone(), "ref/r1/1/0", &nowhere).await, text);
    }
}
