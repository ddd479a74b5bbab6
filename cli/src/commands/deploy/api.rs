//! Cloudflare's API: a JSON request, and what its refusal means. Retries only what reads: a change may have been made although no answer
//! came, and the next run looks.

use std::env;
use std::fmt::Write as _;
use std::time::Duration;

use gsv_link::Target;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::sleep;

use super::http::exchange;
use crate::exit::{Exit, Failure, Outcome};

pub const BASE_VARIABLE: &str = "CLOUDFLARE_API_BASE_URL";
const BASE: &str = "https://api.cloudflare.com/client/v4";
const WITHIN: Duration = Duration::from_secs(60);
/// For a file: 8 MB take a minute on a slow line.
const FILE_WITHIN: Duration = Duration::from_secs(600);
/// Before the second and the third attempt to read.
const PAUSES: [Duration; 2] = [Duration::from_millis(300), Duration::from_millis(1500)];

/// What Cloudflare is told to know who asks. It has no `Debug`, so it cannot get into a log.
pub enum Login {
    Bearer(String),
    Key { key: String, email: String },
}

pub struct Api {
    target: Target,
    login: Login,
}

/// What goes with a request.
enum Body<'a> {
    None,
    Json(&'a Value),
    File(Vec<u8>),
}

/// The useful part of an answer.
#[derive(Debug, Default, Deserialize)]
pub struct Answer {
    #[serde(default)]
    pub result: Value,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    Refused { status: u16, code: u64, message: String },
    Unreachable(String),
}

#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    errors: Vec<Cause>,
}

#[derive(Deserialize)]
struct Cause {
    #[serde(default)]
    code: u64,
    #[serde(default)]
    message: String,
}

impl Trouble {
    /// What was asked for does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }

    /// The same request may succeed in a moment.
    fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Refused { status, .. } => *status == 429 || *status >= 500,
        }
    }

    /// Cloudflare does not accept the token, or not for this.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Refused { status: 401 | 403, .. })
    }

    /// `next` says what to do when the request is the cause.
    pub fn failure(&self, doing: &str, next: &str) -> Failure {
        match self {
            _ if self.is_passing() => Failure::later(
                format!("Cloudflare did not {doing}: {self}."),
                "Run the command again in a moment: it continues where it stopped.",
            ),
            Self::Refused { status: 401, .. } => Failure::new(
                Exit::Auth,
                format!("Cloudflare did not {doing}: {self}."),
                "The token is wrong or has expired: set CLOUDFLARE_API_TOKEN to another one, or unset it and run `wrangler login`.",
            ),
            _ if self.is_denied() => Failure::new(
                Exit::Auth,
                format!("Cloudflare did not {doing}: {self}."),
                "Check the token and its permissions with `gsv deploy check`.",
            ),
            _ => Failure::failed(format!("Cloudflare did not {doing}: {self}."), next),
        }
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused { status, code, message } => {
                let message = message.trim_end_matches('.');
                write!(f, "{message} (HTTP {status}, code {code})")
            }
            Self::Unreachable(cause) => f.write_str(cause),
        }
    }
}

impl Api {
    pub fn new(login: Login) -> Outcome<Self> {
        let base = env::var(BASE_VARIABLE).ok().filter(|base| !base.is_empty());
        let base = base.as_deref().unwrap_or(BASE);
        let wrong = |why: &str| Failure::usage(format!("{BASE_VARIABLE} cannot be used: {why}."), "Unset it.");
        let target = Target::parse(base).map_err(|error| wrong(&error.to_string()))?;
        if !target.tls && !target.is_loopback() {
            return Err(wrong("it is not encrypted"));
        }
        Ok(Self { target, login })
    }

