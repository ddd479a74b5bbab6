//! What one copy is asked to do, and its ids: the same command has the same ids, so that it continues what was interrupted. PURE.

use data_encoding::HEXLOWER;
use gsv_node::Part;
use gsv_protocol::types::{AgentId, TransferCreateParams, TransferKey};
use ring::digest::{SHA256, digest};

/// How a program writes its own end for the gateway.
pub const OWN: &str = "@:";
/// Earlier runs of the same command in one day. More are no runs of a person.
const EARLIER: u32 = 1 << 20;

/// An end of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A file of this machine, by its absolute path.
    Local(String),
    /// `NODE:PATH` or `gsv:PATH`.
    Remote(String),
}

impl Endpoint {
    fn wire(&self) -> String {
        match self {
            Self::Local(path) => format!("{OWN}{path}"),
            Self::Remote(text) => text.clone(),
        }
    }

    /// For people.
    pub fn shown(&self) -> &str {
        match self {
            Self::Local(text) | Self::Remote(text) => text,
        }
    }
}

/// One file to copy.
#[derive(Debug, Clone)]
pub struct CopyRequest {
    pub source: Endpoint,
    pub destination: Endpoint,
    pub agent: Option<AgentId>,
    pub force: bool,
    /// Another text after each change of a source on this machine or in the workspace. Empty: not known, as for a file that is built in.
    pub version: String,
}

impl CopyRequest {
    /// What this program does in it, if it is one of the ends.
    pub fn part(&self) -> Option<Part> {
        match (&self.source, &self.destination) {
            (Endpoint::Local(path), _) => Some(Part::Sends { path: path.clone() }),
            (_, Endpoint::Local(path)) => Some(Part::Receives {
                path: path.clone(),
                replaces: self.force,
            }),
            _ => None,
        }
    }

    /// `nth`: after as many transfers of the same command that have ended.
    pub fn id(&self, nth: u32) -> TransferKey {
        let agent = self.agent.as_ref().map_or("", AgentId::as_str);
        let text = [
            "gsv cp",
            agent,
            &self.source.wire(),
            &self.destination.wire(),
            &self.version,
            &format!("{} {nth}", self.force),
        ]
        .join("\0");
        HEXLOWER.encode(&digest(&SHA256, text.as_bytes()).as_ref()[..16]).into()
    }

    /// Whether transfers with its ids have copied the content that the source has now.
    pub fn names_content(&self) -> bool {
        !self.version.is_empty()
    }

    pub fn params(&self, id: TransferKey) -> TransferCreateParams {
        TransferCreateParams {
            id,
            source: self.source.wire(),
            destination: self.destination.wire(),
            agent_id: self.agent.clone(),
            force: self.force.then_some(true),
        }
    }
}

/// Finds the first number that has not ended, when all before it have: one by one at first, because most commands ran few times, then in
/// ever larger steps, then by halves.
#[derive(Debug, Default)]
pub struct Search {
    /// All before it have ended.
    from: u32,
    /// It has not ended, as far as is known.
    end: Option<u32>,
}

impl Search {
    const ONE_BY_ONE: u32 = 8;

    pub fn next(&self) -> Option<u32> {
        match self.end {
            Some(end) if end == self.from => None,
            Some(end) => Some(self.from + (end - self.from) / 2),
            None if self.from < Self::ONE_BY_ONE => Some(self.from),
            None if self.from >= EARLIER => None,
            None => Some(self.from * 2),
        }
    }

    pub fn seen(&mut self, nth: u32, ended: bool) {
        if ended {
            self.from = nth + 1;
        } else {
            self.end = Some(nth);
        }
    }

    pub fn found(&self) -> u32 {
        self.from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tf13_the_transfer_after_the_ended_ones_is_found_with_few_questions() {
        for ended in (0..200).chain([1000, 65_535, 65_536, 100_000]) {
            let (mut search, mut asked) = (Search::default(), 0);
            while let Some(nth) = search.next() {
                asked += 1;
                search.seen(nth, nth < ended);
            }
            assert_eq!(search.found(), ended);
            assert!(
                asked <= 9 || asked <= 9 + 2 * ended.ilog2(),
                "{asked} questions for {ended}"
            );
        }
    }
}
