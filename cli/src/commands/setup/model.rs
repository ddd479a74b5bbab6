//! Provider, key and model: nothing is stored before a call with it was answered.

use gsv_protocol::errors;
use gsv_protocol::methods::{ConfigSet, ModelsList};
use gsv_protocol::types::{ConfigSetParams, ModelEntry, ModelRef, ModelsListParams, ProviderEntry};
use serde_json::Value;

use super::dialogue::{Dialogue, TRIES};
use crate::args::Setup;
use crate::ask;
use crate::clean::one_line;
use crate::client::Client;
use crate::commands::context::Context;
use crate::commands::model::{self, DEMO, Server, USUAL};
use crate::exit::{Failure, Outcome};
use crate::suggest::nearest;
use crate::units::duration;

/// Longer lists are searched.
const LISTED: usize = 12;
/// Reasons why a call has no answer, besides those of the budget.
const NO_ANSWER: [&str; 3] = ["model.unreachable", "model.timeout", "gateway.stopped"];
const USUAL_PROVIDER: &str = "anthropic";

/// The key on stdin, with `--key-stdin`.
pub fn given_key(dialogue: &Dialogue, args: &Setup) -> Outcome<Option<String>> {
    let named = args.provider.as_deref().unwrap_or_default();
    if !args.key_stdin || named == DEMO {
        return Ok(None);
    }
    ask_for_key(dialogue, named).map(Some)
}

fn ask_for_key(dialogue: &Dialogue, provider: &str) -> Outcome<String> {
    let what = format!("Key of {}", one_line(provider, 100));
    let key = ask::secret(dialogue.out, &what, "")?;
    if key.is_empty() {
        return Err(Failure::usage(
            "No key was given, and nothing was changed.",
            "Run `gsv setup` again when you have one; the provider `demo` needs none.",
        ));
    }
    Ok(key)
}

/// The demo has one model.
pub fn check_model(provider: &str, model: Option<&str>) -> Outcome {
    match model {
        Some(id) if provider == DEMO && id != DEMO => Err(Failure::usage(
            format!(
                "The built-in demo model is the only one of `{DEMO}`, so `--model {}` can't be used.",
                one_line(id, 100)
            ),
            "Leave out --model; or name the provider of that model: `gsv provider list`.",
        )),
        _ => Ok(()),
    }
}

/// How a server of the user's own becomes a provider.
const OWN_SERVER: &str =
    r#"`gsv config set providers.mine '{"baseUrl":"http://127.0.0.1:8080/v1","wire":"openai-completions"}'`"#;

/// `key`: the one that was given on stdin.
pub async fn choose(context: &Context, dialogue: &Dialogue, args: &Setup, key: Option<String>) -> Outcome<ModelRef> {
    let client = context.connect().await?;
    let present = model::present(&client).await?;
    let list = ModelsListParams { provider: None };
    let providers = client.call::<ModelsList>(list).await?.providers.unwrap_or_default();
    let provider = choose_provider(dialogue, args, &providers, &present)?;
    check_model(&provider, args.model.as_deref())?;
    let chosen = if provider == DEMO {
        let demo = ModelRef {
            provider,
            id: DEMO.to_owned(),
        };
        if present.provider != DEMO {
            store(&client, dialogue, &demo).await?;
        }
        dialogue.out.note(
            "The built-in demo model answers. It follows a few phrases; run `gsv setup` again when you have a key.",
        );
        demo
    } else {
        let server = model::server_of(&client, &provider).await?;
        // Before the test: its failure would not name the reason.
        if let Server::Unused(warning) = &server {
            dialogue.out.warn(&format!("{warning}, then run this command again."));
        }
        let is_ready =
            matches!(server, Server::Own) || providers.iter().any(|entry| entry.provider == provider && entry.ready);
        let setup = Choice {
            client: &client,
            dialogue,
            provider,
            is_ready,
            given: key,
        };
        setup.choose(args, &present).await?
    };
    client.close().await;
    Ok(chosen)
}

