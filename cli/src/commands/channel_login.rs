//! `gsv channel login`: begins a login, shows the code for the phone, and asks until the login has ended. The login itself runs in
//! the channel: leaving this command does not stop it, and the same command continues it.

use std::time::{Duration, Instant};

use gsv_protocol::methods::{ChannelLogin, ChannelStatus};
use gsv_protocol::types::{ChannelAccount, ChannelLogin as Login, ChannelLoginParams, ChannelStatusParams, LoginState};
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::channel_account::{self as account, DEFAULT_ACCOUNT, has_login};
use super::channel_enable::reach;
use super::context::Context;
use super::login_view::{Screen, View};
use crate::args::ChannelLogin as Args;
use crate::clean::visible;
use crate::client::{Account, Client};
use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::output::Output;
use crate::units::now_ms;

const TICK: Duration = Duration::from_secs(1);
/// For a login, start, stop or logout of a channel. Its platform may not answer, which the channel reports after at most 20 s (stop), 25 s
/// (logout), 28 s (start) or 50 s (login): the person gets that report, and not that no answer came.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The duration of a login if the gateway's clock can't be trusted.
const USUAL: Duration = Duration::from_secs(120);
const LONGEST: Duration = Duration::from_secs(600);
/// From the phone's confirmation to a connection.
const SETTLING: Duration = Duration::from_secs(45);
/// A gateway that does not answer is asked again for this long.
const RETRIES_FOR: Duration = Duration::from_secs(60);
/// A login that expires later than this is another one.
const SAME_LOGIN_MS: u64 = 30_000;

pub async fn run(context: &Context, args: Args) -> Outcome {
    let at = context.account()?;
    // From here on Ctrl-C ends this command in order.
    let mut interrupts = signal(SignalKind::interrupt()).or_fail("listen for Ctrl-C", "Try again.")?;
    let status = ChannelStatusParams {
        channel: args.which.channel.clone(),
        account_id: args.which.account.clone(),
    };
    let (client, reached) = tokio::select! {
        reached = reach(context.out, &at, status.clone()) => reached?,
        _ = interrupts.recv() => return Err(Failure::interrupted()),
    };
    let channel = args.which.channel.clone();
    let id = args.which.account.as_deref().unwrap_or(DEFAULT_ACCOUNT);
    let name = account::name(&channel, id);
    let command = |verb| account::command(&channel, id, verb);
    if reached.as_ref().and_then(has_login) == Some(false) {
        return Err(Failure::usage(
            format!("{name} has no login."),
            format!("It needs a token: {} asks for it.", command("start")),
        ));
    }
    let mut session = Session {
        out: context.out,
        at,
        client: Some(client),
        name,
        login_command: command("login"),
        status_command: command("status"),
        by_phone: format!("`gsv channel {channel} login --phone NUMBER`"),
        params: ChannelLoginParams {
            channel: args.which.channel,
            account_id: args.which.account,
            force: args.force.then_some(true),
            phone: args.phone,
        },
        status,
        view: View::new(context.out),
        expires_at: None,
        deadline: None,
        trouble: None,
        linked: false,
    };
    let end = session.follow(&mut interrupts).await;
    session.view.end(context.out);
    let result = session.report(&end?);
    if let Some(client) = session.client {
        client.close().await;
    }
    result
}

/// How a login ended without an error.
enum End {
    Connected {
        account: Option<Box<ChannelAccount>>,
        /// False: the account was linked before this command.
        is_new: bool,
    },
    Failed(String),
    Expired,
    /// A person pressed Ctrl-C.
    Left,
}

enum Step {
    /// No answer: the screen stays.
    Same,
    Expired,
    Now(Box<Login>),
}

struct Session {
    out: Output,
    at: Account,
    client: Option<Client>,
    name: String,
    login_command: String,
    status_command: String,
    by_phone: String,
    params: ChannelLoginParams,
    status: ChannelStatusParams,
    view: View,
    expires_at: Option<u64>,
    deadline: Option<Instant>,
    trouble: Option<(Instant, Failure)>,
    /// The phone has confirmed.
    linked: bool,
}

impl Session {
    async fn follow(&mut self, interrupts: &mut Signal) -> Outcome<End> {
        tokio::select! {
            end = self.watch() => end,
            _ = interrupts.recv() => Ok(End::Left),
        }
    }

    async fn watch(&mut self) -> Outcome<End> {
        let mut login = self.ask().await?;
        // A login is forced once; after that it is only followed.
        self.params.force = None;
        let (mut news, mut shown) = (true, false);
        loop {
            if self.is_another(&login) {
                return Ok(End::Expired);
            }
            match login.state {
                LoginState::Connected => {
                    let account = self.look().await.ok().flatten().map(Box::new);
                    return Ok(End::Connected { account, is_new: shown });
                }
                LoginState::Failed => return Ok(End::Failed(login.message)),
                LoginState::Qr | LoginState::Code | LoginState::Connecting => {
                    self.show(&login, news);
                    shown = true;
                }
            }
            tokio::time::sleep(TICK).await;
            match self.step().await? {
                Step::Same => news = false,
                Step::Expired => return Ok(End::Expired),
                Step::Now(next) => {
                    news = next.state != login.state || next.qr != login.qr || next.code != login.code;
                    login = *next;
                }
            }
        }
    }

