//! `gsv models`: lists providers and models.

use gsv_protocol::methods::ModelsList;
use gsv_protocol::types::{ModelPrice, ModelsListParams};

use super::context::Context;
use crate::exit::Outcome;
use crate::table::Table;
use crate::units::{dollars, grouped};

pub async fn run(context: &Context, provider: Option<String>) -> Outcome {
    let out = context.out;
    let named = provider.clone();
    let list = context.show::<ModelsList>(ModelsListParams { provider }, |result| {
        if let Some(providers) = result.providers {
            let rows = providers.into_iter().map(|entry| {
                let ready = if entry.ready { "yes" } else { "no key" };
                [entry.provider, entry.name, grouped(entry.models), ready.to_owned()]
            });
            out.table(&Table::new(["PROVIDER", "NAME", "MODELS", "READY"], rows));
            return;
        }
        let models = result.models.unwrap_or_default();
        if models.is_empty() {
            let name = named.unwrap_or_default();
            out.note(&format!(
                "No models of {name} are listed. Any model that it has can be used: `gsv config set model.id ID`."
            ));
            return;
        }
        let rows = models.into_iter().map(|model| {
            let takes = [("images", model.images), ("thinking", model.thinking)];
            let takes: Vec<&str> = takes
                .into_iter()
                .filter_map(|(what, does)| does.then_some(what))
                .collect();
            [
                model.id,
                grouped(model.context_window),
                price(model.price.as_ref()),
                takes.join(", "),
            ]
        });
        out.table(&Table::new(["MODEL", "CONTEXT", "$ IN / OUT (1M)", "TAKES"], rows));
    });
    list.await
}

fn price(price: Option<&ModelPrice>) -> String {
    price.map_or_else(
        || "not known".to_owned(),
        |price| format!("{} / {}", dollars(price.input), dollars(price.output)),
    )
}
