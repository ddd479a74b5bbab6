//! Events that a turn has missed: when they are asked for, and what is done with the answer (SPEC.md C5). Pure.

use std::time::Duration;

use gsv_link::LinkError;
use gsv_protocol::errors;
use gsv_protocol::types::{RunState, SessionSubscribeResult};

use super::{Effect, Goes, Turn};
use crate::chat::followed::News;
use crate::chat::outcomes;
use crate::client::link_failure;
use crate::exit::Outcome;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CatchUp {
    Done,
    /// As soon as the connection and the position allow it.
    Due,
    Asked,
    /// The answer on its way leaves a gap, so it is asked again.
    AskedAndDue,
}

impl CatchUp {
    /// To be asked once more.
    pub(super) const fn again(self) -> Self {
        match self {
            Self::Done | Self::Due => Self::Due,
            Self::Asked | Self::AskedAndDue => Self::AskedAndDue,
        }
    }
}

impl Turn<'_> {
    /// Asks for missed events, once the position to ask from is known.
    pub(super) fn ask_for_missed(&mut self) {
        let knows_position = self.followed.last_seq.is_some() || self.accepted;
        if self.catch_up != CatchUp::Due || !self.followed.connected || !knows_position {
            return;
        }
        self.catch_up = CatchUp::Asked;
        // Several events may share one position, and the connection may have broken between them.
        let from = self.followed.last_seq.map(|seq| seq.saturating_sub(1));
        self.asked_from = from.or(self.gap.then_some(0));
        let params = self.followed.subscription(self.asked_from);
        self.effects.push(Effect::Subscribe(params));
    }

    pub(super) fn subscribed(
        &mut self,
        result: Result<SessionSubscribeResult, LinkError>,
        now: Duration,
    ) -> Outcome<Goes> {
        self.catch_up = match self.catch_up {
            CatchUp::Asked => CatchUp::Done,
            CatchUp::AskedAndDue => CatchUp::Due,
            // The connection has changed since the question.
            CatchUp::Done | CatchUp::Due => return Ok(Goes::On),
        };
        let result = match result {
            Ok(result) => result,
            Err(error) if error.reason() == errors::SESSION_SNAPSHOT_REQUIRED.reason => {
                return Err(outcomes::unreplayable(&self.followed.session));
            }
            // The connection broke again: the next one asks again.
            Err(LinkError::Closed { .. } | LinkError::OutcomeUnknown { .. }) => {
                self.catch_up = CatchUp::Due;
                return Ok(Goes::On);
            }
            Err(error) if self.gap => return Err(link_failure(&error)),
            // No event was missed; only the position in the log stays unknown.
            Err(_) => return self.unstash(now),
        };
        for event in result.events {
            let goes = match News::replayed(event) {
                Some(News::Chat(event)) => self.chat(*event, now)?,
                Some(News::Session(event)) => self.session_event(event),
                _ => Goes::On,
            };
            if goes == Goes::Done {
                return Ok(Goes::Done);
            }
        }
        self.followed.note_seq(Some(result.seq));
        let is_ours = result.run_id.as_ref() == Some(&self.run);
        if is_ours {
            self.beside.behind = false;
        }
        if let (true, Some(text)) = (is_ours, result.text.filter(|text| !text.is_empty())) {
            let number = |value: Option<u64>| u32::try_from(value.unwrap_or(0)).unwrap_or(u32::MAX);
            let (step, attempt) = (number(result.step), number(result.attempt));
            let shows = self.assembler.snapshot(step, attempt, &text);
            self.show(shows, now)?;
        }
        if self.unstash(now)? == Goes::Done {
            return Ok(Goes::Done);
        }
        // The log has no end of our run, and yet no run is under way.
        let is_idle = result.state == Some(RunState::Idle) && result.run_id.is_none();
        if self.accepted && is_idle && self.asked_from.is_some() {
            return Err(outcomes::unreplayable(&self.followed.session));
        }
        Ok(Goes::On)
    }

    pub(super) fn unstash(&mut self, now: Duration) -> Outcome<Goes> {
        for event in std::mem::take(&mut self.stash) {
            if self.chat(event, now)? == Goes::Done {
                return Ok(Goes::Done);
            }
        }
        Ok(Goes::On)
    }
}
