//! `gsv channel login`: begins a login, shows what the phone has to see, and asks until it is clear how it ended. The login itself
//! lives in the channel: leaving here stops nothing, and the same command takes it up again.

use std::time::{Duration, Instant};

use gsv_protocol::methods::{ChannelLogin, ChannelStatus};
use gsv_protocol::types::{ChannelAccount, ChannelLogin as Login, ChannelLoginParams, ChannelStatusParams, LoginState};
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Context;
use super::channel_here::Reached;
use super::channel_state::{self as state, DEFAULT_ACCOUNT};
use super::login_view::{Screen, View};
use crate::args::ChannelLogin as Args;
use crate::clean::visible;
use crate::client::{Account, Client};
use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::output::Output;
use crate::units::now_ms;

const TICK: Duration = Duration::from_secs(1);
/// The gateway waits for a code for twenty seconds, and may end an old link before.
const PATIENCE: Duration = Duration::from_secs(60);
/// So long a login lasts when the gateway's clock can't be made out.
const USUAL: Duration = Duration::from_secs(120);
const LONGEST: Duration = Duration::from_secs(600);
/// From a phone's yes to a connection.
const SETTLING: Duration = Duration::from_secs(45);
/// So long a gateway that does not answer is asked again.
const TROUBLE: Duration = Duration::from_secs(60);
/// A later end than this is another login's.
const SAME_LOGIN_MS: u64 = 30_000;

