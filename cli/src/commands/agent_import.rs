//! `gsv agent import`: copies an agent's files from another program's folder. Shows the plan, asks before it replaces anything,
//! and can be run again: unchanged files are not sent twice. The folder itself is never changed.

use std::collections::BTreeSet;

use gsv_protocol::Method;
use gsv_protocol::errors;
use gsv_protocol::methods::{
    AgentsCreate, AgentsGet, SkillsInstall, SkillsStatus, SkillsUpload, WorkspaceDelete, WorkspaceList, WorkspaceWrite,
};
use gsv_protocol::types::{
    AgentId, AgentsCreateParams, AgentsGetParams, SkillScope, SkillsInstallParams, SkillsStatusParams,
    WorkspaceDeleteParams, WorkspaceListParams, WorkspaceWriteParams,
};
use serde_json::json;

use super::context::Context;
use super::rate_limit::retry_rate_limited;
use super::workspace_file::{read_or_absent, too_many_files};
use crate::args::AgentImport;
use crate::ask;
use crate::clean::clean;
use crate::client::Client;
use crate::exit::{Failure, Outcome};
use crate::import::plan::{self, Action, Present, Presents, Row, Source};
use crate::import::scan::{Scan, scan};
use crate::output::Output;
use crate::paths::shell;
use crate::skill_upload::{PATIENCE, Requests};
use crate::table::Table;
use crate::units::{bytes, counted};

pub async fn run(context: &Context, args: AgentImport) -> Outcome {
    let out = context.out;
    let folder = std::fs::canonicalize(&args.dir).unwrap_or_else(|_| args.dir.clone());
    let agent_id = args.id.unwrap_or_else(|| AgentId(plan::agent_of(&folder)));
    let found = scan(&args.dir)?;
    if found.is_empty() {
        let skipped = found.skipped.iter().take(10);
        return Err(Failure::usage(
            format!("There are no files of an agent in {}.", args.dir.display()),
            "Name the folder that contains SOUL.md, AGENTS.md, MEMORY.md, memory/ or skills/, such as ~/.openclaw/workspace.",
        )
        .with_lines(skipped.map(|skipped| format!("{} {}", clean(&skipped.path), skipped.why)).collect()));
    }
    let mut import = Import {
        out,
        client: context.connect().await?,
        agent_id,
        created: false,
        exists: false,
        rows: Vec::new(),
    };
    let done = import.run(&found, args.dry_run, args.force).await;
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
            "The imported files stay. Continue with: `gsv agent import {} --id {}`",
            shell(&args.dir),
            import.agent_id
        ));
    }
    done
}

struct Import {
    out: Output,
    client: Client,
    agent_id: AgentId,
    exists: bool,
    created: bool,
    rows: Vec<Row>,
}

impl Import {
    async fn run(&mut self, found: &Scan, dry_run: bool, force: bool) -> Outcome {
        let out = self.out;
        let present = self.present(found).await?;
        self.rows = plan::plan(found, &present, !self.exists);
        if dry_run {
            self.print_table(out);
            let create = if self.exists { "" } else { "create the agent, " };
            let id = &self.agent_id;
            self.summarize(
                out,
                found,
                &format!("nothing was changed; this would do for agent {id}: {create}"),
            );
            return Ok(());
        }
        self.confirm_replacing(out, force)?;
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
        self.print_table(out);
        done?;
        self.summarize(out, found, &format!("agent {}: ", self.agent_id));
        if self.rows.iter().any(|row| row.action == Action::Failed) {
            return Err(Failure::failed(
                "Some files could not be imported; the list shows why.",
                "Fix them and run it again: unchanged files are not sent twice.",
            ));
        }
        out.aside(&format!("talk to it: `gsv chat --agent {}`", self.agent_id));
        Ok(())
    }

