//! Plans an import: decides for each file what to do, from the scan and from the files that the agent has. Pure.

use std::collections::HashMap;

use serde::Serialize;

use super::scan::Scan;

/// In the order in which one file decides for its whole skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The agent has the same file.
    Same,
    /// The agent has no file of that name.
    New,
    /// The agent has another file of that name, which is replaced.
    Replace,
    /// The agent has another file of that name, which stays.
    Keep,
    /// The file of the agent is deleted: it has an identity already.
    Remove,
    /// The file is skipped.
    Left,
    /// The gateway refused it.
    Failed,
}

impl Action {
    pub const fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Same => "unchanged",
            Self::Replace => "replaced",
            Self::Keep => "kept",
            Self::Remove => "removed",
            Self::Left => "skipped",
            Self::Failed => "failed",
        }
    }
}

/// One file, or one skill with all its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    pub action: Action,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Position in the scan's files, or skills.
    #[serde(skip)]
    pub source: Source,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    File(usize),
    Skill(usize),
    None,
}

/// A file that the agent has. Its content is absent when it is not text. A skill's folder (`skills/NAME/`) has its digest as content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Present {
    pub content: Option<String>,
    pub etag: Option<String>,
}
pub type Presents = HashMap<String, Present>;

pub const BOOTSTRAP: &str = "BOOTSTRAP.md";

/// `fresh`: the import creates the agent, so none of its files was written by a person.
pub fn plan(scan: &Scan, present: &Presents, fresh: bool) -> Vec<Row> {
    let action = |path: &str, content: &str| match present.get(path) {
        None => Action::New,
        Some(there) if there.content.as_deref() == Some(content) => Action::Same,
        Some(_) if fresh => Action::New,
        Some(_) => Action::Replace,
    };
    let row = |path: String, action: Action, source: Source| Row {
        path,
        size_bytes: None,
        action,
        why: None,
        source,
    };
    let mut rows = Vec::new();
    for (at, file) in scan.files.iter().enumerate() {
        let action = action(&file.path, &file.content);
        rows.push(Row {
            size_bytes: Some(file.content.len() as u64),
            ..row(file.path.clone(), action, Source::File(at))
        });
    }
    for (at, skill) in scan.skills.iter().enumerate() {
        let path = format!("skills/{}/", skill.name);
        let actions = skill.folder.files.iter().map(|file| {
            let at = format!("{path}{}", file.path);
            match file.text() {
                Some(text) => action(&at, text),
                None if present.contains_key(&at) && !fresh => Action::Replace,
                None => Action::New,
            }
        });
        // The digest of the whole skill decides, where it is known; else each file.
        let is_same = present
            .get(&path)
            .is_some_and(|there| there.content.as_deref() == Some(&skill.folder.sha256()));
        // A skill is replaced when one of its files is; it is unchanged when all are.
        let action = if is_same {
            Action::Same
        } else {
            actions.max().unwrap_or(Action::Same)
        };
        rows.push(Row {
            size_bytes: Some(skill.folder.size()),
            ..row(path, action, Source::Skill(at))
        });
    }
    if scan.has_identity() && !scan.has(BOOTSTRAP) && present.contains_key(BOOTSTRAP) {
        rows.push(Row {
            why: Some("the imported files have an identity".to_owned()),
            ..row(BOOTSTRAP.to_owned(), Action::Remove, Source::None)
        });
    }
    rows.extend(scan.skipped.iter().map(|skipped| Row {
        why: Some(skipped.why.clone()),
        ..row(skipped.path.clone(), Action::Left, Source::None)
    }));
    rows
}

/// `3 new, 1 unchanged`
pub fn summary(rows: &[Row]) -> String {
    let kinds = [
        Action::New,
        Action::Replace,
        Action::Same,
        Action::Keep,
        Action::Remove,
        Action::Left,
        Action::Failed,
    ];
    let parts: Vec<String> = kinds
        .into_iter()
        .filter_map(|kind| {
            let count = rows.iter().filter(|row| row.action == kind).count();
            (count > 0).then(|| format!("{count} {}", kind.word()))
        })
        .collect();
    parts.join(", ")
}

/// The agent's id by the folder's name: `agents/ID`, `workspace-ID`, else `main`.
pub fn agent_of(folder: &std::path::Path) -> String {
    let name = |path: Option<&std::path::Path>| path?.file_name()?.to_str().map(str::to_owned);
    let own = name(Some(folder)).unwrap_or_default();
    let id = if name(folder.parent()).as_deref() == Some("agents") {
        own.as_str()
    } else {
        own.strip_prefix("workspace-").unwrap_or_default()
    };
    agent_id(id).unwrap_or_else(|| "main".to_owned())
}

/// An agent's id by the rules of session keys: lower case, other characters become `-`. `None` when the text is blank.
pub fn agent_id(text: &str) -> Option<String> {
    let clean: String = text
        .trim()
        .to_lowercase()
        .chars()
        .map(|c| {
            if matches!(c, 'a'..='z' | '0'..='9' | '_' | '-') {
                c
            } else {
                '-'
            }
        })
        .take(64)
        .collect();
    (!clean.is_empty()).then_some(clean)
}