    /// Once per tick. After the deadline, only the status is asked, because asking for the login would begin another one.
    async fn step(&mut self) -> Outcome<Step> {
        let over = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let asked = match (over, self.linked) {
            (false, _) => self.ask().await,
            (true, true) => return Ok(Step::Expired),
            (true, false) => match self.look().await {
                Ok(Some(account)) if account.authenticated => {
                    self.linked = true;
                    self.deadline = Some(Instant::now() + SETTLING);
                    self.ask().await
                }
                Ok(_) => return Ok(Step::Expired),
                Err(failure) => Err(failure),
            },
        };
        match asked {
            Ok(login) => {
                self.trouble = None;
                Ok(Step::Now(Box::new(login)))
            }
            Err(failure) if failure.is_refusal() => Err(failure),
            Err(failure) => {
                // The gateway may come back: the login continues without this command.
                self.client = None;
                let since = self.trouble.as_ref().map_or_else(Instant::now, |(since, _)| *since);
                if since.elapsed() > RETRIES_FOR {
                    return Err(failure);
                }
                self.trouble = Some((since, failure));
                Ok(Step::Same)
            }
        }
    }

    async fn ask(&mut self) -> Outcome<Login> {
        let params = self.params.clone();
        let client = self.client().await?;
        let result = client.call_within::<ChannelLogin>(params, PATIENCE).await?;
        // Some gateways answer only in words.
        let login = result.login.unwrap_or(Login {
            state: LoginState::Connecting,
            qr: None,
            code: None,
            expires_at: None,
            message: result.message,
        });
        if let (Some(at), None, false) = (login.expires_at, self.expires_at, self.linked) {
            self.deadline = Some(Instant::now() + window(at, now_ms()));
            self.expires_at = Some(at);
        }
        Ok(login)
    }

    async fn look(&mut self) -> Outcome<Option<ChannelAccount>> {
        let params = self.status.clone();
        let client = self.client().await?;
        let result = client.call_within::<ChannelStatus>(params, PATIENCE).await?;
        Ok(result.accounts.into_iter().next())
    }

    async fn client(&mut self) -> Outcome<&Client> {
        let client = match self.client.take() {
            Some(client) => client,
            None => self.at.connect().await?,
        };
        Ok(self.client.insert(client))
    }

    /// Whether the login that was shown has ended, and asking began another.
    fn is_another(&self, login: &Login) -> bool {
        let both = self.expires_at.zip(login.expires_at);
        both.is_some_and(|(first, now)| now > first.saturating_add(SAME_LOGIN_MS))
    }

    fn show(&mut self, login: &Login, news: bool) {
        let (columns, rows) = self.out.size();
        let trouble = self.trouble.as_ref();
        let trouble =
            trouble.map(|(_, failure)| format!("The gateway does not answer ({}) Retrying.", failure.message));
        let screen = Screen {
            columns,
            rows,
            colour: self.out.colour(),
            left: self
                .deadline
                .map(|deadline| deadline.saturating_duration_since(Instant::now())),
            trouble: trouble.as_deref(),
            by_phone: &self.by_phone,
        };
        self.view.show(self.out, login, news, screen);
    }

    /// Reports the end on the screen and for programs.
    fn report(&self, end: &End) -> Outcome {
        let Self { out, name, .. } = self;
        let (state, message, more) = match end {
            End::Connected { account, is_new } => {
                let who = account.as_deref().and_then(account::identity);
                let who_words = who.as_deref().map(|who| format!(" as {who}")).unwrap_or_default();
                let message = if *is_new {
                    format!("{name} is linked and connected{who_words}.")
                } else {
                    format!("{name} is already linked and connected{who_words}. --force links it again.")
                };
                ("connected", message, json!({ "as": who }))
            }
            End::Failed(message) => ("failed", visible(message), Value::Null),
            End::Expired => {
                let message = format!("The login of {name} has expired, and its code is no longer valid.");
                ("expired", message, Value::Null)
            }
            End::Left => {
                let message = format!("The login of {name} continues without this command until its code expires.");
                ("left", message, Value::Null)
            }
        };
        self.view.ended(*out, state, &message, &more);
        let (exit, next) = match end {
            End::Connected { is_new, .. } => {
                if !out.json {
                    out.note(&message);
                    if *is_new {
                        out.aside("Write to it from another phone; `gsv pair list` shows the pairing request.");
                    }
                }
                return Ok(());
            }
            End::Failed(_) => (Exit::Failed, format!("Details: {}", self.status_command)),
            End::Expired => (Exit::TryLater, format!("Start again: {}", self.login_command)),
            End::Left => (Exit::Interrupted, format!("Continue it: {}", self.login_command)),
        };
        Err(Failure::new(exit, message, next))
    }
}

/// The time until a login expires, by clocks that may differ.
fn window(expires_at: u64, now: u64) -> Duration {
    let left = Duration::from_millis(expires_at.saturating_sub(now));
    if left.is_zero() || left > LONGEST { USUAL } else { left }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p20_a_wrong_clock_does_not_end_a_login() {
        let now = 1_795_246_924_000;
        assert_eq!(window(now + 90_000, now), Duration::from_secs(90));
        assert_eq!(window(now - 86_400_000, now), USUAL);
        assert_eq!(window(now + 86_400_000, now), USUAL);
    }
}
