//! `gsv agent import`: an agent's files from another program's folder. Shows what it will do, asks before it replaces
//! anything, and can be run again: what is there already is not sent twice. The folder itself is never changed.

use std::collections::BTreeSet;
use std::io::{self, BufRead, IsTerminal};
use std::time::Duration;

use gsv_protocol::Method;
use gsv_protocol::errors;
use gsv_protocol::methods::{AgentsCreate, AgentsGet, SkillsInstall, WorkspaceDelete, WorkspaceList, WorkspaceWrite};
use gsv_protocol::types::{
    AgentId, AgentsCreateParams, AgentsGetParams, SkillsInstallParams, WorkspaceDeleteParams, WorkspaceListParams,
    WorkspaceWriteParams,
};
use serde_json::json;

use super::Context;
use super::agent::checked_id;
use super::workspace::read_or_absent;
use crate::args::AgentImport;
use crate::clean::clean;
use crate::client::Client;
use crate::exit::{Exit, Failure, Outcome};
use crate::import::plan::{self, Action, Present, Presents, Row, Source};
use crate::import::scan::{Scan, scan};
use crate::output::Output;
use crate::paths::shell;
use crate::table::Table;
use crate::units::bytes;

/// The gateway takes so many questions a minute; then it is asked again until it answers.
const TRIES: u32 = 30;
const PAUSE: Duration = Duration::from_secs(3);

pub async fn run(context: &Context, args: AgentImport) -> Outcome {
    let out = context.out;
    let folder = std::fs::canonicalize(&args.dir).unwrap_or_else(|_| args.dir.clone());
    let agent_id = checked_id(&args.id.unwrap_or_else(|| plan::agent_of(&folder)))?;
    let found = scan(&args.dir)?;
    if found.is_empty() {
        return Err(Failure::usage(
            format!("There is nothing of an agent in {}.", args.dir.display()),
            "Name the folder that has SOUL.md, AGENTS.md, MEMORY.md, memory/ or skills/ in it, such as ~/.openclaw/workspace.",
        )
        .with_lines(found.skipped.iter().take(10).map(|skipped| format!("{} {}", clean(&skipped.path), skipped.why)).collect()));
    }
    let client = context.connect().await?;
    let mut import = Import {
        client,
        agent_id,
        created: false,
        exists: false,
        rows: Vec::new(),
    };
    let done = import.run(out, &found, args.dry_run, args.force).await;
    if out.json {
        out.json_document(&json!({
            "agentId": import.agent_id.0,
            "created": import.created,
            "dryRun": args.dry_run,
            "files": import.rows,
            "archivesLeft": found.archives,
            "hiddenLeft": found.hidden,
        }));
    }
    import.client.close().await;
    if done.is_err() && import.created {
        out.aside(&format!(
            "What is imported stays. Run it again to go on: `gsv agent import {} --id {}`",
            shell(&args.dir),
            import.agent_id.0
        ));
    }
    done
}

struct Import {
    client: Client,
    agent_id: AgentId,
    exists: bool,
    created: bool,
    rows: Vec<Row>,
}

impl Import {
    async fn run(&mut self, out: Output, found: &Scan, dry_run: bool, force: bool) -> Outcome {
        let present = self.look(found).await?;
        self.rows = plan::plan(found, &present, !self.exists);
        let id = &self.agent_id.0;
        if dry_run {
            if !out.json {
                out.table(&table(&self.rows));
            }
            let making = if self.exists { "" } else { "makes the agent, " };
            self.told(
                out,
                found,
                &format!("nothing was changed; it would be for agent {id}: {making}"),
            );
            return Ok(());
        }
        self.settle(out, force)?;
        if !self.exists {
            let params = AgentsCreateParams {
                agent_id: self.agent_id.clone(),
                description: None,
                model: None,
                system_prompt: None,
                default: None,
                bootstrap: Some(!found.has_identity()),
            };
            self.call::<AgentsCreate>(params).await?;
            self.created = true;
        }
        let done = self.write(found, &present).await;
        if !out.json {
            out.table(&table(&self.rows));
        }
        done?;
        self.told(out, found, &format!("agent {}: ", self.agent_id.0));
        if self.rows.iter().any(|row| row.action == Action::Failed) {
            return Err(Failure::failed(
                "Not everything could be imported; the list says why.",
                "Mend it and run it again: what is there already is not sent twice.",
            ));
        }
        out.aside(&format!("talk to it: `gsv chat --agent {}`", self.agent_id.0));
        Ok(())
    }

