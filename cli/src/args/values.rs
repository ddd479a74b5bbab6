//! Values that are checked while the command line is read. Pure.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use gsv_protocol::types::{AgentId, ModelRef};

use crate::import::plan;
use crate::units::parse_duration;

/// One of the contract's names: help and completions list all of them.
pub fn one_of<T>(all: &[T], name: fn(T) -> &'static str) -> impl TypedValueParser<Value = T> + use<T>
where
    T: Copy + FromStr + Send + Sync + 'static,
    T::Err: std::error::Error + Send + Sync,
{
    PossibleValuesParser::new(all.iter().map(|value| name(*value))).try_map(|text| text.parse::<T>())
}

/// An id as session keys have it. A wrong one is not changed silently: the error names the right one.
pub fn agent_id(text: &str) -> Result<AgentId, String> {
    let rule = "use at most 64 of a-z, 0-9, _ and -";
    match plan::agent_id(text) {
        Some(id) if id == text => Ok(AgentId(id)),
        Some(id) => Err(format!("{rule}, such as `{id}`")),
        None => Err(format!("{rule}, such as `work`")),
    }
}

/// `provider/id`; the id may have slashes of its own.
pub fn model_ref(text: &str) -> Result<ModelRef, String> {
    match text.split_once('/') {
        Some((provider, id)) if !provider.is_empty() && !id.is_empty() => Ok(ModelRef {
            provider: provider.to_owned(),
            id: id.to_owned(),
        }),
        _ => Err("write it as provider/id, such as anthropic/claude-sonnet-5".to_owned()),
    }
}

pub fn port(text: &str) -> Result<u16, String> {
    let port = text.parse().ok().filter(|port| *port > 0);
    port.ok_or_else(|| "a port is a number from 1 to 65535".to_owned())
}

/// A number within its limits, which the error names: clap shows them as `1..=366`.
pub fn number<T>(least: T, most: T) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Copy + Send + Sync + 'static,
{
    move |text| {
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| format!("use a number from {least} to {most}"))
    }
}

/// How long a token is valid, within the contract's bounds.
pub fn lifetime(text: &str) -> Result<Duration, String> {
    const LONGEST: Duration = Duration::from_secs(3_650 * 86_400);
    match parse_duration(text)? {
        time if time < Duration::from_secs(1) => Err("a token is valid for at least 1 second".to_owned()),
        time if time > LONGEST => {
            Err("a token is valid for at most 3650 days; leave the option out for no limit".to_owned())
        }
        time => Ok(time),
    }
}

/// A channel's name as the gateway has it: in small letters.
pub fn channel_name(text: &str) -> Result<String, String> {
    let name = text.to_ascii_lowercase();
    let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    if name.len() <= 64 && name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(valid) {
        Ok(name)
    } else {
        Err("a channel's name has letters, digits, _ and -".to_owned())
    }
}

/// `KEY=VALUE`.
pub fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err("write it like KEY=VALUE".to_owned()),
    }
}
