//! `gsv deploy rollback`: makes the versions active that ran before the last `gsv deploy up`. Cloudflare keeps them; the data stays as it is.
//! So a version that could not read that data is refused.

use serde_json::json;

use super::account::{Found, State, Version};
use super::bundle::{self, CONFIG};
use super::health;
use super::label::{Kind, Label};
use super::open::Open;
use super::parts::{GATEWAY, Worker};
use super::record;
use crate::args::DeployRollback;
use crate::ask;
use crate::commands::context::Context;
use crate::embedded::channel_name::Name;
use crate::exit::{Failure, OrFail, Outcome};

/// A version that is to be active.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    worker: Worker,
    id: String,
    label: Label,
}

#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    NotDeployed,
    Stopped,
    /// There is no earlier version, or Cloudflare no longer lists it.
    NoEarlier,
    /// The data was migrated between the two.
    Migrated {
        from: String,
        to: String,
    },
}

pub async fn run(context: &Context, args: DeployRollback) -> Outcome {
    let out = context.out;
    let _held = record::hold()?;
    let open = Open::new(out, args.account.account.as_deref()).await?;
    let state = open.look().await?.state;
    let gateway = choose_gateway(&state).map_err(Refusal::failure)?;
    let bound = open.account().bound(&gateway.id).await;
    let bound = bound.map_err(|trouble| trouble.failure("show the earlier version", ""))?;
    let channels = choose_channels(&state, &bound, &gateway).map_err(Refusal::failure)?;
    out.note(&format!(
        "Go back to GSV {} in the account {}:",
        gateway.label.version, open.account_name
    ));
    let targets: Vec<&Target> = channels.iter().chain([&gateway]).collect();
    for target in &targets {
        out.note(&format!(
            "  - {} {}, version {}",
            target.worker.name(),
            target.label.version,
            target.id
        ));
    }
    out.note("Conversations, files and settings stay as they are.");
    if !args.yes {
        ask::confirm(out, "Go on?", "go back", "Nothing was changed.")?;
    }
    for target in &targets {
        activate(&open, target).await?;
    }
    let (address, _) = open.address(None, state.subdomain.as_deref())?;
    health::until(&address, &gateway.label.version, args.wait).await?;
    let document = json!({
        "version": gateway.label.version,
        "workers": targets.iter().map(|target| json!({ "worker": target.worker.name(), "versionId": target.id })).collect::<Vec<_>>(),
    });
    let words = format!(
        "GSV {} is active again. `gsv deploy up` brings it up to date.",
        gateway.label.version
    );
    out.done(&document, &words);
    Ok(())
}

async fn activate(open: &Open, target: &Target) -> Outcome {
    let folder = bundle::folder()?;
    let name = target.worker.name();
    let config = json!({ "name": name }).to_string();
    std::fs::write(folder.path().join(CONFIG), config)
        .or_fail("write the configuration", "Check that the disk is not full.")?;
    let message = format!("gsv rollback to {}", target.label.run);
    let args = [
        "rollback",
        &target.id,
        "--name",
        &name,
        "--config",
        CONFIG,
        "--message",
        &message,
        "--yes",
    ];
    open.wrangler
        .run(folder.path(), &args, Some(&open.account_id), None)
        .await?;
    Ok(())
}

/// The gateway's newest complete version before the active one, of another run.
fn choose_gateway(state: &State) -> Result<Target, Refusal> {
    let found = state.workers.get(GATEWAY).ok_or(Refusal::NotDeployed)?;
    let active = found
        .active()
        .and_then(|version| version.label.clone())
        .ok_or(Refusal::NoEarlier)?;
    if active.kind == Kind::Down {
        return Err(Refusal::Stopped);
    }
    let target = newest(found, |label| label.run < active.run).ok_or(Refusal::NoEarlier)?;
    let target = as_target(Worker::Gateway, target).ok_or(Refusal::NoEarlier)?;
    compare(&active, &target.label)?;
    Ok(target)
}

/// The version of each channel of that gateway that ran with it. Other channels stay as they are: that gateway does not use them.
fn choose_channels(state: &State, bound: &[Name], gateway: &Target) -> Result<Vec<Target>, Refusal> {
    let mut targets = Vec::new();
    for name in bound {
        let worker = Worker::Channel(name.clone());
        let Some(found) = state.workers.get(&worker.name()) else {
            continue;
        };
        let target = newest(found, |label| label.run <= gateway.label.run).ok_or(Refusal::NoEarlier)?;
        if found.active.as_deref() == Some(&target.id) {
            continue;
        }
        let target = as_target(worker, target).ok_or(Refusal::NoEarlier)?;
        if let Some(active) = found.active().and_then(|version| version.label.as_ref()) {
            compare(active, &target.label)?;
        }
        targets.push(target);
    }
    Ok(targets)
}

fn newest(found: &Found, is_wanted: impl Fn(&Label) -> bool) -> Option<&Version> {
    let is_complete = |label: &Label| label.kind == Kind::Up && is_wanted(label);
    let versions = found.versions.iter();
    versions
        .filter(|version| version.label.as_ref().is_some_and(&is_complete))
        .max_by(|one, other| run_of(one).cmp(&run_of(other)))
}