    /// What the agent has of the files that are to come, and its first meeting.
    async fn look(&mut self, found: &Scan) -> Outcome<Presents> {
        let mut present = Presents::new();
        match self
            .call::<AgentsGet>(AgentsGetParams {
                agent_id: self.agent_id.clone(),
            })
            .await
        {
            Ok(_) => self.exists = true,
            Err(failure) if failure.is(&errors::AGENT_UNKNOWN) => return Ok(present),
            Err(failure) => return Err(failure),
        }
        let mut paths: BTreeSet<String> = found.files.iter().map(|file| file.path.clone()).collect();
        for skill in &found.skills {
            paths.extend(
                skill
                    .files
                    .iter()
                    .map(|file| format!("skills/{}/{}", skill.name, file.path)),
            );
        }
        paths.insert(plan::BOOTSTRAP.to_owned());
        let mut folders: BTreeSet<&str> = BTreeSet::new();
        for path in &paths {
            folders.insert(path.rsplit_once('/').map_or("", |(folder, _)| folder));
        }
        let mut there = BTreeSet::new();
        for folder in folders {
            let params = WorkspaceListParams {
                path: (!folder.is_empty()).then(|| folder.to_owned()),
                agent_id: Some(self.agent_id.clone()),
            };
            match self.call::<WorkspaceList>(params).await {
                Ok(listed) => there.extend(listed.files),
                Err(failure) if failure.is(&errors::PATH_NOT_FOUND) => {}
                Err(failure) => return Err(failure),
            }
        }
        for path in paths.intersection(&there) {
            let file = self.read(path).await?;
            present.extend(file.map(|file| (path.clone(), file)));
        }
        Ok(present)
    }

    async fn read(&self, path: &str) -> Outcome<Option<Present>> {
        let agent_id = Some(self.agent_id.clone());
        match patiently(|| read_or_absent(&self.client, path, agent_id.clone())).await {
            Ok(file) => Ok(file.map(|file| Present {
                content: Some(file.content),
                etag: file.etag,
            })),
            // It is there, and it is none of the texts that are to come.
            Err(failure) if failure.is(&errors::FILE_TOO_LARGE) || failure.is(&errors::FILE_BINARY) => {
                Ok(Some(Present {
                    content: None,
                    etag: None,
                }))
            }
            Err(failure) => Err(failure),
        }
    }

