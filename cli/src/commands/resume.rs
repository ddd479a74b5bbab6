//! `gsv resume`: lets GSV go on, and a restored copy with its channels (rule BK23).

use gsv_protocol::methods::{GatewayResume, GatewayStatus};
use gsv_protocol::types::{GatewayResumeParams, GatewayResumeResult};
use gsv_protocol::{NoParams, errors};
use tokio::task::spawn_blocking;

use super::context::Context;
use super::local::Local;
use super::own_gateway::is_own;
use crate::args::Resume;
use crate::client::without_login;
use crate::embedded::channels::{self, Reload};
use crate::embedded::layout::Layout;
use crate::embedded::start_stopped;
use crate::exit::{Exit, Failure, Outcome};

/// The answer of the gateway, and how it came.
struct Resumed {
    result: GatewayResumeResult,
    /// An earlier answer was lost: that one may have done it.
    was_lost: bool,
}

pub async fn resume(context: &Context, args: Resume) -> Outcome {
    let params = GatewayResumeParams {
        exported: args.exported.then_some(true),
    };
    let mut is_copy = start_channels(context, args.exported).await?;
    let mut resumed = ask(context, &params).await;
    let is_refused = |failure: &Failure| failure.is(&errors::GATEWAY_RESTORED_COPY);
    if !is_copy && resumed.as_ref().is_err_and(is_refused) && mark_again(context)? {
        is_copy = start_channels(context, args.exported).await?;
        resumed = ask(context, &params).await;
    }
    let done = match resumed {
        Err(failure) if is_copy => return Err(not_resumed(context, args.exported, failure).await?),
        resumed => resumed?,
    };
    context.out.done(&done.result, &words(&done));
    if is_copy {
        context.out.warn(
            "this was a restored copy. If the gateway that it was copied from still runs, both act now: stop that one with `gsv stop --all` there.",
        );
    }
    Ok(())
}

fn words(done: &Resumed) -> String {
    match (done.result.was_stopped, done.result.sessions) {
        (false, _) if done.was_lost => {
            "GSV is not stopped. The gateway's first answer was lost: it was resumed by that request, or nothing was stopped.".to_owned()
        }
        (false, _) => "Nothing was stopped.".to_owned(),
        (true, 0) => "Resumed. No conversation was waiting; jobs that wait start now.".to_owned(),
        (true, 1) => "Resumed. 1 conversation continues.".to_owned(),
        (true, held) => format!("Resumed. {held} conversations continue."),
    }
}

/// A second resume changes nothing more, so a request whose answer is lost is sent once more.
async fn ask(context: &Context, params: &GatewayResumeParams) -> Outcome<Resumed> {
    let first = context.ask::<GatewayResume>(params.clone()).await;
    let was_lost = first.as_ref().is_err_and(Failure::is_lost_answer);
    let result = if was_lost {
        match context.ask::<GatewayResume>(params.clone()).await {
            // It refuses the second request only, such as for its number of requests: the first may have resumed.
            Err(failure) if failure.is_answer() && !is_of_stop(&failure) => first,
            second => second,
        }
    } else {
        first
    };
    result.map(|result| Resumed { result, was_lost })
}

/// Whether the gateway refuses every such resume.
fn is_of_stop(failure: &Failure) -> bool {
    failure.is(&errors::GATEWAY_RESTORED_COPY) || failure.is(&errors::GATEWAY_EXPORTED)
}

/// The failure of a resume whose copy has lost its mark and runs its channels. After a refusal of the gateway, this is a copy still.
async fn not_resumed(context: &Context, exported: bool, failure: Failure) -> Outcome<Failure> {
    let layout = Layout::find()?;
    // After an error inside the gateway, it may have resumed.
    if failure.is_answer() && !failure.is(&errors::INTERNAL) {
        start_stopped::set(&layout)?;
        if !matches!(reload(&layout).await, Ok(Reload::Done { .. })) {
            context.out.warn(&format!(
                "the channels of the copy may still run. To stop them: `{}`",
                start_stopped::down_command(&layout)
            ));
        }
        return Ok(failure);
    }
    // It may have resumed: then a mark would stop it again at its next start.
    Ok(Failure {
        next: format!(
            "It is not known whether the gateway has resumed. Its channels run already. When it answers again, run `{}{}` once more.",
            start_stopped::resume_command(&layout),
            if exported { " --exported" } else { "" }
        ),
        ..failure
    })
}

async fn reload(layout: &Layout) -> Outcome<Reload> {
    let place = layout.clone();
    let reloaded = spawn_blocking(move || channels::reload(&place)).await;
    reloaded.unwrap_or_else(|error| {
        let message = format!("Waiting for the gateway failed: {error}.");
        Err(Failure::new(Exit::Bug, message, "Run it again."))
    })
}

/// A resume that ended right after it had removed the mark left a gateway that still has it. False: the gateway is not that of this folder.
fn mark_again(context: &Context) -> Outcome<bool> {
    let layout = Layout::find()?;
    if !is_own(&Local::look(&layout), &layout, &context.account()?.url, None) {
        return Ok(false);
    }
    start_stopped::set(&layout)?;
    Ok(true)
}

/// Lets the channels of a restored copy run: before the resume, because what waits for them leaves with it (rule BK23). False: it is none.
/// `exported`: the person has said that the home is live nowhere else.
async fn start_channels(context: &Context, exported: bool) -> Outcome<bool> {
    let layout = Layout::find()?;
    if !start_stopped::is_set(&layout) {
        return Ok(false);
    }
    let url = context.account()?.url;
    if !is_own(&Local::look(&layout), &layout, &url, None) {
        return Err(Failure::failed(
            format!(
                "{} has a restored copy, and the local config is for the gateway at {}, so nothing was resumed.",
                layout.home.display(),
                without_login(&url)
            ),
            format!(
                "Start the copy, which stores its address: `{}`. Then run the command again.",
                start_stopped::up_command(&layout)
            ),
        ));
    }
    // Only who may operate this gateway changes it, and nothing is changed for a resume that it would refuse.
    let status = context.ask::<GatewayStatus>(NoParams {}).await?;
    let is_exported = status.stopped.is_some_and(|state| state.exported_at.is_some());
    if is_exported && !exported {
        return Err(Failure::from_reason(errors::GATEWAY_EXPORTED.reason, "", false));
    }
    start_stopped::remove(&layout)?;
    let reloaded = reload(&layout).await;
    if !matches!(reloaded, Ok(Reload::Done { .. })) {
        start_stopped::set(&layout)?;
    }
    let Reload::Done { warnings, .. } = reloaded? else {
        return Err(Failure::failed(
            "The gateway runs without its supervisor, which would start the channels, so nothing was resumed.",
            format!(
                "Run `{}`, then the same command again.",
                start_stopped::up_command(&layout)
            ),
        ));
    };
    for warning in &warnings {
        context.out.warn(warning);
    }
    Ok(true)
}
