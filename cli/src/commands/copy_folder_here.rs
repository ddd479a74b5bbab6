//! The folders of `gsv cp -r` to this machine, made before the first file. When a folder can't be made, only the
//! copies of its own files fail.

use std::fs;
use std::path::Path;

use super::copy_listing::Listing;
use super::copy_run::Session;
use crate::clean::one_line;

/// `root`: the folder that the copy goes to, by its real path.
pub async fn make_folders(session: &Session, root: &Path, listing: &mut Listing) {
    let mut failed: Vec<String> = Vec::new();
    for folder in std::mem::take(&mut listing.folders) {
        if failed.iter().any(|above| folder.starts_with(above)) {
            continue;
        }
        let Err(error) = session.make_folder(format!("{}/{folder}", root.display())).await else {
            continue;
        };
        // The errors of files are written for agents.
        let why = in_the_way(root, &folder).unwrap_or_else(|| {
            format!(
                "the folder {} can't be made: {error}",
                one_line(&root.join(&folder).to_string_lossy(), 200)
            )
        });
        listing.fail_folder(&folder, &why);
        failed.push(folder + "/");
    }
}

/// What is there in place of a folder. In one text, because a list of failures shows no next steps.
fn in_the_way(root: &Path, folder: &str) -> Option<String> {
    let mut path = root.to_owned();
    for name in folder.split('/') {
        path.push(name);
        let meta = fs::symlink_metadata(&path).ok()?;
        let shown = one_line(&path.to_string_lossy(), 200);
        if meta.is_symlink() {
            let target = fs::canonicalize(&path).ok();
            if !target.is_some_and(|target| target.starts_with(root) && target.is_dir()) {
                return Some(format!(
                    "{shown} is a link that leads to no folder inside of {}. Remove the link, or copy to another folder.",
                    one_line(&root.to_string_lossy(), 200)
                ));
            }
        } else if !meta.is_dir() {
            return Some(format!(
                "{shown} is not a folder. Move it away, or copy to another folder."
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tf14_what_is_in_place_of_a_folder_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, root.join(name)).unwrap();
        fs::create_dir(root.join("folder")).unwrap();
        fs::write(root.join("folder/file"), "").unwrap();
        link(outside.path(), "..d");
        link(Path::new("nothing"), "broken");
        link(Path::new("folder"), "inner");
        let says = |folder: &str| in_the_way(&root, folder).unwrap_or_default();
        for folder in ["..d", "..d/e", "broken"] {
            let name = folder.split('/').next().unwrap();
            let link = format!("{}/{name} is a link that leads to no folder inside of ", root.display());
            assert!(says(folder).starts_with(&link), "{}", says(folder));
        }
        for (folder, file) in [("folder/file/x", "folder/file"), ("inner/file", "inner/file")] {
            let file = format!("{}/{file} is not a folder. Move it away", root.display());
            assert!(says(folder).starts_with(&file), "{}", says(folder));
        }
        for folder in ["folder", "inner", "new", "folder/new"] {
            assert_eq!(says(folder), "", "{folder}");
        }
    }
}