    /// Whether files that differ are replaced: asks, where somebody can answer.
    fn settle(&mut self, out: Output, force: bool) -> Outcome {
        let differ: Vec<String> = self.rows_to(Action::Replace).map(|row| clean(&row.path)).collect();
        if differ.is_empty() || force {
            return Ok(());
        }
        let count = differ.len();
        if out.json || !io::stdin().is_terminal() {
            return Err(Failure::usage(
                format!(
                    "Agent {} has other versions of {count} of these files. Nothing was changed.",
                    self.agent_id.0
                ),
                "Look with --dry-run; --force replaces them (earlier versions are kept: `gsv workspace log FILE`).",
            )
            .with_lines(differ));
        }
        out.table(&table(&self.rows));
        out.note(&format!(
            "\n{count} of these would replace what agent {} has; earlier versions are kept (`gsv workspace log FILE`).",
            self.agent_id.0
        ));
        out.note("Replace them? [y = yes, n = import the others only, anything else stops]");
        let mut answer = String::new();
        let _ = io::stdin().lock().read_line(&mut answer);
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            "n" | "no" => {
                for row in &mut self.rows {
                    if row.action == Action::Replace {
                        row.action = Action::Keep;
                    }
                }
                Ok(())
            }
            _ => Err(Failure::new(
                Exit::Interrupted,
                "Nothing was changed.",
                "Run it again when you are ready.",
            )),
        }
    }

    fn rows_to(&self, action: Action) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.action == action)
    }

    async fn write(&mut self, found: &Scan, present: &Presents) -> Outcome {
        for at in 0..self.rows.len() {
            let row = self.rows[at].clone();
            let done = match (row.source, row.action) {
                (Source::File(file), Action::New | Action::Replace) => {
                    let file = &found.files[file];
                    self.put(&file.path, &file.content, present.get(&file.path)).await
                }
                (Source::Skill(skill), Action::New | Action::Replace) => self.install(found, skill, present).await,
                (Source::None, Action::Remove) => self.remove(&row.path).await,
                _ => Ok(()),
            };
            let Err(failure) = done else { continue };
            if !is_about_the_file(&failure) {
                return Err(failure);
            }
            self.rows[at].action = Action::Failed;
            self.rows[at].why = Some(failure.message);
        }
        Ok(())
    }

    async fn put(&self, path: &str, content: &str, present: Option<&Present>) -> Outcome {
        // What was looked at is what is replaced. In an agent that was made just now, nothing is anybody's.
        let if_match = match present {
            Some(present) => present.etag.clone(),
            None if self.created => None,
            None => Some("absent".to_owned()),
        };
        let params = WorkspaceWriteParams {
            path: path.to_owned(),
            content: content.to_owned(),
            agent_id: Some(self.agent_id.clone()),
            if_match,
        };
        self.call::<WorkspaceWrite>(params).await.map(drop)
    }

    async fn install(&self, found: &Scan, at: usize, present: &Presents) -> Outcome {
        let skill = &found.skills[at];
        let serves = self.client.hello().is_some_and(|hello| {
            hello
                .features
                .methods
                .iter()
                .any(|method| method == SkillsInstall::NAME)
        });
        if serves {
            let params = SkillsInstallParams {
                agent_id: Some(self.agent_id.clone()),
                name: skill.name.clone(),
                scope: None,
                files: skill.files.clone(),
                replace: Some(true),
            };
            return self.call::<SkillsInstall>(params).await.map(drop);
        }
        for file in &skill.files {
            let path = format!("skills/{}/{}", skill.name, file.path);
            let there = present.get(&path);
            if there.is_none_or(|there| there.content.as_ref() != Some(&file.content)) {
                self.put(&path, &file.content, there).await?;
            }
        }
        Ok(())
    }

    async fn remove(&self, path: &str) -> Outcome {
        let params = WorkspaceDeleteParams {
            path: path.to_owned(),
            agent_id: Some(self.agent_id.clone()),
        };
        match self.call::<WorkspaceDelete>(params).await {
            Err(failure) if !failure.is(&errors::PATH_NOT_FOUND) => Err(failure),
            _ => Ok(()),
        }
    }

    async fn call<M: Method>(&self, params: M::Params) -> Outcome<M::Result>
    where
        M::Params: Clone,
    {
        patiently(|| self.client.call::<M>(params.clone())).await
    }

    fn told(&self, out: Output, found: &Scan, before: &str) {
        out.aside(&format!("{before}{}", plan::summary(&self.rows)));
        if found.archives > 0 {
            out.aside(&format!(
                "{} archived conversations in sessions/ stay where they are: they belong to the other program's sessions",
                found.archives
            ));
        }
        if found.hidden > 0 {
            out.aside(&format!("{} hidden files and folders were passed over", found.hidden));
        }
    }
}

/// Asks again while the gateway says that it was asked too often.
async fn patiently<T, F: Future<Output = Outcome<T>>>(mut ask: impl FnMut() -> F) -> Outcome<T> {
    for _ in 1..TRIES {
        match ask().await {
            Err(failure) if failure.is(&errors::LIMIT_RATE) => tokio::time::sleep(PAUSE).await,
            done => return done,
        }
    }
    ask().await
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(["FILE", "SIZE", "ACTION", "WHY"]);
    for row in rows {
        table.row(&[
            row.path.clone(),
            row.size_bytes.map(bytes).unwrap_or_default(),
            row.action.word().to_owned(),
            row.why.clone().unwrap_or_default(),
        ]);
    }
    table
}

/// Of this file alone: the others may go well.
fn is_about_the_file(failure: &Failure) -> bool {
    let reason = failure.reason.as_deref().unwrap_or_default();
    ["path.", "file.", "skill.", "workspace."]
        .iter()
        .any(|about| reason.starts_with(about))
}