    /// The agent's own version of each file of the import, and of its first meeting.
    async fn present(&mut self, found: &Scan) -> Outcome<Presents> {
        let agent = AgentsGetParams {
            agent_id: self.agent_id.clone(),
        };
        let mut present = Presents::new();
        match self.call::<AgentsGet>(agent).await {
            Err(failure) if failure.is(&errors::AGENT_UNKNOWN) => return Ok(present),
            got => got.map(drop)?,
        }
        self.exists = true;
        let skills = found.skills.iter();
        let skill_files = skills.flat_map(|skill| {
            let files = skill.folder.files.iter();
            files.map(|file| skill_path(&skill.name, &file.path))
        });
        let files = found.files.iter().map(|file| file.path.clone());
        let paths: BTreeSet<String> = files.chain(skill_files).chain([plan::BOOTSTRAP.to_owned()]).collect();
        let folder_of = |path: &String| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
        let folders: BTreeSet<Option<String>> = paths.iter().map(folder_of).collect();
        let mut there = BTreeSet::new();
        for path in folders {
            let params = WorkspaceListParams {
                path,
                agent_id: Some(self.agent_id.clone()),
            };
            match self.call::<WorkspaceList>(params).await {
                Err(failure) if failure.is(&errors::PATH_NOT_FOUND) => {}
                listed => {
                    let listed = listed?;
                    if listed.truncated == Some(true) {
                        return Err(too_many_files(&listed.path));
                    }
                    there.extend(listed.files);
                }
            }
        }
        for path in paths.intersection(&there) {
            let file = self.read(path).await?;
            present.extend(file.map(|file| (path.clone(), file)));
        }
        if found.skills.iter().any(|skill| !skill.folder.is_all_text()) {
            self.skill_digests(&mut present).await?;
        }
        Ok(present)
    }

    /// Files that are not text cannot be read and compared one by one; the gateway knows the digest of each skill.
    async fn skill_digests(&self, present: &mut Presents) -> Outcome {
        let agent_id = Some(self.agent_id.clone());
        let report = self.call::<SkillsStatus>(SkillsStatusParams { agent_id }).await?;
        let own = report
            .skills
            .into_iter()
            .filter(|skill| skill.scope == Some(SkillScope::Agent));
        present.extend(own.map(|skill| {
            let digest = Present {
                content: skill.sha256,
                etag: None,
            };
            (skill_path(&skill.name, ""), digest)
        }));
        Ok(())
    }

    async fn read(&self, path: &str) -> Outcome<Option<Present>> {
        match retry_rate_limited(self.out, || read_or_absent(&self.client, path, Some(&self.agent_id))).await {
            // It exists, and differs from every text of the import.
            Err(failure) if failure.is(&errors::FILE_TOO_LARGE) || failure.is(&errors::FILE_BINARY) => {
                Ok(Some(Present {
                    content: None,
                    etag: None,
                }))
            }
            read => Ok(read?.map(|file| Present {
                content: Some(file.content),
                etag: file.etag,
            })),
        }
    }

