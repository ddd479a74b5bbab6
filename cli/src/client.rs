//! Connects to the gateway with flags, environment and local config, and turns the link's errors into failures. Keeps the
//! token in memory only.

use std::time::Duration;

use gsv_link::{Events, Link, LinkError, LinkEvent, Mode, Options};
use gsv_protocol::types::ConnectResult;
use gsv_protocol::{HIDDEN, Method, errors};

use crate::args::Global;
use crate::config::{self, Config, Key};
use crate::embedded::{self, layout::Layout, login, state};
use crate::exit::{Exit, Failure, Outcome};
use crate::units::use_zone;

/// Begins the id that a command line gives its connection.
const COMMAND_LINE: &str = "cli-";
pub const DEFAULT_SESSION: &str = "agent:main:cli:dm:main";

/// The gateway's address and a token for it.
#[derive(Clone)]
pub struct Account {
    pub url: String,
    pub token: String,
    source: Source,
    /// The flag or the variable that the address comes from. None: it does not.
    address: Option<&'static str>,
}

/// Where a token comes from: what to do when the gateway rejects it depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// A flag or a variable of this name.
    Given(&'static str),
    /// The local config, or the logins beside it.
    Stored,
    /// The command knows, and handles the rejection itself.
    Command,
}

impl Account {
    /// For a command that handles the rejection of its token itself.
    pub fn of_command(url: &str, token: &str) -> Self {
        Self {
            url: url.to_owned(),
            token: token.to_owned(),
            source: Source::Command,
            address: None,
        }
    }

    /// Flags and environment first, then the login of this machine's own gateway, then the local config. Without an address: the gateway on this machine.
    pub fn find(global: &Global, config: &Config) -> Outcome<Self> {
        let url = find_url(global, config)?;
        // An address that is given may be that of this machine's gateway, while the local config is for another one.
        let own = || {
            let layout = given(global.url.as_deref()).and_then(|_| Layout::find().ok())?;
            login::own_token(&layout, config, &url)
        };
        let typed = given(global.token.as_deref()).map(str::to_owned);
        let source = match typed {
            Some(_) if global.has_typed_token() => Source::Given("--token"),
            Some(_) => Source::Given("GSV_TOKEN"),
            None => Source::Stored,
        };
        let token = typed.or_else(own).or_else(|| config.get(Key::Token).map(str::to_owned));
        let Some(token) = token else {
            return Err(no_token(&url, config));
        };
        Key::Token.check(&token)?;
        let address = given(global.url.as_deref()).map(|_| if global.has_typed_url() { "--url" } else { "GSV_URL" });
        Ok(Self {
            url,
            token,
            source,
            address,
        })
    }

    /// A client for requests and their answers, until the connection is lost.
    pub async fn connect(&self) -> Outcome<Client> {
        let (link, events) = self.open(false).await?;
        Ok(Client { link, _events: events })
    }

    /// A link that reconnects until it is closed.
    pub async fn connect_lasting(&self) -> Outcome<(Link, Events)> {
        self.open(true).await
    }

    /// Only this machine knows where a rejected token came from.
    fn with_next(&self, failure: Failure) -> Failure {
        if !failure.is(&errors::AUTH_REQUIRED) {
            return failure;
        }
        let config = || Config::load().unwrap_or_else(|_| Config::empty());
        let next = match self.source {
            Source::Given(name) => rejected_given(name, &config()),
            Source::Stored => rejected_stored(&self.url, &config(), Layout::find().ok().as_ref()),
            Source::Command => return failure,
        };
        Failure { next, ..failure }
    }

    /// The failure of a link that has not been connected yet.
    pub fn failure(&self, error: &LinkError) -> Failure {
        match error {
            // The error's address is without the certificate, which tells another machine's gateway from this one's.
            LinkError::Unreachable { url, cause } => self.unreachable(url, cause),
            _ => self.with_next(link_failure(error)),
        }
    }

    /// As `failure`, for a link that reconnects: it is not waited for, as long as it was never connected.
    pub fn never_connected(&self, event: &LinkEvent) -> Option<Failure> {
        match event {
            LinkEvent::Fatal(error) => Some(self.failure(error)),
            // Without another attempt, the last event has the reason.
            LinkEvent::Disconnected {
                reason,
                retry_in: Some(_),
            } => Some(self.unreachable(&without_login(&self.url), reason)),
            _ => None,
        }
    }