    pub async fn get(&self, path: &str) -> Result<Answer, Trouble> {
        let mut answer = self.once(Method::GET, path, Body::None).await;
        for pause in PAUSES {
            match answer {
                Err(trouble) if trouble.is_passing() => sleep(pause).await,
                answer => return answer,
            }
            answer = self.once(Method::GET, path, Body::None).await;
        }
        answer
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Answer, Trouble> {
        self.once(Method::POST, path, Body::Json(body)).await
    }

    pub async fn put_file(&self, path: &str, content: Vec<u8>) -> Result<(), Trouble> {
        self.once(Method::PUT, path, Body::File(content)).await.map(drop)
    }

    /// What is gone already counts as deleted.
    pub async fn delete(&self, path: &str) -> Result<(), Trouble> {
        match self.once(Method::DELETE, path, Body::None).await {
            Err(trouble) if !trouble.is_missing() => Err(trouble),
            _ => Ok(()),
        }
    }

    async fn once(&self, method: Method, path: &str, body: Body<'_>) -> Result<Answer, Trouble> {
        let broken = |error: String| Trouble::Unreachable(error);
        let base = self.target.uri.path().trim_end_matches('/');
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{base}{path}"))
            .header(HOST, self.target.authority())
            .header(USER_AGENT, concat!("gsv/", env!("CARGO_PKG_VERSION")));
        for (name, value) in self.login.headers() {
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| broken("the token has characters that no header can carry".to_owned()))?;
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        let (kind, content, within) = match body {
            Body::None => (None, Bytes::new(), WITHIN),
            Body::Json(value) => (Some("application/json"), Bytes::from(value.to_string()), WITHIN),
            Body::File(content) => (Some("application/octet-stream"), Bytes::from(content), FILE_WITHIN),
        };
        if let Some(kind) = kind {
            request = request.header(CONTENT_TYPE, kind);
        }
        let request = request
            .body(Full::new(content))
            .map_err(|error| broken(error.to_string()))?;
        let (status, body) = exchange(&self.target, request, within).await.map_err(broken)?;
        if status.is_success() {
            // Some changes have an answer without a body.
            return Ok(serde_json::from_slice(&body).unwrap_or_default());
        }
        let refusal = serde_json::from_slice::<Refusal>(&body).ok();
        let cause = refusal.and_then(|refusal| refusal.errors.into_iter().next());
        let (code, message) = cause.map_or((0, "no reason given".to_owned()), |cause| (cause.code, cause.message));
        Err(Trouble::Refused {
            status: status.as_u16(),
            code,
            message,
        })
    }
}

impl Login {
    fn headers(&self) -> Vec<(HeaderName, String)> {
        match self {
            Self::Bearer(token) => vec![(AUTHORIZATION, format!("Bearer {token}"))],
            Self::Key { key, email } => vec![
                (HeaderName::from_static("x-auth-key"), key.clone()),
                (HeaderName::from_static("x-auth-email"), email.clone()),
            ],
        }
    }
}

/// A part of a path or query. Slashes are encoded, too.
pub fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn de2_a_refusal_says_what_to_do_next() {
        let refused = |status| Trouble::Refused {
            status,
            code: 10000,
            message: "Authentication error".to_owned(),
        };
        let exits = [401, 403, 404, 409, 429, 500].map(|status| refused(status).failure("list queues", "Look.").exit);
        assert_eq!(
            exits,
            [
                Exit::Auth,
                Exit::Auth,
                Exit::Failed,
                Exit::Failed,
                Exit::TryLater,
                Exit::TryLater
            ]
        );
        let failure = Trouble::Unreachable("the connection broke".to_owned()).failure("list queues", "Look.");
        assert_eq!(failure.exit, Exit::TryLater);
        assert!(failure.next.contains("continues"), "{failure:?}");
    }

    #[test]
    fn names_of_objects_are_one_part_of_a_path() {
        assert_eq!(encoded("agents/main/SOUL.md"), "agents%2Fmain%2FSOUL.md");
        assert_eq!(encoded("é?#"), "%C3%A9%3F%23");
    }
}
