//! One request to the gateway's HTTP side, on a connection of its own. Never retries.

use std::error::Error;
use std::time::Duration;

use hyper::Request;
use hyper::body::{Body, Bytes};
use serde::de::DeserializeOwned;

use crate::error::LinkError;
use crate::net::dial::open_stream;
use crate::net::http::{self, Broken};
use crate::net::refusal::refusal;
use crate::net::target::Target;

/// The longest answer that is read.
const MAX_ANSWER: usize = 64 * 1024;

/// What a request is, for its errors.
pub(crate) struct Kind {
    /// Such as `POST /media`.
    pub(crate) method: &'static str,
    /// Such as `upload`.
    pub(crate) noun: &'static str,
    /// Whether the gateway may have acted although no answer came.
    pub(crate) acts: bool,
}

impl Kind {
    pub(crate) fn bad_request(&self, error: &dyn Error) -> LinkError {
        LinkError::BadRequest {
            method: self.method.into(),
            why: error.to_string(),
        }
    }

    fn bad_answer(&self, why: String) -> LinkError {
        LinkError::BadAnswer {
            method: self.method.into(),
            why,
        }
    }

    /// Sends a request and reads the answer, all within this time.
    ///
    /// # Errors
    /// [`LinkError::Remote`] with the gateway's reason when it refuses the request; others when it can't be reached or understood.
    pub(crate) async fn exchange<B, Answer>(
        &self,
        target: &Target,
        request: Request<B>,
        within: Duration,
    ) -> Result<Answer, LinkError>
    where
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
        Answer: DeserializeOwned,
    {
        tokio::time::timeout(within, self.ask(target, request))
            .await
            .unwrap_or_else(|_| {
                Err(LinkError::Timeout {
                    method: self.method.into(),
                    after_ms: u64::try_from(within.as_millis()).unwrap_or(u64::MAX),
                    uncertain: self.acts,
                })
            })
    }

    async fn ask<B, Answer>(&self, target: &Target, request: Request<B>) -> Result<Answer, LinkError>
    where
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
        Answer: DeserializeOwned,
    {
        let unreachable = |cause: String| LinkError::Unreachable {
            url: target.shown.clone(),
            cause,
        };
        let stream = open_stream(target).await.map_err(|failure| match failure.refusal {
            Some(error) => LinkError::Refused { error: *error },
            None => unreachable(failure.cause),
        })?;
        let answer = http::send(stream, request).await.map_err(|broken| match broken {
            Broken::Opening(error) => unreachable(error.to_string()),
            Broken::Sent(error) => LinkError::Closed {
                reason: format!("the {} broke off ({error})", self.noun),
            },
        })?;
        let status = answer.status();
        let body = answer.whole(MAX_ANSWER).await.map_err(|why| self.bad_answer(why))?;
        self.read(status, &body)
    }

    fn read<Answer: DeserializeOwned>(&self, status: hyper::StatusCode, body: &Bytes) -> Result<Answer, LinkError> {
        if status.is_success() {
            return serde_json::from_slice(body).map_err(|error| self.bad_answer(error.to_string()));
        }
        match refusal(status, body) {
            Some(error) => Err(LinkError::Remote(error)),
            None => Err(self.bad_answer(format!("HTTP {}", status.as_u16()))),
        }
    }
}
