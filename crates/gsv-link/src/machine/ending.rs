//! What follows when dialling fails, the gateway refuses the handshake, or a link breaks: wait and dial again, or stop.

use gsv_protocol::types::ErrorShape;

use super::backoff::backoff;
use super::interface::{Conn, Millis, Output};
use super::refusal::{self, Verdict};
use super::{CLOSE_NORMAL, Machine, Phase};
use crate::error::LinkError;

impl Machine {
    pub(super) fn closed(&mut self, now: Millis, jitter: f64, code: Option<u16>, reason: String) {
        let text = refusal::describe_close(code, &reason);
        match &self.phase {
            Phase::Ready(_) if code == Some(CLOSE_NORMAL) && refusal::says_replaced(&reason) => {
                self.stop(LinkError::Replaced { reason });
            }
            Phase::Ready(_) => self.lost(now, jitter, text),
            _ => match refusal::of_close_code(code, &reason) {
                Some(error) => self.refused(now, jitter, error),
                None => self.unreachable(now, jitter, text),
            },
        }
    }

    /// A working link broke. The next wait is short, however short the link was: a node must be back within the grace, or its
    /// calls get an unknown outcome (G3), so frequent breaks must not add up to a long wait.
    pub(super) fn lost(&mut self, now: Millis, jitter: f64, reason: String) {
        self.failures = 0;
        if self.config.reconnect {
            self.calls.link_broke(&mut self.out);
            self.wait(now, jitter, reason);
        } else {
            self.stop(LinkError::Closed { reason });
        }
    }

    /// No link came up.
    pub(super) fn unreachable(&mut self, now: Millis, jitter: f64, cause: String) {
        if self.config.reconnect {
            self.wait(now, jitter, cause);
        } else {
            self.stop(LinkError::Unreachable {
                url: self.config.url.clone(),
                cause,
            });
        }
    }

    pub(super) fn refused(&mut self, now: Millis, jitter: f64, error: ErrorShape) {
        let verdict = match refusal::verdict(&error) {
            // Another server answers at a right address for now, such as the login page of a network.
            _ if self.was_ready && refusal::is_of_address(&error) => Verdict::Temporary,
            verdict => verdict,
        };
        let error = LinkError::Refused { error };
        match verdict {
            Verdict::Temporary if self.config.reconnect => self.wait(now, jitter, error.to_string()),
            Verdict::Repairable if self.config.reconnect && self.config.waits_for_repair => {
                self.wait_for(now, self.config.refused_retry_ms, error.to_string());
            }
            _ => self.stop(error),
        }
    }

    fn wait(&mut self, now: Millis, jitter: f64, reason: String) {
        let delay = backoff(
            self.config.backoff_min_ms,
            self.config.backoff_max_ms,
            self.failures,
            jitter,
        );
        self.wait_for(now, delay, reason);
    }

    fn wait_for(&mut self, now: Millis, delay: Millis, reason: String) {
        self.failures = self.failures.saturating_add(1);
        self.phase = Phase::Waiting {
            until: now.saturating_add(delay),
        };
        self.out.push_back(Output::Down {
            reason,
            retry_in_ms: Some(delay),
        });
    }

    pub(super) fn close(&mut self, conn: Conn, code: u16, reason: &str) {
        self.out.push_back(Output::Close {
            conn,
            code,
            reason: reason.into(),
        });
    }

    fn stop(&mut self, error: LinkError) {
        self.calls.fail_all(&error, &mut self.out);
        self.phase = Phase::Stopped { why: error.clone() };
        self.out.push_back(Output::Down {
            reason: error.to_string(),
            retry_in_ms: None,
        });
        self.out.push_back(Output::Stopped { error: Some(error) });
    }

    pub(super) fn shutdown(&mut self, reason: String) {
        if self.is_stopped() {
            return;
        }
        if let Some(conn) = self.current() {
            self.close(conn, CLOSE_NORMAL, &reason);
        }
        let why = LinkError::Closed { reason };
        self.calls.fail_all(&why, &mut self.out);
        self.phase = Phase::Stopped { why };
        self.out.push_back(Output::Stopped { error: None });
    }
}