    /// Decides whether files that differ are replaced: asks, if there is a terminal.
    fn confirm_replacing(&mut self, out: Output, force: bool) -> Outcome {
        let replaced = self.rows.iter().filter(|row| row.action == Action::Replace);
        let differ: Vec<String> = replaced.map(|row| clean(&row.path)).collect();
        if differ.is_empty() || force {
            return Ok(());
        }
        let (id, count) = (&self.agent_id, differ.len());
        if !ask::is_possible(out) {
            return Err(Failure::usage(
                format!("Agent {id} has other versions of {count} of these files. Nothing was changed."),
                "Look with --dry-run; --force replaces them (earlier versions are kept: `gsv workspace log FILE`).",
            )
            .with_lines(differ));
        }
        self.print_table(out);
        let question = format!(
            "\n{} of agent {id} would be replaced; earlier versions are kept (`gsv workspace log FILE`).\nReplace them? [y = yes, n = import the others only, anything else stops]",
            counted(count as u64, "file", "files")
        );
        match ask::answer(out, &question).as_str() {
            "y" | "yes" => {}
            "n" | "no" => {
                let replaced = self.rows.iter_mut().filter(|row| row.action == Action::Replace);
                replaced.for_each(|row| row.action = Action::Keep);
            }
            _ => return Err(ask::declined("Nothing was changed.")),
        }
        Ok(())
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
                (Source::None, Action::Remove) => self.remove(row.path).await,
                _ => Ok(()),
            };
            match done {
                Err(failure) if is_about_the_file(&failure) => {
                    self.rows[at].action = Action::Failed;
                    self.rows[at].why = Some(failure.message);
                }
                done => done?,
            }
        }
        Ok(())
    }

    async fn put(&self, path: &str, content: &str, present: Option<&Present>) -> Outcome {
        // Only the version that was read is replaced. A new agent has no files of its own.
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
        let methods = self
            .client
            .hello()
            .map(|hello| hello.features.methods)
            .unwrap_or_default();
        if methods.iter().any(|method| method == SkillsInstall::NAME) {
            let params = SkillsInstallParams {
                agent_id: Some(self.agent_id.clone()),
                name: skill.name.clone(),
                scope: None,
                files: Vec::new(),
                replace: Some(true),
                upload_id: None,
                uploaded: None,
            };
            let requests = Requests::new(params, skill.folder.files.clone());
            requests.check(&self.client)?;
            for chunk in requests.uploads {
                self.call::<SkillsUpload>(chunk).await?;
            }
            let client = &self.client;
            let install = || client.call_within::<SkillsInstall>(requests.install.clone(), PATIENCE);
            return retry_rate_limited(self.out, install).await.map(drop);
        }
        for file in &skill.folder.files {
            let path = skill_path(&skill.name, &file.path);
            let there = present.get(&path);
            let Some(text) = file.text() else {
                let message = format!("`{path}` is not text, and this gateway takes only text files.");
                return Err(Failure::from_reason("file.binary", &message, false));
            };
            if there.is_none_or(|there| there.content.as_deref() != Some(text)) {
                self.put(&path, text, there).await?;
            }
        }
        Ok(())
    }

    async fn remove(&self, path: String) -> Outcome {
        let params = WorkspaceDeleteParams {
            path,
            agent_id: Some(self.agent_id.clone()),
            permanently: None,
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
        retry_rate_limited(self.out, || self.client.call::<M>(params.clone())).await
    }

    fn print_table(&self, out: Output) {
        if out.json {
            return;
        }
        let rows = self.rows.iter().map(|row| {
            [
                row.path.clone(),
                row.size_bytes.map(bytes).unwrap_or_default(),
                row.action.word().to_owned(),
                row.why.clone().unwrap_or_default(),
            ]
        });
        out.table(&Table::new(["FILE", "SIZE", "ACTION", "REASON"], rows));
    }

    fn summarize(&self, out: Output, found: &Scan, before: &str) {
        let changes = [Action::New, Action::Replace, Action::Remove, Action::Failed];
        let nothing = !self.rows.iter().any(|row| changes.contains(&row.action));
        let before = if nothing { "Nothing to import: " } else { before };
        out.aside(&format!("{before}{}", plan::summary(&self.rows)));
        if found.archives > 0 {
            out.aside(&format!(
                "{} archived conversations in sessions/ are not imported: they belong to the other program's sessions",
                found.archives
            ));
        }
        if found.hidden > 0 {
            out.aside(&match found.hidden {
                1 => "1 hidden file or folder is not imported".to_owned(),
                many => format!("{many} hidden files and folders are not imported"),
            });
        }
    }
}

fn skill_path(skill: &str, file: &str) -> String {
    format!("skills/{skill}/{file}")
}

/// Whether the failure is about one file: the import goes on with the others.
fn is_about_the_file(failure: &Failure) -> bool {
    let reason = failure.reason.as_deref().unwrap_or_default();
    ["path.", "file.", "skill.", "workspace."]
        .iter()
        .any(|about| reason.starts_with(about))
}