#[cfg(test)]
mod tests {
    use super::super::scan::FoundSkill;
    use super::*;
    use crate::skill_folder::{LocalFile, SkillFolder};
    use crate::text_files::TextFile;
    use std::path::Path;

    fn local(path: &str, bytes: &[u8]) -> LocalFile {
        LocalFile::new(path, bytes.to_vec())
    }

    fn found(path: &str, content: &str) -> TextFile {
        TextFile {
            path: path.to_owned(),
            content: content.to_owned(),
        }
    }

    fn has(files: &[(&str, &str)]) -> Presents {
        let present = |(path, content): &(&str, &str)| {
            let file = Present {
                content: Some((*content).to_owned()),
                etag: Some("e".to_owned()),
            };
            ((*path).to_owned(), file)
        };
        files.iter().map(present).collect()
    }

    fn actions(rows: &[Row]) -> Vec<(&str, Action)> {
        rows.iter().map(|row| (row.path.as_str(), row.action)).collect()
    }

    #[test]
    fn each_file_is_new_unchanged_or_replaced() {
        let scan = Scan {
            files: vec![found("SOUL.md", "s"), found("USER.md", "u"), found("AGENTS.md", "a")],
            skills: vec![FoundSkill {
                name: "mail".to_owned(),
                folder: SkillFolder::of(vec![local("SKILL.md", b"x"), local("a.py", b"y")]),
            }],
            ..Scan::default()
        };
        let there = has(&[
            ("SOUL.md", "other"),
            ("USER.md", "u"),
            ("BOOTSTRAP.md", "b"),
            ("skills/mail/SKILL.md", "x"),
        ]);
        let rows = plan(&scan, &there, false);
        assert_eq!(
            actions(&rows),
            [
                ("SOUL.md", Action::Replace),
                ("USER.md", Action::Same),
                ("AGENTS.md", Action::New),
                ("skills/mail/", Action::New),
                ("BOOTSTRAP.md", Action::Remove),
            ]
        );
        assert_eq!(summary(&rows), "2 new, 1 replaced, 1 unchanged, 1 removed");
        assert!(!actions(&plan(&scan, &there, true)).contains(&("SOUL.md", Action::Replace)));
        let done = has(&[
            ("SOUL.md", "s"),
            ("USER.md", "u"),
            ("AGENTS.md", "a"),
            ("skills/mail/SKILL.md", "x"),
            ("skills/mail/a.py", "y"),
        ]);
        assert!(plan(&scan, &done, false).iter().all(|row| row.action == Action::Same));
        let changed = has(&[("skills/mail/SKILL.md", "z"), ("skills/mail/a.py", "y")]);
        assert!(actions(&plan(&scan, &changed, false)).contains(&("skills/mail/", Action::Replace)));
    }

    #[test]
    fn f52_a_skill_with_binary_files_is_compared_by_its_digest() {
        let folder = SkillFolder::of(vec![local("SKILL.md", b"x"), local("a.png", &[0, 1])]);
        let sha256 = folder.sha256();
        let name = "mail".to_owned();
        let scan = Scan {
            skills: vec![FoundSkill { name, folder }],
            ..Scan::default()
        };
        let files = [("skills/mail/SKILL.md", "x"), ("skills/mail/a.png", "")];
        let with = |digest: &str| has(&[files[0], files[1], ("skills/mail/", digest)]);
        for (there, action) in [
            (has(&[]), Action::New),
            (has(&files), Action::Replace),
            (with(&sha256), Action::Same),
            (with("other"), Action::Replace),
        ] {
            assert_eq!(actions(&plan(&scan, &there, false)), [("skills/mail/", action)]);
        }
    }

    #[test]
    fn the_first_meeting_is_removed_only_when_an_identity_is_imported() {
        let there = has(&[("BOOTSTRAP.md", "b")]);
        let mut scan = Scan {
            files: vec![found("AGENTS.md", "a")],
            ..Scan::default()
        };
        assert_eq!(actions(&plan(&scan, &there, false)), [("AGENTS.md", Action::New)]);
        scan.files = vec![found("SOUL.md", "s")];
        assert_eq!(actions(&plan(&scan, &there, false)), [("SOUL.md", Action::New)]);
        scan.files = vec![found("SOUL.md", "s"), found("USER.md", "u")];
        assert!(actions(&plan(&scan, &there, false)).contains(&("BOOTSTRAP.md", Action::Remove)));
        scan.files = vec![found("IDENTITY.md", "i"), found("BOOTSTRAP.md", "b")];
        assert_eq!(
            actions(&plan(&scan, &there, false)),
            [("IDENTITY.md", Action::New), ("BOOTSTRAP.md", Action::Same)]
        );
    }

    #[test]
    fn the_agent_id_comes_from_the_folder_name() {
        for (folder, agent) in [
            (".openclaw/workspace", "main"),
            (".openclaw/workspace-Home Bot", "home-bot"),
            ("bucket/agents/work", "work"),
            ("bucket/agents", "main"),
            ("/", "main"),
        ] {
            assert_eq!(agent_of(Path::new(folder)), agent, "{folder}");
        }
        assert_eq!(agent_id("  "), None);
        assert_eq!(agent_id("Ü b").as_deref(), Some("--b"));
    }
}
