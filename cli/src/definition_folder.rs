//! An agent.yaml on this machine, and the files of its folder that it names. Reads nothing outside the folder and follows no link in it.
//! Which files the text names is what the gateway says: only it reads the text. Sends nothing.

use std::fs;
use std::path::{Component, Path, PathBuf};

use gsv_protocol::types::DefinitionFile;

use crate::clean::one_line;
use crate::exit::{Failure, OrFail, Outcome};
use crate::text_files::read_text;

pub const DEFINITION: &str = "agent.yaml";
const MAX_BYTES: u64 = 65_536;
const NEXT: &str = "Name an agent.yaml or the folder that has one.";

#[derive(Debug)]
pub struct DefinitionFolder {
    /// The path of agent.yaml, as a person writes it.
    pub shown: String,
    pub text: String,
    folder: PathBuf,
}

/// The file itself, or agent.yaml of a folder.
pub fn read(path: &Path) -> Outcome<DefinitionFolder> {
    let meta = fs::metadata(path).or_fail(format_args!("look at {}", path.display()), NEXT)?;
    let file = if meta.is_dir() {
        path.join(DEFINITION)
    } else {
        path.to_owned()
    };
    let shown = file.strip_prefix(".").unwrap_or(&file).display().to_string();
    if !file.exists() {
        return Err(Failure::usage(format!("There is no {shown}."), NEXT));
    }
    let text = read_text(&file, MAX_BYTES).map_err(|why| Failure::usage(format!("{shown} {why}."), NEXT))?;
    if text.is_empty() {
        return Err(Failure::usage(
            format!("{shown} is empty."),
            "Begin one: `gsv agent edit ID`.",
        ));
    }
    let folder = file.parent().unwrap_or(Path::new("")).to_owned();
    Ok(DefinitionFolder { shown, text, folder })
}

impl DefinitionFolder {
    /// Those of the named files that are in the folder. One that is not there may be in the agent's folder at the gateway.
    pub fn files(&self, named: &[String]) -> Outcome<Vec<DefinitionFile>> {
        let mut files = Vec::new();
        for path in named {
            let refused = |why: String| {
                let message = format!("`{}`, which {} names, {why}.", one_line(path, 200), self.shown);
                Failure::usage(
                    message,
                    "Put the file itself, as a text of at most 64 KiB, into the folder of agent.yaml.",
                )
            };
            if let Some(at) = self.find(path).map_err(|why| refused(why.to_owned()))? {
                let content = read_text(&at, MAX_BYTES).map_err(refused)?;
                files.push(DefinitionFile {
                    path: path.clone(),
                    content,
                });
            }
        }
        Ok(files)
    }

    /// Where the file is. None: the folder does not have it.
    fn find(&self, path: &str) -> Result<Option<PathBuf>, &'static str> {
        let mut at = self.folder.clone();
        for part in Path::new(path).components() {
            let Component::Normal(name) = part else {
                return Err("is not in its folder");
            };
            at.push(name);
            match fs::symlink_metadata(&at) {
                Ok(meta) if meta.is_symlink() => return Err("is a symbolic link, and links are not followed"),
                Ok(_) => {}
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(at))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn named(folder: &DefinitionFolder, path: &str) -> Outcome<Vec<String>> {
        let files = folder.files(&[path.to_owned()])?;
        Ok(files.into_iter().map(|file| file.content).collect())
    }

    #[test]
    fn ad12_ad2_only_named_files_of_the_folder_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("triage/prompts")).unwrap();
        fs::write(at("secret.md"), "secret").unwrap();
        fs::write(at("triage/agent.yaml"), "metadata: {}\n").unwrap();
        fs::write(at("triage/triage.prompt.md"), "\u{feff}You sort.").unwrap();
        fs::write(at("triage/prompts/more.md"), "More.").unwrap();
        fs::write(at("triage/large.md"), "x".repeat(65_537)).unwrap();
        fs::write(at("triage/binary.md"), [0xff, 0]).unwrap();
        symlink(at("secret.md"), at("triage/link.md")).unwrap();
        symlink(dir.path(), at("triage/above")).unwrap();
        let of_folder = read(&at("triage")).unwrap();
        let of_file = read(&at("triage/agent.yaml")).unwrap();
        for folder in [of_folder, of_file] {
            assert_eq!(folder.text, "metadata: {}\n");
            assert!(folder.shown.ends_with("triage/agent.yaml"), "{}", folder.shown);
            assert_eq!(named(&folder, "triage.prompt.md").unwrap(), ["You sort."]);
            assert_eq!(named(&folder, "prompts/more.md").unwrap(), ["More."]);
            assert_eq!(named(&folder, "none.md").unwrap(), Vec::<String>::new());
            for (path, why) in [
                ("../secret.md", "is not in its folder"),
                ("/etc/passwd", "is not in its folder"),
                ("link.md", "is a symbolic link"),
                ("above/secret.md", "is a symbolic link"),
                ("large.md", "is larger than 64 KiB"),
                ("binary.md", "is not UTF-8 text"),
                ("prompts", "is not a plain file"),
            ] {
                let failure = named(&folder, path).unwrap_err();
                assert!(failure.message.contains(why), "{path}: {}", failure.message);
                assert!(!failure.message.contains("secret\n"));
            }
        }
    }

    #[test]
    fn ad12_ad1_an_agent_yaml_is_a_text_of_at_most_64_kib() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("agent.yaml");
        for (bytes, why) in [
            (Vec::new(), "is empty"),
            (vec![b'x'; 65_537], "is larger than 64 KiB"),
            (vec![0xff], "is not UTF-8"),
        ] {
            fs::write(&file, bytes).unwrap();
            let failure = read(dir.path()).unwrap_err();
            assert!(failure.message.contains(why), "{}", failure.message);
        }
        fs::remove_file(&file).unwrap();
        symlink("/etc/passwd", &file).unwrap();
        assert!(read(dir.path()).is_err(), "a link is not followed");
        fs::remove_file(&file).unwrap();
        assert!(read(dir.path()).unwrap_err().message.contains("There is no"));
        assert!(read(&dir.path().join("none")).is_err());
    }
}
