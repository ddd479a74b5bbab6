//! `POST /join`: exchanges the secret of an invitation for a token. Uses no token. Safe to repeat with the same nonce.

use std::time::Duration;

use gsv_protocol::types::{JoinRequest, JoinResult};
use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};

use crate::error::LinkError;
use crate::net::exchange::Kind;
use crate::net::target::Target;

const JOIN: Kind = Kind {
    method: "POST /join",
    noun: "request to join",
    acts: true,
};

pub struct Join<'a> {
    pub url: &'a str,
    pub request: &'a JoinRequest,
    pub within: Duration,
}

impl Join<'_> {
    /// # Errors
    /// [`LinkError::Remote`] with the gateway's reason when it refuses; [`LinkError::Refused`] when the server has another certificate;
    /// others when it can't be reached or understood.
    pub async fn send(self) -> Result<JoinResult, LinkError> {
        let target = Target::parse(self.url)?;
        let body = serde_json::to_vec(self.request).map_err(|error| JOIN.bad_request(&error))?;
        let request = Request::post(target.http_path("/join"))
            .header(HOST, target.authority())
            .header(USER_AGENT, concat!("gsv/", env!("CARGO_PKG_VERSION")))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| JOIN.bad_request(&error))?;
        JOIN.exchange(&target, request, self.within).await
    }
}