    /// `shown`: the address for people.
    fn unreachable(&self, shown: &str, cause: &str) -> Failure {
        let failure = unreachable(&self.url, shown, cause);
        match self.address {
            None => failure,
            Some(from) => Failure {
                next: unreachable_given(from),
                ..failure
            },
        }
    }

    async fn open(&self, reconnect: bool) -> Outcome<(Link, Events)> {
        // A unique id: two command lines at once must not replace each other (SPEC.md H4).
        let id = format!("{COMMAND_LINE}{:08x}{:08x}", std::process::id(), fastrand::u32(..));
        let mut options = Options::new(&self.url, Mode::Client, id);
        options.token = Some(self.token.clone());
        env!("CARGO_PKG_VERSION").clone_into(&mut options.version);
        options.reconnect = reconnect;
        let (link, events) = Link::connect(options).await.map_err(|error| self.failure(&error))?;
        if let Some(zone) = link.hello().and_then(|hello| hello.server.time_zone) {
            use_zone(&zone);
        }
        Ok((link, events))
    }
}

/// Whether a client calls itself as `open` does. Another client may, too.
pub fn is_command_line(id: &str) -> bool {
    id.strip_prefix(COMMAND_LINE)
        .is_some_and(|rest| rest.len() == 16 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn given(value: Option<&str>) -> Option<&str> {
    value.filter(|value| !value.is_empty())
}

pub fn find_url(global: &Global, config: &Config) -> Outcome<String> {
    let url = given(global.url.as_deref()).or_else(|| config.get(Key::Url));
    let Some(url) = url else { return Ok(local_url()) };
    config::check_url(url).map_err(|problem| {
        Failure::usage(
            format!("`{}` is not an address: {problem}.", without_login(url)),
            "Write it like ws://127.0.0.1:8787 or https://gsv.example.workers.dev.",
        )
    })?;
    Ok(url.to_owned())
}

/// An address without what may be secret in it: name and password, query and fragment.
pub fn without_login(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    match rest.rsplit_once('@') {
        Some((_, host)) if scheme.is_empty() => format!("{HIDDEN}@{host}"),
        Some((_, host)) => format!("{scheme}://{HIDDEN}@{host}"),
        None => url.to_owned(),
    }
}

/// The gateway on this machine, at its current port.
fn local_url() -> String {
    let present = Layout::find().ok().and_then(|layout| present_url(&layout));
    present.unwrap_or_else(|| embedded::url(embedded::DEFAULT_PORT))
}

/// The address of this machine's gateway, unless it is stopped.
pub fn present_url(layout: &Layout) -> Option<String> {
    match state::State::read(&layout.state()) {
        state::Found::State(state) => Some(embedded::url(state.port)),
        _ => None,
    }
}

fn no_token(url: &str, config: &Config) -> Failure {
    if is_only_node(url, config) {
        return Failure::new(
            Exit::Auth,
            format!(
                "This machine is a node of {}, and has no client's token.",
                without_login(url)
            ),
            "Make an invitation there: `gsv invite client`, then `gsv join CODE` here.",
        );
    }
    Failure::new(
        Exit::Auth,
        "No token for the gateway is set.",
        "Run `gsv up` to start a gateway on this machine and get one, or set one: `gsv local-config set token -`.",
    )
}

/// A token of a flag or the environment: nothing is wrong with the local config.
fn rejected_given(source: &str, config: &Config) -> String {
    let otherwise = if config.get(Key::Token).is_some() {
        ", or run the command without it to use the token of the local config"
    } else {
        ""
    };
    format!("The token comes from {source}: give a valid one{otherwise}.")
}

/// The same for an address: another one in the local config would not be used.
fn unreachable_given(source: &str) -> String {
    format!(
        "The address comes from {source}: check it, and that a gateway runs there, or run the command without it to use the address of the local config."
    )
}

fn rejected_stored(url: &str, config: &Config, layout: Option<&Layout>) -> String {
    let join = "`gsv invite client`, then run `gsv join CODE` here";
    if let Some(layout) = layout.filter(|layout| login::is_own_address(layout, url)) {
        return rejected_here(layout, config);
    }
    match config.get(Key::Url) {
        Some(known) if known != url => format!(
            "The token of the local config is for the gateway at {}. Give one of this gateway with GSV_TOKEN, or make an invitation on its machine: {join}.",
            without_login(known)
        ),
        _ => format!("It may be revoked or expired. Make an invitation on the gateway's machine: {join}."),
    }
}

/// The gateway of this machine has rejected a stored token (rule BK25): `gsv up` never changes a config for another gateway, and puts back
/// only a login that it knows.
fn rejected_here(layout: &Layout, config: &Config) -> String {
    const NEW: &str = "`gsv down && gsv up --new-token`";
    match login::elsewhere(layout, config) {
        Some(other) => format!(
            "The local config is for the gateway at {}, and no valid token of this machine's gateway is known. Create a new first one: {NEW}. The local config stays as it is.",
            without_login(other)
        ),
        None if login::has_former_login(layout, config) => "Run `gsv up`: it puts the token of this machine's gateway back into the local config, also while the gateway runs.".to_owned(),
        None => format!("No other token of this machine's gateway is known. Create a new first one: {NEW}."),
    }
}

/// Whether the local config makes this machine a node of another one's gateway, and nothing else.
pub fn is_only_node(url: &str, config: &Config) -> bool {
    login::has_only_node_token(config)
        && Layout::find().is_ok_and(|layout| login::elsewhere(&layout, config) == Some(url))
}

/// Whether an address is one of this machine, where `gsv up` can help.
pub fn is_here(url: &str) -> bool {
    login::is_unpinned_loopback(url)
}

/// `shown`: the address for people.
fn unreachable(url: &str, shown: &str, cause: &str) -> Failure {
    let next = if is_here(url) {
        "Is it running? Start it with `gsv up`, or set another address with `gsv local-config set url ...`."
    } else {
        "Is it running there? Check the address: `gsv local-config get url`."
    };
    Failure {
        reason: Some(errors::LINK_UNREACHABLE.reason.to_owned()),
        ..Failure::later(format!("The gateway at {shown} cannot be reached: {cause}."), next)
    }
}

pub fn link_failure(error: &LinkError) -> Failure {
    match error {
        LinkError::Unreachable { url, cause } => unreachable(url, url, cause),
        LinkError::Remote(shape) | LinkError::Refused { error: shape } => Failure::from_wire(shape),
        // These sentences end with what to do.
        _ => Failure {
            reason: Some(error.reason().to_owned()),
            ..Failure::new(Exit::from_code(error.exit_status()), error.to_string(), "")
        },
    }
}

/// One connection for the requests of a command.
pub struct Client {
    link: Link,
    /// Kept so that the link does not wait for a reader. A client without subscriptions gets no events that matter.
    _events: Events,
}

impl Client {
    pub async fn call<M: Method>(&self, params: M::Params) -> Outcome<M::Result> {
        self.link.call::<M>(params).await.map_err(|error| link_failure(&error))
    }

    pub async fn call_within<M: Method>(&self, params: M::Params, patience: Duration) -> Outcome<M::Result> {
        self.link
            .call_within::<M>(params, patience)
            .await
            .map_err(|error| link_failure(&error))
    }

    pub fn hello(&self) -> Option<ConnectResult> {
        self.link.hello()
    }

    pub async fn close(self) {
        self.link.close().await;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::embedded::bootstrap::NewToken;
    use crate::private_file;

    #[test]
    fn p10_the_next_step_of_a_rejected_token_fits_its_source() {
        let mut config = Config::empty();
        config.set(Key::Url, "wss://gsv.example.org/ws").unwrap();
        assert_eq!(
            rejected_given("--token", &config),
            "The token comes from --token: give a valid one."
        );
        config.set(Key::Token, "stored").unwrap();
        assert!(rejected_given("--token", &config).contains("without it to use the token of the local config"));
        let revoked = rejected_stored("wss://gsv.example.org/ws", &config, None);
        let other = rejected_stored("wss://other.example.org/ws", &config, None);
        assert!(other.contains("for the gateway at wss://gsv.example.org/ws"), "{other}");
        for text in [&revoked, &other] {
            assert!(
                text.contains("`gsv invite client`") && text.contains("`gsv join CODE`"),
                "{text}"
            );
            assert!(!text.contains("--new-token"), "{text}");
        }
        // Other failures keep their own next step.
        let account = Account {
            url: String::new(),
            token: String::new(),
            source: Source::Given("GSV_TOKEN"),
            address: Some("GSV_URL"),
        };
        let rejected = Failure::from_reason(errors::AUTH_REQUIRED.reason, "", false);
        let forbidden = Failure::from_reason(errors::AUTH_FORBIDDEN.reason, "", false);
        let next = account.with_next(rejected.clone()).next;
        assert!(next.starts_with("The token comes from GSV_TOKEN"), "{next}");
        let of_command = Account::of_command("", "");
        assert_eq!(of_command.with_next(rejected.clone()).next, rejected.next);
        assert_eq!(account.with_next(forbidden.clone()).next, forbidden.next);
    }

    #[test]
    fn p10_the_next_step_of_an_address_that_is_given_names_where_it_comes_from() {
        let account = |address| Account {
            url: "ws://127.0.0.1:1/ws".to_owned(),
            token: "bad".to_owned(),
            source: Source::Given("--token"),
            address,
        };
        let lost = LinkEvent::Disconnected {
            reason: "refused".to_owned(),
            retry_in: Some(Duration::from_secs(1)),
        };
        let error = LinkError::Unreachable {
            url: "ws://127.0.0.1:1/ws".to_owned(),
            cause: "refused".to_owned(),
        };
        for from in ["--url", "GSV_URL"] {
            let account = account(Some(from));
            for failure in [account.never_connected(&lost).unwrap(), account.failure(&error)] {
                let next = &failure.next;
                assert!(next.starts_with(&format!("The address comes from {from}: ")), "{next}");
                assert!(!next.contains("gsv up") && !next.contains("local-config set"), "{next}");
            }
        }
        let stored = account(None).never_connected(&lost).unwrap();
        assert!(stored.next.contains("`gsv up`"), "{}", stored.next);
        // A chat's link says it with an event.
        let rejected = LinkError::Refused {
            error: serde_json::from_value(
                serde_json::json!({"code": 401, "reason": errors::AUTH_REQUIRED.reason, "message": "no"}),
            )
            .unwrap(),
        };
        let refused = account(None).never_connected(&LinkEvent::Fatal(rejected)).unwrap();
        assert!(
            refused.next.starts_with("The token comes from --token"),
            "{}",
            refused.next
        );
    }

    #[test]
    fn bk25_the_next_step_of_a_token_that_this_machines_gateway_rejects_is_one_that_helps() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout {
            home: folder.path().join("home"),
        };
        let first = NewToken::generate().unwrap();
        fs::create_dir_all(layout.port().parent().unwrap()).unwrap();
        private_file::write(&layout.port(), "8787").unwrap();
        first.bootstrap.write(&layout.bootstrap()).unwrap();
        let own = embedded::url(8787);
        let mut config = Config::load_from(folder.path().join("config.toml")).unwrap();
        config.set(Key::Token, "other").unwrap();
        let next = |config: &Config| rejected_stored(&own, config, Some(&layout));
        // For another machine's gateway, as after `gsv join`.
        config.set(Key::Url, "wss://gsv.example.org/ws").unwrap();
        let elsewhere = next(&config);
        assert!(
            elsewhere.contains("for the gateway at wss://gsv.example.org/ws"),
            "{elsewhere}"
        );
        assert!(elsewhere.contains("`gsv down && gsv up --new-token`"), "{elsewhere}");
        // For this machine's gateway, whose login is not known.
        config.set(Key::Url, &own).unwrap();
        let unknown = next(&config);
        assert!(unknown.contains("`gsv down && gsv up --new-token`"), "{unknown}");
        config.remember(Some(&layout.home), &own, &first.token).unwrap();
        let known = next(&config);
        assert!(known.starts_with("Run `gsv up`: it puts"), "{known}");
    }

    #[test]
    fn p10_gsv_up_is_named_where_it_helps() {
        for (url, here) in [
            ("ws://127.0.0.1:8787/ws", true),
            ("ws://localhost:1/ws", true),
            ("https://gsv.example.org", false),
        ] {
            let failure = unreachable(url, url, "refused");
            assert_eq!(failure.next.contains("`gsv up`"), here, "{url}");
            assert!(
                failure.message.contains(url) && failure.message.contains("refused"),
                "{url}"
            );
        }
    }
}
