//! The homes of users, as the environment and the system name them. PURE, but for the drivers.

use std::path::{Component, Path, PathBuf};

/// The system's list of users.
const USERS: &str = "/etc/passwd";

/// The homes of this user: `named`, the environment's, and the one that the system knows. Programs of the user read either.
#[must_use]
pub fn homes_of_user(named: Option<PathBuf>) -> Vec<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    let of_system = home_of(user, &users()).filter(|home| Some(home) != named.as_ref() && home.is_dir());
    named.into_iter().chain(of_system).collect()
}

/// The homes of all people.
#[must_use]
pub fn homes_of_people() -> Vec<PathBuf> {
    people(&users())
}

fn users() -> String {
    std::fs::read_to_string(USERS).unwrap_or_default()
}

fn home_of(user: u32, users: &str) -> Option<PathBuf> {
    let user = user.to_string();
    users.lines().find_map(|line| {
        let mut fields = line.split(':').skip(2);
        (fields.next() == Some(user.as_str())).then(|| fields.nth(2).map(PathBuf::from))?
    })
}

/// A daemon's home is a folder of the system.
fn people(users: &str) -> Vec<PathBuf> {
    let homes = users.lines().filter_map(|line| line.split(':').nth(5)).map(Path::new);
    let mut homes: Vec<PathBuf> = homes
        .filter(|home| {
            ["/home", "/root", "/Users"]
                .iter()
                .any(|folder| home.starts_with(folder))
        })
        .filter(|home| home.components().all(|part| part != Component::ParentDir))
        .map(Path::to_owned)
        .collect();
    homes.sort();
    homes.dedup();
    homes
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/usr/sbin:/usr/sbin/nologin\nann:x:1000:1000::/home/ann:/bin/zsh\n\
        bob:x:1001:1001::/home/bob:/bin/sh\nann2:x:1002:1002::/home/ann:/bin/sh\nx:x:1003:1003::/home/../etc:/bin/sh\nbroken\n";

    #[test]
    fn sb3_homes_are_those_of_people() {
        assert_eq!(people(LISTED), ["/home/ann", "/home/bob", "/root"].map(PathBuf::from));
    }

    #[test]
    fn sb3_the_system_knows_a_home_of_the_user() {
        assert_eq!(home_of(1001, LISTED), Some("/home/bob".into()));
        assert_eq!(home_of(7, LISTED), None);
    }
}
