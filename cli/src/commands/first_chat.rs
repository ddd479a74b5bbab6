//! The first `gsv chat` at a terminal offers `gsv setup`: where there is neither an address nor a token of a gateway, nor a gateway on
//! this machine. Anything else keeps its own message.

use super::context::Context;
use super::setup;
use crate::args::{Chat, Setup};
use crate::ask;
use crate::config::{Config, Key};
use crate::embedded::layout::Layout;
use crate::exit::Outcome;

pub fn offer_setup(context: &Context, args: &Chat) -> Outcome {
    let out = context.out;
    // A message is for a script or for a gateway that is expected to be there.
    if !args.message.is_empty() || !out.tty || !ask::is_possible(out) || !is_first(context)? {
        return Ok(());
    }
    let question = "GSV is not set up on this machine yet. Set it up now: choose a model, and start the gateway? [Y/n]";
    if !matches!(ask::answer(out, question).as_str(), "" | "y" | "yes") {
        out.aside("Later: `gsv setup`. For a gateway on another machine: `gsv join CODE`.");
        return Ok(());
    }
    setup::run(context, &Setup::before_chat())
}

fn is_first(context: &Context) -> Outcome<bool> {
    let config = Config::load()?;
    let is_set = |key: Key| config.get(key).is_some();
    let is_given = context.global.url.is_some() || context.global.token.is_some();
    Ok(!is_given && !is_set(Key::Url) && !is_set(Key::Token) && !Layout::find()?.exists())
}
