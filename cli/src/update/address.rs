//! Where releases are: a folder of this machine, or a server. PURE. Plain HTTP only on this machine: what is on the way of other addresses could
//! hold an update back, although it could not change one.

use std::path::{Path, PathBuf};

use hyper::Uri;

use crate::exit::{Failure, Outcome};

/// The address of those who released this program.
const BUILT_IN: Option<&str> = option_env!("GSV_RELEASE_URL");
const MAX_BYTES: usize = 2_048;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Folder(PathBuf),
    Server(Uri),
}

/// The given one, that of the local config, or the built-in one, as text.
pub fn choose(given: Option<&str>, configured: Option<&str>) -> Outcome<String> {
    let found = [given, configured, BUILT_IN]
        .into_iter()
        .flatten()
        .find(|text| !text.trim().is_empty());
    found.map(|text| text.trim().to_owned()).ok_or_else(|| {
        Failure::failed(
            "This program does not know where releases are: it was built without an address, because GSV has no public place for releases yet.",
            "Set the address or folder in which yours are: `gsv local-config set update.url ADDRESS`, or GSV_RELEASE_URL for one command.",
        )
    })
}

impl Address {
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let problem = "it is an absolute folder, or an address like https://HOST/PATH (http:// only for this machine), without a password, `?` and `#`";
        if text.len() > MAX_BYTES || text.contains(['?', '#', '@']) || text.chars().any(char::is_control) {
            return Err(problem);
        }
        if Path::new(text).is_absolute() {
            return Ok(Self::Folder(text.into()));
        }
        let uri: Uri = text.trim_end_matches('/').parse().map_err(|_| problem)?;
        if is_allowed(&uri) {
            Ok(Self::Server(uri))
        } else {
            Err(problem)
        }
    }

    /// The place of a file. Its name is plain (`manifest.rs`).
    pub fn file(&self, name: &str) -> Self {
        match self {
            Self::Folder(folder) => Self::Folder(folder.join(name)),
            Self::Server(uri) => {
                let text = format!("{}/{name}", uri.to_string().trim_end_matches('/'));
                Self::Server(text.parse().unwrap_or_else(|_| uri.clone()))
            }
        }
    }
}

/// Whether a request may go there: encrypted, or to this machine, and without a password.
pub fn is_allowed(uri: &Uri) -> bool {
    if uri
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'))
    {
        return false;
    }
    match (uri.scheme_str(), uri.host()) {
        (Some("https"), Some(host)) => !host.is_empty(),
        (Some("http"), Some(host)) => matches!(host, "localhost" | "127.0.0.1" | "[::1]"),
        _ => false,
    }
}

/// Where a server sends a request on to. Never from an encrypted address to another one.
pub fn redirected(from: &Uri, location: &str) -> Option<Uri> {
    let to: Uri = if location.starts_with('/') && !location.starts_with("//") {
        format!("{}://{}{location}", from.scheme_str()?, from.authority()?)
            .parse()
            .ok()?
    } else {
        location.parse().ok()?
    };
    let keeps = from.scheme_str() != Some("https") || to.scheme_str() == Some("https");
    (keeps && is_allowed(&to)).then_some(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up8_an_address_is_a_folder_or_encrypted_or_on_this_machine() {
        assert_eq!(Address::parse("/srv/gsv"), Ok(Address::Folder("/srv/gsv".into())));
        for good in ["https://example.org/gsv/", "http://127.0.0.1:80/x", "http://localhost"] {
            let file = Address::parse(good).unwrap().file("stable.json");
            let Address::Server(uri) = file else { panic!("{good}") };
            assert!(
                uri.path().ends_with("/stable.json") && !uri.path().contains("//"),
                "{uri}"
            );
        }
        for bad in [
            "",
            "releases",
            "http://example.org",
            "ftp://example.org",
            "https://me:secret@example.org",
            "https://example.org/?a",
            "https://",
        ] {
            assert!(Address::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn up8_a_redirect_stays_encrypted() {
        let from: Uri = "https://example.org/a/b".parse().unwrap();
        assert_eq!(redirected(&from, "/c").unwrap(), "https://example.org/c");
        assert_eq!(
            redirected(&from, "https://cdn.example.org/d?token=1").unwrap(),
            "https://cdn.example.org/d?token=1"
        );
        for bad in [
            "http://example.org/c",
            "http://127.0.0.1/c",
            "https://me:secret@example.org/c",
            "//example.org/c",
            "file:///etc/passwd",
            "c",
        ] {
            assert_eq!(redirected(&from, bad), None, "{bad}");
        }
        assert!(choose(None, None).is_err() == BUILT_IN.is_none());
    }
}