pub async fn run(context: &Context, args: Args) -> Outcome {
    let account = context.account()?;
    // From here on Ctrl-C leaves in good order.
    let mut interrupts = signal(SignalKind::interrupt()).or_fail("listen for Ctrl-C", "Try again.")?;
    let status = ChannelStatusParams {
        channel: args.which.channel.clone(),
        account_id: args.which.account.clone(),
    };
    let reached = tokio::select! {
        reached = Reached::channel(context, &account, status.clone()) => reached?,
        _ = interrupts.recv() => return Err(Failure::interrupted()),
    };
    let id = args.which.account.as_deref().unwrap_or(DEFAULT_ACCOUNT);
    if reached.account.as_ref().is_some_and(has_no_login) {
        return Err(Failure::usage(
            format!("{} has no login.", state::name(&args.which.channel, id)),
            format!(
                "It is let in with a token: {} asks for it.",
                state::command(&args.which.channel, id, "start")
            ),
        ));
    }
    let mut session = Session {
        out: context.out,
        account,
        client: Some(reached.client),
        name: state::name(&args.which.channel, id),
        again: state::command(&args.which.channel, id, "login"),
        look: state::command(&args.which.channel, id, "status"),
        by_phone: format!("`gsv channel {} login --phone NUMBER`", args.which.channel),
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
    let result = session.follow(&mut interrupts).await;
    session.view.end(context.out);
    let result = session.ended(result);
    if let Some(client) = session.client {
        client.close().await;
    }
    result
}

fn has_no_login(account: &ChannelAccount) -> bool {
    account
        .capabilities
        .as_ref()
        .is_some_and(|capabilities| !capabilities.login)
}

/// How it ended, unless something failed.
enum End {
    Connected {
        account: Option<Box<ChannelAccount>>,
        news: bool,
    },
    Failed(String),
    Expired,
    Left,
}

struct Session {
    out: Output,
    account: Account,
    client: Option<Client>,
    name: String,
    again: String,
    look: String,
    by_phone: String,
    params: ChannelLoginParams,
    status: ChannelStatusParams,
    view: View,
    expires_at: Option<u64>,
    deadline: Option<Instant>,
    trouble: Option<(Instant, Failure)>,
    /// The phone has said yes.
    linked: bool,
}

impl Session {
    async fn follow(&mut self, interrupts: &mut Signal) -> Outcome<End> {
        let mut login = tokio::select! {
            login = self.ask() => login?,
            _ = interrupts.recv() => return Ok(End::Left),
        };
        // Asked once: from here on the login is only looked at.
        self.params.force = None;
        let mut news = true;
        let mut shown = false;
        loop {
            if self.is_another(&login) {
                return Ok(End::Expired);
            }
            match login.state {
                LoginState::Connected => {
                    let account = self.look().await.ok().flatten().map(Box::new);
                    return Ok(End::Connected { account, news: shown });
                }
                LoginState::Failed => return Ok(End::Failed(login.message)),
                LoginState::Qr | LoginState::Code | LoginState::Connecting => {
                    self.show(&login, news);
                    shown = true;
                }
            }
            tokio::select! {
                () = tokio::time::sleep(TICK) => {}
                _ = interrupts.recv() => return Ok(End::Left),
            }
            let next = tokio::select! {
                next = self.step() => next?,
                _ = interrupts.recv() => return Ok(End::Left),
            };
            match next {
                Step::Same => news = false,
                Step::Expired => return Ok(End::Expired),
                Step::Now(next) => {
                    news = next.state != login.state || next.qr != login.qr || next.code != login.code;
                    login = *next;
                }
            }
        }
    }

    /// Once in a tick. After the end of the time nothing is asked that would begin a login anew.
    async fn step(&mut self) -> Outcome<Step> {
        let over = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if over && self.linked {
            return Ok(Step::Expired);
        }
        let asked = if over {
            match self.look().await {
                Ok(Some(account)) if account.authenticated => {
                    self.linked = true;
                    self.deadline = Some(Instant::now() + SETTLING);
                    self.ask().await
                }
                Ok(_) => return Ok(Step::Expired),
                Err(failure) => Err(failure),
            }
        } else {
            self.ask().await
        };
        match asked {
            Ok(login) => {
                self.trouble = None;
                Ok(Step::Now(Box::new(login)))
            }
            Err(failure) if failure.is_refusal() => Err(failure),
            Err(failure) => {
                // Perhaps it comes back: the login goes on without us.
                self.client = None;
                let since = self.trouble.as_ref().map_or_else(Instant::now, |(since, _)| *since);
                if since.elapsed() > TROUBLE {
                    return Err(failure);
                }
                self.trouble = Some((since, failure));
                Ok(Step::Same)
            }
        }
    }

    async fn ask(&mut self) -> Outcome<Login> {
        let params = self.params.clone();
        let result = self
            .client()
            .await?
            .call_within::<ChannelLogin>(params, PATIENCE)
            .await?;
        let login = result.login.unwrap_or(Login {
            // A gateway that tells only in words.
            state: LoginState::Connecting,
            qr: None,
            code: None,
            expires_at: None,
            message: result.message,
        });
        if let (Some(at), false) = (login.expires_at, self.linked) {
            if self.expires_at.is_none() {
                self.deadline = Some(Instant::now() + window(at, now_ms()));
            }
            self.expires_at = self.expires_at.or(Some(at));
        }
        Ok(login)
    }

    async fn look(&mut self) -> Outcome<Option<ChannelAccount>> {
        let params = self.status.clone();
        let result = self
            .client()
            .await?
            .call_within::<ChannelStatus>(params, PATIENCE)
            .await?;
        Ok(result.accounts.into_iter().next())
    }

    async fn client(&mut self) -> Outcome<&Client> {
        let client = match self.client.take() {
            Some(client) => client,
            None => self.account.connect().await?,
        };
        Ok(self.client.insert(client))
    }

    /// The login that was shown has ended, and asking began another.
    fn is_another(&self, login: &Login) -> bool {
        match (self.expires_at, login.expires_at) {
            (Some(first), Some(now)) => now > first.saturating_add(SAME_LOGIN_MS),
            _ => false,
        }
    }

    fn show(&mut self, login: &Login, news: bool) {
        let (columns, rows) = self.out.size();
        let trouble = self
            .trouble
            .as_ref()
            .map(|(_, failure)| format!("The gateway does not answer ({}) Trying again.", failure.message));
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

    /// The last words, on the screen and for programs.
    fn ended(&self, result: Outcome<End>) -> Outcome {
        let Self { out, name, again, .. } = self;
        match result? {
            End::Connected { account, news } => {
                let who = account.as_deref().and_then(state::identity);
                let who_words = who.as_deref().map_or(String::new(), |who| format!(" as {who}"));
                let message = if news {
                    format!("{name} is linked, and connected{who_words}.")
                } else {
                    format!("{name} is linked already, and connected{who_words}. --force links it anew.")
                };
                self.view.ended(*out, "connected", &message, &json!({ "as": who }));
                if !out.json {
                    out.note(&message);
                }
                if news && !out.json {
                    out.aside("Write to it from another phone; whoever writes first is in `gsv pair list`.");
                }
                Ok(())
            }
            End::Failed(message) => {
                self.view.ended(*out, "failed", &message, &Value::Null);
                Err(Failure::failed(visible(&message), format!("{} tells more.", self.look)))
            }
            End::Expired => {
                let message =
                    format!("The login of {name} was not finished in time, and its code is of no use any more.");
                self.view.ended(*out, "expired", &message, &Value::Null);
                Err(Failure::new(Exit::TryLater, message, format!("Begin again: {again}")))
            }
            End::Left => {
                let message = format!("The login of {name} goes on without this command until its code expires.");
                self.view.ended(*out, "left", &message, &Value::Null);
                Err(Failure::new(
                    Exit::Interrupted,
                    message,
                    format!("Take it up again: {again}"),
                ))
            }
        }
    }
}

enum Step {
    /// Nobody answered: what is shown stays.
    Same,
    Expired,
    Now(Box<Login>),
}

/// How long until then, by clocks that may differ.
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