fn choose_provider(
    dialogue: &Dialogue,
    args: &Setup,
    providers: &[ProviderEntry],
    present: &ModelRef,
) -> Outcome<String> {
    // The provider of `model.baseUrl` is in no list.
    let listed = || providers.iter().map(|entry| entry.provider.as_str());
    let known = || listed().chain([DEMO, present.provider.as_str()]);
    if let Some(named) = &args.provider {
        if known().any(|name| name == named) {
            return Ok(named.clone());
        }
        let meant = nearest(named, known()).map_or_else(String::new, |name| format!(" Did you mean {name}?"));
        return Err(Failure::usage(
            format!("There is no provider {}.{meant}", one_line(named, 100)),
            format!("`gsv provider list` lists them. A server of your own: {OWN_SERVER}."),
        ));
    }
    if !dialogue.asks {
        return Ok(present.provider.clone());
    }
    let usual = if present.provider == DEMO {
        USUAL_PROVIDER
    } else {
        &present.provider
    };
    dialogue
        .out
        .note("Which provider of models do you have a key for? Or `demo` for the built-in demo model, `ollama` for models on this machine.");
    dialogue
        .out
        .aside(&format!("A server of your own needs a name first: {OWN_SERVER}."));
    let mut shown: Vec<&str> = providers
        .iter()
        .take(LISTED)
        .map(|entry| entry.provider.as_str())
        .collect();
    for _ in 0..TRIES {
        dialogue.out.aside(&shown.join(", "));
        let Some(typed) = dialogue.line(&format!("Provider, or a part of its name to search [{usual}]")) else {
            return Ok(usual.to_owned());
        };
        let typed = typed.to_lowercase();
        if known().any(|name| name == typed) {
            return Ok(typed);
        }
        let is_meant =
            |entry: &&ProviderEntry| entry.provider.contains(&typed) || entry.name.to_lowercase().contains(&typed);
        shown = providers
            .iter()
            .filter(is_meant)
            .map(|entry| entry.provider.as_str())
            .collect();
        match shown.as_slice() {
            [only] => return Ok((*only).to_owned()),
            [] => {
                dialogue.out.note("No provider has that in its name. All of them:");
                shown = listed().chain([DEMO]).collect();
            }
            _ => {}
        }
    }
    Err(unanswered("provider", "--provider"))
}

struct Choice<'a> {
    client: &'a Client,
    dialogue: &'a Dialogue,
    provider: String,
    /// A key is stored, or none is needed.
    is_ready: bool,
    /// The key of `--key-stdin`.
    given: Option<String>,
}

struct Tested {
    /// None: the stored one, or none is needed.
    key: Option<String>,
    model: ModelRef,
    /// The call had no answer, and the person agreed to store it.
    untested: bool,
}