fn run_of(version: &Version) -> Option<&str> {
    version.label.as_ref().map(|label| label.run.as_str())
}

fn as_target(worker: Worker, version: &Version) -> Option<Target> {
    Some(Target {
        worker,
        id: version.id.clone(),
        label: version.label.clone()?,
    })
}

fn compare(active: &Label, target: &Label) -> Result<(), Refusal> {
    if active.state == target.state {
        return Ok(());
    }
    Err(Refusal::Migrated {
        from: active.version.clone(),
        to: target.version.clone(),
    })
}

impl Refusal {
    fn failure(self) -> Failure {
        match self {
            Self::NotDeployed => Failure::failed("Nothing is deployed to this account.", "Deploy: `gsv deploy up`."),
            Self::Stopped => Failure::failed("The deployment is stopped.", "Start it again: `gsv deploy up`."),
            Self::NoEarlier => Failure::failed(
                "There is no earlier version of this deployment to go back to.",
                "`gsv deploy status` shows what is active. To deploy another program, install it and run `gsv deploy up`.",
            ),
            Self::Migrated { from, to } => Failure::failed(
                format!(
                    "Version {from} has changed the tables or classes of the stored data, and version {to} can't read them. Nothing was changed."
                ),
                "Deploy a newer version in which the problem is fixed: `gsv deploy up`.",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::deploy::bundle::tests::name;

    fn version(id: &str, kind: Kind, run: &str, state: &str) -> Version {
        Version {
            id: id.to_owned(),
            created_at: String::new(),
            label: Some(Label {
                kind,
                run: run.to_owned(),
                version: format!("v{run}"),
                state: state.to_owned(),
            }),
        }
    }

    fn state(workers: &[(&str, &str, &[Version])]) -> State {
        let mut state = State::default();
        for (name, active, versions) in workers {
            let found = Found {
                versions: versions.to_vec(),
                active: Some((*active).to_owned()),
                ..Found::default()
            };
            state.workers.insert((*name).to_owned(), found);
        }
        state
    }

    #[test]
    fn de11_the_version_before_the_last_run_is_chosen_and_never_half_of_one() {
        let versions = [
            version("g4", Kind::Up, "r3", "s"),
            version("g3", Kind::Up, "r2", "s"),
            version("g2", Kind::Part, "r2", "s"),
            version("g1", Kind::Down, "r1", "s"),
        ];
        let chosen = choose_gateway(&state(&[("gsv", "g4", &versions)])).unwrap();
        assert_eq!((chosen.id.as_str(), chosen.label.version.as_str()), ("g3", "vr2"));
        // Neither a part nor a stopped version is one to go back to.
        let first = state(&[("gsv", "g3", &versions[1..])]);
        assert_eq!(choose_gateway(&first), Err(Refusal::NoEarlier));
        assert_eq!(choose_gateway(&State::default()), Err(Refusal::NotDeployed));
        let stopped = state(&[("gsv", "g1", &versions)]);
        assert_eq!(choose_gateway(&stopped), Err(Refusal::Stopped));
    }

    #[test]
    fn de11_after_a_rollback_the_next_one_goes_further_back() {
        let versions = ["r3", "r2", "r1"].map(|run| version(run, Kind::Up, run, "s"));
        let ids = ["r3", "r2"].map(|active| choose_gateway(&state(&[("gsv", active, &versions)])).unwrap().id);
        assert_eq!(ids, ["r2", "r1"]);
    }

    #[test]
    fn de12_a_version_that_could_not_read_the_data_is_refused() {
        let versions = [version("g2", Kind::Up, "r2", "s2"), version("g1", Kind::Up, "r1", "s1")];
        let refusal = choose_gateway(&state(&[("gsv", "g2", &versions)])).unwrap_err();
        assert!(matches!(&refusal, Refusal::Migrated { from, to } if from == "vr2" && to == "vr1"));
        let failure = refusal.failure();
        assert!(failure.message.contains("Nothing was changed") && failure.next.contains("gsv deploy up"));
    }

    #[test]
    fn de11_each_channel_goes_back_with_the_gateway_and_new_ones_stay() {
        let gateway = [version("g2", Kind::Up, "r2", "s"), version("g1", Kind::Up, "r1", "s")];
        let discord = [version("d2", Kind::Up, "r2", "s"), version("d1", Kind::Up, "r1", "s")];
        let example = [version("e2", Kind::Up, "r2", "s")];
        let state = state(&[
            ("gsv", "g2", &gateway),
            ("gsv-channel-discord", "d2", &discord),
            ("gsv-channel-example", "e2", &example),
        ]);
        let target = choose_gateway(&state).unwrap();
        let channels = choose_channels(&state, &[name("discord")], &target).unwrap();
        assert_eq!(
            channels.iter().map(|target| target.id.as_str()).collect::<Vec<_>>(),
            ["d1"]
        );
    }
}
