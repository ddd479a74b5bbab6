//! The label of a deployed version: it tells which run of `gsv deploy up` made it, of which program. It is the version's message at
//! Cloudflare, so that any machine can read it. Pure.

use std::fmt;

/// What a version is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A complete version.
    Up,
    /// A gateway before its channels are there; the same run replaces it.
    Part,
    /// A stopped deployment, which keeps its data.
    Down,
}

/// Fits the 100 characters of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    pub kind: Kind,
    /// Orders by time.
    pub run: String,
    pub version: String,
    /// Digest of the migrations and classes.
    pub state: String,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Up, Self::Part, Self::Down];

    pub const fn word(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Part => "part",
            Self::Down => "down",
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, run, version, state) = (self.kind.word(), &self.run, &self.version, &self.state);
        write!(f, "gsv {kind} {run} {version} {state}")
    }
}

impl Label {
    /// `None`: the version was made by another program.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.strip_prefix("gsv ")?.split(' ');
        let word = words.next()?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.word() == word)?;
        let label = Self {
            kind,
            run: words.next()?.to_owned(),
            version: words.next()?.to_owned(),
            state: words.next()?.to_owned(),
        };
        words.next().is_none().then_some(label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn de4_a_label_is_read_as_it_was_written_and_no_other_message_is_one() {
        for kind in Kind::ALL {
            let label = Label {
                kind,
                run: ulid::Ulid::nil().to_string(),
                version: "0.1.0+eb59cf53".to_owned(),
                state: "974b0165".to_owned(),
            };
            let text = label.to_string();
            assert!(text.len() <= 100, "{text}");
            assert_eq!(Label::parse(&text), Some(label));
        }
        for text in [
            "",
            "Rollback",
            "gsv up",
            "gsv up a b",
            "gsv other a b c",
            "gsv up a b c d",
        ] {
            assert_eq!(Label::parse(text), None, "{text}");
        }
    }
}
