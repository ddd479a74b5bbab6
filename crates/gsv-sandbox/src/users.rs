//! The homes of users, as the environment and the system name them. PURE, but for the drivers.

use std::path::{Component, Path, PathBuf};

/// The system's list of users.
const USERS: &str = "/etc/passwd";
/// The lowest id of a person. Lower ones are for daemons, but 0, which is root.
const FIRST_PERSON: u32 = if cfg!(target_os = "macos") { 500 } else { 1_000 };
/// Folders of the system that are no one's home, although a user may have one as a home.
const OF_SYSTEM: &[&str] = &[
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib64",
    "/media",
    "/mnt",
    "/nonexistent",
    "/opt",
    "/proc",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/tmp",
    "/usr",
    "/usr/bin",
    "/usr/lib",
    "/usr/local",
    "/usr/sbin",
    "/usr/share",
    "/var",
    "/var/empty",
    "/var/lib",
    "/var/run",
    "/var/tmp",
    "/Users",
];

/// The homes of this user: `named`, the environment's, and the one that the system knows. Programs of the user read either.
#[must_use]
pub fn homes_of_user(named: Option<PathBuf>) -> Vec<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    let of_system = home_of(user, &users()).filter(|home| Some(home) != named.as_ref() && home.is_dir());
    named.into_iter().chain(of_system).collect()
}

/// The homes of root and of all people whom the system's list names, wherever they are. Other sources of users (LDAP) are not asked.
#[must_use]
pub fn homes_of_people() -> Vec<PathBuf> {
    people(&users(), &Path::is_dir)
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

/// By id: a person's home can be anywhere. `is_folder`: of a path, links followed.
fn people(users: &str, is_folder: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let home_of_person = |line: &str| {
        let mut fields = line.split(':').skip(2);
        let user: u32 = fields.next()?.parse().ok()?;
        let home = PathBuf::from(fields.nth(2)?);
        (user == 0 || user >= FIRST_PERSON).then_some(home)
    };
    let is_home = |home: &PathBuf| {
        let is_plain = home.is_absolute() && home.components().all(|part| part != Component::ParentDir);
        is_plain && !OF_SYSTEM.iter().any(|folder| home == Path::new(folder)) && is_folder(home)
    };
    let mut homes: Vec<PathBuf> = users.lines().filter_map(home_of_person).filter(is_home).collect();
    homes.sort();
    homes.dedup();
    homes
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/usr/sbin:/usr/sbin/nologin\nann:x:1000:1000::/home/ann:/bin/zsh\n\
        bob:x:1001:1001::/home/bob:/bin/sh\nann2:x:1002:1002::/home/ann:/bin/sh\nx:x:1003:1003::/home/../etc:/bin/sh\nbroken\n\
        eve:x:1004:1004::/srv/eve:/bin/sh\njoe:x:1005:1005:Joe, Room 1:/data/people/joe:/bin/sh\ngone:x:1006:1006::/home/gone:/bin/sh\n\
        web:x:33:33::/home/web:/bin/sh\napp:x:1007:1007::/srv/:/bin/sh\nany:x:1008:1008::/:/bin/sh\nrel:x:1009:1009::ws:/bin/sh\n\
        toor:x:0:0::/var/toor:/bin/sh\nnobody:x:65534:65534::/nonexistent:/bin/sh\nold:x:-2:-2::/home/old:/bin/sh\nbare:x:1010:1010::\n";

    #[test]
    fn sb3_homes_are_those_of_root_and_people_wherever_they_are() {
        let homes = people(LISTED, &|home| home != Path::new("/home/gone"));
        let expected = [
            "/data/people/joe",
            "/home/ann",
            "/home/bob",
            "/root",
            "/srv/eve",
            "/var/toor",
        ];
        assert_eq!(homes, expected.map(PathBuf::from));
    }

    #[test]
    fn sb3_the_system_knows_a_home_of_the_user() {
        assert_eq!(home_of(1001, LISTED), Some("/home/bob".into()));
        assert_eq!(home_of(7, LISTED), None);
    }
}