impl Choice<'_> {
    async fn choose(&self, args: &Setup, present: &ModelRef) -> Outcome<ModelRef> {
        let usual = match &args.model {
            Some(id) => id.clone(),
            None if present.provider == self.provider => present.id.clone(),
            None => USUAL.to_owned(),
        };
        let list = ModelsListParams {
            provider: Some(self.provider.clone()),
        };
        let models = self.client.call::<ModelsList>(list).await?.models.unwrap_or_default();
        // A provider without a list, such as a server on this machine, has no usual model.
        let first = if models.is_empty() && usual == USUAL {
            self.ask_for_id()?
        } else {
            self.of(usual)
        };
        let Tested {
            key,
            mut model,
            untested,
        } = self.test_key(args, first).await?;
        if args.model.is_none()
            && let Some(other) = self.choose_model(&models, &model)?
        {
            model = match self.test(other.clone(), key.as_deref()).await {
                // The person agreed to it already.
                Err(failure) if untested && had_no_answer(&failure) => {
                    self.dialogue.out.failure(&failure);
                    self.dialogue.out.warn("the model is stored untested");
                    other
                }
                answered => answered?,
            };
        }
        if let Some(key) = key {
            let path = format!("apiKeys.{}", self.provider);
            let value = Value::String(key);
            let set = self.client.call::<ConfigSet>(ConfigSetParams { path, value }).await?;
            self.dialogue.out.warn_all(set.warnings.as_deref());
        }
        store(self.client, self.dialogue, &model).await?;
        Ok(model)
    }

    fn of(&self, id: String) -> ModelRef {
        ModelRef {
            provider: self.provider.clone(),
            id,
        }
    }

    fn ask_for_id(&self) -> Outcome<ModelRef> {
        let typed = self.dialogue.line(&format!("Model of {}", self.provider));
        typed
            .map(|id| self.of(id))
            .ok_or_else(|| unanswered("model", &format!("--provider {} --model", self.provider)))
    }

    async fn test(&self, model: ModelRef, key: Option<&str>) -> Outcome<ModelRef> {
        self.dialogue.out.aside("One call of a few tokens tests it ...");
        let answered = model::test(self.client, model, key).await?;
        let words = format!(
            "{} answered in {}.",
            model::name(&answered.model),
            duration(answered.took_ms)
        );
        self.dialogue.out.note(&words);
        Ok(answered.model)
    }

    /// A key with which the model answers, or which the person wants stored untested.
    async fn test_key(&self, args: &Setup, model: ModelRef) -> Outcome<Tested> {
        let out = self.dialogue.out;
        let mut key = if self.given.is_some() {
            self.given.clone()
        } else if !self.is_ready {
            Some(self.key()?)
        } else if self.dialogue.asks {
            let what = format!("Another key of {}", self.provider);
            Some(ask::secret(out, &what, "the stored one, if any")?).filter(|key| !key.is_empty())
        } else {
            None
        };
        for _ in 1..TRIES {
            match self.test(model.clone(), key.as_deref()).await {
                Ok(model) => {
                    return Ok(Tested {
                        key,
                        model,
                        untested: false,
                    });
                }
                Err(failure) if self.dialogue.asks && !args.key_stdin && failure.is(&errors::MODEL_AUTH) => {
                    out.failure(&failure);
                    key = Some(self.key()?);
                }
                Err(failure) if self.dialogue.asks && had_no_answer(&failure) => {
                    out.failure(&failure);
                    if self.dialogue.no("Store it untested?") {
                        return Err(not_stored(&self.provider, failure));
                    }
                    return Ok(Tested {
                        key,
                        model,
                        untested: true,
                    });
                }
                Err(failure) => return Err(failure),
            }
        }
        let model = self.test(model, key.as_deref()).await?;
        Ok(Tested {
            key,
            model,
            untested: false,
        })
    }

    fn key(&self) -> Outcome<String> {
        if !self.dialogue.asks {
            return Err(Failure::usage(
                format!("{} needs a key.", self.provider),
                format!(
                    "Give it on stdin: `gsv setup --provider {} --key-stdin`.",
                    self.provider
                ),
            ));
        }
        ask_for_key(self.dialogue, &self.provider)
    }

    /// None: the one that was tested.
    fn choose_model(&self, models: &[ModelEntry], tested: &ModelRef) -> Outcome<Option<ModelRef>> {
        if !self.dialogue.asks || models.is_empty() {
            return Ok(None);
        }
        let mut shown: Vec<ModelEntry> = models.iter().take(LISTED).cloned().collect();
        for _ in 0..TRIES {
            model::print_models(self.dialogue.out, &self.provider, std::mem::take(&mut shown));
            let more = models.len().saturating_sub(LISTED);
            let hint = if more == 0 {
                ""
            } else {
                ", or a part of its name to search"
            };
            let question = format!("Model{hint} [{}]", tested.id);
            let Some(typed) = self.dialogue.line(&question) else {
                return Ok(None);
            };
            if models.iter().any(|model| model.id == typed) {
                return Ok(Some(self.of(typed)).filter(|model| model.id != tested.id));
            }
            let lower = typed.to_lowercase();
            shown = models
                .iter()
                .filter(|model| model.id.to_lowercase().contains(&lower))
                .cloned()
                .collect();
            match shown.as_slice() {
                [only] => return Ok(Some(self.of(only.id.clone())).filter(|model| model.id != tested.id)),
                // A list is never complete.
                [] if self.dialogue.yes(&format!("{typed} is not in the list. Use it?")) => {
                    return Ok(Some(self.of(typed)));
                }
                _ => {}
            }
        }
        Err(unanswered("model", &format!("--provider {} --model", self.provider)))
    }
}

/// Stores the choice, and says which agents it does not change.
async fn store(client: &Client, dialogue: &Dialogue, chosen: &ModelRef) -> Outcome {
    model::choose(client, chosen).await?.warn(dialogue.out);
    if let Some(others) = model::others(client).await? {
        dialogue.out.warn(&others);
    }
    Ok(())
}

/// The call was not made or had no answer, which says nothing about the key and the model.
fn had_no_answer(failure: &Failure) -> bool {
    failure
        .reason
        .as_deref()
        .is_some_and(|reason| NO_ANSWER.contains(&reason) || reason.starts_with("budget."))
}

/// The user declined to store a model that was not tested.
fn not_stored(provider: &str, failure: Failure) -> Failure {
    Failure {
        message: format!("Nothing was stored and no model was changed, because {provider} could not be tested."),
        next: "Run `gsv setup` again when the reason above is gone, or answer `y` to store the model untested."
            .to_owned(),
        lines: Vec::new(),
        details: None,
        ..failure
    }
}

fn unanswered(what: &str, option: &str) -> Failure {
    Failure::usage(
        format!("No {what} was chosen, and no model was changed."),
        format!("Name it: `gsv setup {option} NAME`."),
    )
}
